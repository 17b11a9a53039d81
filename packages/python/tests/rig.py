"""A server for the tests: `clave serve` of the environment variable CLAVE."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import clave

CLAVE = os.environ.get("CLAVE", "clave")
PATIENCE = 30  # seconds until something that should happen is given up


class Server:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="clave-python-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.connect = f"127.0.0.1:{s.getsockname()[1]}"
        self.process = None

    def start(self):
        self.process = subprocess.Popen([CLAVE, "serve", "--data", f"{self.folder}/data", "--listen", self.connect],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if not self.process.stdout.readline():
            raise AssertionError("clave serve does not start")
        return self

    def signal(self, what):
        self.process.send_signal(what)
        if what == signal.SIGSTOP:  # which stops its threads after kill() has returned
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def stop(self):
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder)


class Case(unittest.TestCase):
    """Tests with a server of their class, and a client of theirs."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.stop)

    def open(self, **more):
        client = clave.Client(self.server.connect, **more)
        self.addCleanup(client.close)
        client.wait(PATIENCE)
        return client

    def queue(self, client, path):
        """The nodes of a queue, as the server has them now."""
        client.sync(path)
        return client.children(path)

    def queued(self, client, path, n):
        until(lambda: len(self.queue(client, path)) == n, f"{n} nodes below {path}")


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not in {PATIENCE} s: {what}")
        time.sleep(0.005)


def memory():
    """Bytes that this process has resident."""
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def descriptors():
    return len(os.listdir("/proc/self/fd"))
