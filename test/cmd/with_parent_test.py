"""`--with-parent`: the lock ends when the process that started `clave lock` does, or another one that was named."""
import errno
import glob
import json
import os
import signal
import subprocess
import threading
import time
import unittest

from harness import CLAVE, PATIENCE, clave, environment, scratch, server, spawn
from lock_rig import (HANDOVER_S, LIBC, LONG, PR_SET_CHILD_SUBREAPER, TICK, TWO_HOLD, Holder, alive, forbid_call, nodes,
                      queue, stat, until)

PIDFD_OPEN = 434  # on every architecture
EXIT_OF_A_THREAD = {"x86_64": 60, "aarch64": 93}.get(os.uname().machine)
INSIDE = ["unshare", "-pf", "--mount-proc", "--kill-child"]
# Starts what it is given as its child and writes the number of that into a file.
PARENT = 'exec 3<&0; pid=$1; shift; "$@" <&3 & echo $! >"$pid.new"; mv "$pid.new" "$pid"; wait'
# The same in a thread, which then ends; with "main" it is the first thread that ends.
THREADS = """
import ctypes, os, subprocess, sys, threading
how, number, pid, *words = sys.argv[1:]
def start():
    p = subprocess.Popen(words)
    with open(pid + ".new", "w") as f:
        f.write(str(p.pid))
    os.rename(pid + ".new", pid)
def stay():
    start()
    open(pid + ".main", "w").close()
    os.read(0, 1)
if how == "main":
    threading.Thread(target=stay).start()
    ctypes.CDLL(None).syscall(int(number), 0)
t = threading.Thread(target=start)
t.start()
t.join()
open(pid + ".main", "w").close()
os.read(0, 1)
"""
STUBBORN = "trap '' TERM HUP INT; echo; while :; do sleep 0.02; done"


def without_pidfd():
    """From here on pidfd_open(2) fails as before Linux 5.3."""
    forbid_call(PIDFD_OPEN, errno.ENOSYS)


def can_be_process_1():
    return subprocess.run(INSIDE + ["true"], stderr=subprocess.DEVNULL).returncode == 0


OTHER_USER = ["setpriv", "--reuid=54329", "--regid=54329", "--clear-groups"]


def can_be_another_user():
    return os.geteuid() == 0 and subprocess.run(OTHER_USER + [CLAVE, "version"], stdout=subprocess.DEVNULL,
                                                stderr=subprocess.DEVNULL).returncode == 0


class Child:
    """The program as the child of a process that can be killed."""

    def __init__(self, test, *words, parent=("sh", "-c", PARENT, "sh"), before=None, env=None):
        pid = scratch("pid")
        self.process = spawn([*parent, pid, CLAVE, *words], before=before, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True,
                             env=environment(CLAVE_CONNECT=test.server.connect, **(env or {})))
        until(lambda: os.path.exists(pid))
        with open(pid) as f:
            self.pid = int(f.read())
        self.main = pid + ".main"
        self.ended = None
        test.addCleanup(self.clean)

    def clean(self):
        self.process.kill()
        if self.ended is None and alive(self.pid):
            os.kill(self.pid, signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE)

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def started(self):
        """Waits until the command runs, which says its number first."""
        self.command = int(self.line())
        self.guardian = stat(self.command)[1]
        return self

    def orphan(self):
        """Kills the parent. Its child becomes ours, since this process is a sub-reaper."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self):
        """Its exit code, the rest of its output and its messages, once the parent is dead."""
        out, err = self.process.communicate(timeout=PATIENCE)
        until(lambda: not alive(self.pid), what="its end")
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status), out, err


class WithParent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=TICK)
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.path = "/" + self.id().rpartition(".")[2]

    def child(self, *flags, verb="lock", script="exec sleep 1000", flag="--with-parent", **keywords):
        return Child(self, verb, "--session-timeout", LONG, flag, *flags, self.path, "--", "sh", "-c",
                     "echo $$; " + script, **keywords)

    def next(self, n=2):
        return Holder(self.server, self.path).waiting(self.server, self.path, n)

    def held(self, h):
        """For half a second from now on."""
        r = clave("lock", "-w", "500ms", self.path, "true", connect=self.server.connect)
        self.assertEqual(r.code, 75, r)
        self.assertTrue(alive(h.command))

    def verb(self, *words, **keywords):
        return clave(*words, connect=self.server.connect, **keywords)

    # ---- the parent is killed

    def check_waiting(self, **keywords):
        holder = Holder(self.server, self.path).started()
        w = self.child(**keywords)
        until(lambda: len(queue(self.server, self.path)) == 2)
        w.orphan()
        code, out, err = w.end()
        self.assertEqual((code, out), (76, ""), err)
        self.assertRegex(err, "not acquired: process [0-9]+, with which this one is to end, has ended")
        self.assertEqual(len(nodes(self.server, self.path)), 1, "its place is left at once")
        holder.run.end(signal.SIGTERM)

    def test_killed_while_waiting(self):
        self.check_waiting()

    def test_killed_while_waiting_without_pidfd(self):
        self.check_waiting(before=without_pidfd)

    def check_holding(self, **keywords):
        file = scratch("cleaned")
        h = self.child(script=f"trap 'echo bye > {file}; exit 0' TERM; echo; while :; do sleep 0.02; done",
                       **keywords).started()
        h.line()
        w = self.next()
        h.orphan()
        w.started()
        self.assertFalse(alive(h.command), TWO_HOLD)
        code, _, err = h.end()
        self.assertEqual(code, 76, err)
        self.assertIn("has ended: ending the command", err)
        with open(file) as f:
            self.assertEqual(f.read(), "bye\n")
        w.run.end(signal.SIGTERM)

    def test_killed_while_holding(self):
        self.check_holding()

    def test_killed_while_holding_without_pidfd(self):
        self.check_holding(before=without_pidfd)

    def test_a_stubborn_command(self):
        """The lock is released when it has ended, not before; --on-lost is about other ends."""
        h = self.child("--grace", "300ms", "--on-lost", "ignore", script=STUBBORN).started()
        h.line()
        w = self.next()
        h.orphan()
        w.started()
        self.assertFalse(alive(h.command), TWO_HOLD)
        self.assertEqual(h.end()[0], 76)
        w.run.end(signal.SIGTERM)

    def test_killed_with_clave_while_holding(self):
        for first in (0, 1):
            h = self.child("--grace", "100ms", script=STUBBORN).started()
            h.line()
            w = self.next()
            start = time.monotonic()
            pids = [h.process.pid, h.pid]
            os.kill(pids[first], signal.SIGKILL)
            os.kill(pids[1 - first], signal.SIGKILL)
            w.started()
            self.assertFalse(alive(h.command), TWO_HOLD)
            self.assertLess(time.monotonic() - start, HANDOVER_S)
            until(lambda: not alive(h.guardian))
            w.run.end(signal.SIGTERM)

    def test_killed_with_clave_while_waiting(self):
        holder = Holder(self.server, self.path).started()
        w = self.child()
        until(lambda: len(queue(self.server, self.path)) == 2)
        os.kill(w.process.pid, signal.SIGKILL)
        os.kill(w.pid, signal.SIGKILL)
        until(lambda: len(nodes(self.server, self.path)) == 1, HANDOVER_S)
        holder.run.end(signal.SIGTERM)

    def test_killed_during_the_minimum_hold(self):
        h = self.child("--min-hold", "1000s", "-v", script="exit 3")
        until(lambda: "the minimum hold lasts" in h.process.stderr.readline())
        h.orphan()
        self.assertEqual(h.end()[0], 3)
        self.assertEqual(nodes(self.server, self.path), [])

    def check_early(self, **keywords):
        """clave reads its configuration first, and is kept there until its parent is gone."""
        config = scratch("config")
        os.mkfifo(config)
        pipe = os.open(config, os.O_RDWR)
        h = self.child(env={"CLAVE_SYSTEM_CONFIG": config}, **keywords)
        until(lambda: any(os.path.exists(fd) and os.path.samefile(fd, config)
                          for fd in glob.glob(f"/proc/{h.pid}/fd/*")), what="the reading of its configuration")
        h.orphan()
        os.write(pipe, b"# nothing\n")
        os.close(pipe)
        code, out, err = h.end()
        self.assertEqual((code, out), (76, ""), err)
        self.assertIn("not started: process", err)
        self.assertEqual(self.verb("stat", self.path).code, 66, "nothing was created")

    def test_killed_before_it_is_watched(self):
        self.check_early()

    def test_killed_before_it_is_watched_without_pidfd(self):
        self.check_early(before=without_pidfd)

    def test_json(self):
        h = self.child("--json").started()
        w = self.child("--json")
        until(lambda: len(queue(self.server, self.path)) == 2)
        w.orphan()
        told = [json.loads(line) for line in w.end()[2].splitlines()]
        self.assertEqual(told[-1]["event"], "not-acquired")
        self.assertIn("has ended", told[-1]["why"])
        h.orphan()
        told = [json.loads(line) for line in h.end()[2].splitlines()]
        self.assertIn(("ending", "parent"), [(t["event"], t.get("cause")) for t in told])

    # ---- its threads

    def check_thread(self, how, **keywords):
        h = self.child(parent=("/usr/bin/python3", "-c", THREADS, how, str(EXIT_OF_A_THREAD)), **keywords).started()
        until(lambda: os.path.exists(h.main))
        if how == "main":
            until(lambda: stat(h.process.pid)[0] == "Z", what="the end of the first thread")
        self.held(h)
        h.orphan()
        code, _, err = h.end()
        self.assertEqual(code, 76, err)

    def test_the_thread_that_started_it_ends(self):
        self.check_thread("other")
        self.check_thread("other", before=without_pidfd)

    @unittest.skipUnless(EXIT_OF_A_THREAD, "the number of exit(2) is not known here")
    def test_the_first_thread_of_the_parent_ends(self):
        self.check_thread("main")
        self.check_thread("main", before=without_pidfd)

    # ---- a process that is named

    def check_named(self, before=None, run_as=()):
        named = spawn(["sleep", "1000"], stdin=subprocess.DEVNULL)
        p = spawn([*run_as, CLAVE, "lock", f"--with-parent={named.pid}", self.path, "--", "sh", "-c",
                   "echo $$; exec sleep 1000"], before=before, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True,
                  env=environment(CLAVE_CONNECT=self.server.connect, HOME="/nonexistent"))
        command = int(p.stdout.readline())
        self.assertTrue(alive(command))
        named.kill()  # and still a zombie: nobody waits for it
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 76, err)
        self.assertIn(f"process {named.pid}, with which this one is to end, has ended: ending the command", err)
        self.assertFalse(alive(command))
        named.wait(PATIENCE)
        return named.pid

    def test_a_named_process(self):
        ended = self.check_named()
        r = self.verb("lock", f"--with-parent={ended}", self.path, "true")
        self.assertEqual(r.code, 76, r)
        self.assertIn(f"process {ended}, with which this one is to end, has ended", r.err)

    def test_a_named_process_without_pidfd(self):
        ended = self.check_named(before=without_pidfd)
        r = self.verb("lock", f"--with-parent={ended}", self.path, "true")
        self.assertEqual(r.code, 76, r)

    @unittest.skipUnless(can_be_another_user(), "clave cannot be run as another user here")
    def test_a_process_of_another_user(self):
        self.check_named(run_as=OTHER_USER)
        self.check_named(run_as=OTHER_USER, before=without_pidfd)

    def test_what_cannot_be_named(self):
        for value, why in (("1", "not a number from 2"), ("0", "not a number from 2"), ("-5", "not a number from 2"),
                           ("self", "not a number from 2")):
            r = self.verb("lock", f"--with-parent={value}", self.path, "true")
            self.assertEqual(r.code, 64, r)
            self.assertIn(why, r.err)
        r = spawn(["sh", "-c", f"exec {CLAVE} lock --with-parent=$$ {self.path} true"], stdin=subprocess.DEVNULL,
                  stderr=subprocess.PIPE, env=environment(CLAVE_CONNECT=self.server.connect))
        _, err = r.communicate(timeout=PATIENCE)
        self.assertEqual(r.returncode, 64, err)
        self.assertIn(b"is the process of clave lock itself", err)

    def test_a_thread_cannot_be_named(self):
        known, done = threading.Event(), threading.Event()
        t = threading.Thread(target=lambda: (known.set(), done.wait(PATIENCE)))
        t.start()
        known.wait(PATIENCE)
        r = self.verb("lock", f"--with-parent={t.native_id}", self.path, "true")
        done.set()
        t.join()
        self.assertEqual(r.code, 64, r)
        self.assertIn("is the number of a thread", r.err)

    @unittest.skipUnless(can_be_process_1(), "no namespace of processes can be made here")
    def test_a_parent_that_cannot_be_watched(self):
        """Process 1 takes every orphan, so it says nothing of the process that started this one."""
        words = f"{CLAVE} lock --with-parent {self.path} true"
        for inside, why in ((["sh", "-c", words + "; exit $?"], "process 1 started this one"),
                            (["sh", "-c", "exec " + words], "in another PID namespace")):
            p = spawn(INSIDE + inside, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                      env=environment(CLAVE_CONNECT=self.server.connect))
            _, err = p.communicate(timeout=PATIENCE)
            self.assertEqual(p.returncode, 73, err)
            self.assertIn(why, err)

    # ---- the other verbs

    def test_elect_is_no_candidate_again(self):
        """The second term is another program in the same process, with the parent of the first."""
        again = scratch("again")
        h = self.child("--forever", verb="elect", script=f"echo ${{CLAVE_WITH_PARENT-none}}; [ -e {again} ] && "
                       f"exec sleep 1000; touch {again}")
        for _ in range(2):
            int(h.line())
            self.assertEqual(h.line(), "none")
        h.orphan()
        code, _, err = h.end()
        self.assertEqual(code, 76, err)
        self.assertEqual(nodes(self.server, self.path), [])

    def test_elect_keeps_a_named_process(self):
        named = spawn(["sleep", "1000"], stdin=subprocess.DEVNULL)
        h = self.child("--forever", verb="elect", flag=f"--with-parent={named.pid}",
                       script="echo ${CLAVE_WITH_PARENT-none}")
        for _ in range(2):
            int(h.line())
            self.assertEqual(h.line(), "none")
        named.kill()
        _, err = h.process.communicate(timeout=PATIENCE)
        named.wait(PATIENCE)
        self.assertFalse(alive(h.pid), err)
        self.assertEqual(nodes(self.server, self.path), [])

    def test_elect_between_two_terms(self):
        h = self.child("--forever", verb="elect", script="exit 3")
        int(h.line())
        until(lambda: nodes(self.server, self.path) == [])
        h.orphan()
        code, _, err = h.end()
        self.assertIn(code, (3, 76), err)

    def test_semaphore(self):
        h = self.child("-n1", verb="semaphore").started()
        h.orphan()
        self.assertEqual(h.end()[0], 76)
        self.assertEqual(nodes(self.server, self.path + "/leases"), [])


if __name__ == "__main__":
    unittest.main()
