"""Lock nodes that may not be read: nothing of them is known but that they stand there. That is
what has to be said, and nobody may take it for a lock that nobody owns."""
import json
import unittest

from harness import Running, clave, server
from lock_rig import TICK, queue

JOE = ["--auth", "digest:joe:secret"]


class Unreadable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=TICK)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def verb(self, *words, **keywords):
        return clave(*words, connect=self.server.connect, **keywords)

    def hold(self, verb, path):
        """A holder whose node is joe's alone; its token."""
        held = Running(*JOE, verb, "--acl", "creator", path, "--", "sh", "-c",
                       "echo $CLAVE_TOKEN; exec sleep 1000", connect=self.server.connect)
        token = held.line()

        def end():
            held.process.terminate()
            held.end()
        self.addCleanup(end)
        return token

    def test_break_does_not_take_it_for_nobodys(self):
        self.hold("lock", "/live")
        node = queue(self.server, "/live")[0]["node"]
        r = self.verb("locks", "break", "/live", node)
        self.assertEqual((r.code, r.out), (73, ""), r)
        self.assertIn("may not be read", r.err)
        self.assertEqual([p["node"] for p in queue(self.server, "/live")], [node])
        r = self.verb("locks", "break", "/live", "0")
        self.assertEqual(r.code, 66, r)

    def test_check_does_not_say_that_it_is_free(self):
        for verb in "lock", "elect":
            path = "/check-" + verb
            token = self.hold(verb, path)
            r = self.verb("check", path, token)
            self.assertEqual(r.code, 77, r)
            self.assertIn(f"{path}: not authorised", r.err)
            self.assertEqual(self.verb(*JOE, "check", path, token).code, 0)
            self.assertEqual(self.verb(*JOE, "check", path, int(token) + 1).code, 76)

    def test_what_is_not_known_is_not_shown(self):
        self.hold("lock", "/shown")
        self.hold("elect", "/led")
        self.assertEqual(self.verb("locks", "/shown").out, "0 holder  -      - - - - -\n")
        self.assertEqual(self.verb("candidates", "/led").out, "0 leader  -      - -\n")
        self.assertEqual(self.verb("leader", "/led").out, "leader - -\n")
        for words in ["locks", "/shown"], ["candidates", "/led"], ["leader", "/led"]:
            shown = json.loads(self.verb("--json", *words).out)
            self.assertTrue(shown["node"].startswith("_c_"), shown)
            for key in "token", "session", "since_ms", "age_ms":
                self.assertIsNone(shown.get(key), (words, shown))
            self.assertIn("token", shown)


if __name__ == "__main__":
    unittest.main()
