#!/usr/bin/env python3
"""A member of an ensemble is cut off from the others, or sleeps, while it serves holders: have they
stopped when the next one owns?

  cutoff.py [--runs N] [--seed N] [EXPERIMENT...]

  follower   the member that serves the holders, a follower, is cut off from the other two
  leader     the same with the leader
  stopped    the leader serves them and is stopped (SIGSTOP); it wakes when others own their locks
  asleep     the holders themselves are stopped, and wake when others own their locks

Three members of Apache ZooKeeper with the tickTime and syncLimit of its sample configuration,
sessions of 4 s. The holders reach that one member and no other; those who wait for their locks are
connected to the other two. CLAVE and CLAVE_REAL_HOLDER name the programs."""
import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cmd")]
import net  # noqa: E402

net.enter()

from harness import CLAVE, JARS, clave, environment, has_apache, scratch, spawn  # noqa: E402
from history import History  # noqa: E402
from servers import PORT, Ensemble, now_ns, until  # noqa: E402
from worker import HOLDER, send  # noqa: E402

SESSION_MS, TICK_MS = 4000, 2000
CURATOR = ("curator-recipes", "curator-framework", "curator-client", "zookeeper")
# name in the log: what to call it; whether it is ours
FORMS = {"clave-lock": ("libclave, clave_mutex", True),
         "clave-latch": ("libclave, clave_async_latch", True),
         "command-lock": ("clave lock", True),
         "command-elect": ("clave elect", True),
         "kazoo-lock": ("kazoo Lock", False),
         "curator-mutex": ("Curator InterProcessMutex", False),
         "curator-latch": ("Curator LeaderLatch", False)}


def skip(why):
    print(f"real faults: SKIPPED, nothing was tested: {why}", flush=True)
    sys.exit(77)


def compile_java():
    out = scratch("classes")
    subprocess.run(["javac", "-nowarn", "-cp", ":".join(f"{JARS}{j}.jar" for j in CURATOR), "-d",
                    out, os.path.join(HERE, "Holder.java")], check=True)
    return out


class Run:
    """Seven holders at one member, seven that wait at the others, and one fault."""

    def __init__(self, ensemble, classes, places, number):
        self.ensemble, self.classes, (self.here, self.there) = ensemble, classes, places
        self.log, self.stop, self.number = scratch("log"), scratch("stop"), number
        open(self.log, "w").close()
        self.began = self.woke = 0  # the fault; the holders, if it is that they sleep
        self.history, self.holders, self.waiters = History(open(self.log)), [], []

    def path(self, form):
        return f"/run{self.number}/{form}"

    def spawn(self, place, command):
        return spawn(place.words(command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                     env=environment(), start_new_session=True)

    def library(self, place, kind, connect, form, name):
        return self.spawn(place, [HOLDER, kind, connect, self.path(form), self.log, name,
                                  self.stop, SESSION_MS, 0])

    def command(self, verb, connect):
        return self.spawn(self.here, [CLAVE, verb, "--connect", connect, "--session-timeout",
                                      f"{SESSION_MS}ms", self.path(f"command-{verb}"), "--",
                                      HOLDER, "under", self.log, f"command-{verb}", 0])

    def start_holders(self, member):
        connect = f"{member.address}:{PORT}"
        offset = now_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        java = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
                f"{JARS}curator-recipes.jar:{JARS}slf4j-nop.jar:{self.classes}", "Holder",
                connect, self.log, SESSION_MS, offset, "mutex", self.path("curator-mutex"),
                "latch", self.path("curator-latch")]
        kazoo = ["/usr/bin/python3", "-B", os.path.join(HERE, "holder_kazoo.py"), connect,
                 self.path("kazoo-lock"), self.log, SESSION_MS]
        self.holders = [self.spawn(self.here, java), self.spawn(self.here, kazoo),
                        self.library(self.here, "lock", connect, "clave-lock", "clave-lock"),
                        self.library(self.here, "latch", connect, "clave-latch", "clave-latch"),
                        self.command("lock", connect), self.command("elect", connect)]
        until("all holders", lambda: len(self.history.refresh().holds) == len(FORMS))

    def start_waiters(self, others):
        connect = ",".join(f"{m.address}:{PORT}" for m in others)
        for form in FORMS:
            kind = "latch" if form.endswith(("latch", "elect")) else "lock"
            self.waiters.append(self.library(self.there, kind, connect, form, f"next-{form}"))
        for form in FORMS:
            until("those who wait", lambda: not self.all_hold() or len(clave(
                "ls", self.path(form), connect=connect, timeout=60).out.split()) == 2)

    def prepare(self, member, phase_s):
        """Holders, those who wait, and any phase of heartbeats and ticks. Do all hold still?"""
        self.start_holders(member)
        self.start_waiters([m for m in self.ensemble.members if m is not member])
        time.sleep(phase_s)
        return self.all_hold()

    def all_hold(self):
        late = now_ns() - 500000000
        return all(h.newest > late and not h.heard() for h in self.history.refresh().holds)

    def next_own(self):
        history = self.history.refresh()
        return all(history.of(f"next-{form}") for form in FORMS)

    def all_over(self):
        """Every holder has said that it holds no more, or says nothing any more."""
        history, late = self.history.refresh(), now_ns() - 1000000000
        return all(h.heard() or h.newest < late for form in FORMS for h in history.of(form))

    def signal_holders(self, how):
        """To all of it: `clave lock` has a guardian and a command, in sessions of their own."""
        ours = {p.pid for p in self.holders}
        for pid in sorted(ours | descendants(ours)):
            send(pid, how)

    def end(self):
        open(self.stop, "w").close()
        for p in self.holders + self.waiters:
            p.kill()
            p.wait()

    def ends(self):
        """For each form, in ms since the fault: when it last held, and since when it should not
        have: when the next one owned, or when it woke after that."""
        history, result = self.history.refresh(), {}
        for form in FORMS:
            (held,), (following,) = history.of(form), history.of(f"next-{form}")
            owned = max(following.begin, self.woke)
            result[form] = ((held.newest - self.began) / 1e6, (owned - self.began) / 1e6)
        return result


def descendants(pids):
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as f:
                parents[int(name)] = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    found = set()
    while True:
        more = {p for p, parent in parents.items() if parent in pids | found} - found
        if not more:
            return found
        found |= more


def follower(run, member):
    member.peers.cut()
    until("the next owners", run.next_own, 90)
    until("the end of the holders", run.all_over, 90)
    member.peers.heal()


def stopped(run, member):
    member.freeze()
    until("the next owners", run.next_own, 90)
    member.thaw()
    until("the end of the holders", run.all_over, 90)


def asleep(run, member):
    run.signal_holders(signal.SIGSTOP)
    until("the next owners", run.next_own, 90)
    run.woke = now_ns()
    run.signal_holders(signal.SIGCONT)
    until("the end of the holders", run.all_over, 90)


EXPERIMENTS = {"follower": follower, "leader": follower, "stopped": stopped, "asleep": asleep}


def play(ensemble, classes, places, what, number, dice):
    ensemble.wait_ready()
    leader = ensemble.leader()
    followers = [m for m in ensemble.members if m is not leader]
    member = dice.choice(followers) if what in ("follower", "asleep") else leader
    run = Run(ensemble, classes, places, number)
    try:
        if not run.prepare(member, dice.uniform(0, TICK_MS / 1000)):
            return None
        run.began = now_ns()
        EXPERIMENTS[what](run, member)
        return run.ends()
    finally:
        run.end()


def play_surely(ensemble, classes, places, what, number, dice):
    """On a machine that is too busy somebody may lose its hold before the fault: once more."""
    for again in range(5):
        ends = play(ensemble, classes, places, what, f"-{what}-{number}-{again}", dice)
        if ends:
            return ends
        print(f"{what}, run {number + 1}: a hold was lost before the fault, once more", flush=True)
    sys.exit("cutoff: this machine is too busy")


def table(what, runs):
    print(f"\n### {what}: {len(runs)} runs\n")
    print("| holder | had stopped before the next owned | by (least, median) | "
          "both held for (median, longest) |\n|---|---|---|---|")
    for form, (title, _) in FORMS.items():
        margins = sorted(owned - held for held, owned in (r[form] for r in runs))
        before, both = [m for m in margins if m >= 0], [-m for m in margins if m < 0]
        print(f"| {title} | {len(before)} of {len(runs)} | "
              + (f"{before[0]:.0f} ms, {statistics.median(before):.0f} ms" if before else "-")
              + " | " + (f"{statistics.median(both):.0f} ms, {max(both):.0f} ms" if both else "-")
              + " |", flush=True)


def faults(what, runs):
    """A command that sleeps together with `clave lock` is ended when they wake, not before."""
    excused = [f for f in FORMS if f.startswith("command")] if what == "asleep" else []
    return [f"{what}, run {n}: {FORMS[form][0]} held on for {held - owned:.1f} ms"
            for n, run in enumerate(runs, 1) for form, (held, owned) in run.items()
            if FORMS[form][1] and held > owned and form not in excused]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--runs", type=int, default=20)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("experiments", nargs="*", default=list(EXPERIMENTS))
    a = p.parse_args()
    if not has_apache() or not shutil.which("javac"):
        skip("ZooKeeper and javac are not installed")
    dice, found = random.Random(a.seed), []
    ensemble = Ensemble(TICK_MS)
    places = net.Place(ensemble.clients), net.Place(ensemble.clients)
    classes = compile_java()
    for what in a.experiments:
        runs = []
        for n in range(a.runs):
            runs.append(play_surely(ensemble, classes, places, what, n, dice))
            print(f"{what}, run {n + 1}: " + ", ".join(
                f"{form} {held:.0f} < {owned:.0f}" if held < owned else
                f"{form} {held:.0f} > {owned:.0f} !" for form, (held, owned) in runs[-1].items()),
                flush=True)
        table(what, runs)
        found += faults(what, runs)
    print("\n" + ("\n".join(found) or "no holder of clave held on"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
