"""Apache ZooKeeper and `clave serve`, asked the same: every reply, error, Stat, event and
their order compared field by field.

    conform_test.py [SEQUENCES [FIRST-SEED]]    the scripts, then so many sequences by chance
    conform_test.py --seed N                    one sequence, with what both said"""
import collections
import os
import pprint
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cmd"))
import harness  # noqa: E402
import wire  # noqa: E402
from accepted import accept, holds  # noqa: E402
from generate import generate  # noqa: E402
from scripts import NEW_SCRIPTS, SCRIPTS  # noqa: E402
from world import Step, World  # noqa: E402

SUPER = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
SEQUENCES = 300
SHOWN = 10  # differences


class Apache(harness.ApacheServer):
    properties = {"zookeeper.extendedTypesEnabled": "true",
                  "zookeeper.DigestAuthenticationProvider.superDigest": SUPER,
                  "zookeeper.enforceQuota": "true",
                  "znode.container.checkIntervalMs": "100000000"}


NEWER = {wire.MULTI_READ: (3, 6), wire.ADD_WATCH: (3, 6), wire.SET_WATCHES2: (3, 6),
         wire.EPHEMERALS: (3, 6), wire.ALL_CHILDREN: (3, 6), wire.WHO: (3, 7)}


def without_newer(steps, version):
    """The steps without the requests that this version of Apache's does not know."""
    def known(op):
        return NEWER.get(op, (0,)) <= version

    for step in steps:
        if step.what == "send":
            requests = [(op, body) for op, body in step.details[0] if known(op)]
            if requests:
                yield Step("send", step.session, requests)
        elif step.what not in ("frame", "catch_up") or known(step.details[0]):
            yield step


class Side:
    """One server, and a session that makes the top node of each sequence."""

    def __init__(self, server):
        self.name, self.port, self.server = server.name, server.port, server
        self.admin = wire.Connection(self.port)
        self.admin.shake(timeout=40000)
        self.call(wire.AUTH, wire.auth("digest", b"super:test"))

    def call(self, op, body):
        self.admin.send_frame(self.admin.request(op, body))
        return self.admin.message()

    def run(self, top, steps, events_have_zxids):
        made = self.call(wire.CREATE, wire.create(top))
        if made[4] != 0:
            raise AssertionError(f"{self.name}: {top}: {made}")
        world = World(self.port, made[3], events_have_zxids)
        told = world.run(steps)
        self.call(wire.PING, b"")
        return told


class Comparison:
    def __init__(self, sides):
        self.sides = sides
        self.version = sides[0].server.version  # Apache's
        self.count = 0
        self.accepted = collections.Counter()
        self.differences = []

    def run(self, make):
        """The same steps on both: what differs, and is not in the list of what may."""
        self.count += 1
        top = f"/s{self.count:06d}"
        steps = list(without_newer(make(top), self.version))
        told = [side.run(top, steps, self.version >= (3, 9)) for side in self.sides]
        for number, (step, a, b) in enumerate(zip(steps, *told)):
            if a == b:
                continue
            why = accept(step, a, b, self.version)
            if not why:
                return number, step, a, b, told, steps
            self.accepted.update(" ".join(rule.__doc__.split()) for rule in why)
            if any(hasattr(rule, "ends") for rule in why):
                return None
        return None

    def check(self, name, make):
        """What was a matter of time, not of the servers, does not come twice."""
        if self.run(make) is None:
            return
        found = self.run(make)
        if found is None:
            return
        number, step, a, b, _, _ = found
        self.differences.append(name)
        if len(self.differences) <= SHOWN:
            print(f"{name}, step {number}: {step!r}")
            for side, said in zip(self.sides, (a, b)):
                print(f"  {side.name + ':':8}", pprint.pformat(said, width=150, compact=True))

    def show(self, make):
        found = self.run(make)
        if not found:
            print("no difference")
            return
        number, _, _, _, told, steps = found
        for i in range(number + 1):
            print(f"step {i}: {steps[i]!r}")
            for side, said in zip(self.sides, told):
                print(f"  {side.name + ':':8}", said[i])


def serve():
    apache = Apache().start()
    clave = harness.ClaveServer(["--extended-types", "--enforce-quota",
                                 "--super-digest", SUPER, "--max-connections", "0"]).start()
    return [Side(apache), Side(clave)]


def main(words):
    if not harness.has_apache():
        print("Apache ZooKeeper is not installed: nothing was compared")
        return 77
    sides = serve()
    c = Comparison(sides)
    if words[:1] == ["--seed"]:
        c.show(lambda top: generate(int(words[1]), top, c.version))
        return 0
    if words[:1] == ["--script"]:
        c.show(next(s for s in SCRIPTS + NEW_SCRIPTS if s.__name__ == words[1]))
        return 0
    scripts = SCRIPTS + [s for s in NEW_SCRIPTS if holds(s, c.version)]
    for script in scripts:
        c.check(script.__name__, script)
    many = int(words[0]) if words else SEQUENCES
    first = int(words[1]) if len(words) > 1 else 1
    for seed in range(first, first + many):
        c.check(f"seed {seed}", lambda top: generate(seed, top, c.version))
    print(f"Apache ZooKeeper {'.'.join(map(str, c.version))}, "
          f"{len(scripts)} scripts, {many} sequences from seed {first}: "
          f"{len(c.differences)} with a difference")
    for why, times in sorted(c.accepted.items()):
        print(f"{times:6} times as listed: {why}")
    return 1 if c.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
