"""One queue on Apache's server: the Python package, in threads and in asyncio, the npm package over two gates, kazoo
with Curator's names and with clave.kazoo, Curator, libclave and `clave lock`. Holders of the packages are stopped for
longer than their sessions, and killed; others are killed, and so is a gate.

Each holder appends "+ NAME TOKEN" to one log when it has the lock, and "- NAME TOKEN" before it gives it back; one of
the packages "! NAME TOKEN" if it finds that it has lost it. From the log alone it is judged that
  - nobody says "-" once another has said "+": who was stopped says "!", and who was killed says nothing;
  - the tokens only ever grow;
  - everybody has had turns, and nothing is left in the queue."""
import collections
import os
import random
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cmd"))
import queue_test  # noqa: E402
from gate_rig import Gate  # noqa: E402
from harness import UNSAFE, ApacheServer, clave, environment, scratch, spawn  # noqa: E402
from lock_rig import until  # noqa: E402
from packages import python_package, why_no_node, why_no_python  # noqa: E402
from queue_test import PATH, PATIENCE, SESSION_MS  # noqa: E402

PACKAGES = ("threads", "asyncio", "node")
OTHERS = ("curator", "kazoo", "clave.kazoo", "clave", "command")
SHORT_MS = 3000  # sessions of the packages' holders, which are stopped for longer


class Queue(queue_test.Queue):
    what = "the queue of the packages"

    def __init__(self, server):
        super().__init__(server.connect, time.time_ns() % 1000000)
        self.python = python_package()
        key = scratch("key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(random.randbytes(32).hex() + "\n")
        self.gates = [Gate(server.connect, "--http-key", key).start() for _ in range(2)]

    def command(self, kind):
        if kind == "clave.kazoo":
            return ["/usr/bin/python3", "-B", os.path.join(HERE, "queue_holder.py")]
        if kind == "node":
            return ["node", os.path.join(HERE, "package_holder.mjs")]
        if kind in PACKAGES:
            return ["/usr/bin/python3", "-B", os.path.join(HERE, "package_holder.py"), kind]
        return super().command(kind)

    def add(self, kind):
        self.count += 1
        name = f"{kind}-{self.count}"
        where = ",".join(f"http://{g.address}" for g in self.gates) if kind == "node" else self.connect
        words = [where, self.path, self.log, name, self.stop, str(SHORT_MS if kind in PACKAGES else SESSION_MS)]
        more = [kind] if kind == "clave.kazoo" else []
        self.living[name] = spawn(self.command(kind) + words + more, stdin=subprocess.DEVNULL,
                                  env=environment(PYTHONPATH=self.python))

    def name(self, kind):
        return next(n for n in self.living if n.startswith(f"{kind}-"))

    def lines(self):
        with open(self.log, encoding="ascii") as f:
            return [tuple(line.split()) for line in f if line.endswith("\n")]

    def has_said(self, sign, name, since=0):
        return any(line[:2] == (sign, name) for line in self.lines()[since:])

    def keep(self, name):
        """From now on it does not let go. Returns when it holds and has said so: "="."""
        there = len(self.lines())
        open(f"{self.stop}-{name}", "w").close()
        until(lambda: self.has_said("=", name, there), PATIENCE, f"a turn that {name} keeps")

    def let_go(self, name):
        os.unlink(f"{self.stop}-{name}")

    def stop_one(self, name):
        """While it holds, until another does; then it notices that it does no more."""
        self.keep(name)
        self.living[name].send_signal(signal.SIGSTOP)
        there = len(self.lines())
        until(lambda: any(line[0] == "+" for line in self.lines()[there:]), PATIENCE, f"a turn after that of {name}")
        self.living[name].send_signal(signal.SIGCONT)
        until(lambda: self.has_said("!", name, there), PATIENCE, f"the loss that {name} notices")
        self.let_go(name)

    def kill(self, names):
        for name in names:
            p = self.living.pop(name)
            p.kill()
            p.wait()
            self.killed.add(name)
        for name in names:
            self.add(name.split("-")[0])

    def kill_gate(self):
        """While its client holds, which goes on with the other."""
        name = self.name("node")
        self.keep(name)
        self.gates[0].stop(signal.SIGKILL)
        there = len(self.lines())
        self.let_go(name)
        until(lambda: self.has_said("-", name, there), PATIENCE, f"the end of the turn of {name}")
        until(lambda: self.has_said("+", name, there), PATIENCE, f"a turn of {name} over the other gate")


def judge(lines, killed):
    """The turns of each kind."""
    open_hold, overtaken, newest, turns = None, set(), 0, collections.Counter()
    for number, (sign, name, token) in enumerate(lines, 1):
        where = f"{UNSAFE}: line {number} of the log ({sign} {name} {token})"
        if sign == "+":
            if open_hold and open_hold[0] not in killed:
                overtaken.add(open_hold)
            if int(token) <= newest:
                sys.exit(f"{where}: its token is not above {newest}")
            open_hold, newest = (name, token), int(token)
            turns[name.split("-")[0]] += 1
            continue
        if open_hold == (name, token):
            open_hold = open_hold if sign == "=" else None
        elif sign != "!":
            sys.exit(f"{where}: {open_hold} holds")
        if sign != "=":
            overtaken.discard((name, token))
    if open_hold or overtaken:
        sys.exit(f"{UNSAFE}: never ended, and others held: {overtaken}, {open_hold}")
    return turns


def play(q):
    q.wait_for_everybody(PATIENCE)
    for kind in PACKAGES:
        q.stop_one(q.name(kind))
    q.keep(q.name("threads"))
    q.kill([q.name(kind) for kind in ("threads", "node", "clave.kazoo", "curator")])
    q.wait_for_everybody(PATIENCE)
    q.kill_gate()
    q.wait_for(q.turns() + 40, PATIENCE)
    q.finish()


def main():
    queue_test.need_everybody()
    for why in (why_no_python(), why_no_node()):
        if why:
            queue_test.skip(why)
    server = ApacheServer()
    server.tick_ms = 1000
    server.start()
    q = Queue(server)
    for kind in PACKAGES + OTHERS:
        q.add(kind)
    try:
        play(q)
    except AssertionError as e:
        sys.exit(f"{e}\nnewest lines: {q.lines()[-8:]}\n{clave('locks', '--json', PATH, connect=server.connect).out}")
    turns = judge(q.lines(), q.killed)
    print(f"{sum(turns.values())} turns, {len(q.killed)} killed: "
          + ", ".join(f"{k} {turns[k]}" for k in PACKAGES + OTHERS))
    until(lambda: clave("ls", PATH, connect=server.connect).out == "", PATIENCE, "an empty queue")
    if q.gates[1].stop() != 0:
        sys.exit("the gate did not end well")
    server.stop()


if __name__ == "__main__":
    main()
