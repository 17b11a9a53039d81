"""Apache ZooKeeper 3.8 and `clave serve`, asked the same: every reply, error, Stat, event and
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
from accepted import accept  # noqa: E402
from generate import generate  # noqa: E402
from scripts import SCRIPTS  # noqa: E402
from world import World  # noqa: E402

SUPER = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
SEQUENCES = 300
SHOWN = 10  # differences


class Apache(harness.ApacheServer):
    properties = {"zookeeper.extendedTypesEnabled": "true",
                  "zookeeper.DigestAuthenticationProvider.superDigest": SUPER,
                  "znode.container.checkIntervalMs": "100000000"}


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

    def run(self, top, steps):
        made = self.call(wire.CREATE, wire.create(top))
        if made[4] != 0:
            raise AssertionError(f"{self.name}: {top}: {made}")
        world = World(self.port, made[3])
        told = world.run(steps)
        self.call(wire.PING, b"")
        return told


class Comparison:
    def __init__(self, sides):
        self.sides = sides
        self.count = 0
        self.accepted = collections.Counter()
        self.differences = []

    def run(self, make):
        """The same steps on both: what differs, and is not in the list of what may."""
        self.count += 1
        top = f"/s{self.count:06d}"
        steps = make(top)
        told = [side.run(top, steps) for side in self.sides]
        for number, (step, a, b) in enumerate(zip(steps, *told)):
            if a == b:
                continue
            why = accept(step, a, b)
            if not why:
                return number, step, a, b, told, steps
            self.accepted.update(why)
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
    clave = harness.ClaveServer(["--extended-types", "--super-digest", SUPER,
                                 "--max-connections", "0"]).start()
    return [Side(apache), Side(clave)]


def main(words):
    if not harness.has_apache():
        print("Apache ZooKeeper is not installed: nothing was compared")
        return 77
    sides = serve()
    c = Comparison(sides)
    if words[:1] == ["--seed"]:
        c.show(lambda top: generate(int(words[1]), top))
        return 0
    if words[:1] == ["--script"]:
        c.show(next(s for s in SCRIPTS if s.__name__ == words[1]))
        return 0
    for script in SCRIPTS:
        c.check(script.__name__, script)
    many = int(words[0]) if words else SEQUENCES
    first = int(words[1]) if len(words) > 1 else 1
    for seed in range(first, first + many):
        c.check(f"seed {seed}", lambda top: generate(seed, top))
    print(f"{len(SCRIPTS)} scripts, {many} sequences from seed {first}: "
          f"{len(c.differences)} with a difference")
    for why, times in sorted(c.accepted.items()):
        print(f"{times:6} times as listed: {why}")
    return 1 if c.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
