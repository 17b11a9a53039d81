"""The log of clave serve: whole lines in order, and what a reader that does not read costs."""
import fcntl
import json
import os
import re
import socket
import subprocess
import unittest

from harness import CLAVE, PATIENCE, ask, clave, environment, free_port, scratch, spawn

PIPE, LINES = 16384, 4500
F_SETPIPE_SZ = 1031


class Log(unittest.TestCase):
    def started(self, *flags):
        """Its standard error is a small pipe, and nobody reads it yet."""
        self.port = free_port()
        self.log, log = os.pipe()
        self.addCleanup(os.close, self.log)
        fcntl.fcntl(log, F_SETPIPE_SZ, PIPE)
        p = spawn([CLAVE, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", scratch("data"),
                   *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                  env=environment())
        os.close(log)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.assertIn(b"serving on", p.stdout.readline())
        return p

    def cause_lines(self, n):
        """Each waits until the server has closed it, and so has logged its line."""
        for _ in range(n):
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as s:
                s.sendall(b"\xff\xff\xff\xff")
                self.assertEqual(s.recv(1), b"")

    def rest(self):
        with os.fdopen(os.dup(self.log), "rb") as f:
            return f.read().decode().splitlines()

    def test_the_time(self):
        """The journal has one for each line; JOURNAL_STREAM says whether this is it."""
        for flags, journal, timed in (((), "", True), ((), "here", False), ((), "1:2", True),
                                      (("--log-time", "yes"), "here", True),
                                      (("--log-time", "no"), "", False)):
            with self.subTest(flags=flags, journal=journal):
                port = free_port()
                log, theirs = os.pipe()
                at = os.fstat(theirs)
                stream = f"{at.st_dev}:{at.st_ino}" if journal == "here" else journal
                p = spawn([CLAVE, "serve", "--listen", f"127.0.0.1:{port}", "--data", scratch("data"),
                           "--log-level", "info", *flags], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=theirs, env=environment(JOURNAL_STREAM=stream))
                os.close(theirs)
                self.assertIn(b"serving on", p.stdout.readline())
                p.terminate()
                self.assertEqual(p.wait(PATIENCE), 0)
                p.stdout.close()
                with os.fdopen(log) as f:
                    last = f.readlines()[-1]
                self.assertRegex(last, "^%s%sclave: serve: " % (
                    "<6>" if journal == "here" else "",
                    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z " if timed else ""))

    def test_full_pipe_holds_nobody_up(self):
        p = self.started()
        self.cause_lines(LINES)
        self.assertEqual(ask(self.port, b"ruok"), b"imok")
        self.assertEqual(clave("create", "/a", connect=f"127.0.0.1:{self.port}").code, 0)
        lines = b""
        while not re.search(rb"has lost \d+ lines?: .*\n", lines):
            lines += os.read(self.log, 1 << 20)
        lost = int(re.search(rb"has lost (\d+) lines?: they come faster than they can be written\n",
                             lines).group(1))
        whole = re.findall(rb"^\S+Z clave: serve: 127\.0\.0\.1:\d+ is closed: it sent a frame of "
                           rb"impossible length$", lines, re.M)
        self.assertEqual(len(whole) + lost, LINES)
        self.assertEqual(lines.count(b"\n"), len(whole) + 1)
        self.assertGreater(len(whole), PIPE // 100)
        p.terminate()
        self.assertEqual(p.wait(PATIENCE), 0)

    def test_pipe_without_a_reader_is_no_fault(self):
        p = self.started()
        with open(os.devnull, "rb") as null:
            os.dup2(null.fileno(), self.log)  # nobody has the reading end now
        self.cause_lines(10)
        self.assertEqual(ask(self.port, b"ruok"), b"imok")
        with open(f"/proc/{p.pid}/io", encoding="ascii") as f:
            writes = int(re.search(r"syscw: (\d+)", f.read()).group(1))
        self.assertLess(writes, 1000)  # it does not try again and again
        p.terminate()
        self.assertEqual(p.wait(PATIENCE), 0)

    def test_end_does_not_wait_for_a_reader(self):
        p = self.started()
        self.cause_lines(200)
        p.terminate()
        self.assertEqual(p.wait(PATIENCE), 0)

    def test_last_lines_come(self):
        p = self.started("--log-level", "info", "--log-format", "json")
        self.cause_lines(10)
        p.terminate()
        self.assertEqual(p.wait(PATIENCE), 0)
        told = [json.loads(line)["message"] for line in self.rest()]
        self.assertEqual(sum("impossible length" in t for t in told), 10)
        self.assertEqual(told[-1], "stopping: SIGTERM")


if __name__ == "__main__":
    unittest.main()
