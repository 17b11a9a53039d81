"""`clave lock` when nobody takes its messages: the collector of a pipe or of a socket hangs, or the
terminal was stopped with ^S. The command ends in time all the same, and what was to be said is said
once there is room again."""
import os
import signal
import socket
import termios
import unittest

from harness import CLAVE, clave, server
from lock_deaths_test import BROOD
from lock_rig import (EXPIRES, HANDOVER_S, LONG, TICK, TWO_HOLD, Holder, alive, nodes, until)


class Pipe:
    def __init__(self):
        self.reader, self.writer = os.pipe()
        self.stderr = self.writer
        self.fill()

    def fill(self):
        """Through a description of its own: the command's writes wait, as they usually do."""
        own = os.open(f"/proc/self/fd/{self.writer}", os.O_WRONLY | os.O_NONBLOCK)
        for size in (4096, 1):
            try:
                while True:
                    os.write(own, b"." * size)
            except BlockingIOError:
                pass
        os.close(own)

    def close(self):
        os.close(self.reader)
        os.close(self.writer)


class Socket:
    def __init__(self):
        self.reader, self.writer = socket.socketpair()
        self.stderr = self.writer
        try:
            while True:
                self.writer.send(b"." * 512, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass

    def close(self):
        self.reader.close()
        self.writer.close()


class Terminal:
    def __init__(self):
        self.reader, self.writer = os.openpty()
        self.stderr = self.writer
        termios.tcflow(self.writer, termios.TCOOFF)

    def close(self):
        termios.tcflow(self.writer, termios.TCOON)
        os.close(self.reader)
        os.close(self.writer)


class Full:
    """Where standard error is `kind`, and full."""

    kind = None

    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=TICK)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.path = "/" + self.id().rpartition(".")[2]
        self.full = self.kind()
        self.addCleanup(self.full.close)

    def hold(self, *flags, session=LONG):
        h = Holder(self.server, self.path, "--session-timeout", session, "--grace", "100ms", *flags,
                   script=BROOD, stderr=self.full.stderr).started()
        h.brood = [h.command] + [int(h.run.line()) for _ in range(3)]
        self.addCleanup(h.run.process.stdout.close)
        return h

    def next(self):
        return Holder(self.server, self.path).waiting(self.server, self.path, 2)

    def lose(self):
        clave("rm", f"{self.path}/{nodes(self.server, self.path)[0]}", connect=self.server.connect)

    def gone(self, h):
        """Long before its session could end."""
        until(lambda: not any(alive(p) for p in h.brood), HANDOVER_S, f"{TWO_HOLD}: {h.brood}")

    def leaves(self, h, code):
        self.assertEqual(until(lambda: h.run.process.poll() is not None and
                               (h.run.process.returncode,), HANDOVER_S), (code,))

    def test_wrapper_killed(self):
        h = self.hold()
        w = self.next()
        os.kill(h.wrapper, signal.SIGKILL)
        w.started()
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)
        w.run.end(signal.SIGTERM)

    def test_guardian_killed(self):
        h = self.hold()
        w = self.next()
        os.kill(h.guardian, signal.SIGKILL)
        self.leaves(h, 137)
        w.started()
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)
        w.run.end(signal.SIGTERM)

    def test_node_deleted(self):
        h = self.hold("-v")
        self.lose()
        self.gone(h)
        self.leaves(h, 76)

    def test_node_deleted_and_guardian_stopped(self):
        h = self.hold("--json")
        os.kill(h.guardian, signal.SIGSTOP)
        self.lose()
        self.gone(h)
        self.leaves(h, 76)


class FullPipe(Full, unittest.TestCase):
    kind = Pipe

    def test_wrapper_stopped(self):
        h = self.hold(session=EXPIRES)
        w = self.next()
        os.kill(h.wrapper, signal.SIGSTOP)
        w.started()
        self.assertFalse(any(alive(p) for p in h.brood), TWO_HOLD)
        os.kill(h.wrapper, signal.SIGCONT)
        self.leaves(h, 76)
        w.run.end(signal.SIGTERM)

    def test_it_is_said_when_there_is_room_again(self):
        h = Holder(self.server, self.path, "--session-timeout", EXPIRES, "--on-lost", "ignore",
                   script=f"while {CLAVE} check 2>/dev/null; do sleep 0.02; done; echo lost; "
                   "exec sleep 1000", stderr=self.full.stderr).started()
        self.lose()
        while h.run.line() != "lost":
            pass
        os.set_blocking(self.full.reader, False)
        text = b""

        def said():
            nonlocal text
            try:
                text += os.read(self.full.reader, 65536)
            except BlockingIOError:
                pass
            return text.endswith(b": the lock is lost: its node was deleted by another client\n")

        until(said)
        self.assertTrue(alive(h.command))
        os.kill(h.command, signal.SIGKILL)
        self.leaves(h, 76)
        h.run.process.stdout.close()


class FullSocket(Full, unittest.TestCase):
    kind = Socket


class StoppedTerminal(Full, unittest.TestCase):
    kind = Terminal


if __name__ == "__main__":
    unittest.main()
