"""A gate for tests: `clave gate` in front of a server, or the one in `clave serve --http`."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from harness import CLAVE, PATIENCE, UNSAFE, ClaveServer, environment, free_port, scratch, spawn


def is_sanitized():
    """A sanitizer needs a multiple of the memory."""
    with open(CLAVE, "rb") as f:
        program = f.read()
    return b"__asan_init" in program or b"__tsan_init" in program


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


class Gate:
    """A process with HTTP. `connect` None: a server with --http."""

    def __init__(self, connect, *flags):
        self.connect = connect
        self.flags = list(flags)
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.data = scratch("data")
        self.zk_port = free_port()
        self.process = None
        self.err = ""

    def start(self):
        http = ["--http", self.address]
        own = ["gate", "--connect", self.connect] if self.connect else \
            ["serve", "--data", self.data, "--listen", f"127.0.0.1:{self.zk_port}"]
        self.log = open(scratch("log"), "w+", encoding="utf-8")
        self.process = spawn([CLAVE] + own + http + self.flags, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment())
        self.ready = self.process.stdout.readline()
        if str(self.port) not in self.ready:
            raise AssertionError(f"no gate: {self.ready!r} {self.said()}")
        return self

    def said(self):
        with open(self.log.name, encoding="utf-8") as f:
            return f.read()

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        try:
            code = self.process.wait(PATIENCE / 3)
        except subprocess.TimeoutExpired:
            if not is_sanitized():
                raise
            # TSan keeps a signal for the thread's next call, and a thread that waits for another makes none.
            self.process.send_signal(how)
            code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.log.close()
        return code

    def dial(self):
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def open(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def call(self, method, path, body=None, **headers):
        """(status, headers, JSON or bytes)"""
        c = self.open()
        try:
            return ask(c, method, path, body, **headers)
        finally:
            c.close()

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def ask(c, method, path, body=None, **headers):
    """On a connection that is kept. `Content_Type=...` is the header Content-Type."""
    given = {k.replace("_", "-"): v for k, v in headers.items()}
    if body is not None and not isinstance(body, (bytes, str)):
        body = json.dumps(body)
        given.setdefault("Content-Type", "application/json")
    c.request(method, path, body, given)
    r = c.getresponse()
    data = r.read()
    told = dict(r.getheaders())
    if re.match(r"application/(problem\+)?json", told.get("Content-Type", "")):
        data = json.loads(data)
    return r.status, told, data


class Holder:
    """Of a lock, as its clients see it: never two at once, and each with a greater token."""

    def __init__(self):
        self.mutex, self.who, self.newest = threading.Lock(), None, 0

    def begin(self, who, token):
        with self.mutex:
            assert self.who is None and token > self.newest, f"{UNSAFE}: two holders of one lock"
            self.who, self.newest = who, token

    def end(self, who):
        with self.mutex:
            assert self.who is who, f"{UNSAFE}: two holders of one lock"
            self.who = None


class Rig(unittest.TestCase):
    """A server and a gate for all tests of a class."""
    flags = ()
    own = False  # the gate in a server
    kind = Gate

    @classmethod
    def setUpClass(cls):
        cls.server = None if cls.own else ClaveServer(["--max-connections", "0"]).start()
        cls.gate = cls.kind(cls.server and cls.server.connect, *cls.flags).start()

    @classmethod
    def tearDownClass(cls):
        if cls.gate.process.poll() is None:
            cls.gate.stop()
        if cls.server:
            cls.server.stop()

    def await_true(self, what, text):
        until = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), until, text)
            time.sleep(0.02)

    def assertProblem(self, answer, status, text=""):
        self.assertEqual(answer[0], status, answer)
        self.assertEqual(answer[1]["Content-Type"], "application/problem+json")
        self.assertEqual(answer[2]["status"], status)
        self.assertIn(text, answer[2]["detail"])
