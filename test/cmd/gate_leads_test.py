"""HAProxy and keepalived follow the leader of an election by /v1/leader of a gate, with the configurations and the
arithmetic of docs/guide/elections.md: over hand-overs, kills of leaders and one of the gate, they never have two
candidates up at once. Without min_term they do."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from gate_rig import Gate
from harness import PATIENCE, ClaveServer, Running, scratch, spawn
from lock_rig import TICK, until

SOURCE = os.environ.get("CLAVE_SOURCE", os.path.join(os.path.dirname(__file__), "../.."))
KINDS = {"a": "b", "b": "a"}


def page_block(language):
    with open(f"{SOURCE}/docs/guide/elections.md", encoding="utf-8") as f:
        return re.search(rf"^```{language}\n(.*?)^```$", f.read(), re.M | re.S)[1]


def why_no_namespace():
    if not (shutil.which("keepalived") and shutil.which("ip") and shutil.which("unshare")):
        return "no keepalived, ip or unshare"
    r = subprocess.run(["unshare", "-n", "ip", "link", "add", "eth0", "type", "veth"], capture_output=True,
                       text=True, check=False)
    return "" if r.returncode == 0 else f"no network namespaces: {r.stderr}"


class Follower:
    """Something that has candidates up or down: tells who is up, in the order in which that changed."""

    def __init__(self):
        self.log = open(scratch("log"), "w+", encoding="utf-8")
        self.processes = []

    def start(self, command):
        self.processes.append(spawn(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log))

    def text(self):
        with open(self.log.name, encoding="utf-8") as f:
            return f.read()

    def sets(self):
        """The sets of candidates that were up, one after another; at first what it began with."""
        up, seen = set(), [set()]
        for name, is_up in self.changes():
            up = up | {name} if is_up else up - {name}
            seen.append(up)
        return seen

    def stop(self):
        for p in self.processes:
            p.terminate()
        for p in self.processes:
            p.wait(PATIENCE)
        self.log.close()


class HaProxy(Follower):
    """It takes both as up until their first checks."""

    def __init__(self, gate, change):
        super().__init__()
        text = change(page_block("haproxy")).replace("10.0.0.1", "127.0.0.1").replace("10.0.0.2", "127.0.0.1")
        text = text.replace("bind :5000", f"bind unix@{scratch('socket')}\n    log global")
        text = text.replace("127.0.0.1 port 8080", f"127.0.0.1 port {gate.port}")
        file = scratch("conf")
        with open(file, "w", encoding="utf-8") as f:
            f.write("global\n    log stdout format raw local0\n" + text)
        self.start(["/usr/sbin/haproxy", "-db", "-f", file])

    def changes(self):
        found = [(name, up == "UP") for name, up in
                 re.findall(r"Server db/([ab]) is (UP|DOWN)", self.text())]
        first = next((i for i, (_, up) in enumerate(found) if not up), len(found))
        return [(KINDS[found[first][0]], True)] + found[first + 1:] if found[first:] else []


class Keepalived(Follower):
    """Two, each alone in a network of its own, as if nothing but the gate's word kept them apart. What VRRP
    waits before it takes over, three advertisements, is made short, so that it hides nothing."""
    NETWORK = """ip link set lo up; ip link add eth0 type veth peer name peer; ip link set peer up
        ip addr add 10.0.0.1/24 dev eth0; ip link set eth0 up; exec keepalived -n -l """
    STATES = "master|backup|fault|stop"

    def __init__(self, socket, change):
        super().__init__()
        self.notes = scratch("notes")
        for name in KINDS:
            text = change(page_block("keepalived")).replace("id=a", f"id={name}").replace("nobody", "root")
            text = text.replace("http://127.0.0.1:8080", f"--unix-socket {socket} http://localhost")
            note = self.write("note", f'#!/bin/sh\necho "$(date +%s.%N) {name} $1" >> {self.notes}\n', 0o700)
            notify = "".join(f'    notify_{state} "{note} {state}" root\n' for state in self.STATES.split("|"))
            text = text.replace("    state BACKUP\n", "    state BACKUP\n    advert_int 0.1\n" + notify)
            file = self.write("conf", "global_defs {\n    script_user root\n    vrrp_version 3\n}\n" + text, 0o600)
            files = " ".join(f"-{flag} {scratch('pid')}" for flag in "prc")
            self.start(["unshare", "-n", "sh", "-c", f"{self.NETWORK} -f {file} {files}"])

    @staticmethod
    def write(name, text, mode):
        path = scratch(name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def changes(self):
        """By the moment of each, since the lines of two processes may come in any order."""
        if not os.path.exists(self.notes):
            return []
        with open(self.notes, encoding="utf-8") as f:
            found = sorted(re.findall(rf"^([0-9.]+) ([ab]) ({self.STATES})$", f.read(), re.M))
        return [(name, state == "master") for _, name, state in found]


class Leads(unittest.TestCase):
    def setUp(self):
        self.server = ClaveServer(TICK).start()
        self.addCleanup(self.server.stop)
        self.socket = scratch("gate")
        self.gate = Gate(self.server.connect, "--http", f"unix:{self.socket}").start()
        self.addCleanup(lambda: self.gate.stop())
        self.candidates = {}

    def stand(self, name):
        self.candidates[name] = Running("elect", "--id", name, "--session-timeout", "2s", "/db", "--", "sleep",
                                        "1000", connect=self.server.connect)

    def end(self, name, how):
        self.candidates.pop(name).end(how)

    def leads(self, name):
        return self.gate.call("GET", f"/v1/leader/db?id={name}")[0] == 200

    def begin(self, *kinds):
        """a leads, and is up."""
        self.stand("a")
        until(lambda: self.leads("a"))
        self.stand("b")
        followers = [kind() for kind in kinds]
        for f in followers:
            self.addCleanup(f.stop)
            self.await_up(f, "a")
        return followers

    def await_up(self, follower, name):
        until(lambda: follower.sets()[-1] == {name}, what=lambda: follower.text())

    def hand_over(self, name, how):
        other = KINDS[name]
        until(lambda: self.gate.call("GET", f"/v1/replica/db?id={other}")[0] == 200)
        self.end(name, how)
        until(lambda: self.leads(other))
        self.stand(name)
        return other

    def follow(self, *kinds):
        followers = self.begin(*kinds)
        leader = "a"
        for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
            leader = self.hand_over(leader, how)
            for f in followers:
                self.await_up(f, leader)
        self.gate.stop(signal.SIGKILL)
        self.gate.start()
        leader = self.hand_over(leader, signal.SIGTERM)
        for f in followers:
            self.await_up(f, leader)
            self.assertLessEqual(max(map(len, f.sets())), 1, f.text())
            self.assertGreaterEqual(f.sets().count({"a"}) + f.sets().count({"b"}), 5, f.text())

    def overlap(self, *kinds):
        def leave_out(text):
            return text.replace("&min_term=5s", "")
        followers = self.begin(*(lambda k=k: k(leave_out) for k in kinds))
        self.hand_over("a", signal.SIGTERM)
        for f in followers:
            until(lambda f=f: {"a", "b"} in f.sets())
            self.await_up(f, "b")

    def haproxy(self, change=lambda text: text):
        return HaProxy(self.gate, change)

    def keepalived(self, change=lambda text: text):
        return Keepalived(self.socket, change)

    def kinds(self):
        why = why_no_namespace()
        return [self.haproxy] if why else [self.haproxy, self.keepalived]

    def test_never_two_are_up_at_once(self):
        self.follow(*self.kinds())

    def test_without_min_term_two_are_up_for_a_while(self):
        self.overlap(*self.kinds())

    def test_the_script_of_keepalived(self):
        self.stand("a")
        until(lambda: self.leads("a"))
        began = time.monotonic()
        for name, expected in (("a", 0), ("b", 22)):
            command = re.search(r'script "(.*)"', page_block("keepalived"))[1]
            command = command.replace("127.0.0.1:8080", self.gate.address).replace("id=a", f"id={name}")
            run = lambda command=command: subprocess.run(command.split(), check=False, capture_output=True).returncode
            until(lambda expected=expected: run() == expected)
        self.assertGreater(time.monotonic() - began, 3)


if __name__ == "__main__":
    unittest.main()
