"""Curator's DistributedAtomicLong, PersistentNode and GroupMember beside clave's, both ways and with kills.

  kept_test.py clave|apache"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from discovery_test import JARS, NAMES, SESSION_MS, ApacheServer, ClaveServer, Peer, Running, clave, has_apache, scratch, skip, until  # noqa: E402

COUNTED, KILLS = 300, 6


def peer(server, jars):
    return Peer(server, jars, "KeptPeer", str(SESSION_MS))


class Counts:
    """What those who add were told, and how many additions were under way when they were killed."""

    def __init__(self):
        self.lock = threading.Lock()
        self.told = self.unknown = 0

    def note(self, told, unknown):
        with self.lock:
            self.told += told
            self.unknown += unknown

    def curators(self, server, jars, times, kills):
        """Adds one by one; is killed, wherever it is, and goes on as another process."""
        dice = random.Random(kills)
        for left in range(kills, -1, -1):
            p = peer(server, jars)
            p.process.stdin.write(f"count /count/n {times}\n")
            p.process.stdin.flush()
            stop, under_way = dice.randrange(1, times // 2) if left else times, False
            for line in p.process.stdout:
                under_way = line == "begun\n"
                self.note(line.startswith("counted"), 0)
                times -= line.startswith("counted")
                stop -= under_way
                if line == "done\n" or (stop < 0 and under_way):
                    break
            p.process.kill()
            rest = p.process.stdout.read()  # what it had said before it was killed
            told = rest.count("counted")
            self.note(told, under_way + rest.count("begun") - told - rest.count("busy"))
            times -= told
            if times <= 0:
                return

    def claves(self, server, times, dice):
        for _ in range(times):
            running = Running("counter", "/count/n", "+1", connect=server.connect)
            if dice.random() < 0.1:
                try:
                    running.process.wait(dice.random() * 0.01)
                except subprocess.TimeoutExpired:
                    pass
                running.process.kill()
            code = running.process.wait()
            assert code in (0, -signal.SIGKILL), code
            self.note(code == 0, code != 0)


def they_count_together(server, jars):
    counts = Counts()
    threads = [threading.Thread(target=counts.curators, args=(server, jars, COUNTED // 2, KILLS // 2)) for _ in range(2)]
    threads += [threading.Thread(target=counts.claves, args=(server, COUNTED // 2, random.Random(i))) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    r = clave("counter", "/count/n", connect=server.connect)
    value = int(r.out)
    p = peer(server, jars)
    assert int(p.ask("value", "/count/n")) == value
    assert clave("counter", "--set", "-5", "/count/n", connect=server.connect).code == 0
    assert p.ask("value", "/count/n") == "-5"
    p.process.kill()
    assert counts.told <= value <= counts.told + counts.unknown, (counts.told, value, counts.unknown)
    print(f"{value} counted, {counts.told} told, {counts.unknown} killed on the way")


def member(server, ident, data, *flags):
    return Running("member", "--session-timeout", f"{SESSION_MS}ms", "--id", ident, "--data", data, *flags, "/group", "--",
                   "sleep", "1000", connect=server.connect)


def listed(server):
    r = clave("members", "--json", "/group", connect=server.connect)
    assert r.code == 0, r
    return [json.loads(line) for line in r.out.splitlines()]


def members(server):
    return {m["id"]: m["data"] for m in listed(server)}


def owners(server):
    return {m["id"]: m["stat"]["ephemeral_owner"] for m in listed(server)}


def one_group(server, jars):
    p, q = peer(server, jars), peer(server, jars)
    assert p.ask("join", "/group", "j", "java") == "done"
    assert q.ask("join", "/group", "k", "java2") == "done"
    mine, other = member(server, "c", "clave"), member(server, "d", "clave2")
    both = {"j": "java", "k": "java2", "c": "clave", "d": "clave2"}
    shown = lambda of: "{" + ", ".join(f"{i}={of[i]}" for i in sorted(of)) + "}"
    until(lambda: members(server) == both, lambda: f"clave sees all: {members(server)}")
    until(lambda: p.ask("members", "/group") == shown(both), lambda: f"Curator sees all: {p.ask('members', '/group')}")
    q.process.kill()
    other.process.kill()
    left = {"j": "java", "c": "clave"}
    until(lambda: members(server) == left, lambda: f"clave sees those that live: {members(server)}")
    until(lambda: p.ask("members", "/group") == shown(left), lambda: f"Curator sees them: {p.ask('members', '/group')}")
    assert p.ask("leave", "/group") == "done"
    until(lambda: members(server) == {"c": "clave"}, lambda: f"one is left: {members(server)}")
    mine.end(signal.SIGTERM)
    assert members(server) == {}
    p.process.kill()


def one_path(server, jars):
    """The node of one is in the way of the other, until that is gone, killed or not. Curator writes its data to a node that is
    there already, whoever owns it, so the owner tells."""
    p = peer(server, jars)
    data = lambda: members(server).get("same")
    owner = lambda: owners(server).get("same")
    assert p.ask("keep", "/group/same", "java") == "done"
    mine = member(server, "same", "clave")
    assert "has a member of this id" in mine.process.stderr.readline()
    assert p.ask("set", "/group/same", "java2") == "done"
    until(lambda: data() == "java2", lambda: f"Curator's keeps it: {data()}")
    p.process.kill()
    until(lambda: data() == "clave", lambda: f"it was killed: {data()}")
    # Curator's takes a node that is there for its own, and creates it when it goes with its owner's session.
    p = peer(server, jars)
    claves = owner()
    assert p.ask("keep", "/group/same", "java") == "done"
    assert owner() == claves
    mine.process.kill()
    until(lambda: owner() not in (claves, None), lambda: f"clave's was killed: {owner()}")
    curators = owner()
    mine = member(server, "same", "clave", "--replace")
    until(lambda: owner() not in (curators, None), lambda: f"it has been replaced: {owner()}")
    mine.end(signal.SIGTERM)
    until(lambda: owner() == curators, lambda: f"clave's has left: {owner()}")
    assert data() == "java"
    assert p.ask("leave", "/group/same") == "done"
    assert members(server) == {}
    p.process.kill()


def main():
    if not shutil.which("javac") or not os.path.exists(JARS + "curator-recipes.jar"):
        skip("no javac, or no libcurator-recipes-java")
    if sys.argv[1] == "apache" and not has_apache():
        skip("no Apache ZooKeeper")
    out = scratch("classes")
    os.makedirs(out)
    jars = ":".join([f"{JARS}{name}.jar" for name in NAMES] + [out])
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", out, os.path.join(HERE, "java", "KeptPeer.java")], check=True)
    server = (ApacheServer if sys.argv[1] == "apache" else ClaveServer)()
    server.start()
    they_count_together(server, jars)
    one_group(server, jars)
    one_path(server, jars)
    server.stop()


if __name__ == "__main__":
    main()
