"""Standard output that cannot be written: whatever a verb prints, it ends with 74, and says why."""
import os
import signal
import subprocess
import unittest

from harness import CLAVE, PATIENCE, environment, scratch, server, spawn

VERBS = (["help"], ["--version"], ["version"], ["lock", "--help"], ["ls", "/"], ["get", "/node"],
         ["stat", "/node"], ["tree", "/"], ["getacl", "/node"], ["create", "--sequential", "/new-"], ["locks", "/queue"],
         ["top", "--once"], ["ping", "--count", "1"], ["watch", "--once", "/node"],
         ["leader", "--watch", "/none"], ["serve", "--check-config", "--data", "/nowhere"],
         ["gate", "--check-config", "--http", "127.0.0.1:0"])


def full_device():
    return os.open("/dev/full", os.O_WRONLY), "No space left on device"


def read_only():
    return os.open("/dev/null", os.O_RDONLY), "Bad file descriptor"


def full_pipe():
    """Its other user has made it non-blocking."""
    _, w = os.pipe()
    os.set_blocking(w, False)
    try:
        while True:
            os.write(w, b"x" * 4096)
    except BlockingIOError:
        return w, "the pipe is full"


def left_pipe():
    """As silent as a program that SIGPIPE ends: `clave ls / | head -1`."""
    r, w = os.pipe()
    os.close(r)
    return w, ""


class Stdout(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server()
        for path in ("/node", "/queue", "/queue/x-lock-0000000001"):
            cls.run_clave(subprocess.DEVNULL, "create", path, "data")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @classmethod
    def run_clave(cls, out, *words):
        p = spawn([CLAVE, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                  env=environment(CLAVE_CONNECT=cls.server.connect), text=True)
        _, err = p.communicate(timeout=PATIENCE)
        return p.returncode, err

    def test_each_verb(self):
        for sink in (full_device, read_only, full_pipe, left_pipe):
            for words in VERBS:
                with self.subTest(sink=sink.__name__, words=words):
                    out, fault = sink()
                    code, err = self.run_clave(out, *words)
                    os.close(out)
                    self.assertEqual(code, 74, err)
                    self.assertIn("standard output: " if fault else "", err)
                    self.assertIn(fault, err)
                    self.assertEqual(bool(err), bool(fault))

    def test_a_server_serves_all_the_same(self):
        """The line that says where is lost, which the log tells; its exit code is that of serving."""
        for words in (["serve", "--listen", "127.0.0.1:0", "--data"],
                      ["gate", "--http", "127.0.0.1:0", "--http-audit"]):
            for flags in ([], ["--json"]):
                out, fault = full_device()
                p = spawn([CLAVE, *words, scratch("file"), *flags], stdin=subprocess.DEVNULL, stdout=out,
                          stderr=subprocess.PIPE, env=environment(CLAVE_CONNECT=self.server.connect), text=True)
                os.close(out)
                self.assertIn(f"standard output: {fault}: the line that says where it serves is lost",
                              p.stderr.readline())
                p.send_signal(signal.SIGTERM)
                self.assertEqual(p.wait(PATIENCE), 0)
                p.stderr.close()


if __name__ == "__main__":
    unittest.main()
