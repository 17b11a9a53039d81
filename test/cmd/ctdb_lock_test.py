"""`clave ctdb-lock`: the protocol of CTDB's cluster mutex helpers (cluster_mutex_helper.txt of ctdb)."""
import os
import signal
import subprocess
import time
import unittest

from harness import CLAVE, PATIENCE, clave, environment, free_port, server, spawn

# Runs the helper as its child, on its own streams, and says which process it is.
PARENT = 'exec 3<&0; "$@" <&3 & echo $! >&2; wait'


class Helper:
    """Run by a shell, as ctdbd does, so that the shell can be killed."""

    def __init__(self, connect, path, *flags):
        self.process = spawn(["sh", "-c", PARENT, "sh", CLAVE, "ctdb-lock", *flags, path],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment(CLAVE_CONNECT=connect))
        self.pid = int(self.process.stderr.readline())

    def status(self):
        return os.read(self.process.stdout.fileno(), 2)

    def ended(self):
        """The helper closed its end of the pipe, without another status."""
        return self.status() == b""


class CtdbLock(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=["--tick", "200ms"])

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def helper(self, path, *flags):
        h = Helper(self.server.connect, path, *flags)
        self.addCleanup(h.process.communicate)
        self.addCleanup(lambda: h.process.poll() is None and h.process.kill())
        return h

    def verb(self, *words):
        return clave(*words, connect=self.server.connect)

    def nodes(self, path):
        return self.verb("ls", path).out.split()

    def test_held_until_sigterm(self):
        h = self.helper("/ctdb/term")
        self.assertEqual(h.status(), b"0")
        self.assertEqual(len(self.nodes("/ctdb/term")), 1)
        os.kill(h.pid, signal.SIGTERM)
        self.assertTrue(h.ended())
        self.assertEqual(self.nodes("/ctdb/term"), [], "released before the process ended")

    def test_contention(self):
        h = self.helper("/ctdb/two")
        self.assertEqual(h.status(), b"0")
        r = self.verb("ctdb-lock", "/ctdb/two")
        self.assertEqual((r.code, r.out, r.err), (75, "1", ""), r)
        self.assertEqual(len(self.nodes("/ctdb/two")), 1, "the try left no node")

    def test_the_parent_is_killed(self):
        h = self.helper("/ctdb/orphan")
        self.assertEqual(h.status(), b"0")
        h.process.kill()
        self.assertTrue(h.ended())
        self.assertEqual(self.nodes("/ctdb/orphan"), [])

    def test_the_lock_is_lost(self):
        """Somebody deletes the node: CTDB hears of it by the end of the pipe."""
        h = self.helper("/ctdb/lost")
        self.assertEqual(h.status(), b"0")
        node = self.nodes("/ctdb/lost")[0]
        self.assertEqual(self.verb("rm", f"/ctdb/lost/{node}").code, 0)
        self.assertTrue(h.ended())

    def test_no_server(self):
        began = time.monotonic()
        r = clave("ctdb-lock", "--timeout", "300ms", "/ctdb/none", connect=f"127.0.0.1:{free_port()}")
        self.assertEqual((r.code, r.out), (69, "3"), r)
        self.assertIn("ctdb-lock", r.err)
        self.assertLess(time.monotonic() - began, PATIENCE / 2)

    def test_a_path_that_is_not_valid(self):
        r = self.verb("ctdb-lock", "no-slash")
        self.assertEqual((r.code, r.out), (66, "3"), r)

    def test_sigterm_while_connecting(self):
        h = Helper(f"127.0.0.1:{free_port()}", "/ctdb/early", "--timeout", "60s")
        self.addCleanup(h.process.communicate)
        os.kill(h.pid, signal.SIGTERM)
        self.assertTrue(h.ended())


if __name__ == "__main__":
    unittest.main()
