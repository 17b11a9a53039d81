"""What a gate answers from its copy of the tree while its server is stopped: neither a word nor an end
of the connection tells it."""
import os
import signal
import time
import unittest

from gate_rig import Rig
from harness import PATIENCE, clave


class Silence(Rig):
    def tearDown(self):
        os.kill(self.server.process.pid, signal.SIGCONT)

    def status(self, path, **headers):
        status, _, told = self.gate.call("GET", path, **headers)
        return status, told

    def await_status(self, path, wanted):
        until = time.monotonic() + PATIENCE
        while (got := self.status(path))[0] != wanted:
            self.assertLess(time.monotonic(), until, got)
            time.sleep(0.02)

    def test_a_gate_does_not_say_that_nobody_holds_what_it_cannot_know(self):
        clave("create", "/a", connect=self.server.connect)
        self.assertEqual(self.status("/v1/locks/a")[0], 404)
        stopped = time.monotonic()
        os.kill(self.server.process.pid, signal.SIGSTOP)
        self.await_status("/v1/locks/a", 503)
        self.assertLess(time.monotonic() - stopped, 6)  # the client gives the connection up later
        status, told = self.status("/v1/locks")
        self.assertEqual((status, told["current"]), (200, False))
        self.assertGreater(told["age_ms"], 2000)
        self.assertEqual(self.status("/readyz")[0], 503)
        os.kill(self.server.process.pid, signal.SIGCONT)
        self.await_status("/v1/locks/a", 404)
        self.assertTrue(self.status("/v1/locks")[1]["current"])
        status, told = self.status("/v1/locks?fresh")
        self.assertEqual((status, told["source"]), (200, "servers"))

    def test_a_wait_ends_with_a_change(self):
        status, headers, _ = self.gate.call("GET", "/v1/locks/b")
        self.assertEqual((status, headers["ETag"]), (404, '"none"'))
        begun = time.monotonic()
        status, headers, told = self.gate.call("GET", "/v1/locks/b", If_None_Match='"none"', Prefer="wait=1")
        self.assertEqual((status, told), (304, b""))
        self.assertGreaterEqual(time.monotonic() - begun, 0.9)


if __name__ == "__main__":
    unittest.main()
