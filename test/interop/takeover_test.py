"""Take-over while clients hold locks: clave is stopped, Apache ZooKeeper is started on its data at
its address, and every client (clave, Curator, kazoo, libzookeeper) goes on with its session, its lock
still held; and back; and to an ensemble of three, and back. Somebody waits for each of the locks all
the time, and gets it only when it is given back."""
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "cmd"), os.path.join(HERE, "..", "conform")]
import harness  # noqa: E402
import wire  # noqa: E402
from harness import (ApacheServer, ClaveServer, JARS, PATIENCE, UNSAFE, Running, ask,  # noqa: E402
                     clave, free_port, has_apache, scratch, spawn)
from load_first import load_first  # noqa: E402

try:
    from kazoo.client import KazooClient, KazooState
    from kazoo.recipe.lock import Lock
    from kazoo.retry import KazooRetry
except ImportError:
    print("kazoo is not installed: nothing was tested")
    sys.exit(77)
if not has_apache() or not os.path.exists(JARS + "curator-recipes.jar"):
    print("ZooKeeper and Curator are not installed: nothing was tested")
    sys.exit(77)
if not shutil.which("javac"):
    print("there is no javac: nothing was tested")
    sys.exit(77)

logging.disable()
# Longer than it takes to start three Java processes on a machine that does other things, too: for so
# long nobody is served.
SESSION_MS = 100000


# ---- who holds a lock -----------------------------------------------------------------------

class Process:
    """A program that answers "check" with "held SESSION TOKEN ..."."""

    def __init__(self, command):
        self.process = spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self):
        timer = threading.Timer(2 * PATIENCE, self.process.kill)
        timer.start()
        text = self.process.stdout.readline()
        timer.cancel()
        return text.split()

    def ask(self):
        self.process.stdin.write("check\n")
        self.process.stdin.flush()
        return self.line()

    def release(self):
        self.process.stdin.write("release\n")
        self.process.stdin.flush()
        code = self.process.wait(PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()
        return code


class Curator(Process):
    name = "curator"

    def __init__(self, connect, path):
        out = scratch("classes")
        jars = ":".join(JARS + j + ".jar" for j in ("curator-recipes", "curator-framework",
                                                    "curator-client", "zookeeper"))
        subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", out,
                        os.path.join(HERE, "java", "Keeper.java")], check=True)
        super().__init__(["java", "-Xmx128m", "-XX:+UseSerialGC", "-cp",
                          f"{JARS}curator-recipes.jar:{JARS}slf4j-nop.jar:{out}", "Keeper",
                          connect, path, str(SESSION_MS)])


class Zkmt(Process):
    name = "libzookeeper"

    def __init__(self, connect, path):
        super().__init__([os.environ["CLAVE_ZKMT_KEEPER"], connect, path, str(SESSION_MS)])


class CuratorLock(Lock):
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class Kazoo:
    name = "kazoo"

    def __init__(self, connect, path):
        self.states = []
        self.zk = KazooClient(connect, timeout=SESSION_MS / 1000,
                              connection_retry=KazooRetry(max_tries=-1, delay=0.1, max_delay=0.5))
        self.zk.add_listener(self.states.append)
        self.zk.start(timeout=PATIENCE)
        self.lock = CuratorLock(self.zk, path)
        self.lock.acquire()
        self.node = f"{path}/{self.lock.node}"

    def line(self):
        retry = KazooRetry(max_tries=-1, delay=0.1, backoff=1, deadline=2 * PATIENCE)
        stat = retry(self.zk.exists, self.node)
        ours = stat and stat.ephemeralOwner == self.zk.client_id[0] and self.lock.is_acquired
        lost = ["LOST"] if KazooState.LOST in self.states else []
        return ["held" if ours else "lost", str(self.zk.client_id[0]),
                str(stat.czxid if stat else 0)] + lost

    ask = line

    def release(self):
        self.lock.release()
        self.zk.stop()
        self.zk.close()
        return 0


class Clave:
    """`clave lock`, whose command runs as long as the lock is held."""
    name = "clave"

    def __init__(self, connect, path):
        self.stop = scratch("stop")
        self.running = Running("lock", "--session-timeout", f"{SESSION_MS}ms", path, "--", "sh",
                               "-c", 'echo "held $CLAVE_SESSION $CLAVE_TOKEN"; '
                               f'while [ ! -e "{self.stop}" ]; do sleep 0.05; done',
                               connect=connect)
        self.path, self.connect = path, connect
        self.first = None

    def line(self):
        self.first = self.running.line().split()
        return self.first

    def ask(self):
        result = clave("check", self.path, self.first[2], connect=self.connect, timeout=60)
        alive = self.running.process.poll() is None
        return self.first if result.code == 0 and alive else ["lost", repr(result)]

    def release(self):
        open(self.stop, "w").close()
        return self.running.end().code


# ---- servers ----------------------------------------------------------------------------------

class Apache:
    """One of Apache's, or several; the first has the data and the address that the clients know."""
    size = 1

    def __init__(self, port, data):
        self.members = [ApacheServer() for _ in range(self.size)]
        self.members[0].port, self.members[0].data = port, data
        places = [(free_port(), free_port()) for _ in self.members]
        for number, member in enumerate(self.members, 1):
            os.makedirs(member.data, exist_ok=True)
            with open(os.path.join(member.data, "myid"), "w") as f:
                f.write(str(number))
            member.cfg = scratch("zoo.cfg")
            with open(member.cfg, "w") as f:
                f.write(f"tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={member.data}\n"
                        f"clientPort={member.port}\nclientPortAddress=127.0.0.1\n"
                        f"maxSessionTimeout={SESSION_MS}\nmaxClientCnxns=0\n"
                        "admin.enableServer=false\n4lw.commands.whitelist=*\n")
                if self.size > 1:
                    f.writelines(f"server.{n}=127.0.0.1:{a}:{b}\n"
                                 for n, (a, b) in enumerate(places, 1))

    def launch(self, member):
        given = [f"-D{k}={v}" for k, v in member.properties.items()]
        member.process = spawn(["java", "-Xmx200m", "-XX:+UseSerialGC"] + given
                               + ["-cp", harness.APACHE,
                                  "org.apache.zookeeper.server.quorum.QuorumPeerMain", member.cfg],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL)

    def wait(self, member, mode):
        until = time.monotonic() + 2 * PATIENCE
        while mode not in ask(member.port, b"srvr"):
            if time.monotonic() > until or member.process.poll() is not None:
                raise AssertionError(f"Apache ZooKeeper does not come to {mode!r}")
            time.sleep(0.05)

    def mode(self, member):
        return re.search(rb"Mode: (\w+)|$", ask(member.port, b"srvr")).group(1)

    def start(self):
        self.launch(self.members[0])
        self.wait(self.members[0], b"Mode: standalone")
        return self

    def stop(self, how=signal.SIGTERM):
        for member in reversed(self.members):
            member.process.send_signal(how)
            member.process.wait(PATIENCE)


class Ensemble(Apache):
    size = 3

    def start(self):
        """The one with the data and one other first: two empty ones would begin anew."""
        first, second, third = self.members
        self.launch(first)
        self.launch(second)
        self.wait(first, b"Mode: leader")
        self.launch(third)
        self.wait(third, b"Mode: follower")
        return self


class Grown(Ensemble):
    """As `clave grow` prepares it: its files, and its steps."""

    def __init__(self, port, data):
        self.members = [ApacheServer() for _ in range(3)]
        self.members[0].port = port
        out = scratch("out")
        specs = [f"127.0.0.1:{free_port()}:{free_port()}:{m.port}" for m in self.members]
        result = clave("grow", data, *specs, "--out", out, "--data-dir", "DATA-DIR")
        if result.code != 0:
            raise AssertionError(result)
        for number, member in enumerate(self.members, 1):
            member.cfg = os.path.join(out, str(number), "zoo.cfg")
            with open(member.cfg) as f:
                text = f.read()
            with open(member.cfg, "w") as f:
                f.write(text.replace("DATA-DIR", member.data) + "clientPortAddress=127.0.0.1\n")
            os.makedirs(member.data)
            shutil.copy(os.path.join(out, str(number), "myid"), member.data)
            shutil.copytree(os.path.join(data, "version-2"),
                            os.path.join(member.data, "version-2"))

    def start(self):
        for member in self.members:
            self.launch(member)
        for member in self.members:
            self.wait(member, b"Mode: ")
        return self

    def stop(self, how=signal.SIGTERM):
        """The leader's data is the newest."""
        until = time.monotonic() + PATIENCE
        while not (leads := [m for m in self.members if self.mode(m) == b"leader"]):
            if time.monotonic() > until:
                raise AssertionError("nobody leads the ensemble")
        self.leader = leads[0]
        super().stop(how)


class Takeover(unittest.TestCase):
    def setUp(self):
        self.port, self.data = free_port(), scratch("data")
        self.connect = f"127.0.0.1:{self.port}"
        self.server = None

    def tearDown(self):
        if self.server:
            self.server.stop(signal.SIGKILL)

    def serve(self, kind):
        if kind == "clave":
            s = ClaveServer(["--snap-count", "50", "--extended-types", "--max-session-timeout",
                             f"{SESSION_MS}ms"])
            s.port, s.data = self.port, self.data
        else:
            s = {"apache": Apache, "ensemble": Ensemble, "grown": Grown}[kind](self.port, self.data)
        self.server = s.start()

    def hand_over(self, kind, how):
        """Everything on the disk is whole, and the tree is the same to whoever looks."""
        server, self.server = self.server, None
        server.stop(how)
        if isinstance(server, Grown):
            self.data = server.leader.data
        result = clave("--json", "data", "check", self.data)
        self.assertEqual(result.code, 0, f"{UNSAFE}: corruption: {result}")
        told = json.loads(result.out)
        self.assertEqual(told["sessions"], 2 * len(self.keepers), told)
        self.serve(kind)

    def take_locks(self):
        kinds = [Clave, Kazoo, Curator] + ([Zkmt] if os.environ.get("CLAVE_ZKMT_KEEPER") else [])
        self.keepers = [kind(self.connect, f"/locks-{kind.name}") for kind in kinds]
        self.first = [k.line() for k in self.keepers]
        self.assertEqual([f[0] for f in self.first], ["held"] * len(self.keepers), self.first)
        self.waiters = [Running("lock", "--session-timeout", f"{SESSION_MS}ms", "--name", "waiter",
                                f"/locks-{k.name}", "--", "echo", "mine", connect=self.connect)
                        for k in self.keepers]
        until = time.monotonic() + PATIENCE
        while not all(self.waits(k) for k in self.keepers):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def waits(self, keeper):
        result = clave("ls", f"/locks-{keeper.name}", connect=self.connect)
        return len(result.out.splitlines()) == 2

    def check(self):
        for keeper, first in zip(self.keepers, self.first):
            now = keeper.ask()
            self.assertEqual(now[:3], first[:3], (keeper.name, first, now))
            self.assertNotIn("LOST", now)
        for keeper, waiter in zip(self.keepers, self.waiters):
            self.assertIsNone(waiter.process.poll(), f"{UNSAFE}: two hold that of {keeper.name}")

    def give_back(self):
        for keeper, waiter in zip(self.keepers, self.waiters):
            self.assertIsNone(waiter.process.poll(), f"{UNSAFE}: two hold that of {keeper.name}")
            self.assertEqual(keeper.release(), 0, keeper.name)
            result = waiter.end()
            self.assertEqual((result.code, result.out), (0, "mine\n"), (keeper.name, result))

    def go(self, *kinds):
        self.serve(kinds[0])
        self.take_locks()
        self.check()
        for number, kind in enumerate(kinds[1:]):
            self.hand_over(kind, signal.SIGTERM if number % 2 == 0 else signal.SIGKILL)
            self.check()
        self.give_back()

    def test_to_apache_and_back(self):
        self.go("clave", "apache", "clave", "apache")

    def test_from_apache(self):
        self.go("apache", "clave")

    def test_to_an_ensemble_and_back(self):
        self.go("clave", "ensemble", "clave")

    def test_grown(self):
        """Three servers with the data of one; its nodes with a time to live go on too."""
        self.serve("clave")
        self.take_locks()
        raw = wire.Connection(self.port)
        raw.shake()
        raw.send_frame(raw.request(wire.CREATE_TTL, wire.create("/ttl", b"x", 5, ttl=3600000)))
        self.assertEqual(raw.message()[4], 0)
        raw.send_frame(raw.request(wire.CLOSE, b""))
        raw.message()
        raw.close()
        self.hand_over("grown", signal.SIGTERM)
        self.check()
        self.assertEqual(clave("get", "/ttl", connect=self.connect, timeout=60).out, "x")
        self.hand_over("clave", signal.SIGTERM)
        self.check()
        self.assertEqual(clave("get", "/ttl", connect=self.connect, timeout=60).out, "x")
        self.give_back()


if __name__ == "__main__":
    load_first()
    unittest.main()
