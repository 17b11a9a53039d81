"""Signals to `clave lock`: while it waits, while the command runs, from a terminal."""
import os
import pty
import select
import signal
import subprocess
import time
import unittest

from harness import CLAVE, PATIENCE, Running, Served, clave, environment, free_port
from lock_rig import (HANDOVER_S, LONG, TICK, Holder, alive, children, comm, nodes, stopped,
                      until)

SAY = "for s in TERM INT HUP QUIT USR1 USR2 WINCH; do trap \"echo $s\" $s; done; echo ready; "
LOOP = "while :; do sleep 0.02; done"


class Waiting(Served):
    flags = TICK

    def test_leaves_the_queue(self):
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            path = f"/leave-{sig:d}"
            holder = Holder(self.server, path).started()
            waiter = Holder(self.server, path).waiting(self.server, path, 2)
            guardian = children(waiter.wrapper)
            r = waiter.run.end(sig)
            self.assertEqual((r.code, r.out), (128 + sig, ""), r)
            self.assertEqual(len(nodes(self.server, path)), 1, "its node went before it did")
            self.assertFalse(any(alive(p) for p in guardian))
            holder.run.end(signal.SIGTERM)

    def test_other_signals_do_nothing(self):
        holder = Holder(self.server, "/other").started()
        waiter = Holder(self.server, "/other").waiting(self.server, "/other", 2)
        for sig in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGTSTP):
            os.kill(waiter.wrapper, sig)
        until(lambda: stopped(waiter.wrapper))  # so it has heard the first ones: the least is first
        os.kill(waiter.wrapper, signal.SIGCONT)
        self.assertEqual(len(nodes(self.server, "/other")), 2)
        holder.run.end(signal.SIGTERM)
        waiter.started().run.end(signal.SIGTERM)

    def test_while_connecting(self):
        run = Running("lock", "--timeout", "60s", "-c", f"127.0.0.1:{free_port()}", "/x", "--", "true")
        until(lambda: children(run.process.pid))
        self.assertEqual(until_handled(run, signal.SIGTERM), 143)

    def test_of_the_wrapper_kills_nobody_else(self):
        """A waiter that is killed leaves the queue at once, not with its session."""
        holder = Holder(self.server, "/killed").started()
        waiter = Holder(self.server, "/killed", "--session-timeout", LONG)
        waiter.waiting(self.server, "/killed", 2)
        guardian = children(waiter.wrapper)[0]
        start = time.monotonic()
        waiter.run.end(signal.SIGKILL)
        until(lambda: len(nodes(self.server, "/killed")) == 1)
        self.assertLess(time.monotonic() - start, HANDOVER_S, "sooner than the session's end")
        until(lambda: not alive(guardian))
        holder.run.end(signal.SIGTERM)


def until_handled(run, sig):
    """The signal may come before there is a handler: then it ends the program as usual."""
    run.process.send_signal(sig)
    code = run.process.wait(PATIENCE)
    return 128 - code if code < 0 else code


class Holding(Served):
    flags = TICK

    def test_forwarded(self):
        h = Holder(self.server, "/fwd", script=SAY + LOOP).started()
        self.assertEqual(h.run.line(), "ready")
        for name in ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH"):
            os.kill(h.wrapper, getattr(signal, "SIG" + name))
            self.assertEqual(h.run.line(), name)
        os.kill(h.command, signal.SIGKILL)
        self.assertEqual(h.code(), 137)

    def test_the_second_term_kills_after_the_grace(self):
        """The first leaves the command its time; all that is left ends after the second."""
        script = ("trap 'echo told' TERM; (trap '' TERM; setsid sleep 1000 & echo $!; wait) & "
                  + LOOP)
        h = Holder(self.server, "/twice", "--session-timeout", LONG, "--grace", "1s",
                   script=script).started()
        apart = int(h.run.line())
        os.kill(h.wrapper, signal.SIGTERM)
        self.assertEqual(h.run.line(), "told")
        time.sleep(1.2)  # after the grace: nothing is to happen by itself
        self.assertTrue(alive(h.command) and alive(apart))
        r = h.run.end(signal.SIGTERM)
        self.assertEqual(r.code, 137, r)
        self.assertIn("second signal: ending the command", r.err)
        self.assertFalse(alive(apart) or alive(h.command))

    def test_timeout_tells_once(self):
        """timeout(1) sends its signal to the process and to its group."""
        p = subprocess.run(["timeout", "1", CLAVE, "lock", "--grace", "0ms", "/timeout", "--", "sh",
                            "-c", "trap 'sleep 0.5; echo bye; exit 3' TERM; " + LOOP],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           timeout=PATIENCE, env=environment(CLAVE_CONNECT=self.server.connect))
        self.assertEqual(p.stdout, "bye\n", p)

    def test_to_the_whole_group(self):
        script = ("trap 'wait; exit 5' TERM; (trap 'echo inner; exit 0' TERM; echo up; " + LOOP
                  + ") & wait; " + LOOP)
        h = Holder(self.server, "/grp", script=script).started()
        self.assertEqual(h.run.line(), "up")
        r = h.run.end(signal.SIGTERM)
        self.assertEqual((r.code, r.out), (5, "inner\n"), r)

    def test_default_action(self):
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
            h = Holder(self.server, "/default").started()
            self.assertEqual(h.run.end(sig).code, 128 + sig)
        self.assertEqual(nodes(self.server, "/default"), [])

    def test_the_guardian_is_not_in_our_group(self):
        """kill -9 of a whole job leaves the guardian to clean up."""
        p = subprocess.Popen([CLAVE, "lock", "--session-timeout", LONG, "/job", "--", "sh", "-c",
                              "echo $$; sleep 1000"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             start_new_session=True, text=True,
                             env=environment(CLAVE_CONNECT=self.server.connect))
        command = int(p.stdout.readline())
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        until(lambda: not alive(command))
        until(lambda: nodes(self.server, "/job") == [], HANDOVER_S)
        p.stdout.close()

    def test_stop_and_continue(self):
        """SIGTSTP stops the command and the wrapper; SIGCONT both, while the lock stands."""
        # Not a shell's loop: one that is about to start a process is not seen as stopped.
        python = ("import signal; own = [signal.SIGUSR1]; signal.pthread_sigmask(signal.SIG_BLOCK, own);"
                  "print('ready', flush=True)\n"
                  "while True: print(signal.Signals(signal.sigwait(own)).name, flush=True)")
        h = Holder(self.server, "/tstp", "--session-timeout", LONG,
                   script=f'exec /usr/bin/python3 -c "{python}"').started()
        self.assertEqual(h.run.line(), "ready")
        os.kill(h.wrapper, signal.SIGTSTP)
        until(lambda: stopped(h.wrapper) and stopped(h.command))
        os.kill(h.wrapper, signal.SIGCONT)
        until(lambda: not stopped(h.wrapper) and not stopped(h.command))
        self.assertEqual(clave("lock", "-n", "/tstp", "true", connect=self.server.connect).code, 75)
        os.kill(h.wrapper, signal.SIGUSR1)
        self.assertEqual(h.run.line(), "SIGUSR1")
        os.kill(h.command, signal.SIGKILL)
        self.assertEqual(h.code(), 137)


class Terminal(Served):
    """A shell with job control on a pseudo terminal."""

    flags = TICK

    def setUp(self):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.clear()
            os.environ.update(environment(CLAVE_CONNECT=self.server.connect, PS1="% ", C=CLAVE,
                                          TERM="xterm"))
            os.execvp("bash", ["bash", "--norc", "--noediting", "-i"])
        self.seen = ""
        self.expect("% ")

    def tearDown(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def expect(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {text!r} in {self.seen!r}")
            self.seen += os.read(self.fd, 4096).decode(errors="replace")
        before, _, self.seen = self.seen.partition(text)
        return before

    def sleeping(self):
        """Waits until a job in the foreground has come to its sleep. (dash swallows a signal that
        comes while it starts a process.)"""
        def deepest():
            pid = self.pid
            while below := children(pid):
                pid = below[0]
            return comm(pid) == "sleep" and not stopped(pid) and os.tcgetpgrp(self.fd) != self.pid
        until(deepest)

    def type(self, text):
        os.write(self.fd, text.encode())

    def test_interrupt(self):
        self.type("$C lock /i -- sh -c 'echo up-and-; sleep 1000'; echo code-$?-\n")
        self.expect("up-and-\r\n")
        self.sleeping()
        self.type("\x03")
        self.expect("code-130-")

    def test_a_command_that_reads(self):
        self.type("$C lock /r -- sh -c 'read x; echo got-$x; read y; echo got-$y'; echo code-$?-\n")
        self.expect("code-$?-")
        self.type("one\n")
        self.expect("got-one")
        self.type("two\n")
        self.expect("got-two")
        self.expect("code-0-")
        self.type("echo shell-has-it-$((40+2))\n")
        self.expect("shell-has-it-42")

    def test_interrupt_of_a_command_that_reads(self):
        self.type("$C lock /ri -- sh -c 'read x; echo got-$x; sleep 1000'; echo code-$?-\n")
        self.expect("code-$?-")
        self.type("one\n")
        self.expect("got-one")
        self.sleeping()
        self.type("\x03")
        self.expect("code-130-")

    def test_job_control(self):
        self.type("$C lock --session-timeout 20s /jc -- "
                  "sh -c 'read x; echo got-$x; read y; echo got-$y'\n")
        self.expect("got-$y'")
        self.type("one\n")
        self.expect("got-one")
        self.type("\x1a")
        self.expect("Stopped")
        self.type("echo in-the-shell-$((40+2))\n")
        self.expect("in-the-shell-42")
        self.type("fg\n")
        self.expect("lock")
        self.type("two\n")
        self.expect("got-two")
        self.expect("% ")

    def test_job_control_without_reading(self):
        self.type("$C lock --session-timeout 20s /jw -- sh -c 'echo up-and-; sleep 1000'\n")
        self.expect("up-and-\r\n")
        self.sleeping()
        self.type("\x1a")
        self.expect("Stopped")
        self.expect("% ")
        self.type("fg\n")
        self.expect("up-and-; sleep")
        self.sleeping()
        self.type("\x03")
        self.type("echo code-$?-\n")
        self.expect("code-130-")

    def test_progress(self):
        holder = Holder(self.server, "/p", "--name", "boss").started()
        self.type("$C lock /p -- echo ran-$((40+2)); echo code-$?-\n")
        self.expect("\r/p: waiting")
        self.expect("held by")
        self.expect("boss")
        holder.run.end(signal.SIGTERM)
        self.expect("\r\x1b[K")
        self.expect("ran-42")
        self.expect("code-0-")


if __name__ == "__main__":
    unittest.main()
