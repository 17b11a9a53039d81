"""No server answers: said within a second at a terminal, with the reason, once for each reason; then
how long it has been tried. Elsewhere the end of the time says it, and -v at once."""
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import time
import unittest

from harness import CLAVE, PATIENCE, Running, clave, environment, free_port, server, spawn

VERBS = (["get", "/"], ["lock", "/j", "--", "true"], ["elect", "/e", "--", "true"],
         ["leader", "--watch", "/e"])


class Terminal:
    """The program with a terminal for its standard error."""

    def __init__(self, *words, connect, term="xterm", **env):
        self.began = time.monotonic()
        self.fd, theirs = pty.openpty()
        self.process = spawn([CLAVE, "-c", connect, *words], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=theirs,
                             env=environment(TERM=term, **env))
        os.close(theirs)
        self.seen = ""

    def expect(self, text):
        """The seconds until it was there."""
        end = self.began + PATIENCE
        while text not in self.seen:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                break
            try:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:
                break
        if text not in self.seen:
            raise AssertionError(f"no {text!r} in {self.seen!r}")
        return time.monotonic() - self.began

    def end(self, kill=False):
        """All that is left standing on the screen, and the exit code."""
        if kill:
            self.process.kill()
        try:
            while piece := os.read(self.fd, 4096):
                self.seen += piece.decode(errors="replace")
        except OSError:  # nobody has it any more
            pass
        os.close(self.fd)
        lines = [re.split(r"\r\x1b\[K|\r", line)[-1] for line in self.seen.split("\r\n")]
        return [line for line in lines if line.strip()], self.process.wait(PATIENCE)


class Reach(unittest.TestCase):
    def said_in_time(self, connect, reason, *flags, verbs=VERBS):
        for verb in verbs:
            t = Terminal(*flags, "--timeout", "20s", *verb, connect=connect)
            took = t.expect(f"no server has answered yet: {reason}")
            t.expect("connecting, ")
            t.end(kill=True)
            # A process of a busy machine may not run for a while; ten seconds are not a while.
            self.assertLess(took, 5, t.seen)
            self.assertIn(f"clave: {verb[0]}: {connect}: no server", t.seen)

    def test_refused(self):
        nobody = f"127.0.0.1:{free_port()}"
        self.said_in_time(nobody, f"cannot connect to {nobody}: connection refused")

    def test_silence(self):
        self.said_in_time(self.mute(),
                          "a server was connected to, but has not answered yet", verbs=VERBS[:2])

    def mute(self):
        """Takes connections and says nothing."""
        s = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(s.close)
        return f"127.0.0.1:{s.getsockname()[1]}"

    def test_the_limit_of_connections(self):
        s = server(flags=["--max-connections", "1"])
        self.addCleanup(s.stop)
        one = Running("lock", "/one", "--", "sh", "-c", "echo held; exec sleep 1000",
                      connect=s.connect)
        self.addCleanup(lambda: one.end(15))
        self.assertEqual(one.line(), "held")
        self.said_in_time(s.connect, f"{s.connect} closed the connection before it answered: its "
                          "limit of connections may be reached", verbs=VERBS[:2])

    def test_no_such_name(self):
        t = Terminal("--timeout", "20s", "get", "/", connect="no-such-host.invalid:2181")
        t.expect("no server has answered yet: ")  # when the resolver says so; before, that it is tried
        t.expect("cannot resolve the host name 'no-such-host.invalid'")
        t.end(kill=True)

    def test_tls_where_there_is_none(self):
        s = server()
        self.addCleanup(s.stop)
        self.said_in_time(f"tls:{s.connect}", f"cannot connect to {s.connect}: it closed the "
                          "connection in the TLS handshake", verbs=VERBS[:2])

    def test_once_a_reason_and_nothing_stays_of_the_rest(self):
        one, other = (f"127.0.0.1:{free_port()}" for _ in range(2))
        for verb in VERBS[:2]:
            for term in "xterm", "dumb":
                t = Terminal("--timeout", "3s", *verb, connect=f"{one},{other}", term=term)
                lines, code = t.end()
                self.assertEqual(code, 69, lines)
                told = [line for line in lines if "no server has answered yet" in line]
                self.assertIn(len(told), (1, 2), lines)  # of each server one, as far as seen
                self.assertEqual(len(told), len(set(told)), lines)
                self.assertEqual(len(lines), len(told) + 1, lines)
                self.assertIn("no server could be reached within 3s", lines[-1])
                self.assertEqual("connecting, " in t.seen, term == "xterm", t.seen)

    def test_a_server_that_comes(self):
        s = server()
        self.addCleanup(lambda: s.stop())
        s.stop()
        for verb in VERBS[:2]:
            t = Terminal("--timeout", "25s", *verb, connect=s.connect)
            t.expect("connection refused")
            t.expect("connecting, ")
            s.start()
            lines, code = t.end()
            self.assertEqual(code, 0, lines)
            self.assertEqual(len(lines), 1, lines)
            s.stop()
        s.start()

    def test_elsewhere(self):
        nobody = f"127.0.0.1:{free_port()}"
        for verb in VERBS[:2]:
            r = clave("--timeout", "1500ms", "-c", nobody, *verb)
            self.assertEqual((r.code, len(r.err.splitlines())), (69, 1), r)
            r = clave("-v", "--timeout", "1500ms", "-c", nobody, *verb)
            self.assertEqual(r.err.count("no server has answered yet: cannot connect"), 1, r)
        r = clave("--json", "--timeout", "1500ms", "-c", nobody, *VERBS[1])
        event = json.loads(r.err.splitlines()[0])
        self.assertEqual(event["event"], "connecting", r)
        self.assertIn("connection refused", event["why"])

    def test_control_c_ends_it(self):
        silent = socket.create_server(("127.0.0.1", 0))
        silent.settimeout(PATIENCE)
        self.addCleanup(silent.close)
        for verb in ["top", "--once"], ["watch", "/w"], ["leader", "--watch", "/e"]:
            p = Running(*verb, connect=f"127.0.0.1:{silent.getsockname()[1]}")
            peer, _ = silent.accept()
            self.assertEqual(p.end(signal.SIGINT).code, -signal.SIGINT, verb)
            peer.close()

    def test_quiet(self):
        t = Terminal("--timeout", "2s", "lock", "-q", "/j", "--", "true",
                     connect=f"127.0.0.1:{free_port()}")
        lines, code = t.end()
        self.assertEqual((code, len(lines)), (69, 1), lines)

    def test_a_server_that_is_there(self):
        s = server()
        self.addCleanup(s.stop)
        for verb in VERBS[:2]:
            self.assertEqual(Terminal(*verb, connect=s.connect).end(), ([], 0))


if __name__ == "__main__":
    unittest.main()
