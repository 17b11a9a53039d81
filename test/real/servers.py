"""Servers in namespaces: clave's, and three of Apache ZooKeeper as an ensemble."""
import glob
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
from harness import APACHE, CLAVE, ask, environment, scratch, spawn  # noqa: E402
from net import Network, Place  # noqa: E402

PORT, HTTP_PORT = 2181, 8080
GATE_TOKEN = "a-token-for-the-holders-behind-gates"
PATIENCE = 60  # seconds until something that should happen is given up


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def until(what, condition, patience=PATIENCE):
    """Polls until the condition is true, and returns it."""
    end = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"gave up after {patience} s waiting for {what}")
        time.sleep(0.01)
    return value


def word(address, text):
    """What a server says to a four letter word; b"" when it does not."""
    return ask(PORT, text, address, 1)


class Member:
    """One server at a place; `clients` and, in an ensemble, `peers` are its links."""

    def __init__(self, name, place):
        self.name, self.place, self.process = name, place, None
        self.clients, self.peers = place.links[0], (place.links + [None])[1]

    @property
    def address(self):
        return self.clients.address

    def start(self):
        self.process = spawn(self.place.words(self.command()), stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env=environment())

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def mode(self):
        """standalone, leader, follower; "" while it serves nobody."""
        return re.search(rb"Mode: (\w+)|$", word(self.address, b"srvr")).group(1) or b""


class ClaveMember(Member):
    def __init__(self, place):
        super().__init__("serve", place)
        self.data = scratch("data")

    def command(self):
        return [CLAVE, "serve", "--data", self.data, "--listen", f"{self.address}:{PORT}",
                "--tick", "100ms"]


class ApacheMember(Member):
    def __init__(self, number, place, tick_ms):
        super().__init__(f"zk{number}", place)
        self.number, self.tick_ms = number, tick_ms
        self.home = scratch("zk")
        self.data = f"{self.home}/data"

    def configure(self, members):
        os.makedirs(self.data)
        with open(f"{self.data}/myid", "w") as f:
            f.write(f"{self.number}\n")
        with open(f"{self.home}/zoo.cfg", "w") as f:
            f.write(f"tickTime={self.tick_ms}\ninitLimit=10\nsyncLimit=5\n"
                    f"dataDir={self.data}\nclientPort={PORT}\n"
                    f"clientPortAddress={self.address}\nmaxClientCnxns=0\n"
                    "admin.enableServer=false\n4lw.commands.whitelist=*\n")
            f.writelines(f"server.{m.number}={m.peers.address}:2888:3888\n" for m in members)

    def command(self):
        return ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", APACHE,
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{self.home}/zoo.cfg"]


def secret(text):
    path = scratch("secret")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
        f.write(text)
    return path


class Gate(Member):
    """`clave gate`, with a link to the servers and one to the network of those who speak HTTP."""

    def __init__(self, name, place, connect, key, tokens):
        super().__init__(name, place)
        self.connect, self.key, self.tokens = connect, key, tokens
        self.http, self.data = f"{self.peers.address}:{HTTP_PORT}", scratch("gate")
        self.url = f"http://{self.http}"
        os.mkdir(self.data)

    def command(self):
        return [CLAVE, "gate", "--connect", self.connect, "--http", self.http, "--http-key", self.key, "--http-tokens",
                self.tokens, "--fleetlock", "/fleet"]

    def start(self):
        with open(f"{self.data}/log", "a", encoding="utf-8") as log:
            self.process = spawn(self.place.words(self.command()), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 env=environment())

    def end(self):
        """As an operator ends it: its exit code."""
        self.process.terminate()
        return self.process.wait(PATIENCE)


def gates(servers, front, number):
    """So many gates of one key, in front of these servers."""
    key, tokens = secret(os.urandom(32).hex() + "\n"), secret(f"{GATE_TOKEN} admin\n")
    return [Gate(f"gate{n + 1}", Place(servers.clients, front), servers.connect, key, tokens) for n in range(number)]


BALANCER = """
defaults
    mode http
    timeout connect 500ms
    timeout client 30s
    timeout server 30s
    retries 1
    option redispatch
frontend web
    bind {address}
    default_backend gates
backend gates
    balance roundrobin
{servers}
"""


class Balancer(Member):
    """HAProxy in front of gates: each request goes to the next one. It is killed and stopped as they are."""

    def __init__(self, place, behind):
        super().__init__("balancer", place)
        self.http, self.data = f"{self.address}:{HTTP_PORT}", scratch("balancer")
        self.url = f"http://{self.http}"
        os.mkdir(self.data)
        servers = "\n".join(f"    server {g.name} {g.http}" for g in behind)
        with open(f"{self.data}/haproxy.cfg", "w", encoding="ascii") as f:
            f.write(BALANCER.format(address=self.http, servers=servers))

    def command(self):
        return ["/usr/sbin/haproxy", "-db", "-f", f"{self.data}/haproxy.cfg"]

    def end(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        return 0


def balancers(front, behind):
    """One, where HAProxy is installed."""
    return [Balancer(Place(front), behind)] if os.path.exists("/usr/sbin/haproxy") else []


class ClaveServer:
    name = "clave serve"

    def __init__(self):
        self.clients = Network("clients")
        self.members = [ClaveMember(Place(self.clients))]
        self.members[0].start()
        self.wait_ready()

    def wait_ready(self):
        until("clave serve", lambda: self.members[0].mode() == b"standalone")

    @property
    def connect(self):
        return ",".join(f"{m.address}:{PORT}" for m in self.members)

    def have_logged(self, text):
        """Which of them have this in a transaction log."""
        def has(member):
            for path in glob.glob(f"{member.data}/version-2/log.*"):
                with open(path, "rb") as f:
                    if text.encode() in f.read():
                        return True
            return False
        return [m.name for m in self.members if has(m)]

    def connect_of(self, client):
        """Clients 0, 1, 2 ... know one member of an ensemble each, until there is none left: they
        cannot go to another when it is cut off. The others know all of them."""
        return f"{self.members[client].address}:{PORT}" if client < len(self.members) \
            else self.connect


class Ensemble(ClaveServer):
    """Three members, each with a link to the network of the clients and one to the peers."""
    name = "three Apache ZooKeeper"

    def __init__(self, tick_ms):
        self.clients = Network("clients")
        peers = Network("peers")
        self.members = [ApacheMember(n, Place(self.clients, peers), tick_ms) for n in (1, 2, 3)]
        for m in self.members:
            m.configure(self.members)
            m.start()
        self.wait_ready()

    def wait_ready(self):
        until("a whole ensemble",
              lambda: sorted(m.mode() for m in self.members) == [b"follower"] * 2 + [b"leader"])

    def leader(self):
        return next((m for m in self.members if m.mode() == b"leader"), None)


class EtcdMember(Member):
    def __init__(self, place):
        super().__init__("etcd", place)
        self.data = scratch("data")

    def command(self):
        url = f"http://{self.address}:{PORT}"
        return ["etcd", "--data-dir", self.data, "--listen-client-urls", url, "--advertise-client-urls", url,
                "--listen-peer-urls", "http://127.0.0.1:0", "--logger", "zap", "--log-level", "fatal"]


class EtcdServer(ClaveServer):
    name = "etcd"

    def __init__(self):
        self.clients = Network("clients")
        self.members = [EtcdMember(Place(self.clients))]
        self.members[0].start()
        self.wait_ready()

    def wait_ready(self):
        until("etcd", lambda: subprocess.run(["etcdctl", "--endpoints", self.connect, "endpoint", "health"],
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0)
