"""What the tests of the program share: servers on free ports, and runs of the program.

Every process started here ends with the test, whatever happens: by atexit, and by the
kernel when the test itself is killed."""
import atexit
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

CLAVE = os.environ.get("CLAVE", "clave")
SOURCE = os.environ.get("CLAVE_SOURCE",
                        os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
JARS = "/usr/share/java/"
# The class path of Apache ZooKeeper; another version than the installed one is tested with its own.
APACHE = os.environ.get("CLAVE_APACHE_JARS") or f"{JARS}zookeeper.jar:{JARS}slf4j-nop.jar"
SCRATCH = tempfile.mkdtemp(prefix="clave-test-")
# Two holders or two leaders, a lost write, corruption: tools/run-tests does not run a test again
# that says so.
UNSAFE = "SAFETY VIOLATED"
PATIENCE = 30  # seconds until something that should happen is given up
_processes = []
_ports = []
_libc = ctypes.CDLL(None)


@atexit.register
def _clean_up():
    for p in _processes:
        if p.poll() is None:
            p.send_signal(signal.SIGCONT)
            p.kill()
            p.wait()
    shutil.rmtree(SCRATCH, ignore_errors=True)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    for s in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
        signal.signal(s, signal.SIG_DFL)


def spawn(command, before=None, **keywords):
    """`before` is called in the new process, before it executes the command."""
    def prepare():
        _die_with_parent()
        if before:
            before()

    p = subprocess.Popen(command, preexec_fn=prepare, **keywords)
    _processes.append(p)
    return p


def scratch(name):
    return os.path.join(tempfile.mkdtemp(dir=SCRATCH), name)


def free_port():
    """Ours from here on: no other process is given it, nor a client of anybody's. Who connects is
    refused until a server of ours listens there."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # so that servers, who say so too, may
    s.bind(("127.0.0.1", 0))
    _ports.append(s)
    return s.getsockname()[1]


def environment(**more):
    """No configuration of whoever runs the test, and a home of its own."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("CLAVE_", "XDG_")) or k == "CLAVE_TEST_SERVER"}
    env["CLAVE_SYSTEM_CONFIG"] = "/dev/null"  # nor of its machine
    env["HOME"] = os.path.join(SCRATCH, "home")
    os.makedirs(env["HOME"], exist_ok=True)
    env.update(more)
    return env


def ask(port, word, address="127.0.0.1", timeout=5):
    try:
        with socket.create_connection((address, port), timeout) as s:
            s.sendall(word)
            return b"".join(iter(lambda: s.recv(65536), b""))
    except OSError:
        return b""


class ClaveServer:
    name = "clave"

    def __init__(self, flags=()):
        self.port = free_port()
        self.data = scratch("data")
        self.flags = list(flags)
        self.env = {}
        self.process = None
        self.ready = ""

    @property
    def connect(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        self.process = spawn([CLAVE, "serve", "--data", self.data, "--listen", self.connect]
                             + self.flags, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             text=True, env=environment(**self.env))
        self.ready = self.process.stdout.readline()
        if "serving on" not in self.ready:
            raise AssertionError(f"clave serve did not start: {self.ready!r}")
        return self

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code


class ApacheServer(ClaveServer):
    name = "apache"
    properties = {}
    tick_ms = 2000  # sessions last twice as long at least

    def start(self):
        cfg = scratch("zoo.cfg")
        with open(cfg, "w") as f:
            f.write(f"tickTime={self.tick_ms}\ndataDir={self.data}\nclientPort={self.port}\n"
                    "clientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n"
                    "4lw.commands.whitelist=*\n")
        given = [f"-D{k}={v}" for k, v in self.properties.items()]
        if "--extended-types" in self.flags:
            given.append("-Dzookeeper.extendedTypesEnabled=true")
        self.process = spawn(["java", "-Xmx256m"] + given
                             + ["-cp", APACHE, "org.apache.zookeeper.server.ZooKeeperServerMain", cfg],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while b"Mode: standalone" not in ask(self.port, b"srvr"):
            if time.monotonic() > until or self.process.poll() is not None:
                raise AssertionError("Apache ZooKeeper did not start")
            time.sleep(0.05)
        return self

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    @property
    def version(self):
        told = re.search(rb"version: (\d+)\.(\d+)\.(\d+)", ask(self.port, b"srvr"))
        return tuple(map(int, told.groups()))


def has_apache():
    return shutil.which("java") is not None and all(map(os.path.exists, APACHE.split(":")))


def server(**keywords):
    """A started server of the kind the environment asks for."""
    if os.environ.get("CLAVE_TEST_SERVER") == "apache":
        return ApacheServer(**keywords).start()
    return ClaveServer(**keywords).start()


class Served(unittest.TestCase):
    """Tests with one server for all of them, and a path for each that no other uses."""
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=cls.flags)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.path = "/" + self.id().rpartition(".")[2]


class Result:
    def __init__(self, code, out, err):
        self.code, self.bytes, self.err = code, out, err.decode(errors="replace")

    @property
    def out(self):
        return self.bytes.decode()

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.bytes[:2000]!r}\nstderr: {self.err[:2000]}"


def clave(*words, connect=None, stdin=None, env=None, timeout=PATIENCE):
    """Runs the program to its end."""
    more = dict(env or {})
    if connect:
        more["CLAVE_CONNECT"] = connect
    p = spawn([CLAVE] + [str(w) if not isinstance(w, bytes) else w for w in words],
              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
              env=environment(**more))
    out, err = p.communicate(stdin or b"", timeout=timeout)
    return Result(p.returncode, out, err)


class Running:
    """The program in the background, its lines read as they come."""

    def __init__(self, *words, connect=None, env=None, stderr=subprocess.PIPE):
        more = dict(env or {})
        if connect:
            more["CLAVE_CONNECT"] = connect
        self.process = spawn([CLAVE] + [str(w) for w in words], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=stderr, text=True,
                             env=environment(**more))

    def line(self):
        """The next line of its output; fails when none comes in time."""
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        text = self.process.stdout.readline()
        timer.cancel()
        return text.rstrip("\n")

    def end(self, how=None):
        """Its exit code, the rest of its output and its messages."""
        if how is not None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=PATIENCE)
        return Result(self.process.returncode, out.encode(), err.encode())
