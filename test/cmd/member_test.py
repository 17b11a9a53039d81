"""`clave member` and `clave members`: who is in a group while a command runs."""
import json
import os
import signal
import unittest

from harness import Running, Served, clave, scratch
from lock_rig import alive, until

FOREVER = ("--", "sleep", "1000")


class Member(Served):
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

    # ---- health

    def join_checked(self, *flags, script="echo $$; exec sleep 1000"):
        """Its check fails while there is no file self.well, and prints what it is told."""
        self.well = scratch("well")
        return self.start("member", self.group, "--id", "a", "--health-every", "200ms", "--health",
                          f'echo "$CLAVE_EVENT $CLAVE_PATH"; test -e {self.well}', *flags, "--", "sh", "-c", script)

    def test_it_is_there_while_it_is_healthy(self):
        member = self.join_checked()
        command = int(member.line())  # it runs before its node is there
        self.assertIn(f"{self.group}/a: not healthy yet, its node is not there: the health check failed with exit "
                      f"code 1: unhealthy {self.group}/a", member.process.stderr.readline())
        self.assertEqual(self.ids(), [])
        sessions = set()
        for _ in range(2):
            with open(self.well, "w", encoding="utf-8"):
                pass
            self.assertIn("healthy: its node is there", member.process.stderr.readline())
            until(lambda: self.ids() == ["a"], what="the member")
            sessions.add(json.loads(self.verb("members", "--json", self.group).out)["stat"]["ephemeral_owner"])
            os.unlink(self.well)
            self.assertIn(f"unhealthy, its node is not there: the health check failed with exit code 1: healthy {self.group}/a",
                          member.process.stderr.readline())
            until(lambda: self.ids() == [], what="no member")
        self.assertEqual(len(sessions), 1, "it keeps its session")
        self.assertTrue(alive(command))
        self.assertEqual(member.end(signal.SIGTERM).code, 128 + signal.SIGTERM)
        self.assertFalse(alive(command))

    def test_a_node_that_somebody_deletes_comes_back_while_it_is_healthy(self):
        member = self.join_checked()
        member.line()
        with open(self.well, "w", encoding="utf-8"):
            pass
        until(lambda: self.ids() == ["a"], what="the member")
        self.verb("rm", f"{self.group}/a")
        until(lambda: self.ids() == ["a"], what="the member again")
        member.end(signal.SIGTERM)
        self.assertEqual(self.ids(), [])

    def test_it_ends_the_command_when_asked(self):
        member = self.join_checked("--on-unhealthy", "end", "--health-grace", "0")
        command = int(member.line())
        r = member.end()
        self.assertEqual(r.code, 80, r)
        self.assertIn("ending the command: the health check failed with exit code 1", r.err)
        self.assertFalse(alive(command))
        count = scratch("count")
        slow = self.start("member", self.group, "--id", "a", "--health-every", "200ms", "--health-grace", "1h",
                          "--on-unhealthy", "end", "--health", f"echo >>{count}; false", "--", "sh", "-c",
                          f"until test $(wc -l <{count}) -ge 6; do sleep 0.05; done; exit 3")
        self.assertEqual(slow.end().code, 3, "it may take its time to become healthy")

    def test_health_usage(self):
        for flags, why in ((["--health-every", "1s"], "need --health"), (["--on-unhealthy", "end"], "needs --health"),
                           (["--health", "true", "--on-unhealthy", "disable"], "expected remove or end"),
                           (["--health", "true", "--health-timeout", "6s"], "longer than --health-every (5s)")):
            self.assertIn(why, self.verb("member", self.group, *flags, "--", "true", code=64).err)

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
