"""clave serve --audit: the lines, the file, and what a file costs that takes none."""
import os
import re
import signal
import socket
import stat
import struct
import subprocess
import time
import unittest

from harness import CLAVE, PATIENCE, ask, clave, environment, free_port, scratch, spawn


class Server:
    def __init__(self, audit, flags=(), config=None):
        self.port = free_port()
        self.connect = f"127.0.0.1:{self.port}"
        given = ["--config", config] if config else ["--data", scratch("data"), "--audit", audit]
        # Unbuffered: communicate() does not see what a readline() before it has read ahead.
        self.p = spawn([CLAVE, "serve", "--listen", self.connect] + given + list(flags), bufsize=0,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       env=environment())
        self.ready = self.p.stdout.readline().decode()

    def end(self):
        if self.p.poll() is None:
            self.p.terminate()
        out, err = self.p.communicate(timeout=PATIENCE)
        return self.p.returncode, out.decode(), err.decode()

    def do(self, *args):
        return clave(*args, connect=self.connect).code


def wait_for(what):
    until = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > until:
            raise AssertionError("it does not come")
        time.sleep(0.02)


def text(path):
    with open(path, "rb") as f:
        return f.read().decode()


class Audit(unittest.TestCase):
    def started(self, *args, **named):
        s = Server(*args, **named)
        self.addCleanup(lambda: s.p.poll() is None and s.end())
        self.assertIn("serving on", s.ready)
        return s

    def test_lines(self):
        path = scratch("audit.log")
        s = self.started(path)
        self.assertEqual(s.do("create", "/a"), 0)
        self.assertNotEqual(s.do("create", "/a"), 0)
        self.assertEqual(s.do("create", "/t", "--container"), 0)
        code, _, err = s.end()
        self.assertEqual((code, err), (0, ""))
        stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} "
        who = "\tuser=127.0.0.1\tip=127.0.0.1\toperation="
        expected = [
            ("INFO", r"user=\S+\toperation=serverStart\tresult=success"),
            ("INFO", f"session=0x[0-9a-f]+{who}create\tznode=/a\tznode_type=persistent\tresult=success"),
            ("ERROR", f"session=0x[0-9a-f]+{who}create\tznode=/a\tznode_type=persistent\tresult=failure"),
            ("INFO", f"session=0x[0-9a-f]+{who}create\tznode=/t\tznode_type=container\tresult=success"),
            ("INFO", r"user=\S+\toperation=serverStop\tresult=invoked")]
        lines = text(path).splitlines()
        self.assertEqual(len(lines), len(expected), lines)
        for line, (level, form) in zip(lines, expected):
            self.assertRegex(line, f"^{stamp}{level} audit.Slf4jAuditLogger: {form}$")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode) & 0o027, 0)

    def test_no_client_forges_a_line(self):
        path = scratch("audit.log")
        s = self.started(path)
        evil = b"/x\n2026-11-23 00:00:00,000 INFO user=root\toperation=delete\x9b\xc2\x9b\xe2\x80\xae\xc3\xa9"
        body = struct.pack(">i", len(evil)) + evil + struct.pack(">i", 0) + \
            struct.pack(">iii", 1, 31, 5) + b"world" + struct.pack(">i", 6) + b"anyone" + b"\0" * 4
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.settimeout(PATIENCE)
            c.sendall(struct.pack(">iiqiqi", 44, 0, 0, 5000, 0, 16) + b"\0" * 16)
            self.assertTrue(c.recv(100))
            c.sendall(struct.pack(">iii", 8 + len(body), 1, 1) + body)
            self.assertTrue(c.recv(100))
        s.end()
        lines = text(path).splitlines()
        self.assertEqual(len(lines), 3, lines)
        self.assertIn("znode=/x\\u000a2026-11-23 00:00:00,000 INFO user=root\\u0009operation=delete"
                      "\\x9b\\u009b\\u202e\u00e9\t",
                      lines[1])

    def test_sighup_opens_it_again(self):
        path = scratch("audit.log")
        s = self.started(path, flags=["-v"])
        self.assertEqual(s.do("create", "/before"), 0)
        wait_for(lambda: "/before" in text(path))
        os.rename(path, path + ".1")
        s.p.send_signal(signal.SIGHUP)
        wait_for(lambda: os.path.exists(path))
        self.assertEqual(s.do("create", "/after"), 0)
        _, _, err = s.end()
        self.assertIn(f"the audit log {path} is opened again", err)
        self.assertIn("/before", text(path + ".1"))
        self.assertNotIn("/after", text(path + ".1"))
        self.assertIn("/after", text(path))

    def test_a_full_disk_costs_lines_and_is_said(self):
        s = self.started("/dev/full")
        for i in range(3):
            self.assertEqual(s.do("create", f"/n{i}"), 0)
        code, _, err = s.end()
        self.assertEqual(code, 0)
        self.assertRegex(err, "lines?: No space left on device")
        lost = re.findall(r"the audit log /dev/full has lost (\d+) lines?: ", err)
        self.assertEqual(sum(map(int, lost)), 5, err)  # some may have come while a write went on

    def test_a_pipe_that_nobody_reads_costs_lines_and_no_time(self):
        path = scratch("pipe")
        os.mkfifo(path)
        s = Server(path)
        self.assertEqual(s.ready, "")
        code, _, err = s.end()
        self.assertEqual(code, 74, err)
        self.assertIn(path, err)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        s = self.started(path)
        long = "x" * 8000
        for i in range(12):  # more than a pipe holds
            self.assertEqual(s.do("create", f"/{i}{long}"), 0)
        self.assertEqual(ask(s.port, b"ruok"), b"imok")
        lost, taken = s.p.stderr.readline().decode(), b""

        def has_last():  # reads on, so that there is room again
            nonlocal taken
            s.do("create", "/last")
            try:
                taken += os.read(reader, 1 << 20)
            except BlockingIOError:
                pass
            return b"znode=/last" in taken
        wait_for(has_last)
        # No line continues one that was torn when the pipe was full.
        self.assertEqual([line for line in taken.splitlines() if line.count(b" audit.Slf4j") > 1], [])
        code, _, err = s.end()
        self.assertEqual(code, 0)
        self.assertRegex(lost, r"has lost \d+ lines?: Connection timed out")
        os.close(reader)

    def test_zoo_cfg(self):
        config = scratch("zoo.cfg")
        with open(config, "w") as f:
            f.write(f"dataDir={scratch('data')}\nclientPort=2181\naudit.enable=true\n")
        s = self.started(None, config=config)
        self.assertEqual(s.do("create", "/a"), 0)
        _, out, err = s.end()
        self.assertEqual(err, "")
        self.assertEqual([re.search(r"operation=(\w+)", l).group(1) for l in out.splitlines()],
                         ["serverStart", "create", "serverStop"])

    def test_a_torn_line_is_ended(self):
        path = scratch("audit.log")
        with open(path, "w") as f:
            f.write("as a crash lef")
        s = self.started(path)
        s.end()
        self.assertRegex(text(path), r"^as a crash lef\n\d{4}-.*serverStart.*\n.*serverStop.*\n$")

    def test_check_config(self):
        directory = scratch("dir")
        os.mkdir(directory)
        for path, code, what in (("", 64, "it is empty"), ("/nowhere/a", 74, "/nowhere/a"),
                                 (directory, 74, "Is a directory"), (f"{directory}/a", 0, ""),
                                 ("-", 0, "")):
            r = clave("serve", "--check-config", "--data", "/nowhere", "--audit", path)
            self.assertEqual(r.code, code, r)
            self.assertIn(what, r.err)
        self.assertEqual(os.listdir(directory), [])

    def test_what_cannot_be_opened(self):
        s = Server("/nowhere/audit.log")
        code, _, err = s.end()
        self.assertEqual(code, 74, err)
        self.assertIn("cannot open the audit log", err)
        self.assertIn("/nowhere/audit.log", err)


if __name__ == "__main__":
    unittest.main()
