"""A network of our own: namespaces joined by bridges, and what can be done to a link.

The program that calls `enter` goes on in namespaces of its own (network, processes, mounts;
users too unless it is root). Whatever it starts and whatever it does to links ends with it, in
every way it may end, and nothing of it is seen outside."""
import os
import shutil
import subprocess
import sys

INSIDE = "CLAVE_REAL_INSIDE"
RUNNER = 254  # the last part of the runner's address in every network


def unshare_words():
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return words if os.geteuid() == 0 else words + ["--user", "--map-root-user"]


TRIAL = ("mount -t tmpfs none /run && ip link add br0 type bridge && ip netns add n1 && "
         "ip link add host1 type veth peer name eth0 netns n1 && "
         "ip link set host1 master br0 up && "
         "tc qdisc add dev host1 root blackhole && nsenter --net=/run/netns/n1 true")


def why_not():
    """Why there can be no network of our own here; None when there can."""
    for word in ("unshare", "nsenter", "ip", "tc"):
        if not shutil.which(word):
            return f"there is no {word}"
    trial = subprocess.run(unshare_words() + ["sh", "-c", TRIAL], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = trial.stdout.strip().splitlines() or [f"exit code {trial.returncode}"]
    return None if trial.returncode == 0 else "no network namespaces: " + lines[-1]


def enter():
    """Returns inside namespaces of its own, or ends the program: 77 when that is impossible."""
    if INSIDE in os.environ:
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        run("ip", "link", "set", "lo", "up")
        return
    why = why_not()
    if why:
        line = "*" * 78
        print(f"{line}\n* REAL FAULTS: SKIPPED, nothing was tested: {why}\n{line}", flush=True)
        sys.exit(77)
    os.environ[INSIDE] = "1"
    os.execvp("unshare", unshare_words() + [sys.executable, "-B"] + sys.argv)


def run(*words):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


class Network:
    """A bridge; the runner is connected to it as well."""
    count = 0

    def __init__(self, name):
        Network.count += 1
        self.name, self.number = f"{name}{Network.count}", Network.count
        run("ip", "link", "add", self.name, "type", "bridge")
        run("ip", "link", "set", self.name, "up")
        run("ip", "address", "add", f"{self.address(RUNNER)}/24", "dev", self.name)

    def address(self, place):
        return f"10.77.{self.number}.{place}"


class Link:
    """A cable from a place to a network. What is done to it lasts until `heal`."""

    def __init__(self, place, network):
        self.place, self.network = place, network
        self.address = network.address(place.number)
        self.near, self.far = f"eth{len(place.links)}", f"{network.name}-{place.number}"
        run("ip", "link", "add", self.far, "type", "veth", "peer", "name", self.near, "netns",
            place.name)
        run("ip", "link", "set", self.far, "master", network.name, "up")
        for words in (("address", "add", f"{self.address}/24", "dev", self.near),
                      ("link", "set", self.near, "up")):
            run("ip", "-n", place.name, *words)

    def cut(self):
        """What is sent vanishes, and no end hears of it."""
        run("ip", "link", "set", self.far, "nomaster")

    def unplug(self):
        """The place sees that its cable is out."""
        run("ip", "link", "set", self.far, "down")

    def deafen(self):
        """What is sent to the place vanishes; what the place sends arrives."""
        run("tc", "qdisc", "replace", "dev", self.far, "root", "blackhole")

    def mute(self):
        """What the place sends vanishes; what is sent to it arrives."""
        run("tc", "-n", self.place.name, "qdisc", "replace", "dev", self.near, "root", "blackhole")

    def slow(self):
        """About half a second for what the place sends, and more when it sends more. (netem
        would do better, but few small kernels have it.)"""
        run("tc", "-n", self.place.name, "qdisc", "replace", "dev", self.near, "root", "tbf",
            "rate", "2kbit", "burst", "1540", "limit", "20000")

    def heal(self):
        run("ip", "link", "set", self.far, "master", self.network.name, "up")
        for words in (("-n", self.place.name, "qdisc", "show", "dev", self.near),
                      ("qdisc", "show", "dev", self.far)):
            shown = subprocess.run(("tc",) + words, stdout=subprocess.PIPE, text=True, check=True)
            if "blackhole" in shown.stdout or "tbf" in shown.stdout:
                run("tc", *[w if w != "show" else "del" for w in words], "root")


class Place:
    """A machine, as far as the network is concerned."""
    count = 0

    def __init__(self, *networks):
        Place.count += 1
        self.number, self.name, self.links = Place.count, f"place{Place.count}", []
        run("ip", "netns", "add", self.name)
        run("ip", "-n", self.name, "link", "set", "lo", "up")
        for network in networks:
            self.links.append(Link(self, network))

    def words(self, command):
        """The command that runs `command` here."""
        return ["nsenter", f"--net=/run/netns/{self.name}"] + [str(w) for w in command]
