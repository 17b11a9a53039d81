#!/usr/bin/env python3
"""Holders of clave on real servers in real networks, and faults: links cut, dumb or slow, processes
killed or stopped, event loops blocked, servers and gates killed, stopped and started again.

  random_faults.py [--seconds N] [--runs N] [--seed N] serve|ensemble...

Each run has a schedule drawn from its seed, which is printed, and a history of what every holder
believed, with the machine's time. From it is judged: holds exclude each other; tokens grow; no
guarded write of a stale holder is done; who loses its hold knows it before the next has one; when
faults end all are served; and nothing is left at the servers. CLAVE and CLAVE_REAL_HOLDER name the
programs."""
import argparse
import collections
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
from harness import clave, has_apache  # noqa: E402
from packages import why_no_node, why_no_python  # noqa: E402
from servers import ClaveServer, Ensemble, gates, now_ns, until, word  # noqa: E402
from worker import Command, Field, Node, Python, Worker  # noqa: E402

SESSION_MS = {"serve": 1000, "ensemble": 2000}
EVERY_S = 0.5  # between the beginnings of two faults
HOLD_MS = (40, 300, 1500)  # the last is longer than a session of clave serve: such a hold may end by its deadline


class Storm:
    def __init__(self, servers, kind):
        self.servers, self.kind = servers, kind
        self.places = [net.Place(servers.clients) for _ in range(4)]
        front = net.Network("front")
        self.gates = [] if why_no_node() else gates(servers, front, 2)
        self.behind = [net.Place(front) for _ in self.gates]  # of those who know only the gates

    def populate(self, number):
        """A lock's worth of holders and as many candidates, of every kind, spread over the places."""
        session_ms = SESSION_MS[self.kind]
        self.fields = [Field(f"/storm{number}/{what}", self.servers, session_ms)
                       for what in ("lock", "election")]
        kinds = ("lock",) * 3, ("latch", "latch", "session-latch")
        for field, kind, verb in zip(self.fields, kinds, ("lock", "elect")):
            for i, place in enumerate(self.places[:3]):
                Worker(field, kind[i], place, i + 1, HOLD_MS[i])
            Command(field, verb, self.places[3], 4, HOLD_MS[1])
            what = "lock" if verb == "lock" else "latch"
            if not why_no_python():
                Python(field, "threads", what, self.places[1], 5, HOLD_MS[1])
                Python(field, "asyncio", what, self.places[3], 6, HOLD_MS[2])
            for i, place in enumerate(self.behind):
                Node(field, what, place, 7 + i, HOLD_MS[i + 1], self.gates)
            self.clave("create", "-p", f"{field.path}-writes")
        self.workers = [w for f in self.fields for w in f.workers]

    def clave(self, *words):
        result = clave("--timeout", "30s", *words, connect=self.servers.connect, timeout=60)
        if result.code != 0:
            raise AssertionError(result)
        return result.out

    def targets(self):
        links = [nemesis.LinkTarget(p.name, link) for p in self.places + self.behind for link in p.links]
        for m in self.servers.members + self.gates:
            links += [nemesis.LinkTarget(m.name, link) for link in m.place.links]
        return (links + [nemesis.ServerTarget(m) for m in self.servers.members + self.gates]
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
        return (now_ns() - since) / 1e9

    def finish(self):
        for field in self.fields:
            open(field.stop, "w").close()
        for w in self.workers:
            if w.end(30) != 0:
                raise AssertionError(f"{w.name} ended with {w.process.returncode}")
        for g in self.gates:
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

    def judge(self):
        """What must not be, in words."""
        found = []
        try:
            until("servers without sessions' nodes", lambda: self.left_over() == 0, 30)
        except AssertionError:
            found.append(f"{self.left_over()} nodes of sessions and watches are left")
        for field in self.fields:
            names = self.clave("ls", f"{field.path}-writes").split()
            history = field.history.refresh()
            found += history.faults(names, self.lost_by_the_ensemble(history, names))
            print(f"  {field.path}: {history.summary(names)}")
        return found

    def keep_logs(self, name):
        kept = tempfile.mkdtemp(prefix=f"clave-real-{name}-")
        for field in self.fields:
            shutil.copy(field.log, os.path.join(kept, field.path.rpartition("/")[2]))
        for m in self.servers.members + self.gates:
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
        for w in self.gates + self.workers:
            w.start()
        try:
            nemesis.play(faults, self.watch)
            served = self.everyone_is_served()
            self.finish()
            found = self.judge()
            print(f"  everyone was served within {served:.1f} s after the last fault")
        except AssertionError as e:
            found = [str(e)]
            for w in self.workers + self.gates:
                w.process.kill()
        counts = collections.Counter(f.what for f in faults)
        print("  " + ", ".join(f"{n} {what}" for what, n in counts.most_common()))
        for text in found:
            print(f"  VIOLATED: {text}")
        if found:
            self.keep_logs(f"{self.kind}-{seed}")
        sys.stdout.flush()
        return found


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--seconds", type=int, default=20, help="of faults, in each run")
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--seed", type=int, default=time.time_ns() // 1000000 % 1000000)
    p.add_argument("servers", nargs="+", choices=list(SESSION_MS))
    a = p.parse_args()
    if "ensemble" in a.servers and not has_apache():
        print("real faults: SKIPPED, nothing was tested: ZooKeeper is not installed")
        return 77
    for why in filter(None, (why_no_python(), why_no_node())):
        print(f"real faults: {why}: nobody plays that")
    found = []
    for kind in a.servers:
        storm = Storm(ClaveServer() if kind == "serve" else Ensemble(500), kind)
        for n in range(a.runs):
            found += [f"{kind}, seed {a.seed + n}: {text}"
                      for text in storm.run(n + 1, a.seed + n, a.seconds)]
    print("\nreal faults: " + ("\n".join(["VIOLATED"] + found) if found else "all is well"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
