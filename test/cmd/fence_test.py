"""`clave lock --fence` and `clave elect --fence`: what is run before the command of the next holder."""
import json
import os
import shutil
import signal
import unittest

from harness import UNSAFE, Running, Served, clave, scratch
from lock_rig import EXPIRES, TICK, Holder, alive, nodes, stranger, until

SAYS = "env | grep ^CLAVE_FENCE_ | sort"
SHORT = ["--session-timeout", EXPIRES]


def told(text):
    return dict(line.split("=", 1) for line in text.splitlines() if line.startswith("CLAVE_FENCE_"))


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except FileNotFoundError:
        return ""


class Fence(Served):
    flags = TICK

    def lock(self, path, fence, *flags, script="echo ran", verb="lock", env=None):
        return clave(verb, "--fence", fence, *SHORT, *flags, path, "--", "sh", "-c", script,
                     connect=self.server.connect, env=env)

    def crash(self, path, *flags, verb="lock", script="exec sleep 1000"):
        """A holder whose runner and guardian are killed at once, so that nobody puts its affairs in order."""
        holder = Holder(self.server, path, "--fence", "false", *SHORT, *flags, verb=(verb,), script=script).started()
        os.kill(holder.guardian, signal.SIGSTOP)
        holder.run.process.kill()
        os.kill(holder.guardian, signal.SIGKILL)
        holder.run.end()
        until(lambda: nodes(self.server, path) == [])
        return holder

    def marked(self, path):
        return path[1:] + "-held" in nodes(self.server, "/")

    def test_an_end_in_order_needs_none(self):
        for script in ("true", "exit 3", "kill -9 $$"):
            self.lock("/order", "echo fenced", script=script)
            r = self.lock("/order", "echo fenced")
            self.assertEqual((r.out, "fenc" in r.err), ("ran\n", False), r)
        holder = Holder(self.server, "/order", "--fence", "true").started()
        self.assertTrue(self.marked("/order"))
        holder.run.end(signal.SIGTERM)
        self.assertFalse(self.marked("/order"))

    def test_the_guardian_of_a_killed_runner_puts_it_in_order(self):
        holder = Holder(self.server, "/alone", "--fence", "true").started()
        holder.run.end(signal.SIGKILL)
        until(lambda: not self.marked("/alone"))
        self.assertNotIn("fenc", self.lock("/alone", "false").err)

    def test_a_crash_is_fenced_before_the_next_command(self):
        holder = self.crash("/crash", "--name", "night job")
        token = int(next(line for line in clave("get", "/crash-held", connect=self.server.connect).out.splitlines()
                         if line.startswith("token=")).split("=")[1])
        log = scratch("log")
        r = self.lock("/crash", f"echo fence >>{log}; {SAYS}",
                      script=f"echo command >>{log}; env | grep -c CLAVE_FENCE_")
        self.assertEqual(read(log), "fence\ncommand\n", UNSAFE)
        self.assertEqual(r.out, "0\n", r)  # the fence's words go to standard error, its variables to no command
        says = told(r.err)
        self.assertEqual(says, {"CLAVE_FENCE_HOST": os.uname().nodename, "CLAVE_FENCE_PID": str(holder.wrapper),
                                "CLAVE_FENCE_NAME": "night job", "CLAVE_FENCE_TOKEN": str(token),
                                "CLAVE_FENCE_COMMAND": says["CLAVE_FENCE_COMMAND"], "CLAVE_FENCE_TEXT": "",
                                "CLAVE_FENCE_CAUSE": "lost"})
        self.assertRegex(r.err, r"/crash: acquired; the previous holder, \S+ pid \d+ \(night job\), did not end in "
                                r"order: fencing it before the command starts")
        self.assertNotIn("fenc", self.lock("/crash", "false").err)

    def test_events(self):
        self.crash("/events")
        r = self.lock("/events", "true", "--json")
        events = [json.loads(line) for line in r.err.splitlines()]
        self.assertEqual([e["event"] for e in events], ["fencing", "fenced", "acquired", "ended"])
        self.assertEqual((events[0]["cause"], events[0]["last"]["host"]), ("lost", os.uname().nodename))

    def test_what_a_failure_does(self):
        self.crash("/fails")
        for fence, why in (("exit 3", "exit code 3"), ("sleep 1000", r"ended after \S+ \(--fence-timeout\)")):
            r = self.lock("/fails", fence, "--fence-fails", "exit", "--fence-timeout", "300ms")
            self.assertEqual((r.code, r.out), (81, ""), f"{UNSAFE}: {r}")
            self.assertRegex(r.err, f"/fails: the fence failed, {why}: giving up")
            self.assertTrue(self.marked("/fails"), UNSAFE)
        count = scratch("count")
        r = self.lock("/fails", f'echo >>{count}; [ "$(wc -l <{count})" = 2 ]')
        self.assertEqual(r.out, "ran\n", r)
        self.assertIn("/fails: the fence failed, exit code 1: trying again in 1s", r.err)
        self.crash("/fails")
        r = self.lock("/fails", "false", "--fence-fails", "pass")
        self.assertEqual(r.out, "ran\n", r)
        self.assertFalse(self.marked("/fails"))

    def test_a_crash_while_it_fences_leaves_it_owed(self):
        self.crash("/again", "--name", "first")
        pid = scratch("pid")
        run = Running("lock", "--fence", f"echo $$ >{pid}; exec sleep 1000", *SHORT, "/again", "--", "echo", "ran",
                      connect=self.server.connect)
        fence = int(until(lambda: read(pid)))
        run.end(signal.SIGKILL)
        until(lambda: not alive(fence))  # nobody is fenced by somebody who no longer holds the lock
        r = self.lock("/again", SAYS)
        self.assertEqual((r.out, told(r.err)["CLAVE_FENCE_NAME"]), ("ran\n", "first"), r)

    def test_a_signal_ends_it(self):
        self.crash("/signal")
        run = Running("lock", "--fence", "echo begun >&2; exec sleep 1000", *SHORT, "/signal", "--", "echo", "ran",
                      connect=self.server.connect)
        while run.process.stderr.readline() != "begun\n":
            pass
        r = run.end(signal.SIGTERM)
        self.assertEqual((r.code, r.out), (143, ""), r)
        self.assertTrue(self.marked("/signal"), UNSAFE)

    def test_elections_too_and_a_leader_that_lost_its_term_does_not_fence_itself(self):
        self.crash("/led", verb="elect")
        r = self.lock("/led", SAYS, verb="elect")
        self.assertEqual((r.out, told(r.err)["CLAVE_FENCE_CAUSE"]), ("ran\n", "lost"), r)
        log = scratch("terms")
        leader = Running("elect", "--forever", "--fence", f"echo fenced >>{log}", *SHORT, "/term", "--", "sh", "-c",
                         f"echo term >>{log}; exec sleep 1000", connect=self.server.connect)
        until(lambda: read(log) == "term\n")
        clave("rm", "/term/" + nodes(self.server, "/term")[0], connect=self.server.connect)
        until(lambda: read(log).count("\n") > 1)
        self.assertEqual(read(log), "term\nterm\n")
        leader.end(signal.SIGTERM)

    def test_holders_that_leave_no_mark(self):
        zk = stranger(self, self.server)
        for when, fences in (("never", False), ("always", True)):
            node = zk.create("/foreign/_c_1-lock-", b"10.0.0.7", ephemeral=True, sequence=True, makepath=True)
            run = Running("lock", "--fence", SAYS, "--fence-foreign", when, *SHORT, "/foreign", "--", "echo", "ran",
                          connect=self.server.connect)
            until(lambda: len(nodes(self.server, "/foreign")) == 2)
            self.assertIn("waiting, 1 ahead", run.process.stderr.readline())  # and has read whom it waits for
            zk.delete(node)
            r = run.end()
            self.assertEqual(r.out, "ran\n", r)
            if fences:
                says = told(r.err)
                self.assertEqual((says["CLAVE_FENCE_CAUSE"], says["CLAVE_FENCE_TEXT"]), ("foreign", "10.0.0.7"), r)
            else:
                self.assertRegex(r.err, r"/foreign: acquired; the previous holder, .*10\.0\.0\.7.*, leaves no mark "
                                        r"\(Curator, kazoo, or clave without --fence\)")

    def test_what_is_refused(self):
        for flags in (["--fence-timeout", "1s"], ["--fence-fails", "exit"], ["--fence-foreign", "always"]):
            r = clave("lock", *flags, "/no", "--", "true", connect=self.server.connect)
            self.assertEqual(r.code, 64, r)
            self.assertIn(f"{flags[0]} needs --fence", r.err)
        r = clave("lock", "--fence", "true", "--fence-fails", "maybe", "/no", "--", "true", connect=self.server.connect)
        self.assertIn("--fence-fails 'maybe': expected wait, pass or exit", r.err)
        r = clave("rwlock", "-r", "--fence", "true", "/no", "--", "true", connect=self.server.connect)
        self.assertIn("need an exclusive lock", r.err)

    @unittest.skipUnless(shutil.which("fence_dummy"), "no fence-agents")
    def test_an_agent_of_debian(self):
        self.crash("/agent")
        state = scratch("state")
        r = self.lock("/agent", f"fence_dummy --action=off --plug=$CLAVE_FENCE_HOST --status-file={state}")
        self.assertEqual(r.out, "ran\n", r)


if __name__ == "__main__":
    unittest.main()
