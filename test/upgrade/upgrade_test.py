#!/usr/bin/python3 -B
"""A rolling upgrade, and back: two versions of the program in one queue of each kind, while the server
of one takes over the data directory of the other.

    test/upgrade/upgrade_test.py OLD NEW     # two programs `clave`; test/upgrade/run builds OLD

In each queue stand clients of the old version and of the new one by turns. At each stage the server is stopped or
killed, and that of the other version starts on its data. Whoever holds a lock holds it on, in the
same process; the next in line gets it when it is let go, with a greater token, and nobody sooner.

Programs that were linked with the old shared library, which lie beside OLD, do the same on the new one,
beside NEW, with the server of either version."""
import json
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cmd"))
import harness  # noqa: E402
from harness import UNSAFE, ClaveServer, Running, ask, clave, environment  # noqa: E402
from lock_rig import LONG, TICK, alive, until  # noqa: E402

# The verb with its flags, and where the nodes of its queue are: PATH and below it.
KINDS = {
    "mutex": (["lock"], [""]),
    "writers": (["rwlock", "--write"], [""]),
    "semaphore": (["semaphore", "--number", "1"], ["/leases", "/locks"]),
    "election": (["elect"], [""]),
}
# How the server before ends; then the other version starts.
ENDS = [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]
MANY = 60  # znodes that each server writes: several snapshots
# What a program that was linked with the old library says, the first time and again.
LINKED = {"blocking": [r"held, token (\d+)"] * 2, "election": [r"elected, term (\d+)"] * 2,
          "callbacks": [r"(?s)held, token (\d+).*guarded write: ok.*released: ok"] * 2,
          "once": ["making the report", "done already"]}
SCRIPT = 'echo "$$ $CLAVE_TOKEN"; exec sleep 1000'


class Version:
    def __init__(self, name, program):
        self.name, self.program = name, os.path.abspath(program)
        self.folder = os.path.dirname(self.program)

    def use(self):
        """Whatever is started from here on is of this version."""
        harness.CLAVE = self.program
        return self

    def run(self, *words, **keywords):
        self.use()
        return clave(*words, **keywords)


class Owner:
    """One in the queue."""

    def __init__(self, kind, number, version, server):
        self.name = f"{kind} {number} ({version.name})"
        verb, _ = KINDS[kind]
        version.use()
        self.run = Running(*verb, "--session-timeout", LONG, f"/{kind}", "--", "sh", "-c", SCRIPT,
                           connect=server.connect)
        self.command = self.token = None

    def granted(self):
        """Waits until its command runs."""
        line = self.run.line()
        if not line:
            raise AssertionError(f"{self.name} got no lock: {self.run.end()}")
        self.command, self.token = map(int, line.split())
        return self

    def holds(self):
        return self.run.process.poll() is None and alive(self.command)


class Queue:
    """Owners of both versions by turns; the first of them holds."""

    def __init__(self, kind, versions, server):
        self.kind, self.versions, self.owners = kind, versions, []
        self.made, self.server = 0, server
        self.join()
        self.owners[0].granted()
        self.last = self.owners[0].token

    def join(self):
        version = self.versions[self.made % 2]
        self.owners.append(Owner(self.kind, self.made, version, self.server))
        self.made += 1
        until(lambda: self.length() >= len(self.owners), what=f"{self.owners[-1].name} queues")

    def length(self):
        """By the newer program; it reads any queue."""
        found = 0
        for below in KINDS[self.kind][1]:
            r = self.versions[1].run("ls", f"/{self.kind}{below}", connect=self.server.connect)
            found += len(r.out.split()) if r.code == 0 else 0
        return found

    def check_held(self):
        holder = self.owners[0]
        if not holder.holds():
            raise AssertionError(f"{holder.name} lost its lock: {holder.run.end()}")
        for waiter in self.owners[1:]:
            if waiter.run.process.poll() is not None:
                raise AssertionError(f"{waiter.name} left the queue: {waiter.run.end()}")
        for version in self.versions if self.kind == "mutex" else []:
            r = version.run("lock", "--no-wait", "--quiet", "/mutex", "--", "true",
                            connect=self.server.connect)
            if r.code != 75:
                raise AssertionError(f"{UNSAFE}: clave of {version.name} got a lock that "
                                     f"{holder.name} holds: {r}")

    def hand_over(self):
        former = self.owners.pop(0)
        former.run.process.send_signal(signal.SIGTERM)
        heir = self.owners[0].granted()
        if alive(former.command):
            raise AssertionError(f"{UNSAFE}: {heir.name} holds beside {former.name}")
        if heir.token <= self.last:
            raise AssertionError(f"{UNSAFE}: {heir.name} has token {heir.token} after {self.last}")
        self.last = heir.token
        former.run.end()

    def end(self):
        for owner in reversed(self.owners):  # those that wait first: nobody is let in
            owner.run.end(signal.SIGTERM)


def start(server, version, clients):
    version.use()
    server.start()

    def is_back():
        told = ask(server.port, b"mntr").decode().split("\n")
        return any(line.split("\t")[0] == "zk_num_alive_connections" and
                   int(line.split("\t")[1]) > clients for line in told if "\t" in line)
    until(is_back, what=f"{clients} clients come back to the server of {version.name}")


def write(server, version, stage):
    """Enough for the next snapshots, by the clients of one version."""
    for i in range(MANY):
        r = version.run("create", "--parents", f"/data-{stage}/{i}", "x" * i, connect=server.connect)
        assert r.code == 0, r


def check_data(server, versions):
    """What one version has written is the same tree to both. The sessions are not compared: a snapshot
    may name the next session id, which a version before 7a02240 counts as a session."""
    trees = []
    for version in versions:
        r = version.run("data", "check", server.data)
        assert r.code == 0, f"clave data check of {version.name}: {r}"
        r = version.run("data", "digest", "--json", server.data)
        assert r.code == 0, f"clave data digest of {version.name}: {r}"
        tree = json.loads(r.out)
        trees.append([tree["zxid"], tree["digest"], tree["nodes"]])
    if trees[0] != trees[1]:
        raise AssertionError(f"{UNSAFE}: {server.data} is {trees[0]} to the old version and "
                             f"{trees[1]} to the new one")


def play(versions, first):
    """The server begins as `first` of the versions, and changes at every stage."""
    server = ClaveServer(TICK + ["--snap-count", "20"])
    versions[first].use()
    server.start()
    queues = [Queue(kind, versions if i % 2 else versions[::-1], server)
              for i, kind in enumerate(KINDS)]
    for _ in range(len(ENDS)):
        for queue in queues:
            queue.join()
    clients = sum(len(queue.owners) for queue in queues)
    for stage, how in enumerate(ENDS):
        version = versions[(first + stage + 1) % 2]
        write(server, version, stage)
        server.stop(how)
        check_data(server, versions)
        start(server, version, clients)
        for queue in queues:
            queue.check_held()
            queue.hand_over()
        clients -= len(queues)
        print(f"{version.name} server after {signal.Signals(how).name}: {len(queues)} locks held on, "
              f"{len(queues)} handed over", flush=True)
    for queue in queues:
        queue.check_held()
        queue.end()
    server.stop()
    check_data(server, versions)


def run_linked(program, library, connect):
    """What a program of the old version says on the library of one of them."""
    env = environment(LD_LIBRARY_PATH=library.folder, CLAVE_CONNECT=connect)
    loaded = subprocess.run(["ldd", program], env=env, capture_output=True, text=True, check=True).stdout
    assert f"=> {library.folder}/libclave.so" in loaded, loaded
    r = subprocess.run([program], env=env, capture_output=True, text=True, check=False,
                       timeout=harness.PATIENCE)
    assert r.returncode == 0, f"{program} on the library of {library.name}: {r}"
    return r.stdout


def play_library(versions, of_server):
    of_server.use()
    server = ClaveServer(TICK).start()
    programs = {name: os.path.join(versions[0].folder, name) for name in LINKED}
    programs = {name: path for name, path in programs.items() if os.path.exists(path)}
    assert programs, f"{versions[0].folder} has none of {list(LINKED)}"
    for name, path in programs.items():
        newest = 0
        for library, form in zip(versions, LINKED[name]):
            said = run_linked(path, library, server.connect)
            found = re.search(form, said)
            assert found, f"{name} on the library of {library.name} says: {said}"
            if found.groups():
                assert int(found[1]) > newest, f"{UNSAFE}: {name} has {found[1]} after {newest}"
                newest = int(found[1])
    server.stop()
    print(f"{of_server.name} server: {len(programs)} programs linked with the old library run on the new one",
          flush=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    versions = [Version("old", sys.argv[1]), Version("new", sys.argv[2])]
    for version in versions:
        told = subprocess.run([version.program, "version"], capture_output=True, text=True,
                              check=True).stdout
        print(f"{version.name}: {told.splitlines()[0]}", flush=True)
    for version in versions:
        play_library(versions, version)
    for first in range(2):
        play(versions, first)


main()
