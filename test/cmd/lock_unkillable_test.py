"""A command under `clave lock` that clave cannot end, because it runs as another user or sleeps in
the kernel: that is said, nothing spins, and what can be kept until it has ended is kept."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from harness import CLAVE, PATIENCE, SCRATCH, Running, clave, server
from lock_offspring_test import can_make_cgroups, own_cgroup
from lock_rig import EXPIRES, LONG, TICK, Holder, alive, nodes, queue, stat, until

USER = "54329"
FREEZER = "/sys/fs/cgroup/freezer"
KEPT = ["--grace", "50ms", "--session-timeout", LONG]


def become_user(*before):
    """The words that run clave as an ordinary user."""
    return [*before, "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]


def can_set_user_id():
    return (os.geteuid() == 0 and shutil.which("setpriv") and
            not os.statvfs(SCRATCH).f_flag & os.ST_NOSUID and
            subprocess.run(become_user() + ["true"], stderr=subprocess.DEVNULL).returncode == 0)


def can_hide():
    script = "mount -t proc -o hidepid=2 proc /proc && " + " ".join(become_user()) + " test ! -d /proc/1"
    return subprocess.run(["unshare", "-m", "sh", "-c", script],
                          stderr=subprocess.DEVNULL).returncode == 0


def cpu_ms(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")


def says(h, *words):
    """Reads on until a line of its messages has all the words; fails when none comes in time."""
    timer = threading.Timer(PATIENCE, h.run.process.kill)
    timer.start()
    lines = []
    while not lines or not all(word in lines[-1] for word in words):
        lines.append(h.run.process.stderr.readline())
        if not lines[-1]:
            raise AssertionError(f"it ended without saying {words}: {lines}")
    timer.cancel()
    return lines[-1]


def text_of(path):
    with open(path) as f:
        return f.read()


class AsUser(unittest.TestCase):
    """clave runs as an ordinary user; self.root, a set-user-ID program, runs a command as root."""

    before = ()  # of the words that make it one

    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=TICK)
        os.chmod(SCRATCH, 0o711)
        folder = tempfile.mkdtemp(dir=SCRATCH)
        os.chmod(folder, 0o777)
        cls.program, cls.root, home = (os.path.join(folder, n) for n in ("clave", "root", "home"))
        shutil.copy(CLAVE, cls.program)
        shutil.copy(os.environ["CLAVE_SETUSER"], cls.root)
        os.chmod(cls.root, 0o4755)
        script = os.path.join(folder, "as-user")
        words = become_user(*cls.before)
        with open(script, "w") as f:
            f.write(f'#!/bin/sh\nHOME={home} exec {" ".join(words)} {cls.program} "$@"\n')
        os.chmod(script, 0o755)
        harness.CLAVE = script

    @classmethod
    def tearDownClass(cls):
        harness.CLAVE = CLAVE
        cls.server.stop()

    def setUp(self):
        self.path = "/" + self.id().rpartition(".")[2]
        self.held = []

    def tearDown(self):
        for pid in self.held:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)

    def hold(self, *flags, script, **more):
        h = Holder(self.server, self.path, *flags, script=script, **more).started()
        self.held.append(h.command)
        return h

    def said_of(self, h, *words):
        """The process that is said not to be endable, of a line with these words."""
        line = says(h, " of user root", *words)
        pid = int(line.partition("process ")[2].split()[0])
        self.held.append(pid)
        return pid

    def leaves_behind(self):
        """A command that has ended with code 3, and not what it has started."""
        h = self.hold(*KEPT, script=f"trap 'exit 3' USR1; {self.root} sh -c "
                      "'echo; exec sleep 1000 >/dev/null 2>&1' 2>/dev/null & "
                      "while :; do sleep 0.05; done")
        self.assertEqual(h.run.line(), "")  # said as root: before that clave could end it
        os.kill(h.command, signal.SIGUSR1)
        return h

    def lose(self):
        for node in nodes(self.server, self.path):
            self.assertEqual(clave("rm", f"{self.path}/{node}", connect=self.server.connect).code, 0)

    def rests(self, *pids):
        """They take next to no time of a processor."""
        before = [cpu_ms(pid) for pid in pids]
        time.sleep(2)  # what is measured
        for pid, ms in zip(pids, before):
            self.assertLess(cpu_ms(pid) - ms, 200)


@unittest.skipUnless(can_set_user_id(), "no set-user-ID program can be made here")
class Unkillable(AsUser):
    def test_the_command_itself(self):
        """It is said at once; when the lock is lost it is said again, and clave stays beside it."""
        h = self.hold("--grace", "50ms", "--session-timeout", EXPIRES,
                      script=f"exec {self.root} sleep 1000")
        self.assertEqual(self.said_of(h, "may not end", "--require-killable"), h.command)
        self.lose()
        self.assertEqual(self.said_of(h, "cannot end", "may be another's", "kill -KILL"), h.command)
        self.rests(h.wrapper, h.guardian)
        self.assertEqual(stat(h.command)[1], h.guardian)
        Holder(self.server, self.path).started().run.end(signal.SIGTERM)
        self.assertTrue(alive(h.command))
        os.kill(h.command, signal.SIGKILL)
        r = h.run.end()
        self.assertEqual(r.code, 76, r)
        self.assertNotIn("does not answer", r.err)

    def test_others_are_told(self):
        """In the holder's node, which still says since when it holds: it had to wait."""
        first = Holder(self.server, self.path).started()
        h = Holder(self.server, self.path, script=f"exec {self.root} sleep 1000")
        h.waiting(self.server, self.path, 2)
        first.run.end(signal.SIGTERM)
        h.started()
        self.said_of(h, "may not end")
        until(lambda: queue(self.server, self.path)[0]["text"])
        holder = queue(self.server, self.path)[0]
        self.assertEqual(holder["text"], f"clave cannot end its process {h.command} (sleep) of user root")
        self.assertEqual(holder["pid"], h.wrapper)
        self.assertIsNotNone(holder["held_ms"])
        node = f"{self.path}/{nodes(self.server, self.path)[0]}"
        self.assertRegex(clave("get", node, connect=self.server.connect).out, r"granted-at=\d{13}\n")

    def test_before_the_deadline(self):
        """No server answers: the guardian is not taken for stopped."""
        h = self.hold("--session-timeout", EXPIRES, script=f"exec {self.root} sleep 1000")
        self.said_of(h, "may not end")
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            self.said_of(h, "cannot end", "may be another's")
            says(h, "the lock is lost")
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        self.assertEqual(stat(h.command)[1], h.guardian)
        os.kill(h.command, signal.SIGKILL)
        r = h.run.end()
        self.assertEqual(r.code, 76, r)
        self.assertNotIn("does not answer", r.err)

    def test_what_the_command_leaves_behind_keeps_the_lock(self):
        h = self.leaves_behind()
        pid = self.said_of(h, "cannot end", "not released")
        waiting = Holder(self.server, self.path).waiting(self.server, self.path, 2)
        self.rests(h.wrapper, h.guardian)
        self.assertEqual(len(nodes(self.server, self.path)), 2)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(h.run.end().code, 3)
        waiting.started().run.end(signal.SIGTERM)

    def test_a_descendant_that_changes_its_user_later(self):
        h = self.hold(script=f"sleep 1; {self.root} sleep 1000; exit 4")
        pid = self.said_of(h, "may not end")
        self.assertNotEqual(pid, h.command)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(h.run.end().code, 4)

    def test_a_signal_that_is_to_be_passed_on(self):
        h = self.hold("--json", *KEPT, script=f"exec {self.root} sleep 1000")
        event = json.loads(says(h, "unkillable"))
        self.assertEqual((event["event"], event["process"], event["user"], event["path"]),
                         ("unkillable", h.command, "root", self.path))
        h.run.process.send_signal(signal.SIGTERM)
        self.assertEqual(json.loads(says(h, "denied"))["process"], h.command)
        os.kill(h.command, signal.SIGKILL)
        self.assertEqual(h.run.end().code, 137)

    def test_the_guardian_is_killed(self):
        h = self.hold(*KEPT, script=f"exec {self.root} sleep 1000")
        self.said_of(h, "may not end")
        os.kill(h.guardian, signal.SIGKILL)
        self.assertEqual(self.said_of(h, "cannot end", "not released"), h.command)
        self.rests(h.wrapper)
        self.lose()
        says(h, "the lock is lost")
        os.kill(h.command, signal.SIGKILL)
        self.assertEqual(h.run.end().code, 76)

    def test_the_wrapper_is_killed(self):
        h = self.hold("--session-timeout", EXPIRES, script=f"exec {self.root} sleep 1000")
        self.said_of(h, "may not end")
        os.kill(h.wrapper, signal.SIGKILL)
        self.said_of(h, "cannot end", "runs on after clave lock")
        self.rests(h.guardian)
        os.kill(h.command, signal.SIGKILL)
        until(lambda: not alive(h.guardian))
        h.run.end()

    def test_require_killable(self):
        for verb in (["lock"], ["rwlock"], ["semaphore", "-n", "1"], ["elect"]):
            r = clave_as_user(self, *verb, "--require-killable", self.path + verb[0], "--",
                              self.root, "true")
            self.assertEqual(r.code, 9, r)
            self.assertEqual(r.err, "")


def clave_as_user(case, *words):
    return Running(*words, connect=case.server.connect).end()


@unittest.skipUnless(can_set_user_id() and can_hide(), "processes cannot be hidden here")
class Hidden(AsUser):
    """Where /proc does not show other users' processes."""

    before = ("unshare", "-m", "sh", "-c",
              "'mount -t proc -o hidepid=2 proc /proc && exec \"$@\"'", "sh")

    def test_what_the_command_leaves_behind_keeps_the_lock(self):
        h = self.leaves_behind()
        line = says(h, "cannot end", "of another user", "not released")
        pid = int(line.partition("process ")[2].split()[0])
        self.held.append(pid)
        self.assertEqual(len(nodes(self.server, self.path)), 1)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(h.run.end().code, 3)


@unittest.skipUnless(can_set_user_id() and can_make_cgroups(), "no control group can be made here")
class Delegated(AsUser):
    """In a control group that was delegated to the user, the kernel ends what signals cannot."""

    @classmethod
    def setUpClass(cls):
        cls.group = os.path.join(own_cgroup(), f"clave-test-{os.getpid()}")
        os.mkdir(cls.group)
        for name in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            os.chown(os.path.join(cls.group, name), int(USER), int(USER))
        cls.before = ("sh", "-c", f"'echo $$ >{cls.group}/cgroup.procs && exec \"$@\"'", "sh")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        until(lambda: not os.path.exists(cls.group) or not os.rmdir(cls.group))

    def test_another_user_s_command_is_ended(self):
        h = self.hold(*KEPT, script=f"exec {self.root} sleep 1000")
        self.lose()
        r = h.run.end()
        self.assertEqual(r.code, 76, r)
        self.assertFalse(alive(h.command))
        self.assertNotIn("user root", r.err)

    def test_when_the_guardian_is_killed_too(self):
        h = self.hold(*KEPT, script=f"exec {self.root} sleep 1000")
        until(lambda: stat(h.command) and text_of(f"/proc/{h.command}/comm") == "sleep\n")
        os.kill(h.guardian, signal.SIGKILL)
        self.assertEqual(h.run.end().code, 137)
        self.assertFalse(alive(h.command))


@unittest.skipUnless(os.geteuid() == 0, "not root")
class Root(unittest.TestCase):
    """A frozen process is in state D: SIGKILL waits until it wakes, root's too."""

    def test_it_is_said_when_sigkill_does_not_arrive(self):
        group = os.path.join(FREEZER, f"clave-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError as error:
            self.skipTest(f"no process can be frozen here: {error}")
        self.addCleanup(os.rmdir, group)
        served = server(flags=TICK)
        self.addCleanup(served.stop)
        h = Holder(served, "/asleep", *KEPT).started()
        self.addCleanup(self.freeze, group, h.command, "THAWED")
        self.freeze(group, h.command, "FROZEN")
        clave("rm", f"/asleep/{nodes(served, '/asleep')[0]}", connect=served.connect)
        self.assertIn("(state D)", says(h, f"process {h.command}"))  # it is not another user's
        self.freeze(group, h.command, "THAWED")
        self.assertEqual(h.run.end().code, 76)

    def test_root_can_end_another_user_s(self):
        served = server(flags=TICK)
        self.addCleanup(served.stop)
        h = Holder(served, "/root", *KEPT, script=f"exec setpriv --reuid={USER} sleep 1000").started()
        until(lambda: text_of(f"/proc/{h.command}/comm") == "sleep\n")
        clave("rm", f"/root/{nodes(served, '/root')[0]}", connect=served.connect)
        r = h.run.end()
        self.assertEqual(r.code, 76, r)
        self.assertNotIn(USER, r.err)

    @staticmethod
    def freeze(group, pid, how):
        if alive(pid):
            with open(f"{group}/cgroup.procs", "w") as f:
                f.write(str(pid))
        with open(f"{group}/freezer.state", "w") as f:
            f.write(how)
        until(lambda: text_of(f"{group}/freezer.state") == how + "\n")


if __name__ == "__main__":
    unittest.main()
