"""What a command under `clave lock` starts and hides: nothing of it outlives the lock, however fast it
starts the next, whatever it calls itself."""
import errno
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import CLAVE, PATIENCE, Served, clave, environment, scratch, spawn
from lock_rig import LONG, PR_SET_CHILD_SUBREAPER, TICK, Holder, alive, forbid_call, nodes, until

BREEDER = os.environ["CLAVE_BREEDER"]
PRCTL = {"x86_64": 157, "aarch64": 167}.get(os.uname().machine)
LIFE_S = 3 * PATIENCE  # they end by themselves, later than any test that they could deceive


def is_over(stream):
    """Everybody who had the other end is gone: at once, not after a while."""
    while select.select([stream], [], [], 0)[0]:
        if not os.read(stream.fileno(), 65536):
            return True
    return False


class WithServer(Served):
    flags = TICK


class Breeders(WithServer):
    """Each of them twice: the standard output that they share says when the last of them has ended."""

    def hold(self, how, then):
        path = f"/{self.id().rpartition('.')[2]}-{how}"
        script = f"{BREEDER} {how} {LIFE_S} & sleep 0.3; echo; {then}"
        h = Holder(self.server, path, "--grace", "50ms", "--session-timeout", LONG,
                   script=script).started()
        self.assertEqual(h.run.line(), "")
        h.path = path
        return h

    def ended(self, h):
        code = h.run.process.wait(PATIENCE)
        self.assertTrue(is_over(h.run.process.stdout), "some of them outlive the wrapper")
        return code

    def test_the_command_ends(self):
        for how in ("chain", "bomb"):
            self.assertEqual(self.ended(self.hold(how, "exit 3")), 3)

    def test_the_lock_is_lost(self):
        for how in ("chain", "bomb"):
            h = self.hold(how, "sleep 1000")
            clave("rm", f"{h.path}/{nodes(self.server, h.path)[0]}", connect=self.server.connect)
            self.assertEqual(self.ended(h), 76)

    def test_the_wrapper_is_killed(self):
        for how in ("chain", "bomb"):
            h = self.hold(how, "sleep 1000")
            w = Holder(self.server, h.path).waiting(self.server, h.path, 2)
            os.kill(h.wrapper, signal.SIGKILL)
            w.started()
            self.assertFalse(alive(h.command))
            self.assertTrue(is_over(h.run.process.stdout), "they had ended before the next began")
            h.run.process.wait()
            w.run.end(signal.SIGTERM)

    def test_the_guardian_is_killed(self):
        for how in ("chain", "bomb"):
            h = self.hold(how, "sleep 1000")
            os.kill(h.guardian, signal.SIGKILL)
            self.assertEqual(self.ended(h), 137)


# Its first thread ends, and another goes on: /proc calls such a process a zombie.
HEADLESS = """
import ctypes, sys, threading, time
threading.Thread(target=time.sleep, args=(float(sys.argv[1]),)).start()
print(flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[sys.argv[2]], 0)
"""


@unittest.skipUnless(PRCTL, "the number of exit(2) is not known here")
class Headless(WithServer):
    def hold(self, then):
        path = f"/{self.id().rpartition('.')[2]}"
        words = shlex.join([sys.executable, "-c", HEADLESS, str(LIFE_S), os.uname().machine])
        h = Holder(self.server, path, "--grace", "50ms", "--session-timeout", LONG,
                   script=f"setsid {words} & echo $!; {then}").started()
        child = int(h.run.line())
        self.assertEqual(h.run.line(), "")
        until(lambda: state(child) == "Z")
        h.path = path
        return h

    def test_the_command_ends(self):
        h = self.hold("trap 'exit 3' USR1; while :; do sleep 0.05; done")
        os.kill(h.command, signal.SIGUSR1)
        self.assertEqual(h.run.process.wait(PATIENCE), 3)
        self.assertTrue(is_over(h.run.process.stdout), "its threads outlive the wrapper")

    def test_the_lock_is_lost(self):
        h = self.hold("sleep 1000")
        clave("rm", f"{h.path}/{nodes(self.server, h.path)[0]}", connect=self.server.connect)
        self.assertEqual(h.run.process.wait(PATIENCE), 76)
        self.assertTrue(is_over(h.run.process.stdout), "its threads outlive the wrapper")


def state(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0]


def mounts_of_cgroup2():
    with open("/proc/self/mountinfo") as f:
        return [line.split()[4] for line in f if " - cgroup2 " in line]


# A shell that sees no control groups of the second version, and becomes what it is told.
BLIND = ["unshare", "-m", "sh", "-c",
         " && ".join([f"umount -l {m}" for m in mounts_of_cgroup2()] + ['exec "$@"']), "sh"]


def can_be_blind():
    return subprocess.run(BLIND + ["true"], stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(mounts_of_cgroup2() and can_be_blind(), "control groups cannot be hidden here")
class BreedersWithoutCgroup(Breeders):
    """The same where none can be made. (Where nobody can, Breeders is this already.)"""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        script = scratch("clave")
        with open(script, "w") as f:
            f.write("#!/bin/sh\nexec " + shlex.join(BLIND + [CLAVE]) + ' "$@"\n')
        os.chmod(script, 0o755)
        harness.CLAVE = script

    @classmethod
    def tearDownClass(cls):
        harness.CLAVE = CLAVE
        super().tearDownClass()


def own_cgroup():
    with open("/proc/self/cgroup") as f:
        found = [line[3:].strip() for line in f if line.startswith("0::")]
    mounts = mounts_of_cgroup2()
    return mounts[0] + found[0] if mounts and found else None


def can_make_cgroups():
    own = own_cgroup()
    probe = own and os.path.join(own, f"clave-test-{os.getpid()}")
    try:
        os.mkdir(probe)
    except (OSError, TypeError):
        return False
    fine = os.path.exists(os.path.join(probe, "cgroup.kill"))
    os.rmdir(probe)
    return fine and not os.path.exists("/run/systemd/system")


@unittest.skipUnless(can_make_cgroups(), "no control group can be made here")
class Cgroup(WithServer):
    def group_of(self, pid):
        with open(f"/proc/{pid}/cgroup") as f:
            name = [line[3:].strip() for line in f if line.startswith("0::")][0]
        return mounts_of_cgroup2()[0] + name

    def test_the_command_has_one_of_its_own(self):
        h = Holder(self.server, "/own").started()
        group = self.group_of(h.command)
        self.assertRegex(group, r"/clave-[0-9a-f]{16}$")
        self.assertEqual(os.path.normpath(os.path.dirname(group)), os.path.normpath(own_cgroup()))
        h.run.end(signal.SIGTERM)
        self.assertFalse(os.path.exists(group))

    def test_it_goes_with_the_guardian(self):
        for who in ("wrapper", "guardian"):
            h = Holder(self.server, "/goes").started()
            group = self.group_of(h.command)
            os.kill(getattr(h, who), signal.SIGKILL)
            h.run.process.wait(PATIENCE)
            until(lambda: not os.path.exists(group))
            self.assertFalse(alive(h.command))

    def test_who_leaves_it_ends_too(self):
        h = Holder(self.server, "/leaves", "--grace", "50ms",
                   script=f"trap '' TERM; echo $$ > {own_cgroup()}/cgroup.procs; sleep 1000 & "
                   "echo $!; wait").started()
        child = int(h.run.line())
        self.assertEqual(os.path.normpath(self.group_of(child)), os.path.normpath(own_cgroup()))
        os.kill(h.wrapper, signal.SIGKILL)
        until(lambda: not alive(h.command) and not alive(child))

    def test_one_within_another(self):
        """The inner wrapper is killed with its guardian; what it leaves, the outer one removes."""
        h = Holder(self.server, "/outer", "--grace", "50ms",
                   script=f"{CLAVE} lock /inner -- sh -c 'echo $$; trap \"\" TERM; "
                   "while :; do sleep 0.05; done'").started()
        group = self.group_of(int(h.run.line()))
        self.assertRegex(group, r"/clave-[0-9a-f]{16}/clave-[0-9a-f]{16}$")
        os.kill(h.wrapper, signal.SIGKILL)
        until(lambda: not os.path.exists(os.path.dirname(group)))


@unittest.skipUnless(PRCTL, "the number of prctl(2) is not known here")
class WithoutSubreaper(WithServer):
    """As on qemu's emulation of Linux: the command runs, and what clave then cannot find is said."""

    def lock(self, *words):
        return spawn([CLAVE, "lock", "--session-timeout", LONG, *words], stdin=subprocess.DEVNULL,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                     env=environment(CLAVE_CONNECT=self.server.connect),
                     before=lambda: forbid_call(PRCTL, errno.EINVAL, PR_SET_CHILD_SUBREAPER))

    def test_the_command_runs(self):
        p = self.lock("/runs", "--", "sh", "-c", "exit 3")
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 3, err)
        self.assertRegex(err, "/runs: this system has no child sub-reapers: .* may outlive the command")

    def test_the_lock_is_lost(self):
        p = self.lock("--grace", "50ms", "/lost", "--", "sh", "-c",
                      "trap '' TERM; (setsid sleep 1000; :) & echo; sleep 1000; :")
        self.assertEqual(p.stdout.readline(), "\n")
        clave("rm", f"/lost/{nodes(self.server, '/lost')[0]}", connect=self.server.connect)
        self.assertEqual(p.wait(PATIENCE), 76)
        self.assertTrue(is_over(p.stdout), "it is found in its own session, too: its parents live")
        p.communicate()

    def test_all_of_it_must_be_killable(self):
        p = self.lock("--require-killable", "/all", "--", "echo", "ran")
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual((p.returncode, out), (70, ""), err)
        self.assertIn("cannot become a child sub-reaper", err)


def in_namespace(*words):
    """Whether `words`, which make one, work here."""
    return subprocess.run([*words, "true"], stdin=subprocess.DEVNULL,
                          capture_output=True).returncode == 0


# A PID namespace with the /proc of the one above it. It goes on until its input ends: what is left
# in it would be killed with its first process.
FOREIGN = ["unshare", "-fp", "sh", "-c", '"$@"; echo "code $?"; cat', "sh"]
HIDING = ["unshare", "-m", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec setpriv '
          '--reuid 12345 --regid 12345 --clear-groups "$@"', "sh"]
# Not dumpable, as ssh-agent makes itself: with hidepid, /proc does not show it.
HIDDEN = """
import ctypes, sys, time
ctypes.CDLL(None).prctl(4, 0)
print(flush=True)
time.sleep(float(sys.argv[1]))
"""


class Proc(WithServer):
    """What /proc does not show, or shows of others."""

    def lock(self, around, *words, program=CLAVE):
        return spawn([*around, program, "lock", "--grace", "50ms", *words], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                     env=environment(CLAVE_CONNECT=self.server.connect))

    @unittest.skipUnless(in_namespace(*FOREIGN), "no PID namespace can be made here")
    def test_of_another_namespace(self):
        sleep = f"sleep 2.00{os.getpid()}"
        p = self.lock(FOREIGN, "/foreign", "--", "sh", "-c", f"setsid {sleep} & exit 3")
        self.assertEqual(p.stdout.readline(), "code 3\n")
        words = sleep.replace(" ", "\0")
        self.assertFalse([n for n in os.listdir("/proc") if n.isdigit() and runs(n, words)],
                         "the lock is kept until it has ended")
        self.assertIn("/foreign: /proc does not show the processes", p.communicate()[1])

    @unittest.skipUnless(in_namespace(*FOREIGN), "no PID namespace can be made here")
    def test_of_another_namespace_and_all_must_be_killable(self):
        p = self.lock(FOREIGN, "--require-killable", "/foreign", "--", "echo", "ran")
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(out, "code 70\n", err)

    @unittest.skipUnless(in_namespace(*HIDING), "/proc cannot be mounted here")
    def test_a_child_is_hidden(self):
        words = shlex.join(["/usr/bin/python3", "-c", HIDDEN, str(LIFE_S)])
        folder = tempfile.mkdtemp()  # another user may go there
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        p = self.lock(HIDING, "/hidden", "--", "sh", "-c",
                      f"(setsid {words} &) | {{ read shown || exit 4; exit 3; }}",
                      program=shutil.copy(CLAVE, folder))
        self.assertEqual(p.wait(PATIENCE), 3)
        self.assertTrue(is_over(p.stderr), "it outlives the wrapper")
        p.communicate()


class LocalServer(WithServer):
    """The local server is left alone, and nothing that only says that it is one."""

    def run_lock(self, script, *args, **more):
        return clave("lock", "--grace", "50ms", "/l", "--", "sh", "-c", script, CLAVE, *args,
                     connect=self.server.connect, env=more)

    def test_other_programs_with_its_words(self):
        folder = os.path.dirname(scratch("x"))
        with open(os.path.join(folder, "serve"), "w") as f:
            f.write("echo $$; sleep 1000 >/dev/null & echo $!; wait")
        r = self.run_lock('cd "$1"; (setsid sh serve --local . &) | { read a; read b; echo $a $b; }',
                          folder)
        self.assertEqual(r.code, 0, r)
        for pid in r.out.split():
            self.assertFalse(alive(int(pid)), "nor what it has started")

    def test_one_that_the_command_runs_itself(self):
        """It ends with the command, as what else that runs: it was not started for others."""
        folder = scratch("own")
        r = self.run_lock('"$0" serve --local "$1" >/dev/null 2>&1 & echo $!; '
                          'until "$0" -c local: ls / >/dev/null; do sleep 0.05; done', folder,
                          CLAVE_LOCAL_DIR=folder)
        self.assertEqual(r.code, 0, r)
        self.assertFalse(alive(int(r.out)))

    def test_one_that_a_client_has_started(self):
        folder, seen = scratch("local"), set()
        for rest in ("", "trap '' TERM; sleep 1000 & "):
            r = self.run_lock(f'{rest} "$0" -c local: create "$1"; "$0" -c local: stat "$1"',
                              f"/x{len(rest)}", CLAVE_LOCAL_DIR=folder)
            self.assertEqual(r.code, 0, r)
            found = [int(p) for p in os.listdir("/proc") if p.isdigit() and runs(p, folder)]
            self.assertEqual(len(found), 1)
            seen.update(found)
        self.assertEqual(len(seen), 1, "it was not started again")
        os.kill(found[0], signal.SIGTERM)
        until(lambda: not alive(found[0]))


def runs(pid, folder):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return folder.encode() in f.read()
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
