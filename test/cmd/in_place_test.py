"""`--in-place`: at SIGUSR2 a newer program goes on with the command, and with the lock."""
import contextlib
import json
import os
import signal
import subprocess
import time
import unittest

from harness import CLAVE, PATIENCE, UNSAFE, Served, clave, environment, scratch, spawn
from lock_rig import EXPIRES, HANDOVER_S, LONG, TICK, alive, nodes, queue, stat, until

# What it holds, until it is told to end.
WORK = 'trap "exit 7" TERM; echo $$ $CLAVE_TOKEN; while :; do sleep 0.05; done'


def executable(path, text):
    """Takes the place of whatever is there, as the installation of a package does."""
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(text)
        os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)


class Holder:
    """A `clave` that is started by a link to the program, and what it says."""

    def __init__(self, test, *words, verb="lock", timeout=LONG, work=WORK, starts=True, env=()):
        self.program, self.told = scratch("clave"), scratch("told")
        os.symlink(CLAVE, self.program)
        self.connect = test.server.connect
        with open(self.told, "w", encoding="utf-8") as told:
            self.process = spawn([self.program, verb, "--in-place", "--json", "--session-timeout", timeout, *words,
                                  test.path, "--", "sh", "-c", work], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=told, text=True, env=environment(CLAVE_CONNECT=self.connect, **dict(env)))
        self.pid = self.process.pid
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.kill)
        if starts:
            self.started()

    def started(self):
        self.command, self.token = map(int, self.process.stdout.readline().split())
        self.guardian = stat(self.command)[1]

    def events(self):
        """[(event, the rest), ...]"""
        with open(self.told, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f if line.startswith("{")]
        return [(line["event"], line) for line in lines]

    def count(self, event):
        return sum(name == event for name, _ in self.events())

    def becomes(self, last):
        """From the next SIGUSR2 on it is this script, which goes on as clave. It agrees to everything."""
        executable(self.program, f'#!/bin/sh\n[ "$CLAVE_IN_PLACE" = try ] || {{ {last}; }}\nexec {CLAVE} "$@"\n')

    def tell(self, event="replaced"):
        """Sends SIGUSR2, and waits until it says so."""
        before = self.count(event)
        self.process.send_signal(signal.SIGUSR2)
        until(lambda: self.count(event) > before or self.process.poll() is not None, what=self.events)

    def end(self, how=None):
        if how is not None:
            self.process.send_signal(how)
        return self.process.wait(PATIENCE)


class InPlace(Served):
    flags = TICK

    def holder(self, *words, **more):
        return Holder(self, *words, **more)

    def waiter(self, verb="lock"):
        """One that queues behind it; its events are told by its output."""
        p = spawn([CLAVE, verb, "--session-timeout", LONG, "-q", self.path, "--", "echo", "mine"],
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                  env=environment(CLAVE_CONNECT=self.server.connect))
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.kill)
        until(lambda: len(nodes(self.server, self.path)) == 2)
        return p

    def same(self, h, token=None):
        """It is all as it was, but for the program."""
        self.assertIsNone(h.process.poll(), h.events())
        self.assertEqual(stat(h.command)[1], h.guardian, "the guardian has its command")
        self.assertEqual(stat(h.guardian)[1], h.pid, "and is its child")
        first = queue(self.server, self.path)[0]
        self.assertEqual((first["holder"], first["token"], first["pid"]), (True, token or h.token, h.pid), UNSAFE)

    def test_the_command_runs_on(self):
        h = self.holder()
        w = self.waiter()
        before = queue(self.server, self.path)[0]
        fds = len(os.listdir(f"/proc/{h.pid}/fd"))
        for _ in range(10):
            h.tell()
            self.same(h)
            self.assertIsNone(w.poll(), f"{UNSAFE}: another was granted it")
        until(lambda: len(os.listdir(f"/proc/{h.pid}/fd")) <= fds, what=lambda: os.listdir(f"/proc/{h.pid}/fd"))
        after = queue(self.server, self.path)[0]
        for same in ("node", "session", "since_ms", "command"):
            self.assertEqual(before[same], after[same])
        self.assertEqual(h.end(signal.SIGTERM), 7)
        self.assertEqual(w.communicate(timeout=PATIENCE)[0], "mine\n")

    def test_since_when_it_is_held(self):
        """It had to wait for it, and has then held it for a while."""
        first = self.holder()
        h = self.holder(starts=False)
        until(lambda: len(nodes(self.server, self.path)) == 2)
        time.sleep(1.5)
        first.end(signal.SIGTERM)
        h.started()
        held = until(lambda: queue(self.server, self.path)[0]["held_ms"])
        self.assertLess(held, 1500)
        time.sleep(1)
        began = time.monotonic()
        for _ in range(2):
            h.tell()
        after = queue(self.server, self.path)[0]["held_ms"]
        passed = 1000 * (time.monotonic() - began + 1)
        self.assertLess(abs(after - held - passed), 1000, (held, after))
        self.assertEqual(h.end(signal.SIGTERM), 7)

    def test_twice_in_a_row(self):
        h = self.holder()
        h.tell()
        for _ in range(2):
            h.process.send_signal(signal.SIGUSR2)
        until(lambda: h.count("replaced") >= 2)
        h.tell()
        self.same(h)
        self.assertEqual(h.end(signal.SIGTERM), 7)

    def test_the_new_program_is_killed(self):
        h = self.holder()
        w = self.waiter()
        h.tell()
        killed = time.monotonic()
        h.end(signal.SIGKILL)
        self.assertEqual(w.communicate(timeout=PATIENCE)[0], "mine\n")
        self.assertLess(time.monotonic() - killed, HANDOVER_S, "the guardian closes the session")
        self.assertFalse(alive(h.command), f"{UNSAFE}: the command outlives its lock")

    def test_the_new_program_ends_at_once(self):
        """It agreed, and fails when it is needed."""
        h = self.holder()
        w = self.waiter()
        h.becomes("exit 3")
        self.assertEqual(h.end(signal.SIGUSR2), 3)
        ended = time.monotonic()
        self.assertEqual(w.communicate(timeout=PATIENCE)[0], "mine\n")
        self.assertLess(time.monotonic() - ended, HANDOVER_S, "the guardian closes the session")
        self.assertFalse(alive(h.command), f"{UNSAFE}: the command outlives its lock")

    def test_a_program_that_is_no_good(self):
        h = self.holder()
        os.unlink(h.program)
        h.tell("not-replaced")
        for text, why in (("not a program\n", "exit code"), ("#!/bin/sh\nexit 64\n", "exit code 64"),
                          ("#!/bin/sh\nkill -9 $$\n", "signal 9"), ("#!/bin/sh\necho format 0\n", "another format")):
            executable(h.program, text)
            h.tell("not-replaced")
            self.assertIn(why, h.events()[-1][1]["why"])
        self.same(h)
        executable(h.program, f'#!/bin/sh\nexec {CLAVE} "$@"\n')
        h.tell()
        self.same(h)
        self.assertEqual(h.end(signal.SIGTERM), 7)

    def test_a_program_that_goes_between(self):
        """It is gone when it is to be executed, so this one executes itself."""
        h = self.holder()
        executable(h.program, f'#!/bin/sh\nrm -f {h.program}\nexec {CLAVE} "$@"\n')
        h.tell()
        self.same(h)
        self.assertEqual(h.end(signal.SIGTERM), 7)

    def test_a_server_that_is_stopped(self):
        h = self.holder()
        server = self.server.process.pid
        os.kill(server, signal.SIGSTOP)
        try:
            h.tell("not-replaced")
        finally:
            os.kill(server, signal.SIGCONT)
        self.same(h)
        h.becomes(f"kill -STOP {server}")
        h.process.send_signal(signal.SIGUSR2)
        try:
            until(lambda: stat(server)[0] == "T")
            time.sleep(1)
            self.assertTrue(alive(h.command))
            self.assertEqual(h.count("replaced"), 0)
        finally:
            os.kill(server, signal.SIGCONT)
        until(lambda: h.count("replaced") == 1)
        self.same(h)
        self.assertEqual(h.end(signal.SIGTERM), 7)

    def test_a_server_that_stays_away(self):
        """The command has ended when the server may give the lock to another."""
        h = self.holder(timeout=EXPIRES)
        w = self.waiter()
        server = self.server.process.pid
        h.becomes(f"kill -STOP {server}")
        h.process.send_signal(signal.SIGUSR2)
        try:
            until(lambda: stat(server)[0] == "T")
            self.assertEqual(h.end(), 76)
            self.assertFalse(alive(h.command))
            self.assertIsNone(w.poll())
        finally:
            os.kill(server, signal.SIGCONT)
        self.assertEqual(w.communicate(timeout=PATIENCE)[0], "mine\n")

    def test_it_comes_too_late(self):
        h = self.holder(timeout=EXPIRES)
        w = self.waiter()
        h.becomes("sleep 8")
        h.process.send_signal(signal.SIGUSR2)
        until(lambda: not alive(h.command))
        self.assertEqual(w.communicate(timeout=PATIENCE)[0], "mine\n")
        self.assertIn(h.end(), (7, 76))

    def test_the_node_is_deleted_meanwhile(self):
        for verb, more in (("lock", []), ("rwlock", ["-W"]), ("elect", [])):
            self.path = f"/deleted-{verb}"
            h = self.holder(*more, verb=verb)
            w = self.waiter(verb)
            node = f"{self.path}/{min(nodes(self.server, self.path), key=lambda n: n[-10:])}"
            h.becomes(f"{CLAVE} rm {node}")
            self.assertEqual(h.end(signal.SIGUSR2), 76, h.events())
            self.assertEqual(h.count("lost"), 1)
            self.assertEqual(w.communicate(timeout=PATIENCE)[0], "mine\n")

    def test_signals_in_between(self):
        """They are blocked then, and reach the command."""
        work = 'trap "echo usr1" USR1; trap "echo hup" HUP; ' + WORK
        h = self.holder(work=work)
        h.becomes("kill -HUP $$; kill -USR1 $$; kill -TERM $$")
        self.assertEqual(h.end(signal.SIGUSR2), 7)
        self.assertEqual(set(h.process.stdout.read().split()), {"usr1", "hup"})

    def test_the_command_ends_in_between(self):
        h = self.holder()
        h.becomes(f"kill -TERM {h.command}; while [ -d /proc/{h.command} ]; do :; done")
        self.assertEqual(h.end(signal.SIGUSR2), 7)
        self.assertEqual(clave("lock", "-n", self.path, "--", "true", connect=self.server.connect).code, 0)

    def test_the_guardian_dies_in_between(self):
        h = self.holder()
        h.becomes(f"kill -KILL {h.guardian}; sleep 0.2")
        self.assertNotEqual(h.end(signal.SIGUSR2), 0)
        self.assertFalse(alive(h.command))
        self.assertEqual(clave("lock", "-n", self.path, "--", "true", connect=self.server.connect).code, 0)

    def test_one_that_waits_keeps_its_place(self):
        first = self.holder()
        h = self.holder(starts=False)
        until(lambda: len(nodes(self.server, self.path)) == 2)
        before = nodes(self.server, self.path)
        h.tell("not-replaced")
        self.assertEqual(sorted(nodes(self.server, self.path)), sorted(before))
        first.end(signal.SIGTERM)
        h.started()
        until(lambda: h.count("replaced") == 1)
        self.same(h)
        self.assertEqual(h.end(signal.SIGTERM), 7)

    def test_readers(self):
        h = self.holder("-r", verb="rwlock")
        other = self.holder("-r", verb="rwlock")
        writer = spawn([CLAVE, "rwlock", "-q", self.path, "--", "echo", "mine"], stdout=subprocess.PIPE, text=True,
                       env=environment(CLAVE_CONNECT=self.server.connect))
        self.addCleanup(writer.stdout.close)
        until(lambda: len(nodes(self.server, self.path)) == 3)
        for _ in range(2):
            other.tell()
            h.tell()
        self.assertEqual([p["holder"] for p in queue(self.server, self.path)], [True, True, False])
        self.assertIsNone(writer.poll(), UNSAFE)
        self.assertEqual(other.end(signal.SIGTERM), 7)
        self.assertEqual(h.end(signal.SIGTERM), 7)
        self.assertEqual(writer.communicate(timeout=PATIENCE)[0], "mine\n")

    def test_a_leader(self):
        log = scratch("log")
        h = self.holder("--value", "port 80", "--priority", "1", "--on-elected", f"echo elected >> {log}",
                        "--on-deposed", f"echo deposed >> {log}", "--id", "me", "--forever", verb="elect")
        other = self.holder("--priority", "5", verb="elect", starts=False)
        until(lambda: len(nodes(self.server, self.path)) >= 2)
        for _ in range(2):
            h.tell()
            until(lambda: "port 80" in clave("leader", self.path, connect=self.server.connect).out)
            self.assertIn("me", clave("leader", self.path, connect=self.server.connect).out)
        self.assertEqual(clave("resign", self.path, connect=self.server.connect).code, 0)
        other.started()
        self.assertEqual(other.end(signal.SIGTERM), 7)
        h.started()  # its next term
        h.tell()
        self.assertEqual(h.end(signal.SIGTERM), 7)
        with open(log, encoding="ascii") as f:
            self.assertEqual(f.read().split(), ["elected", "deposed"] * 2)

    def test_the_longest_hold_goes_on(self):
        began = time.monotonic()
        h = self.holder("--max-hold", "8s")
        h.tell()
        time.sleep(6)
        h.tell()
        self.assertEqual(h.end(), 76)
        self.assertLess(time.monotonic() - began, 13, "it was counted from the last replacement")

    def test_the_least_hold_goes_on(self):
        began = time.monotonic()
        h = self.holder("--min-hold", "3s")
        h.tell()
        os.kill(h.command, signal.SIGTERM)
        until(lambda: h.count("resting") == 1)
        h.process.send_signal(signal.SIGUSR2)  # too late for that
        until(lambda: h.count("not-replaced") == 1)
        self.assertEqual(h.end(), 7)
        self.assertGreater(time.monotonic() - began, 3)

    def test_health_goes_on(self):
        sick, seen = scratch("sick"), scratch("seen")
        h = self.holder("--health", f"env > {seen}; ls -l /proc/self/fd >> {seen}; test ! -e {sick}", "--health-every",
                        "400ms", "--health-grace", "0s")
        for _ in range(3):
            h.tell()
        self.same(h)
        os.unlink(seen)
        until(lambda: os.path.exists(seen) and "memfd" not in read(seen) and "total" in read(seen))
        self.assertNotIn("CLAVE_IN_PLACE", read(seen))
        self.assertNotIn("socket:", read(seen))
        open(sick, "w", encoding="ascii").close()
        self.assertEqual(h.end(), 80)

    def test_the_command_is_heard_on(self):
        with contextlib.closing(Manager()) as manager:
            h = self.holder("--notify", "command", "--ready", "--watchdog-sec", "3s", env=manager.env,
                            work='trap "exit 7" TERM; echo $$ $CLAVE_TOKEN; systemd-notify --ready; '
                                 'while [ ! -e $HOME/quiet ]; do systemd-notify WATCHDOG=1 STATUS=busy; sleep 0.2; '
                                 'done; exec sleep 100')
            until(lambda: "READY=1" in manager.heard())
            for _ in range(2):
                h.tell()
                time.sleep(1.5)
            self.same(h)
            self.assertEqual(manager.heard().count("READY=1"), 1)
            until(lambda: queue(self.server, self.path)[0].get("text") == "busy")
            open(f"{environment()['HOME']}/quiet", "w", encoding="ascii").close()
            self.assertEqual(h.end(), 80)

    def test_the_parent_is_watched_on(self):
        parent = spawn(["sleep", "1000"])
        h = self.holder(f"--with-parent={parent.pid}")
        h.tell()
        self.same(h)
        parent.kill()
        parent.wait()
        self.assertEqual(h.end(), 76)

    def test_what_does_not_go_together(self):
        for more in (["--once", "k"], ["--lock-delay", "1s"], ["--fence", "true"], ["--resume", "f"]):
            r = clave("lock", "--in-place", *more, "/x", "--", "true", connect=self.server.connect)
            self.assertEqual(r.code, 64)
            self.assertIn("--in-place", r.err)
        r = clave("semaphore", "--in-place", "-n", "1", "/x", "--", "true", connect=self.server.connect)
        self.assertEqual(r.code, 64)


class Manager:
    """A service manager, as far as NOTIFY_SOCKET goes."""

    def __init__(self):
        import socket
        self.name = scratch("notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.name)
        self.socket.setblocking(False)
        self.lines = []
        self.env = {"NOTIFY_SOCKET": self.name}

    def heard(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.lines += self.socket.recv(4096).decode().split("\n")
        return self.lines

    def close(self):
        self.socket.close()


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


if __name__ == "__main__":
    unittest.main()
