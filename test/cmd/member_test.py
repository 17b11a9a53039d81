"""`clave member` and `clave members`: who is in a group while a command runs."""
import json
import signal
import unittest

from harness import Running, clave, server
from lock_rig import until

FOREVER = ("--", "sleep", "1000")


class Member(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.group = "/" + self.id().rsplit(".", 1)[1]

    def verb(self, *words, code=0):
        r = clave(*words, connect=self.server.connect)
        self.assertEqual(r.code, code, (words, r.err))
        return r

    def start(self, *words):
        return Running(*words, connect=self.server.connect)

    def join(self, ident, *flags):
        return self.start("member", self.group, "--id", ident, *flags, *FOREVER)

    def ids(self):
        return [json.loads(line)["id"] for line in self.verb("members", "--json", self.group).out.splitlines()]

    def says(self, data):
        return data in self.verb("members", self.group).out

    def test_while_the_command_runs(self):
        member = self.join("a", "--data", "10.0.0.7 80")
        until(lambda: self.ids() == ["a"], what="the member")
        self.assertRegex(self.verb("members", self.group).out, r"^a \S+ 10\.0\.0\.7 80\n$")
        self.verb("rm", f"{self.group}/a")
        until(lambda: self.ids() == ["a"], what="the member again")
        ended = member.end(signal.SIGTERM)
        self.assertEqual(ended.code, 128 + signal.SIGTERM)
        self.assertIn("created again", ended.err)
        self.assertEqual(self.ids(), [])

    def test_exit_codes(self):
        self.verb("member", self.group, "--", "sh", "-c", "exit 5", code=5)
        self.verb("member", self.group, "--", "/no/such", code=127)
        self.verb("member", self.group, "--", "/", code=126)
        for name in "a/b", "":
            self.assertIn("--id", self.verb("member", self.group, "--id", name, "--", "true", code=64).err)
        self.assertEqual(self.verb("members", self.group + "-of-nobody").out, "")

    def test_one_id_twice(self):
        first = self.join("a", "--data", "first")
        until(lambda: self.says("first"), what="the first")
        second = self.join("a", "--data", "second")
        self.assertIn("has a member of this id", second.process.stderr.readline())
        first.end(signal.SIGTERM)
        until(lambda: self.says("second"), what="the second")
        third = self.join("a", "--data", "third", "--replace")
        until(lambda: self.says("third"), what="the third")
        self.assertIn("is created again", second.process.stderr.readline())
        self.assertIn("has a member of this id", second.process.stderr.readline())
        third.end(signal.SIGTERM)
        until(lambda: self.says("second"), what="the second again")
        second.end(signal.SIGTERM)

    def test_a_wait_can_be_ended(self):
        self.verb("create", "--parents", f"{self.group}/a")
        waiting = self.join("a")
        self.assertIn("no member is in the way", waiting.process.stderr.readline())
        self.assertEqual(waiting.end(signal.SIGTERM).code, 128 + signal.SIGTERM)

    def test_watch(self):
        watch = self.start("members", "--watch", "--json", self.group)
        member = self.join("a")
        self.assertEqual(json.loads(watch.line())["id"], "a")
        other = self.join("b")
        self.assertEqual([json.loads(watch.line())["id"] for _ in range(2)], ["a", "b"])
        member.end(signal.SIGTERM)
        self.assertEqual(json.loads(watch.line())["id"], "b")
        other.end(signal.SIGTERM)
        watch.end(signal.SIGTERM)


if __name__ == "__main__":
    unittest.main(verbosity=2)
