"""Service discovery with Curator's own, both ways: each finds what the other registers, and loses it when it is killed.

  discovery_test.py clave|apache"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cmd"))
from harness import JARS, PATIENCE, ApacheServer, ClaveServer, Running, clave, has_apache, scratch, spawn  # noqa: E402

ROUNDS = int(os.environ.get("CLAVE_DISCOVERY_ROUNDS", "30"))
SESSION_MS = 4000
NAMES = ("curator-x-discovery", "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
         "jackson-databind", "jackson-core", "jackson-annotations", "slf4j-api", "slf4j-nop", "guava")


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def until(holds, what):
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"in {PATIENCE} s it was never so that {what()}")
        time.sleep(0.05)


class Peer:
    """A process with Curator's ServiceDiscovery, or with other recipes."""

    def __init__(self, server, jars, *main):
        main = main or ("DiscoveryPeer", "/services", str(SESSION_MS))
        self.process = spawn(["java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars, main[0],
                              server.connect, *main[1:]],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def list(self, name):
        return {i.split("@")[0]: i.split("@")[1] for i in self.ask("list", name).split("|") if i}


def register(server, ident, port, *flags):
    return Running("register", "--session-timeout", f"{SESSION_MS}ms", "--id", ident, "--address", "127.0.0.1", "--port", port,
                   "--payload", '"of clave"', *flags, "web", "--", "sleep", "1000", connect=server.connect)


def ours(server):
    """What `clave instances` has, by id."""
    r = clave("instances", "--json", "web", connect=server.connect)
    assert r.code == 0, r
    return {i["id"]: i for i in map(json.loads, r.out.splitlines())}


def each_finds_the_other(server, jars):
    peer = Peer(server, jars)
    assert peer.ask("register", "web", "j", 81, "DYNAMIC") == "done"
    told = ours(server)["j"]
    assert (told["address"], told["port"], told["payload"], told["type"], told["state"]) == \
        ("127.0.0.1", 81, "of Curator", "DYNAMIC", "up"), told
    mine = register(server, "c", 82)
    off = register(server, "off", 83, "--disabled")
    wanted = {"j": "127.0.0.1:81/DYNAMIC/true/of Curator", "c": "127.0.0.1:82/DYNAMIC/true/of clave",
              "off": "127.0.0.1:83/DYNAMIC/false/of clave"}
    until(lambda: peer.list("web") == wanted, lambda: f"Curator has {wanted}: {peer.list('web')}")
    assert sorted(ours(server)) == ["c", "j", "off"]
    peer.process.kill()
    until(lambda: sorted(ours(server)) == ["c", "off"], lambda: f"what was killed is gone: {ours(server)}")
    peer = Peer(server, jars)
    mine.process.kill()
    off.end(signal.SIGTERM)
    until(lambda: peer.list("web") == {}, lambda: f"what was killed is gone: {peer.list('web')}")
    # One that is registered already has its place taken, as by another Curator.
    assert peer.ask("register", "web", "same", 85, "DYNAMIC") == "done"
    mine = register(server, "same", 86)
    until(lambda: ours(server)["same"]["port"] == 86, lambda: "it has its place")
    mine.end(signal.SIGTERM)
    peer.process.kill()
    until(lambda: ours(server) == {}, lambda: "nothing is left")


def with_kills(server, jars):
    """Registrants of both kinds come, go and are killed; in the end both see those that live."""
    dice = random.Random(1)
    peers, living = [Peer(server, jars) for _ in range(2)], {}
    for i in range(ROUNDS):
        what = dice.randrange(6)
        if what == 0 and dice.random() < 0.5:
            k = dice.randrange(2)
            peers[k].process.kill()
            living = {name: of for name, of in living.items() if of is not peers[k]}
            peers[k] = Peer(server, jars)
        elif what <= 2:
            peer = dice.choice(peers)
            assert peer.ask("register", "web", f"j{i}", 1000 + i, "DYNAMIC") == "done"
            living[f"j{i}"] = peer
        elif what <= 4:
            living[f"c{i}"] = register(server, f"c{i}", 1000 + i)
        elif living:
            name = dice.choice(sorted(living))
            of = living.pop(name)
            if isinstance(of, Peer):
                assert of.ask("unregister", "web", name) == "done"
            else:
                of.process.send_signal(dice.choice((signal.SIGTERM, signal.SIGKILL)))
    until(lambda: set(ours(server)) == set(living), lambda: f"clave sees those that live: {set(ours(server)) ^ set(living)}")
    assert set(peers[0].list("web")) == set(living)
    print(f"{ROUNDS} rounds, {len(living)} live")
    for of in living.values():
        of.process.kill()


def main():
    if not shutil.which("javac") or not os.path.exists(JARS + "curator-x-discovery.jar"):
        skip("no javac, or no libcurator-discovery-java")
    if sys.argv[1] == "apache" and not has_apache():
        skip("no Apache ZooKeeper")
    out = scratch("classes")
    os.makedirs(out)
    jars = ":".join([f"{JARS}{name}.jar" for name in NAMES] + [out])
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", out, os.path.join(HERE, "java", "DiscoveryPeer.java")], check=True)
    server = (ApacheServer if sys.argv[1] == "apache" else ClaveServer)()
    server.start()
    each_finds_the_other(server, jars)
    with_kills(server, jars)
    server.stop()


if __name__ == "__main__":
    main()
