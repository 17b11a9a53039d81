"""Holders of clave as processes at places of the network, to be killed and stopped."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
from harness import CLAVE, environment, scratch, spawn  # noqa: E402
from history import AWAKE_NS, History  # noqa: E402
from lock_rig import children  # noqa: E402
from packages import python_package  # noqa: E402
from servers import GATE_TOKEN, now_ns  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))

HOLDER = os.environ.get("CLAVE_REAL_HOLDER", "real_holder")


class Field:
    """One lock or election: its path, what its holders have logged, and how they end."""

    def __init__(self, path, servers, session_ms):
        self.path, self.servers, self.session_ms = path, servers, session_ms
        self.log, self.stop = scratch("log"), scratch("stop")
        open(self.log, "w").close()
        self.history, self.workers = History(open(self.log)), []


class Worker:
    """The library's clave_mutex or clave_async_latch."""
    faults, stderr, more = ("kill -9", "stop"), None, {}

    def __init__(self, field, kind, place, number, hold_ms):
        self.field, self.kind, self.place, self.hold_ms = field, kind, place, hold_ms
        self.name, self.process = f"{kind}-{number}", None
        self.connect = field.servers.connect_of(number - 1)
        self.killed, self.asleep, self.since = False, [], 0
        field.workers.append(self)

    def command(self):
        f = self.field
        return [HOLDER, self.kind, self.connect, f.path, f.log, self.name, f.stop, f.session_ms,
                self.hold_ms]

    def start(self):
        self.killed = False
        self.process = spawn(self.place.words(self.command()), stdin=subprocess.DEVNULL,
                             stderr=self.stderr, env=environment(**self.more), start_new_session=True)

    def revive(self):
        if self.killed:
            self.start()

    def kill(self, what):
        self.killed = True
        self.process.kill()
        self.process.wait()
        self.field.history.killed.append((self.name, now_ns()))

    def victims(self, what):
        return [self.process.pid]

    def freeze(self, what):
        self.since = self.since if self.asleep else now_ns()
        self.asleep += self.victims(what)
        for pid in self.asleep:
            send(pid, signal.SIGSTOP)

    def thaw(self):
        if not self.asleep:
            return
        for pid in self.asleep:
            send(pid, signal.SIGCONT)
        self.field.history.asleep.append((self.name, self.since, now_ns() + AWAKE_NS))
        self.asleep = []

    def has_failed(self):
        return not self.killed and self.process.poll() is not None

    def end(self, patience):
        return self.process.wait(patience)


def send(pid, how):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


class Package(Worker):
    """The Python package, in threads or in asyncio, or the npm package over gates. Event loops can be blocked, too."""

    def __init__(self, field, form, what, place, number, hold_ms):
        super().__init__(field, f"{form}-{what}", place, number, hold_ms)
        self.what, self.block = what, scratch("block")

    def words(self, connect):
        """What all their holders are told."""
        f = self.field
        return [self.what, connect, f.path, f.log, self.name, f.stop, f.session_ms, self.hold_ms,
                self.block]

    def freeze(self, what):
        if what == "block":
            open(self.block, "w").close()
        else:
            super().freeze(what)

    def thaw(self):
        if os.path.exists(self.block):
            os.unlink(self.block)
        super().thaw()


class Python(Package):
    def __init__(self, field, form, what, place, number, hold_ms):
        super().__init__(field, form, what, place, number, hold_ms)
        self.form, self.more = form, {"PYTHONPATH": python_package()}
        if form == "asyncio":
            self.faults = ("kill -9", "stop", "block")

    def command(self):
        script = os.path.join(HERE, "holder_python.py")
        return ["/usr/bin/python3", "-B", script, self.form] + self.words(self.connect)


class Node(Package):
    faults, more = ("kill -9", "stop", "block"), {"CLAVE_GATE_TOKEN": GATE_TOKEN}

    def __init__(self, field, what, place, number, hold_ms, gates):
        super().__init__(field, "node", what, place, number, hold_ms)
        self.gates = gates

    def command(self):
        offset = now_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        urls = ",".join(g.url for g in self.gates)
        return ["node", os.path.join(HERE, "holder.mjs")] + self.words(urls) + [offset]


class Http(Worker):
    """Plain HTTP over gates, without the care of a package."""
    more = {"CLAVE_GATE_TOKEN": GATE_TOKEN}

    def __init__(self, field, what, place, number, hold_ms, gates):
        super().__init__(field, f"http-{what}", place, number, hold_ms)
        self.what, self.gates = what, gates

    def command(self):
        f, urls = self.field, ",".join(g.url for g in self.gates)
        return ["/usr/bin/python3", "-B", os.path.join(HERE, "holder_http.py"), self.what, urls, f.path, f.log, self.name,
                f.stop, f.session_ms, self.hold_ms]


class SlotOwner(Worker):
    """Of slots: by the Python package, or by HTTP or FleetLock over gates."""
    more = {"CLAVE_GATE_TOKEN": GATE_TOKEN}

    def __init__(self, field, form, place, number, hold_ms, gates):
        super().__init__(field, f"slot-{form}", place, number, hold_ms)
        self.form, self.gates = form, gates
        if form == "python":
            self.more = {"PYTHONPATH": python_package()}

    def command(self):
        f, servers = self.field, ",".join(g.url for g in self.gates) or self.connect
        return ["/usr/bin/python3", "-B", os.path.join(HERE, "holder_slots.py"), self.form, servers, f.path, f.log,
                self.name, f.stop, f.session_ms, self.hold_ms]


COMMAND = ('while [ ! -e "$1" ]; do "$2" "$3" --connect "$4" --session-timeout "$5ms" -q "$6" '
           '-- "$7" under "$8" "$9" "${10}"; case $? in 64|66|77|126|127) exit 1 ;; esac; '
           'done')


class Command(Worker):
    """`clave lock` or `clave elect`, again and again, around a command that does not heed SIGTERM.
    What is stopped is `clave` itself or its command, not both: nobody can end what sleeps together
    with its guardian."""
    faults = ("kill -9 of clave", "kill -9 of its guardian", "kill -9 of both", "stop of clave",
              "stop of its command")
    stderr = subprocess.DEVNULL  # what the shell says of those that are killed

    def __init__(self, field, verb, place, number, hold_ms):
        super().__init__(field, f"clave-{verb}", place, number, hold_ms)
        self.verb = verb

    def command(self):
        f = self.field
        return ["sh", "-c", COMMAND, "sh", f.stop, CLAVE, self.verb, self.connect, f.session_ms,
                f.path, HOLDER, f.log, self.name, self.hold_ms]

    def processes(self):
        """clave, its guardian, its command: as many of them as there are."""
        found, parent = [], self.process.pid
        while len(found) < 3:
            next_one = children(parent)
            if not next_one:
                break
            parent = next_one[0]
            found.append(parent)
        return found

    def victims(self, what):
        which = {"kill -9 of clave": (0,), "kill -9 of its guardian": (1,),
                 "kill -9 of both": (0, 1), "stop of clave": (0,), "stop of its command": (2,)}
        there = self.processes()
        return [there[i] for i in which[what] if i < len(there)]

    def kill(self, what):
        for pid in self.victims(what):
            send(pid, signal.SIGKILL)

    def revive(self):
        """The loop has done so."""


class Kazoo(Worker):
    def command(self):
        f = self.field
        return ["/usr/bin/python3", "-B", os.path.join(HERE, "holder_kazoo.py"), self.connect, f.path, f.log,
                f.session_ms, self.name, f.stop, self.hold_ms]


ETCDCTL = ('while [ ! -e "$1" ]; do etcdctl --endpoints "$2" lock --ttl "$3" -- "$4" sh -c '
           '\'CLAVE_TOKEN=$ETCD_LOCK_REV exec "$@"\' sh "$5" under "$6" "$7" "$8" || sleep 0.1; done')


class Etcdctl(Command):
    """`etcdctl lock`. A kill would leave its command without anybody who could end it: that is not played."""
    faults = ("stop",)

    def command(self):
        f = self.field
        return ["sh", "-c", ETCDCTL, "sh", f.stop, self.connect, -(-f.session_ms // 1000), f.path, HOLDER, f.log, self.name,
                self.hold_ms]

    def victims(self, what):
        return self.processes()[:1]
