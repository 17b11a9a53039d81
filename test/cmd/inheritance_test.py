"""What the process that starts clave leaves it: signals that are blocked or ignored, descriptors
that are closed, limits, an umask, a directory that is gone. Whatever it is, each verb starts, does
its work and ends by SIGTERM, and a command finds it as clave did."""
import os
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import unittest

from harness import CLAVE, PATIENCE, Served, ask, clave, environment, free_port, scratch, spawn
from lock_rig import alive, children, nodes, until

EVERY = set(range(1, signal.NSIG)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def blocked():
    signal.pthread_sigmask(signal.SIG_SETMASK, EVERY)


def ignored():
    for number in EVERY - {signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV}:  # a sanitizer handles them itself
        signal.signal(number, signal.SIG_IGN)


def without_streams():
    for fd in (0, 1, 2):
        os.close(fd)


def in_a_lost_directory():
    gone = tempfile.mkdtemp()
    os.chdir(gone)
    os.rmdir(gone)


def with_few_files():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, most))


def with_short_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


CONDITIONS = {
    "every signal blocked": blocked,
    "every signal ignored": ignored,
    "SIGTERM blocked": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}),
    "SIGTERM ignored": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "SIGCHLD ignored": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    "0, 1 and 2 closed": without_streams,
    "umask 0777": lambda: os.umask(0o777),
    "umask 0": lambda: os.umask(0),
    "a directory that is gone": in_a_lost_directory,
    "32 files": with_few_files,
    "files of 1 MiB": with_short_files,
}
# What a command is to find as clave did: what it prints itself.
SHOW = "grep -E 'Sig(Blk|Ign)' /proc/self/status; umask; ulimit -n; ulimit -f"


class Inheritance(Served):
    def start(self, before, *words, **keywords):
        return spawn([CLAVE, *words], before, env=environment(CLAVE_CONNECT=self.server.connect),
                     **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **keywords})

    def ends(self, process, *codes):
        process.send_signal(signal.SIGTERM)
        self.assertIn(process.wait(PATIENCE), codes)

    def test_serve(self):
        for name, before in CONDITIONS.items():
            with self.subTest(name):
                port, data = free_port(), scratch("data")
                p = self.start(before, "serve", "--data", data, "--listen", f"127.0.0.1:{port}", "--words", "*")
                until(lambda: ask(port, b"ruok") == b"imok")
                self.assertEqual(clave("create", "/a", "x", connect=f"127.0.0.1:{port}").code, 0)
                self.ends(p, 0)
                for at, names, files in os.walk(data):
                    for mode in [os.stat(os.path.join(at, n)).st_mode for n in names + files]:
                        self.assertEqual(stat.S_IMODE(mode) & 0o677, 0o600, "its owner's alone")

    def test_gate(self):
        for name, before in CONDITIONS.items():
            with self.subTest(name):
                port = free_port()
                p = self.start(before, "gate", "--http", f"127.0.0.1:{port}", "--connect", self.server.connect)
                until(lambda: ask(port, b"GET /v1/locks HTTP/1.0\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1"))
                self.ends(p, 0)

    def test_the_command_finds_what_clave_found(self):
        for name, before in CONDITIONS.items():
            with self.subTest(name):
                found = []
                for words in ([], [CLAVE, "lock", "/found", "--"], [CLAVE, "elect", "/led", "--"]):
                    out = scratch("out")
                    script = f"{{ {SHOW}; }} > {out} 2>&1"
                    p = spawn(words + ["sh", "-c", script], before, stdin=subprocess.DEVNULL,
                              env=environment(CLAVE_CONNECT=self.server.connect))
                    self.assertEqual(p.wait(PATIENCE), 0)
                    with os.popen(f"cat {out}") as f:  # whatever its mode
                        found.append(f.read())
                self.assertIn("SigBlk", found[0])
                self.assertEqual(found[1:], found[:1] * 2)

    def test_the_second_term_finds_it_too(self):
        for before in (blocked, CONDITIONS["SIGTERM ignored"]):
            out = scratch("out")
            p = self.start(before, "elect", "--forever", "/again", "--", "sh", "-c",
                           f"grep -E 'Sig(Blk|Ign)' /proc/self/status >> {out}; sleep 0.1")
            until(lambda: os.path.exists(out) and len(open(out).readlines()) >= 4)
            with open(out) as f:
                lines = f.readlines()
            self.assertEqual(lines[:2], lines[2:4])
            p.send_signal(signal.SIGTERM)
            p.wait(PATIENCE)

    def test_waiting(self):
        for verb, path in (("lock", "/wait"), ("elect", "/stand")):
            holder = self.start(None, verb, path, "--", "sleep", "1000")
            until(lambda: len(nodes(self.server, path)) == 1)
            for name, before in CONDITIONS.items():
                with self.subTest(name):
                    p = self.start(before, verb, path, "--", "true", stderr=subprocess.DEVNULL)
                    until(lambda: len(nodes(self.server, path)) == 2)
                    self.ends(p, 143)
            self.ends(holder, 143)

    def test_holding(self):
        """The command decides: SIGTERM is forwarded, and one that ignores it gets the second."""
        for name, before in CONDITIONS.items():
            with self.subTest(name):
                p = self.start(before, "lock", "--grace", "100ms", "/hold", "--", "sleep", "1000",
                               stderr=subprocess.DEVNULL)
                until(lambda: children(p.pid) and children(children(p.pid)[0]))
                command = children(children(p.pid)[0])[0]
                p.send_signal(signal.SIGTERM)
                until(lambda: p.poll() is not None or "SIGTERM sent" and self.ask_again(p))
                self.assertIn(p.returncode, (143, 137, -signal.SIGTERM))
                self.assertFalse(alive(command))

    @staticmethod
    def ask_again(p):
        p.send_signal(signal.SIGTERM)
        return False

    def test_ignored_signals_do_not_end_what_runs_on(self):
        """nohup, and the background jobs of a shell."""
        quiet = {signal.SIGHUP, signal.SIGINT}
        clave("create", "/followed", connect=self.server.connect)
        for words in (["watch", "/followed"], ["leader", "--watch", "/followed"]):
            p = spawn([CLAVE, *words], lambda: [signal.signal(s, signal.SIG_IGN) for s in quiet],
                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                      env=environment(CLAVE_CONNECT=self.server.connect), text=True)
            self.assertTrue(p.stdout.readline())
            for sig in quiet:
                p.send_signal(sig)
            p.send_signal(signal.SIGTERM)
            self.assertEqual(p.wait(PATIENCE), 143, "the first signal that counts")
            p.stdout.close()


if __name__ == "__main__":
    unittest.main()
