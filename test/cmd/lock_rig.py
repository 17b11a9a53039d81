"""What the tests of `clave lock` share: finding its processes, and waiting for what comes."""
import ctypes
import json
import os
import struct
import time

from harness import PATIENCE, UNSAFE, Running, clave

# Of the server: sessions may be as short as 200 ms, and as long as is usual.
TICK = ["--tick", "100ms", "--max-session-timeout", "20s"]
# Any process may not be scheduled for two seconds, at any line of a test: the sessions survive that.
EXPIRES = "5s"  # where its end is waited for
LONG = "20s"  # where it is not: it would be too late
HANDOVER_S = 12  # less than is left of a long one whose last heartbeat was a third of it ago
# The command is begun at once, gets SIGTERM after 5 s and SIGKILL after 7.5 s.
MAX_HOLD = ["--session-timeout", LONG, "--max-hold", "5s"]
MAX_TERM = ["--session-timeout", LONG, "--max-term", "5s"]
TWO_HOLD = f"{UNSAFE}: something of the command before lives, and the lock is free or another's"

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 22, 36, 38


def forbid_call(number, error, first=None):
    """From here on this process's system call `number` (with this first argument) fails with `error`."""
    load, equal, answer = 0x20, 0x15, 0x06
    code = [(load, 0, 0, 0), (equal, 0, 1 if first is None else 3, number)]
    if first is not None:
        code += [(load, 0, 0, 16), (equal, 0, 1, first)]
    code += [(answer, 0, 0, 0x00050000 | error), (answer, 0, 0, 0x7FFF0000)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(text)))
    if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or LIBC.prctl(PR_SET_SECCOMP, 2, program) != 0:
        os._exit(99)


def stranger(test, server):
    """A client whose nodes have a session, as those of Curator and kazoo have; the test is skipped without kazoo."""
    try:
        from kazoo.client import KazooClient
    except ImportError:
        test.skipTest("no kazoo")
    zk = KazooClient(server.connect)
    zk.start(timeout=PATIENCE)
    test.addCleanup(zk.close)
    test.addCleanup(zk.stop)
    return zk


def until(condition, patience=PATIENCE, what=""):
    """Polls until the condition is true and returns it; fails after a while."""
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"did not come true in {patience} s: {what or condition}")
        time.sleep(0.005)


def stat(pid):
    """(state, parent, group) of a process, or None when there is none. Not from /proc/PID/stat, which waits for a process
    within execve(2), as there are in tests of disks that stall."""
    try:
        with open(f"/proc/{pid}/status") as f:
            of = dict(line.split(":", 1) for line in f)
        return of["State"].split()[0], int(of["PPid"]), os.getpgid(int(pid))
    except (FileNotFoundError, ProcessLookupError):
        return None


def alive(pid):
    s = stat(pid)
    return s is not None and s[0] not in "ZX"


def stopped(pid):
    s = stat(pid)
    return s is not None and s[0] == "T"


def children(pid):
    return [child for child, state in _children(pid) if state not in "ZX"]


def zombies(pid):
    """Its children that have ended, and that it has not waited for."""
    return [child for child, state in _children(pid) if state in "ZX"]


def _children(pid):
    found = [(int(name), stat(name)) for name in os.listdir("/proc") if name.isdigit()]
    return [(child, s[0]) for child, s in found if s and s[1] == pid]


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


class Holder:
    """A `clave lock` whose command says "PID" on its first line and goes on as `script`."""

    def __init__(self, server, path, *flags, script="exec sleep 1000", env=None,
                 verb=("lock",), **streams):
        self.run = Running(*verb, *flags, path, "--", "sh", "-c", "echo $$; " + script,
                           connect=server.connect, env=env, **streams)
        self.wrapper = self.run.process.pid
        self.command = None

    def started(self):
        """Waits until the command runs."""
        self.command = int(self.run.line())
        self.guardian = stat(self.command)[1]
        return self

    def code(self):
        return self.run.end().code

    def waiting(self, server, path, n):
        until(lambda: len(queue(server, path)) >= n)
        return self


def queue(server, path):
    r = clave("locks", "--json", path, connect=server.connect)
    if r.code != 0:
        raise AssertionError(r)
    return [json.loads(line) for line in r.out.splitlines()]


def nodes(server, path):
    r = clave("ls", path, connect=server.connect)
    return r.out.split() if r.code == 0 else []
