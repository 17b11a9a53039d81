"""One queue: Curator, kazoo and clave take turns on one path, and some of them are killed.

  queue_test.py clave|apache        CLAVE_QUEUE_TURNS=N for more turns than 400;
                                    CLAVE_MIXED_SECONDS=N for a run of that time

Each holder appends a line to one log when it has the lock and another before it gives it
back. From the log alone it is then judged that
  - no two holds overlap: a hold ends by its second line, or by the death of its process;
  - the tokens (the czxids of the lock nodes) only ever grow, so the turns are in the order in
    which the server let them into the queue;
  - everybody has had turns."""
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
from harness import (ApacheServer, ClaveServer, JARS, UNSAFE, has_apache, scratch,  # noqa: E402
                     spawn)

SESSION_MS = 5000
KINDS = ("curator", "kazoo", "clave", "command")
PATH = "/one/queue"
PATIENCE = 60  # seconds without a turn
COMMAND = ('while [ ! -e "$5" ]; do CLAVE_LOG="$3" CLAVE_NAME="$4" "$CLAVE" lock --connect "$1" '
           '--session-timeout "$6ms" "$2" -- sh -c '
           "'echo \"+ $CLAVE_NAME $CLAVE_TOKEN\" >>\"$CLAVE_LOG\"; "
           "echo \"- $CLAVE_NAME $CLAVE_TOKEN\" >>\"$CLAVE_LOG\"' || exit 1; done")


def skip(why):
    print(f"{why}: nothing was tested")
    sys.exit(77)


def compile_java(source):
    out = scratch("classes")
    jars = ":".join(JARS + j + ".jar" for j in ("curator-recipes", "curator-framework",
                                                "curator-client", "zookeeper"))
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", out,
                    os.path.join(HERE, "java", source)], check=True)
    return out


class Queue(Contest):
    what, path, java = "the queue", PATH, "QueueHolder.java"

    def __init__(self, connect, seed):
        self.connect = connect
        self.dice = random.Random(seed)
        self.classes = compile_java(self.java) if self.java else None
        self.log = scratch("log")
        self.stop = scratch("stop")
        self.count = 0
        self.living = {}  # name -> process
        self.killed = set()
        open(self.log, "w").close()

    def command(self, kind):
        return {"curator": ["java", "-Xmx128m", "-XX:+UseSerialGC", "-cp",
                            f"{JARS}curator-recipes.jar:{JARS}slf4j-nop.jar:{self.classes}",
                            "QueueHolder"],
                "kazoo": ["/usr/bin/python3", os.path.join(HERE, "queue_holder.py")],
                "clave": [os.environ["CLAVE_QUEUE_HOLDER"]],
                "command": ["sh", "-c", COMMAND, "sh"]}[kind]

    def add(self, kind):
        self.count += 1
        name = f"{kind}-{self.count}"
        self.living[name] = spawn(self.command(kind) + [self.connect, self.path, self.log, name,
                                                        self.stop, str(SESSION_MS)],
                                  stdin=subprocess.DEVNULL)

    def kill_one(self):
        name = self.dice.choice(sorted(n for n in self.living if not n.startswith("command")))
        p = self.living.pop(name)
        p.send_signal(signal.SIGKILL)
        p.wait()
        self.killed.add(name)
        self.add(name.split("-")[0])

    def finish(self):
        open(self.stop, "w").close()
        for name, p in self.living.items():
            if p.wait(PATIENCE) != 0:
                sys.exit(f"{name} ended with {p.returncode}")


def judge(path, killed, since):
    """The turns of each kind since there had been so many, and how many there were in all."""
    holder, newest, count = None, 0, 0
    turns = collections.Counter()
    for number, line in enumerate(open(path), 1):
        sign, name, token = line.split()
        token = int(token)
        where = f"line {number} of the log ({line.strip()})"
        if sign == "+":
            if holder and holder[0] not in killed:
                sys.exit(f"{UNSAFE}: {where}: overlap, {holder[0]} still holds")
            if token <= newest:
                sys.exit(f"{UNSAFE}: {where}: its token is not above {newest}")
            holder, newest = (name, token), token
            count += 1
            turns[name.split("-")[0]] += count > since
        elif holder != (name, token):
            sys.exit(f"{UNSAFE}: {where}: overlap, {holder} holds")
        else:
            holder = None
    if holder:
        sys.exit(f"{holder[0]} never ended its turn")
    return turns, count


def need_everybody():
    if not has_apache() or not os.path.exists(JARS + "curator-recipes.jar"):
        skip("ZooKeeper and Curator are not installed")
    if not shutil.which("javac"):
        skip("there is no javac")
    need_kazoo()


def need_kazoo():
    try:
        import kazoo  # noqa: F401
    except ImportError:
        skip("kazoo is not installed")


def play(make_queue, kinds, kind, turns, least_kills=4, copies=2):
    """The kinds take turns on a server of this kind, and some are killed."""
    seed = int(os.environ.get("CLAVE_QUEUE_SEED", str(time.time_ns() % 1000000)))
    s = (ApacheServer() if kind == "apache" else ClaveServer()).start()
    q = make_queue(s.connect, seed)
    for k in kinds * copies:
        q.add(k)
    before = q.wait_for_everybody(PATIENCE)
    kills, planned = 0, max(least_kills, turns // 250)
    until = time.monotonic() + float(os.environ.get("CLAVE_MIXED_SECONDS", "0"))
    while kills < planned or time.monotonic() < until:
        q.wait_for(before + turns * (kills + 1) // (planned + 1), PATIENCE)
        q.kill_one()
        kills += 1
    together = q.wait_for_everybody(PATIENCE)
    q.wait_for(together + turns, PATIENCE)
    q.finish()
    got, total = judge(q.log, q.killed, together)
    s.stop()
    print(f"seed {seed}, {total} turns on {kind}, {kills} killed; the last: "
          + ", ".join(f"{k} {got[k]}" for k in kinds))
    for k in kinds:
        if got[k] < sum(got.values()) // 80:
            sys.exit(f"{k} had too few turns")


if __name__ == "__main__":
    need_everybody()
    play(Queue, KINDS, sys.argv[1], int(os.environ.get("CLAVE_QUEUE_TURNS", "400")))
