"""The programs that write a directory and end: `clave data backup`, `clave data restore` and `clave
grow`. One whose disk fails says so and leaves nothing that looks whole but is not; when the disk
works, it succeeds."""
import errno
import glob
import json
import os
import re
import shutil
import signal

import harness
from failed import require, require_told
from harness import UNSAFE, scratch
from plan import Plan

EXIT_IO = 74


def digest(directory):
    r = harness.clave("data", "digest", "--json", directory)
    require(r.code == 0, f"{UNSAFE}: clave data digest: {r}")
    return json.loads(r.out)["digest"]


class Tool:
    """`clave WORDS...`, which reads the directory `from` and makes `above/to`."""

    def __init__(self, name, words):
        self.name, self.words = name, words
        self.source, self.expected = None, None

    def prepare(self, _clave):
        server = harness.ClaveServer(["--snap-count", "10"]).start()
        for i in range(15):
            require(harness.clave("create", f"/n{i}", "x" * 50, connect=server.connect).code == 0,
                    "it cannot be prepared")
        server.stop(signal.SIGKILL)
        self.source = server.data
        for name in ("currentEpoch", "acceptedEpoch"):  # as a member of an ensemble has them
            with open(os.path.join(self.source, "version-2", name), "w", encoding="ascii") as f:
                f.write("0")
        root = self.lay_out()
        require(self.run(root, Plan(scratch("plan"))).code == 0, "it fails without a fault")
        self.expected = self.made(root)

    def lay_out(self):
        root = scratch("root")
        shutil.copytree(self.source, os.path.join(root, "from"))
        return root

    def run(self, root, plan):
        return harness.clave(*[w.replace("ROOT", root) for w in self.words],
                             env=plan.environment(os.environ["FAILING_DISK"], root))

    def count_calls(self):
        plan = Plan(scratch("plan"))
        plan.fail(0, errno.EIO)
        self.run(self.lay_out(), plan)
        return plan.calls

    def run_case(self, number, how, n):
        """The call that failed and what became of it; None: there are not so many."""
        plan, root = Plan(scratch("plan")), self.lay_out()
        plan.fail(n, number, lasts=how == "lasts", is_short=how == "short")
        r = self.run(root, plan)
        struck, call = plan.struck, plan.call
        plan.work()
        if r.code != 0:
            require(r.code == EXIT_IO and struck > 0, f"it ends without a fault: {r}")
            require_told(r.err, root, number, advice=False)
            require(self.made(root) in (None, self.expected), f"{UNSAFE}: half of it is there")
        if self.made(root) is None:
            again = self.run(root, plan)
            require(again.code == 0, f"it does not succeed when the disk works: {again}")
        require(self.made(root) == self.expected, f"{UNSAFE}: it is not what was there")
        shutil.rmtree(os.path.dirname(root), ignore_errors=True)
        call = re.sub(r"\.[0-9a-f]+$", ".ZXID", re.sub(r"to/[0-9]+", "to/N", call))
        return (call, "fails" if r.code else "is done") if struck else None

    def made(self, root):
        """What it has made that its user would take for whole; None: something is missing."""
        to = os.path.join(root, "above", "to")
        if not os.path.isdir(os.path.join(to, "version-2")):
            return None
        r = harness.clave("data", "check", to)
        require(r.code == 0, f"{UNSAFE}: clave data check: {r}")
        names = {re.sub(r"\..*", "", name) for name in os.listdir(os.path.join(to, "version-2"))}
        return digest(to), sorted(names)


class Grow(Tool):
    SERVERS = ("a", "b", "c")

    def made(self, root):
        """Each file that is there has to be whole already."""
        names = [os.path.join(str(i + 1), name) for i in range(len(self.SERVERS))
                 for name in ("myid", "zoo.cfg")]
        found = {}
        for path in glob.glob(os.path.join(root, "above", "to", "*", "*")):
            name = os.path.relpath(path, os.path.join(root, "above", "to"))
            with open(path, encoding="utf-8") as f:
                found[name] = f.read()
        for name, text in found.items():
            if name in names and self.expected:
                require(text == self.expected[name], f"{name} is half written: {text!r}")
        return found if sorted(found) == sorted(names) else None


TO = "ROOT/above/to"
TOOLS = [Tool("backup", ["data", "backup", "ROOT/from", TO]),
         Tool("restore", ["data", "restore", "ROOT/from", TO]),
         Grow("grow", ["grow", "ROOT/from", "--out", TO, *Grow.SERVERS])]
