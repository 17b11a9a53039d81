"""What the system refuses: threads, processes, descriptors and memory, at each limit from 1 on until
it works; and a sandbox that answers EPERM to clone3. Nothing dies of it. There is a message with the
reason, and the exit code is never that of a command: every verb, and a program linked with libclave."""
import ctypes
import fcntl
import os
import resource
import select
import shutil
import signal
import struct
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import CLAVE, PATIENCE, SCRATCH, ClaveServer, clave, environment, scratch

LINKED = os.environ.get("CLAVE_LIMITS_CLIENT", "")
TIMEOUT, PATIENT = "200ms", "20s"
AT_ONCE = 8
FAILURES = (69, 70, 74, 75)
REASONS = ("resource temporarily unavailable", "too many open files", "cannot allocate memory",
           "not enough memory", "out of memory", "no thread can be started",
           "no file can be opened", "operation not permitted", "no process for it",
           "failed to map segment")  # a library that is loaded when it is needed
# Address space: small stacks of threads make the way to what works short.
STACK = 512 * 1024
KIB = 1024
STEP = 512 * KIB

# Verbs with a server: {number} is its address, {name} the same with a host that is looked up.
CLIENTS = (
    "lock -c {name} /x{i} -- true", "lock -c {number} /x{i} -- true",
    "semaphore -c {name} -n 2 /s{i} -- true", "elect -c {name} /e{i} -- true", "locks -c {name} /q",
    "locks -c {name} --deadlocks", "top -c {name} --once", "leader -c {name} /q",
    "create -c {name} /c{i}", "ls -c {name} /", "ls -c {number} /", "tree -c {name} /q",
    "ping -c {name}",
)
# Those that need what one of these needs.
LIKE_THEM = (
    "rwlock -c {name} /r{i} -- true", "candidates -c {name} /q", "resign -c {name} /q",
    "transfer -c {name} /q somebody", "check -c {name} /q 1", "get -c {name} /q",
    "set -c {name} /q data", "rm -c {name} -r /none", "stat -c {name} /q", "getacl -c {name} /q",
    "setacl -c {name} /q world:anyone:cdrwa", "sync -c {name} /q", "sessions -c {name}",
    "instances -c {name}", "members -c {name} /q", "counter -c {name} /q",
    "mirror -c {name} --once /q {home}/mirror",
)
LOCAL = ("lock /x -- true", "ls /")
FILES = ("data check {data}", "data dump {data}", "data digest {data}", "grow --out {home}/g h1 h2 h3",
         "version", "help lock")
WATCH = ("watch -c {name} /q",)
LINKS = ("{name}", "{number}", "local:")  # the linked program's argument
SERVERS = (
    "serve --data {home}/s --listen 127.0.0.1:0",
    "serve --data {home}/s --listen 127.0.0.1:0 --admin 127.0.0.1:0 --audit {home}/audit",
    "serve --data {home}/s --listen 127.0.0.1:0 --http 127.0.0.1:0",
    "gate --connect {name} --http 127.0.0.1:0",
)
EACH_WAY = CLIENTS + LOCAL + FILES + LINKS + WATCH + SERVERS
# Of the verbs that only ask, one; each place in memory is a run.
MEMORY = CLIENTS[:2] + ("ls -c {name} /",) + LINKS[:2] + SERVERS


class Filter(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("at", ctypes.c_void_p)]


def refuse_clone3():
    """As old container runtimes do: EPERM, which the C library does not take for "no such call"."""
    load, equal, answer = 0x20, 0x15, 0x06
    rows = ((load, 0, 0, 0), (equal, 0, 1, 435), (answer, 0, 0, 0x00050001), (answer, 0, 0, 0x7FFF0000))
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    program = Filter(len(rows), ctypes.addressof(text))
    if libc.prctl(22, 2, ctypes.byref(program), 0, 0) != 0:  # PR_SET_SECCOMP
        os._exit(99)


class Limit:
    """`set` runs in the process that becomes the program, with each of the values in turn."""

    def __init__(self, name, values, set_):
        self.name, self.values, self.set = name, values, set_


def set_processes(n):
    """They are counted by user: one that has none yet. Not for root, who has no such limit."""
    user = 100000 + os.getpid()
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    resource.setrlimit(resource.RLIMIT_NPROC, (n, n))


def set_memory(n):
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))
    resource.setrlimit(resource.RLIMIT_AS, (n, n))


PROCESSES = Limit("processes", range(1, 16), set_processes)
DESCRIPTORS = Limit("files", range(1, 64), lambda n: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
CLONE3 = Limit("clone3", (0,), lambda n: refuse_clone3())


def end_local(directory):
    """Ends the local server, if one runs there."""
    try:
        with open(directory + "/clave.lock", "rb+") as f:
            while True:  # it takes the lock, then writes its number
                try:
                    fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    f.seek(0)
                    pid = f.read().split()
                if pid:
                    os.kill(int(pid[0]), signal.SIGTERM)
                    break
                time.sleep(0.01)
    except OSError:  # none was started
        pass


class Limits(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        os.chmod(SCRATCH, 0o755)
        # Other users are to find them.
        cls.programs = os.path.dirname(scratch(""))
        os.chmod(cls.programs, 0o755)
        shutil.copy(CLAVE, cls.programs + "/clave")
        shutil.copy(LINKED, cls.programs + "/linked")
        cls.server = ClaveServer().start()
        for path in ("/q", "/linked"):
            clave("create", path, connect=cls.server.connect)
        cls.data = scratch("checked")
        other = ClaveServer()
        other.data = cls.data
        other.start().stop()
        for place, _, names in os.walk(os.path.dirname(cls.data)):
            for path in [place] + [os.path.join(place, name) for name in names]:
                os.chmod(path, 0o777)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def run_one(self, row, limit=None, n=0, timeout=TIMEOUT):
        """One run of a verb, or of the linked program: exit code and messages. A server is ended
        once it is ready."""
        home = scratch("home")
        os.makedirs(home)
        os.chmod(os.path.dirname(home), 0o755)
        os.chmod(home, 0o777)
        words = row.format(name=f"localhost:{self.server.port}", number=self.server.connect, home=home,
                           data=self.data, i=os.path.basename(os.path.dirname(home))).split()
        serves = row in SERVERS + WATCH
        program = [self.programs + ("/linked" if row in LINKS else "/clave")]
        if row in CLIENTS + LIKE_THEM + LOCAL:
            words[1:1] = ["--timeout", timeout]

        def prepare():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if limit:
                limit.set(n)

        env = environment(HOME=home, CLAVE_LOCAL_DIR=home + "/local")
        p = subprocess.Popen(program + words, env=env, preexec_fn=prepare, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            if serves and select.select([p.stdout], [], [], PATIENCE)[0] and p.stdout.readline():
                p.terminate()
            _, err = p.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            self.fail(f"{words} hangs with {limit and limit.name} {n}")
        finally:
            end_local(home + "/local")
        return p.returncode, err.decode(errors="replace")

    def fault(self, row, limit, n, code, err):
        """None: it failed as it should."""
        if code == 127 and "while loading shared libraries" in err:
            return None  # by the dynamic loader: the program has not begun
        told = f"{row}, {limit.name} {n}: exit {code}: {err[-400:]}"
        reason = any(reason in err.lower() for reason in REASONS)
        return None if code in FAILURES and reason else told

    def climb_one(self, row, limit):
        """With each value until it does what it does without a limit. None, or what was wrong."""
        wanted = self.run_one(row, timeout=PATIENT)[0]
        for n in limit.values:
            code, err = self.run_one(row, limit, n)
            wrong = code != wanted and self.fault(row, limit, n, code, err)
            if wrong:  # or is the machine slow?
                code, err = self.run_one(row, limit, n, PATIENT)
                wrong = self.fault(row, limit, n, code, err)
            if code == wanted:
                return None
            if wrong:
                return wrong
        return None if limit is CLONE3 else f"{row}: never works with {limit.name}"

    def climb(self, rows, limit):
        with ThreadPoolExecutor(AT_ONCE) as threads:
            faults = list(filter(None, threads.map(lambda row: self.climb_one(row, limit), rows)))
        self.assertEqual(faults, [])

    def test_no_pool_of_libuv(self):
        """It aborts the program if its first thread is refused."""
        symbols = subprocess.run(["nm", "-D", "--undefined-only", CLAVE], check=True, text=True,
                                 capture_output=True).stdout
        used = {line.split()[-1] for line in symbols.splitlines()}
        self.assertIn("uv_loop_init", used)
        pool = {"uv_queue_work", "uv_getaddrinfo", "uv_getnameinfo", "uv_random"}
        self.assertEqual({s for s in used if s in pool or s.startswith("uv_fs_")}, set())

    @unittest.skipIf(os.geteuid() != 0, "needs a user without processes")
    def test_processes(self):
        self.climb(EACH_WAY, PROCESSES)

    def test_descriptors(self):
        self.climb(EACH_WAY, DESCRIPTORS)

    def test_no_clone3(self):
        self.climb(EACH_WAY + LIKE_THEM, CLONE3)

    def test_no_clone3_is_no_matter_for_a_lock_at_a_number(self):
        row = "lock -c {number} /x{i} -- true"
        self.assertEqual(self.run_one(row, CLONE3), (0, ""))

    def test_memory(self):
        """From where the program begins at all."""
        floor = 2048 * KIB
        for floor in range(floor, floor + 32 * STEP, STEP):
            if self.run_one("version", Limit("memory", (), set_memory), floor)[0] == 0:
                break
        self.climb(MEMORY, Limit("memory", range(floor, floor + 128 * STEP, STEP), set_memory))


if __name__ == "__main__":
    unittest.main(verbosity=2)
