#!/usr/bin/env python3
"""Holders of clave on real servers in real networks, and faults: links cut, dumb or slow, processes
killed or stopped, event loops blocked, servers and gates killed, stopped and started again.

  random_faults.py [--seconds N] [--runs N] [--seed N] [--out DIR] [--gates] serve|ensemble|kazoo|etcd...

Each run has a schedule drawn from its seed, which is printed, and a history of what every holder
believed, with the machine's time. From it is judged: holds exclude each other; tokens grow; no
guarded write of a stale holder is done; who loses its hold knows it before the next has one; no more
slots are owned than there are; when faults end all are served; and nothing is left at the servers.
kazoo (on an ensemble) and etcd (its `etcdctl lock`) are played for comparison, with their locks alone.
With --gates all holders but one are behind gates or HAProxy in front of them, and what fails are these and their links.
With --out the history is kept as operations, for other checkers. CLAVE and CLAVE_REAL_HOLDER name
the programs."""
import argparse
import collections
import json
import os
import random
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cmd")]
import net  # noqa: E402

net.enter()

import nemesis  # noqa: E402
import operations  # noqa: E402
from harness import UNSAFE, clave, has_apache  # noqa: E402
from packages import why_no_node, why_no_python  # noqa: E402
from servers import ClaveServer, Ensemble, EtcdServer, balancers, gates, now_ns, until, word  # noqa: E402
from worker import Command, Etcdctl, Field, Http, Kazoo, Node, Python, SlotOwner, Worker  # noqa: E402

SESSION_MS = {"serve": 1000, "ensemble": 2000, "kazoo": 2000, "etcd": 2000}
EVERY_S = 0.5  # between the beginnings of two faults
HOLD_MS = (40, 300, 1500)  # the last is longer than a session of clave serve: such a hold may end by its deadline
SLOTS, SLOT_LIMIT = "/fleet/default", 2


class Storm:
    def __init__(self, servers, kind, out, only_gates):
        self.servers, self.kind, self.out, self.only_gates = servers, kind, out, only_gates
        self.places = [net.Place(servers.clients) for _ in range(4)]
        self.gates, self.balancers, self.behind = [], [], []
        if kind in ("serve", "ensemble") and not why_no_node():
            front = net.Network("front")
            self.gates = gates(servers, front, 2)
            self.balancers = balancers(front, self.gates)
            # Of those who know only the gates, or only what is in front of them.
            self.behind = [(net.Place(front), known) for known in (self.gates, self.balancers or self.gates)]
        self.doors = self.gates + self.balancers

    def populate(self, number):
        """A lock's worth of holders and as many candidates, of every kind, spread over the places."""
        session_ms = SESSION_MS[self.kind]
        self.fields = [Field(f"/storm{number}/{what}", self.servers, session_ms)
                       for what in ("lock", "election")]
        kinds = ("lock",) * 3, ("latch", "latch", "session-latch")
        for field, kind, verb in zip(self.fields, kinds, ("lock", "elect")):
            for i, place in enumerate(self.places[:1 if self.only_gates else 3]):
                Worker(field, kind[i], place, i + 1, HOLD_MS[i])
            what = "lock" if verb == "lock" else "latch"
            if not self.only_gates:
                Command(field, verb, self.places[3], 4, HOLD_MS[1])
            if not why_no_python() and not self.only_gates:
                Python(field, "threads", what, self.places[1], 5, HOLD_MS[1])
                Python(field, "asyncio", what, self.places[3], 6, HOLD_MS[2])
            for i, (place, known) in enumerate(self.behind):
                Node(field, what, place, 7 + i, HOLD_MS[i + 1], known)
                for more in range(3 if self.only_gates else 1):
                    Http(field, what, place, 9 + i + 2 * more, HOLD_MS[2 - i], known)
            self.clave("create", "-p", f"{field.path}-writes")
        self.slots = Field(SLOTS, self.servers, session_ms)
        self.clave("slot", "limit", SLOTS, str(SLOT_LIMIT))
        if not why_no_python() and not self.only_gates:
            for i in (0, 2):
                SlotOwner(self.slots, "python", self.places[i], i + 1, HOLD_MS[1], [])
        for i, (place, known) in enumerate(self.behind):
            SlotOwner(self.slots, "http", place, 4 + i, HOLD_MS[1], known)
            SlotOwner(self.slots, "fleetlock", place, 6 + i, HOLD_MS[1], known)
        self.workers = [w for f in self.everything() for w in f.workers]

    def clave(self, *words):
        result = clave("--timeout", "30s", *words, connect=self.servers.connect, timeout=60)
        if result.code != 0:
            raise AssertionError(result)
        return result.out

    def targets(self):
        places = [] if self.only_gates else self.places + [place for place, _ in self.behind]
        links = [nemesis.LinkTarget(p.name, link) for p in places for link in p.links]
        for m in self.doors + ([] if self.only_gates else self.servers.members):
            links += [nemesis.LinkTarget(m.name, link) for link in m.place.links]
        if self.only_gates:
            return links + [nemesis.ServerTarget(m) for m in self.doors]
        return (links + [nemesis.ServerTarget(m) for m in self.servers.members + self.doors]
                + [nemesis.WorkerTarget(w) for w in self.workers]
                + [nemesis.HolderTarget(f) for f in self.fields for _ in range(3)])

    def watch(self):
        for w in self.workers:
            if w.has_failed():
                raise AssertionError(f"{w.name} ended by itself with {w.process.returncode}")

    def everyone_is_served(self):
        since = now_ns()
        for field in self.fields:
            names = {w.name for w in field.workers}
            until(f"a turn of everyone at {field.path}",
                  lambda f=field, n=names: f.history.refresh().served_since(since) >= n)
        if self.slots:
            until("a slot for everyone", lambda: self.slot_owners(since) >= {w.name for w in self.slots.workers})
        return (now_ns() - since) / 1e9

    def everything(self):
        return self.fields + ([self.slots] if self.slots else [])

    def slot_owners(self, since):
        with open(self.slots.log, encoding="ascii") as log:
            lines = [line.split() for line in log]
        return {words[2] for words in lines if words[1] == "took" and int(words[0]) > since}

    def finish(self):
        for field in self.everything():
            open(field.stop, "w").close()
        for w in self.workers:
            if w.end(30) != 0:
                raise AssertionError(f"{w.name} ended with {w.process.returncode}")
        for g in self.doors:
            if g.end() != 0:
                raise AssertionError(f"{g.name} ended with {g.process.returncode}")

    def left_over(self):
        """Nodes of sessions, and watches, at any server."""
        found = {}
        for m in self.servers.members:
            for line in word(m.address, b"mntr").decode().splitlines():
                name, _, value = line.partition("\t")
                if name in ("zk_ephemerals_count", "zk_watch_count"):
                    found[m.name, name] = int(value)
        return None if len(found) < 2 * len(self.servers.members) else sum(found.values())

    def lost_by_the_ensemble(self, history, names):
        """Apache 3.8.0 can lose what it has acknowledged when members are killed while they
        synchronise (ZOOKEEPER-4643, 4646, 4785): a member has it in its log, and none in its tree.
        That is told, and is no fault of ours."""
        lost = []
        for name, what in history.untrue_writes(names):
            members = self.servers.have_logged(name) if what == "wrote" else []
            if members and self.kind == "ensemble":
                print(f"  NOTE: {name} was acknowledged, is in the log of {', '.join(members)}, "
                      "and lost")
                lost.append(name)
        return lost

    def operations(self, written):
        """Of all, as they stand in the logs. `written`: the nodes of each lock and election."""
        ops = []
        for field in self.everything():
            with open(field.log, encoding="ascii") as log:
                ops += operations.read_log(log, field.path)
            ops += [{"process": name, "op": "kill", "object": field.path, "call": ns, "answer": ns, "result": None}
                    for name, ns in field.history.killed]
        ops.sort(key=lambda o: o["call"])
        last = {"process": "storm", "answer": None, "call": now_ns()}
        ops += [{**last, "op": "written", "object": path, **what} for path, what in written.items()]
        return ops + ([{**last, "op": "limit", "object": SLOTS, "limit": SLOT_LIMIT, "result": "ok"}] if self.slots else [])

    def judge(self, name):
        """What must not be, in words."""
        found, written = [], {}
        try:
            until("servers without sessions' nodes", lambda: self.left_over() == 0, 30)
        except AssertionError:
            found.append(f"{self.left_over()} nodes of sessions and watches are left")
        for field in self.fields:
            names = self.clave("ls", f"{field.path}-writes").split()
            history = field.history.refresh()
            lost = self.lost_by_the_ensemble(history, names)
            found += history.faults(names, lost)
            written[field.path] = {"result": sorted(names, key=lambda n: n[-10:]), "lost": lost}
            print(f"  {field.path}: {history.summary(names)}")
        ops = self.operations(written)
        found += [f"{UNSAFE}: {text}" for text in operations.faults(ops)]
        self.keep_operations(name, ops)
        return found

    def keep_operations(self, name, ops):
        print("  operations: " + ", ".join(f"{n} {what}" for what, n in operations.summary(ops).items()))
        if self.out:
            with open(os.path.join(self.out, f"{name}.jsonl"), "w", encoding="ascii") as f:
                f.writelines(json.dumps(o) + "\n" for o in ops)

    def keep_logs(self, name):
        kept = tempfile.mkdtemp(prefix=f"clave-real-{name}-")
        for field in self.everything():
            shutil.copy(field.log, os.path.join(kept, field.path.rpartition("/")[2]))
        for m in self.servers.members + self.doors:
            shutil.copytree(m.data, os.path.join(kept, m.name))
        print(f"  what the holders and gates have logged, and the servers' data, is in {kept}")

    def run(self, number, seed, seconds):
        dice = random.Random(seed)
        self.servers.wait_ready()
        self.populate(number)
        faults = nemesis.draw(dice, self.targets(), seconds, SESSION_MS[self.kind] / 1000, EVERY_S)
        print(f"\n{self.servers.name}: seed {seed}, {len(faults)} faults in {seconds} s")
        for fault in faults:
            print(f"  {fault}")
        sys.stdout.flush()
        for w in self.doors + self.workers:
            w.start()
        try:
            nemesis.play(faults, self.watch)
            served = self.everyone_is_served()
            self.finish()
            found = self.judge(f"{self.kind}-{seed}")
            if served:
                print(f"  everyone was served within {served:.1f} s after the last fault")
        except AssertionError as e:
            found = [str(e)]
            for w in self.workers + self.doors:
                w.process.kill()
        counts = collections.Counter(f.what for f in faults)
        print("  " + ", ".join(f"{n} {what}" for what, n in counts.most_common()))
        for text in found:
            print(f"  VIOLATED: {text}")
        if found:
            self.keep_logs(f"{self.kind}-{seed}")
        sys.stdout.flush()
        return found


class PeerStorm(Storm):
    """Of another's locks: what their holders believe is judged, and nothing else."""

    def populate(self, number):
        field = Field(f"/storm{number}/lock", self.servers, SESSION_MS[self.kind])
        for i, place in enumerate(self.places):
            if self.kind == "kazoo":
                Kazoo(field, "kazoo", place, i + 1, HOLD_MS[i % 3])
            else:
                Etcdctl(field, "etcdctl", place, i + 1, HOLD_MS[i % 3])
        self.fields, self.slots, self.workers = [field], None, field.workers

    def targets(self):
        """Their servers stay alive: it is the holder that is asked what it believes."""
        for t in (targets := super().targets()):
            if isinstance(t, nemesis.HolderTarget):
                t.whats = ("stop", "cut", "deafen", "mute")
        return [t for t in targets if not isinstance(t, nemesis.ServerTarget)]

    def everyone_is_served(self):
        return 0  # not asked of them

    def judge(self, name):
        ops = self.operations({})
        self.keep_operations(name, ops)
        return operations.faults(ops)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--seconds", type=int, default=20, help="of faults, in each run")
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--seed", type=int, default=time.time_ns() // 1000000 % 1000000)
    p.add_argument("--out", help="a folder: the operations of each run, as lines of JSON")
    p.add_argument("--gates", action="store_true", help="all holders but one are behind gates, which fail")
    p.add_argument("servers", nargs="+", choices=list(SESSION_MS))
    a = p.parse_args()
    if {"ensemble", "kazoo"} & set(a.servers) and not has_apache():
        print("real faults: SKIPPED, nothing was tested: ZooKeeper is not installed")
        return 77
    for why in filter(None, (why_no_python(), why_no_node())):
        print(f"real faults: {why}: nobody plays that")
    found = []
    if a.out:
        os.makedirs(a.out, exist_ok=True)
    for kind in a.servers:
        servers = {"serve": ClaveServer, "etcd": EtcdServer}.get(kind, lambda: Ensemble(500))()
        storm = (Storm if kind in ("serve", "ensemble") else PeerStorm)(servers, kind, a.out, a.gates)
        for n in range(a.runs):
            found += [f"{kind}, seed {a.seed + n}: {text}"
                      for text in storm.run(n + 1, a.seed + n, a.seconds)]
    print("\nreal faults: " + ("\n".join(["VIOLATED"] + found) if found else "all is well"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
