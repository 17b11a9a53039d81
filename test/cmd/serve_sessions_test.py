"""clave sessions: the list, the end of a session, and who may."""
import json
import os
import time
import unittest

from harness import PATIENCE, ClaveServer, Running, clave, scratch


class Sessions(unittest.TestCase):
    def setUp(self):
        self.log = scratch("audit.log")
        self.socket = scratch("sock")
        self.server = ClaveServer(["--listen", f"unix:{self.socket}", "--super-uid",
                                   str(os.getuid()), "--audit", self.log])
        self.server.start()
        self.addCleanup(self.server.stop)
        self.root = f"unix:{self.socket}"
        self.holder = Running("lock", "/l", "--session-timeout", "6s", "--", "sleep", "600",
                              connect=self.server.connect)
        self.addCleanup(lambda: self.holder.process.poll() is None and self.holder.process.kill())

    def held(self):
        """The session that has an ephemeral node."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            r = clave("sessions", "--json", connect=self.root)
            self.assertEqual((r.code, r.err), (0, ""), r)
            for s in json.loads(r.out)["sessions"]:
                if s["ephemerals"] == 1:
                    return s
            time.sleep(0.05)
        raise AssertionError("nobody holds the lock")

    def test_the_list(self):
        s = self.held()
        self.assertEqual(s["timeout_ms"], 6000)
        self.assertTrue(s["connection"].startswith("127.0.0.1:"))
        self.assertFalse(s["ending"])
        r = clave("sessions", connect=self.root)
        line = [l for l in r.out.splitlines() if l.startswith(s["session"])]
        self.assertRegex(line[0], r"^0x\S+ +timeout 6s +expires in +\d\.\d s +1 ephemeral +127\.0\.0\.1:\d+$")

    def test_the_end_of_one(self):
        s = self.held()
        r = clave("sessions", "--kill", s["session"], "--json", connect=self.root)
        self.assertEqual((r.code, r.err), (0, ""), r)
        ended = json.loads(r.out)
        self.assertEqual(ended["session"], s["session"])
        # The holder stops by itself, before its lock can go to another.
        self.assertNotEqual(self.holder.process.wait(PATIENCE), 0)
        r = clave("lock", "/l", "--", "true", connect=self.server.connect)
        self.assertEqual(r.code, 0, r)
        with open(self.log) as f:
            lines = f.read()
        self.assertIn(f"operation=delete\tznode=/zookeeper/sessions/{s['session']}\tresult=success", lines)

    def test_at_once(self):
        s = self.held()
        r = clave("sessions", "--kill", "--now", s["session"], connect=self.root)
        self.assertEqual((r.code, r.out, r.err), (0, f"{s['session']}: ended\n", ""))
        self.assertEqual(clave("ls", "/l", connect=self.server.connect).out, "")

    def test_who_may(self):
        r = clave("sessions", connect=self.server.connect)
        self.assertEqual((r.code, r.out), (77, ""))
        self.assertIn("only a super user", r.err)
        s = self.held()
        r = clave("sessions", "--kill", s["session"], connect=self.server.connect)
        self.assertEqual(r.code, 77, r)
        self.held()

    def test_what_is_no_session(self):
        r = clave("sessions", "--kill", "0x123", connect=self.root)
        self.assertEqual(r.code, 66, r)
        self.assertIn("there is no session 0x123", r.err)
        for bad in ("mine", "-1", " 1", "0x1ffffffffffffffff", "1" * 40, "0x", ""):
            self.assertEqual(clave("sessions", "--kill", bad, connect=self.root).code, 64, bad)
        self.assertEqual(clave("sessions", "--kill", connect=self.root).code, 64)
        self.assertEqual(clave("sessions", "0x1", connect=self.root).code, 64)


if __name__ == "__main__":
    unittest.main()
