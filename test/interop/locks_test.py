"""One queue: Curator's, kazoo's and clave's read-write locks, semaphores and semaphore mutexes take
turns on one path, and some of them are killed. rw-stock is kazoo with its own names, and without
Curator (docs/guide/from-kazoo.md says why).

  locks_test.py clave|apache [rw|rw-stock|semaphore|semaphore-mutex]...

CLAVE_LOCKS_TURNS=N; CLAVE_MIXED_SECONDS=N for a run of that time, of each.

Each holder appends a line to one log when it has something and another before it gives it back.
From the log alone it is then judged that
  - a writer is alone, and there are never more leases than the limit: a hold ends by its second
    line, or by the death of its process;
  - a write's token (the czxid of its node) is above all before it, and a read's above those of all
    writes before it, so they hold in the order in which the server let them into the queue; so are
    the tokens of leases where there is but one, and no two leases have one token;
  - everybody has had turns.
clave's writers downgrade now and then."""
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cmd"))
from contest import Contest  # noqa: E402
from harness import (ApacheServer, ClaveServer, JARS, UNSAFE, clave, has_apache, scratch,  # noqa: E402
                     spawn)

SESSION_MS = 4000
KINDS = {"rw": ("curator", "kazoo", "clave"), "rw-stock": ("kazoo", "clave"),
         "semaphore": ("curator", "kazoo", "clave"),
         "semaphore-mutex": ("curator", "kazoo", "clave")}
EACH = 2  # holders of a kind
LIMITS = {"semaphore": 3, "semaphore-mutex": 1}
PATIENCE = 60  # seconds without a turn


def skip(why):
    print(f"{why}: nothing was tested")
    sys.exit(77)


def compile_java():
    out = scratch("classes")
    jars = ":".join(JARS + j + ".jar" for j in ("curator-recipes", "curator-framework",
                                                "curator-client", "zookeeper"))
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", out,
                    os.path.join(HERE, "java", "LocksHolder.java")], check=True)
    return out


class Match(Contest):
    def __init__(self, connect, what, classes, dice):
        self.connect, self.what, self.classes, self.dice = connect, what, classes, dice
        self.log, self.stop = scratch("log"), scratch("stop")
        self.count = 0
        self.living = {}  # name -> process
        self.killed = set()
        open(self.log, "w").close()

    def add(self, kind):
        self.count += 1
        name = f"{kind}-{self.count}"
        command = {"curator": ["java", "-Xmx128m", "-XX:+UseSerialGC", "-cp",
                               f"{JARS}curator-recipes.jar:{JARS}slf4j-nop.jar:{self.classes}",
                               "LocksHolder"],
                   "kazoo": ["/usr/bin/python3", "-B", os.path.join(HERE, "locks_holder.py")],
                   "clave": [os.environ["CLAVE_LOCKS_HOLDER"]]}[kind]
        self.living[name] = spawn(command + [self.connect, f"/one/{self.what}", self.log, name,
                                             self.stop, str(SESSION_MS), self.what],
                                  stdin=subprocess.DEVNULL)

    def kill_one(self, kind):
        name = self.dice.choice(sorted(n for n in self.living if n.startswith(kind)))
        p = self.living.pop(name)
        p.send_signal(signal.SIGKILL)
        p.wait()
        self.killed.add(name)
        self.add(kind)

    def finish(self):
        open(self.stop, "w").close()
        for name, p in self.living.items():
            if p.wait(PATIENCE) != 0:
                sys.exit(f"{name} ended with {p.returncode}")

    def judge_token(self, kind, token, newest):
        """`newest`: the greatest of each kind so far. The limit of others is that of a mutex."""
        before = {"W": max(newest["W"], newest["R"]), "R": newest["W"],
                  "S": newest["S"] if self.what == "semaphore-mutex" else 0}[kind]
        newest[kind] = max(newest[kind], token)
        return token > before

    def judge(self, since):
        """The turns of each kind since there had been so many, how many there were in all, and how
        many shared at most."""
        held = collections.Counter()  # (name, kind) -> holds
        turns = collections.Counter()
        newest = collections.Counter()
        leases = set()
        most = count = 0
        for number, line in enumerate(open(self.log), 1):
            sign, name, kind, token = line.split()
            held[name, kind] += 1 if sign == "+" else -1
            if sign == "-":
                continue
            count += 1
            turns[name.split("-")[0], kind] += count > since
            token = int(token)
            if token and not self.judge_token(kind, token, newest):
                sys.exit(f"{UNSAFE}: line {number} of the log ({line.strip()}): its token is not above {newest}")
            if kind == "S" and token in leases:
                sys.exit(f"{UNSAFE}: line {number} of the log ({line.strip()}): a second lease of this token")
            leases.add(token)
            alive = collections.Counter()
            for (n, k), holds in held.items():
                alive[k] += holds if n not in self.killed or n == name else 0
            most = max(most, alive["R"] + alive["S"])
            if alive["W"] > 1 or (alive["W"] and alive["R"]):
                sys.exit(f"{UNSAFE}: line {number} of the log: {dict(alive)} at once")
            if alive["S"] > LIMITS.get(self.what, 0):
                sys.exit(f"{UNSAFE}: line {number} of the log: {alive['S']} leases")
        return turns, count, most


def play(connect, what, classes, turns, dice):
    kinds = KINDS[what]
    m = Match(connect, what, classes, dice)
    # Not containers, as who comes first would make: when such a one is empty for a moment the server
    # may remove it, and kazoo's semaphore does not bear that.
    for part in ("/leases", "/locks") if what.startswith("semaphore") else ("",):
        result = clave("create", "-p", f"/one/{what}{part}", "", connect=connect)
        if result.code != 0:
            sys.exit(f"{what}: {result}")
    for kind in kinds * EACH:
        m.add(kind)
    before = m.wait_for_everybody(PATIENCE)
    kills, until = 0, time.monotonic() + float(os.environ.get("CLAVE_MIXED_SECONDS", "0"))
    planned = max(2, turns // 250)
    first = list(KINDS).index(what)  # so that a short run of all kills all kinds
    while kills < planned or time.monotonic() < until:
        m.wait_for(before + turns * (kills + 1) // (planned + 1), PATIENCE)
        m.kill_one(kinds[(first + kills) % len(kinds)])
        kills += 1
    together = m.wait_for_everybody(PATIENCE)
    m.wait_for(together + turns, PATIENCE)
    m.finish()
    got, total, most = m.judge(together)
    print(f"{what}: {total} turns, {kills} killed, at most {most} at once; the last: "
          + ", ".join(f"{k} {n} {c}" for (k, n), c in sorted(got.items())), flush=True)
    for kind in kinds:
        if sum(c for (k, _), c in got.items() if k == kind) < sum(got.values()) // 40:
            sys.exit(f"{what}: {kind} had too few turns")
    if what != "semaphore-mutex" and most < 2:
        sys.exit(f"{what}: nobody ever shared")


def main():
    whats = sys.argv[2:] or KINDS
    turns = int(os.environ.get("CLAVE_LOCKS_TURNS", "150"))
    seed = int(os.environ.get("CLAVE_LOCKS_SEED", str(time.time_ns() % 1000000)))
    if not has_apache() or not os.path.exists(JARS + "curator-recipes.jar"):
        skip("ZooKeeper and Curator are not installed")
    if not shutil.which("javac"):
        skip("there is no javac")
    try:
        import kazoo  # noqa: F401
    except ImportError:
        skip("kazoo is not installed")
    print(f"seed {seed} on {sys.argv[1]}")
    classes = compile_java()
    s = (ApacheServer() if sys.argv[1] == "apache" else ClaveServer()).start()
    for what in whats:
        play(s.connect, what, classes, turns, random.Random(seed))
    s.stop()


main()
