"""What dies or stops under `clave lock`, one and two at a time, and what follows: nothing of the
command survives, the lock goes on, and never before the command has ended."""
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
import unittest

import harness
from harness import CLAVE, Served, clave, scratch, server
from lock_rig import (EXPIRES, HANDOVER_S, LONG, TICK, TWO_HOLD, Holder, alive, children, nodes,
                      stopped, until)

FREEZER = "/sys/fs/cgroup/freezer"  # of the first version: what is frozen does not even die


def put(folder, name, text):
    try:
        with open(os.path.join(folder, name), "w") as f:
            f.write(str(text))
    except ProcessLookupError:  # it has ended
        pass


# A command with a child, a child in another session, and one whose parent has ended; each
# ignores what it can. The command's own line comes first (lock_rig.Holder).
BROOD = ("trap '' TERM HUP INT; "
         "sleep 1000 & echo $!; "
         "setsid sleep 1000 & echo $!; "
         "(setsid sh -c 'sleep 1000 & echo $!'); "
         "while :; do sleep 0.02; done")


class Deaths(Served):
    flags = TICK

    def hold(self, *flags, session=LONG, **keywords):
        return Holder(self.server, self.path, "--session-timeout", session, *flags,
                      **keywords).started()

    def hold_brood(self, *flags, session=LONG):
        h = self.hold(*flags, session=session, script=BROOD)
        h.brood = [h.command] + [int(h.run.line()) for _ in range(3)]
        for pid in h.brood:
            self.assertTrue(alive(pid))
        return h

    def next(self):
        """The next in the queue."""
        w = Holder(self.server, self.path)
        return w.waiting(self.server, self.path, 2)

    def gone(self, pids):
        until(lambda: not any(alive(p) for p in pids), what=f"the end of {pids}")

    # ---- the wrapper

    def test_wrapper_killed(self):
        h = self.hold()
        w = self.next()
        start = time.monotonic()
        h.run.end(signal.SIGKILL)
        w.started()
        self.assertLess(time.monotonic() - start, HANDOVER_S)
        self.assertFalse(alive(h.command), TWO_HOLD)
        until(lambda: not alive(h.guardian))
        w.run.end(signal.SIGTERM)

    def test_wrapper_killed_and_a_stubborn_brood(self):
        h = self.hold_brood("--grace", "100ms")
        w = self.next()
        start = time.monotonic()
        os.kill(h.wrapper, signal.SIGKILL)
        w.started()
        self.assertLess(time.monotonic() - start, HANDOVER_S)
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)
        w.run.end(signal.SIGTERM)

    def test_wrapper_killed_lets_the_command_clean_up(self):
        file = scratch("cleaned")
        h = self.hold(script=f"trap 'echo bye > {file}; exit' TERM; echo; while :; do sleep 0.02; done")
        h.run.line()
        os.kill(h.wrapper, signal.SIGKILL)
        self.gone([h.command, h.guardian])
        with open(file) as f:
            self.assertEqual(f.read(), "bye\n")

    def test_wrapper_stopped(self):
        """The guardian ends the command before the session can have ended at the server."""
        h = self.hold_brood(session=EXPIRES)
        w = self.next()
        os.kill(h.wrapper, signal.SIGSTOP)
        w.started()
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)
        self.assertTrue(alive(h.guardian))
        os.kill(h.wrapper, signal.SIGCONT)
        r = h.run.end()
        self.assertEqual(r.code, 76, r)
        self.assertIn("no server confirmed the session in time", r.err)
        w.run.end(signal.SIGTERM)

    def test_wrapper_stopped_then_killed(self):
        h = self.hold(session=EXPIRES)
        os.kill(h.wrapper, signal.SIGSTOP)
        self.gone([h.command])
        self.assertTrue(alive(h.guardian))
        h.run.end(signal.SIGKILL)
        self.gone([h.guardian])
        self.assertEqual(clave("lock", "-w", "10s", self.path, "true",
                               connect=self.server.connect).code, 0)

    def test_wrapper_stopped_for_a_moment(self):
        h = self.hold()
        w = self.next()
        os.kill(h.wrapper, signal.SIGSTOP)
        until(lambda: stopped(h.wrapper))
        os.kill(h.wrapper, signal.SIGCONT)
        self.assertTrue(alive(h.command))
        self.assertEqual(h.run.end(signal.SIGTERM).code, 143)
        w.started().run.end(signal.SIGTERM)

    # ---- the guardian

    def test_guardian_killed(self):
        h = self.hold_brood()
        w = self.next()
        start = time.monotonic()
        os.kill(h.guardian, signal.SIGKILL)
        r = h.run.end()
        self.assertEqual(r.code, 137, r)
        self.assertIn("the guardian was killed", r.err)
        w.started()
        self.assertLess(time.monotonic() - start, HANDOVER_S)
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)
        w.run.end(signal.SIGTERM)

    def test_guardian_killed_while_waiting(self):
        h = self.hold()
        w = self.next()
        os.kill(children(w.wrapper)[0], signal.SIGKILL)
        self.assertEqual(w.code(), 70, "nobody would end the command in time: it is not started")
        until(lambda: len(nodes(self.server, self.path)) == 1)
        h.run.end(signal.SIGTERM)

    def test_guardian_stopped(self):
        """Nobody needs it while all goes well; and when the servers are gone, the wrapper acts."""
        server_ = server(flags=TICK)
        h = Holder(server_, self.path, "--session-timeout", EXPIRES, script=BROOD).started()
        brood = [h.command] + [int(h.run.line()) for _ in range(3)]
        os.kill(h.guardian, signal.SIGSTOP)
        os.kill(server_.process.pid, signal.SIGSTOP)
        r = h.run.end()
        self.assertEqual(r.code, 76, r)
        self.assertIn("the guardian does not answer", r.err)
        self.gone(brood + [h.guardian])
        os.kill(server_.process.pid, signal.SIGCONT)
        server_.stop()

    def test_everything_stopped(self):
        """As a container is frozen and thawed: the guardian has done nothing wrong."""
        server_ = server(flags=TICK)
        h = Holder(server_, self.path, "--session-timeout", EXPIRES, script=BROOD).started()
        brood = [h.command] + [int(h.run.line()) for _ in range(3)]
        for pid in h.guardian, h.wrapper, server_.process.pid:
            os.kill(pid, signal.SIGSTOP)
        over = time.monotonic() + float(EXPIRES.rstrip("s")) + 2
        while time.monotonic() < over:
            time.sleep(0.05)
        os.kill(h.wrapper, signal.SIGCONT)
        r = h.run.end()
        self.assertEqual(r.code, 76, r)
        self.assertRegex(r.err, r"the guardian did not run in time, nor did this process, [\d.]+m?s late \(frozen, ")
        self.assertNotIn("does not answer", r.err)
        self.gone(brood + [h.guardian])
        os.kill(server_.process.pid, signal.SIGCONT)
        server_.stop()

    @unittest.skipUnless(os.access(FREEZER, os.W_OK), "no process can be frozen here")
    def test_guardian_that_is_not_scheduled(self):
        """Killed, it does not die; the command does."""
        h = self.hold_brood("--grace", "100ms")
        ice = tempfile.mkdtemp(dir=FREEZER, prefix="clave-test-")
        self.addCleanup(os.rmdir, ice)
        self.addCleanup(put, FREEZER, "cgroup.procs", h.guardian)
        put(ice, "cgroup.procs", h.guardian)
        put(ice, "freezer.state", "FROZEN")
        try:
            clave("rm", f"{self.path}/{nodes(self.server, self.path)[0]}",
                  connect=self.server.connect)
            self.gone(h.brood)
            self.assertTrue(alive(h.guardian))
        finally:
            put(ice, "freezer.state", "THAWED")
        self.assertEqual(h.code(), 76)

    def test_guardian_stopped_and_continued(self):
        h = self.hold()
        os.kill(h.guardian, signal.SIGSTOP)
        os.kill(h.guardian, signal.SIGCONT)
        self.assertEqual(h.run.end(signal.SIGTERM).code, 143)

    # ---- the command

    def test_command_killed(self):
        h = self.hold()
        w = self.next()
        os.kill(h.command, signal.SIGKILL)
        self.assertEqual(h.code(), 137)
        w.started().run.end(signal.SIGTERM)

    def test_command_leaves_others_behind(self):
        h = self.hold_brood("--grace", "100ms")
        os.kill(h.command, signal.SIGKILL)
        self.assertEqual(h.code(), 137)
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)

    def test_a_daemon_ends_with_the_command(self):
        r = clave("lock", self.path, "--", "sh", "-c", "setsid sleep 1000 >/dev/null & echo $!; exit 6",
                  connect=self.server.connect)
        self.assertEqual(r.code, 6, r)
        self.assertFalse(alive(int(r.out)), TWO_HOLD)

    def test_command_stopped(self):
        """It holds the lock as long as the wrapper lives, and can be ended all the same."""
        h = self.hold()
        os.kill(h.command, signal.SIGSTOP)
        until(lambda: stopped(h.command))
        h.run.end(signal.SIGKILL)
        self.gone([h.command, h.guardian])

    # ---- two at a time

    def test_wrapper_and_command_killed(self):
        h = self.hold_brood("--grace", "100ms")
        w = self.next()
        start = time.monotonic()
        os.kill(h.wrapper, signal.SIGKILL)
        os.kill(h.command, signal.SIGKILL)
        w.started()
        self.assertLess(time.monotonic() - start, HANDOVER_S)
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)
        w.run.end(signal.SIGTERM)

    def test_guardian_and_command_killed(self):
        h = self.hold_brood()
        w = self.next()
        os.kill(h.command, signal.SIGKILL)
        os.kill(h.guardian, signal.SIGKILL)
        self.assertEqual(h.code(), 137)
        w.started()
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)
        w.run.end(signal.SIGTERM)

    def test_wrapper_and_guardian_killed(self):
        """The command itself dies with the guardian; the lock is free when the session ends."""
        h = self.hold(session=EXPIRES)
        w = self.next()
        os.kill(h.guardian, signal.SIGSTOP)  # it is not to see the wrapper's end
        os.kill(h.wrapper, signal.SIGKILL)
        os.kill(h.guardian, signal.SIGKILL)
        self.gone([h.command])
        w.started().run.end(signal.SIGTERM)

    def test_wrapper_stopped_and_command_stopped(self):
        """The guardian kills what does not react."""
        h = self.hold_brood(session=EXPIRES)
        w = self.next()
        os.kill(h.command, signal.SIGSTOP)
        os.kill(h.wrapper, signal.SIGSTOP)
        w.started()
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)
        os.kill(h.wrapper, signal.SIGCONT)
        self.assertEqual(h.code(), 76)
        w.run.end(signal.SIGTERM)

    # ---- the lock

    def test_node_deleted(self):
        for how, code in (("term", "said\n"), ("kill", "")):
            h = self.hold("--on-lost", how, script="trap 'echo said; exit 1' TERM; echo; "
                          "while :; do sleep 0.02; done")
            h.run.line()
            clave("rm", f"{self.path}/{nodes(self.server, self.path)[0]}",
                  connect=self.server.connect)
            r = h.run.end()
            self.assertEqual((r.code, r.out), (76, code), r)
            self.assertIn("the lock is lost: its node was deleted by another client", r.err)

    def test_node_deleted_and_guardian_stopped(self):
        h = self.hold_brood("--grace", "100ms")
        os.kill(h.guardian, signal.SIGSTOP)
        clave("rm", f"{self.path}/{nodes(self.server, self.path)[0]}", connect=self.server.connect)
        r = h.run.end()
        self.assertEqual(r.code, 76, r)
        self.assertIn("the guardian does not answer", r.err)
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)

    def test_node_deleted_and_ignored(self):
        h = self.hold("--on-lost", "ignore", script="trap 'echo finished; exit 3' USR1; echo; "
                      "while :; do sleep 0.02; done")
        h.run.line()
        clave("rm", f"{self.path}/{nodes(self.server, self.path)[0]}", connect=self.server.connect)
        line = h.run.process.stderr.readline()
        self.assertIn("the lock is lost", line)
        self.assertTrue(alive(h.command))
        r = h.run.end(signal.SIGUSR1)
        self.assertEqual((r.code, r.out), (76, "finished\n"), r)

    def test_check_says_lost(self):
        go = scratch("go")
        h = self.hold("--on-lost", "ignore", script=f"while [ ! -e {go} ]; do sleep 0.02; done; "
                      f"{CLAVE} check; echo $?")
        clave("rm", f"{self.path}/{nodes(self.server, self.path)[0]}", connect=self.server.connect)
        self.assertIn("the lock is lost", h.run.process.stderr.readline())
        open(go, "w").close()
        r = h.run.end()
        self.assertEqual((r.code, r.out), (76, "76\n"), r)


class Server(unittest.TestCase):
    SESSION_S = 8

    def test_server_gone(self):
        """TERM comes a grace before, KILL before the deadline, and the exit code is 76."""
        server_ = server(flags=TICK)
        held = []
        for flags, said in ((["--grace", "2s"], "term\n"), (["--on-lost", "kill"], "")):
            life = scratch("life")
            h = Holder(server_, "/away" + flags[0], "--session-timeout", f"{self.SESSION_S}s", *flags,
                       script="trap 'echo term' TERM; echo; "
                       f"while :; do touch {life}; sleep 0.02; done").started()
            h.run.line()
            held.append((h, life, said))
        server_.stop(signal.SIGKILL)
        gone = time.time()
        for h, life, said in held:
            r = h.run.end()
            self.assertEqual((r.code, r.out), (76, said), r)
            self.assertLess(os.stat(life).st_mtime - gone, self.SESSION_S)
            self.assertFalse(alive(h.command), TWO_HOLD)

    def test_server_restarted(self):
        """A restart that is shorter than the session is nothing to a holder or to a waiter."""
        server_ = server(flags=TICK)
        h = Holder(server_, "/back", "-v", "--session-timeout", LONG).started()
        w = Holder(server_, "/back", "--session-timeout", LONG).waiting(server_, "/back", 2)
        token = nodes(server_, "/back")
        server_.stop(signal.SIGKILL)
        server_.start()
        until(lambda: "reconnected" in h.run.process.stderr.readline())
        self.assertTrue(alive(h.command))
        self.assertEqual(nodes(server_, "/back"), token)
        self.assertEqual(h.run.end(signal.SIGTERM).code, 143)
        self.assertEqual(w.started().run.end(signal.SIGTERM).code, 143)
        self.assertEqual(nodes(server_, "/back"), [])
        server_.stop()

    def test_release_while_the_server_is_away(self):
        """The command ends while nobody answers: the guardian hands the lock on later."""
        server_ = server()
        h = Holder(server_, "/late", "--session-timeout", LONG).started()
        server_.stop(signal.SIGKILL)
        start = time.monotonic()
        os.kill(h.command, signal.SIGKILL)
        self.assertEqual(h.code(), 137)
        self.assertTrue(alive(h.guardian))
        server_.start()
        self.assertEqual(clave("lock", "/late", "true", connect=server_.connect).code, 0)
        self.assertLess(time.monotonic() - start, HANDOVER_S, "the session would have lasted on")
        until(lambda: not alive(h.guardian))
        server_.stop()


WITHOUT_PROC = ["unshare", "-m", "sh", "-c", 'umount -l /proc; exec "$@"', "sh"]


def can_be_without_proc():
    """AddressSanitizer's search for leaks cannot."""
    return subprocess.run([*WITHOUT_PROC, CLAVE, "version"], capture_output=True).returncode == 0


@unittest.skipUnless(can_be_without_proc(), "/proc cannot be taken away here")
class WithoutProc(unittest.TestCase):
    """Nobody can be found, but who has no child has no descendant."""

    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=TICK)
        script = scratch("without-proc")
        with open(script, "w") as f:
            f.write("#!/bin/sh\nexec " + shlex.join([*WITHOUT_PROC, CLAVE]) + ' "$@"\n')
        os.chmod(script, 0o755)
        cls.addClassCleanup(setattr, harness, "CLAVE", CLAVE)
        harness.CLAVE = script

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_guardian_killed(self):
        h = Holder(self.server, "/without-proc", "--session-timeout", LONG).started()
        os.kill(h.guardian, signal.SIGKILL)
        self.assertEqual(h.code(), 137)
        self.assertFalse(alive(h.command), TWO_HOLD)
        self.assertEqual(nodes(self.server, "/without-proc"), [])

    def test_command_killed(self):
        h = Holder(self.server, "/without-proc", "--session-timeout", LONG).started()
        os.kill(h.command, signal.SIGKILL)
        self.assertEqual(h.code(), 137)


if __name__ == "__main__":
    unittest.main()
