#!/usr/bin/env python3
"""Rounds with real processes: one holds a lock, another waits, and something of the holder is stopped or killed: its
runner, its guardian, its command, its health check, two of these, all of them at once, the server, or the disk that the
command writes to. What follows is judged from outside.

  hang_rounds.py [--rounds N] [--seed N] [--lanes N] [--only N]    CLAVE, CLAVE_STANDIN_WATCHDOG name program and stand-in

Each process of a command appends its token and the time to one log, and the server's audit log says when the holder's node
was gone, from when on the next one may own the lock. Then:

 1. nothing of the holder acts after that, in the order of the log and by the clock;
 2. if anything of the command is alive then, or the watchdog fires at all, it has fired before;
 3. the next one acts within the time that is promised for what was hit, or the hold goes on, where it may;
 4. in the end somebody acts, and who holds can be ended in order.

Each contender has a watchdog of its own, a stand-in (standin_watchdog.c), as two machines would have. When it fires, what
a reset does is done: all processes of that contender are killed, and what they wrote since then does not count.
`--only N` plays round N of the seed alone."""
import argparse
import collections
import datetime
import os
import random
import signal
import subprocess
import sys
import threading
import time

from frozen_disk import FrozenDisk, can_mount
from harness import PATIENCE, UNSAFE, ClaveServer, scratch
from lock_rig import TICK, Holder, alive, children, nodes, until
from standin_device import DEVICE_MS, Device

DEVICE_S, EVERY_S, FAILS, STALE_S, GRACE_S = DEVICE_MS / 1000, 1.0, 2, 1.0, 0.1
# From the moment that the work stands still: the check notices after STALE_S; then fails x every + timeout.
NOTICED_S = STALE_S + FAILS * EVERY_S + EVERY_S
HAND_OVER_S = 1.0
BUSY_S = 4.0  # any process may not be scheduled for that long

# Its ways are words: deaf: SIGTERM is ignored; brood: a child in a session of its own acts too; threads: it is another
# thread than the first that waits for the disk; exec: programs are started all the time, so that one waits for it in
# execve(2), which closes the file.
WORK = """
import os, signal, sys, threading, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
beat = os.open(sys.argv[2], os.O_WRONLY)
disk = os.open(sys.argv[3], os.O_WRONLY)
def act():
    os.write(log, b"%s %d %d\\n" % (os.environb[b"CLAVE_TOKEN"], time.clock_gettime_ns(time.CLOCK_BOOTTIME), os.getpid()))
def work():
    os.pwrite(beat, b"%d" % (10**12 + time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 10**7), 0)
    os.pwrite(disk, b"work", 0)
def forever(*does):
    while True:
        for it in does:
            it()
        time.sleep(0.02)
if "deaf" in sys.argv[4]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "brood" in sys.argv[4] and os.fork() == 0:
    os.setsid()
    forever(act)
if "exec" in sys.argv[4] and os.fork() == 0:
    forever(lambda: os.spawnv(os.P_WAIT, "/bin/true", ["true"]))
if "threads" in sys.argv[4]:
    threading.Thread(target=forever, args=(work,)).start()
    forever(act)
forever(act, work)
"""
# No process but the shell, so that it is cheap: the beat and /proc/uptime are hundredths of seconds.
CHECK = """[ "$CLAVE_EVENT" = waiting ] && exit; {pause} read up _ </proc/uptime; read beat <{beat}
[ $((1000000000000 + ${{up%.*}}${{up#*.}} - beat)) -lt {stale} ]"""

# What is hit, how, how often among the rounds, whether only with --watchdog.
KINDS = [(victim, how, 2, False) for victim in ("runner", "guardian", "command")
         for how in ("stop", "kill", "stop, kill", "stop, go on")]
KINDS += [("check", "stop", 1, False), ("check", "kill", 1, False), ("server", "stop, go on", 2, False),
          ("server", "kill, start", 2, False), ("two of them", "stop or kill", 6, True), ("all of them", "stop, go on", 2, True)]
if can_mount():
    KINDS += [("disk", "stall", 3, True), ("disk", "stall, answer", 2, True)]


def now_s():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def send(pid, sig):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


class Contender:
    """One who takes the lock, on a machine of its own as far as the watchdog is concerned."""

    def __init__(self, round_, disk="/dev/null", work=""):
        self.round, self.device, self.fired_at = round_, round_.watchdog and Device(), None
        self.said = scratch("said")
        beat = scratch("beat")
        with open(beat, "w", encoding="ascii") as f:
            f.write(str(10**12) + "\n")
        check = CHECK.format(beat=beat, stale=int(STALE_S * 100), pause="sleep 0.2;" if round_.victim == "check" else "")
        flags = ["--session-timeout", f"{round_.session_s}s", "--grace", f"{GRACE_S}s", "--health", check, "--health-every",
                 f"{EVERY_S}s", "--health-fails", FAILS, "--health-grace", "5s", "--json"]
        if self.device:
            flags += ["--watchdog", self.device.path]
        with open(self.said, "w", encoding="utf-8") as said:
            self.holder = Holder(round_.server, round_.path, *flags, stderr=said,
                                 script=f'exec {sys.executable} -SE -c "$WORK" {round_.log} {beat} {disk} "{work}"',
                                 env={"WORK": WORK, **(self.device.env if self.device else {})})
        self.runner = self.holder.wrapper

    def started(self):
        self.holder.started()
        self.guardian, self.command = self.holder.guardian, self.holder.command
        return self

    def said_lines(self):
        with open(self.said, encoding="utf-8") as f:
            return [line.rstrip("\n") for line in f]

    def tree(self):
        """All of it, as far as it has ever acted."""
        own = self.holder.command and {self.guardian, self.command, *self.round.actors(self.command)}
        return {self.runner, *(own or ())}

    def alive(self):
        """What of the command is."""
        return [pid for pid in self.tree() - {self.runner, self.guardian} if alive(pid)]

    def look_at_the_device(self):
        """If it has fired, this machine is reset."""
        fires = self.device and self.fired_at is None and self.device.fires_at()
        if fires and fires / 1000 <= now_s():
            self.fired_at = fires / 1000
            for pid in self.tree():
                send(pid, signal.SIGKILL)

    def end(self):
        """Whether it ends when it is asked to. Nothing of it is left then in any case."""
        for pid in self.tree():
            send(pid, signal.SIGCONT)
        for _ in range(PATIENCE):  # the second signal ends what ignores the first
            send(self.runner, signal.SIGTERM)
            try:
                self.holder.run.process.wait(1)
                break
            except subprocess.TimeoutExpired:
                pass
        in_time = self.holder.run.process.poll() is not None
        for pid in self.tree() | set(children(self.runner)):
            send(pid, signal.SIGKILL)
        self.holder.run.process.wait()
        self.holder.run.process.stdout.close()
        return in_time


def draw(seed, number):
    """What is hit in this round, how, with a watchdog or without, the ways of the command, and dice for the rest."""
    deck = [kind for kind in KINDS for _ in range(kind[2])]
    random.Random(seed).shuffle(deck)
    victim, how, _, needs_watchdog = deck[number % len(deck)]
    dice = random.Random(f"{seed}-{number}")
    watchdog = needs_watchdog or dice.random() < 0.6
    return victim, how, watchdog, " ".join(w for w in ("deaf", "brood", "threads") if dice.random() < 0.5), dice


class Round:
    def __init__(self, server, audit, number, drawn):
        self.server, self.audit, self.number = server, audit, number
        self.victim, self.how, self.watchdog, self.work, self.dice = drawn
        self.session_s = 8 if self.watchdog else 3
        self.path, self.log = f"/round-{number}", scratch("log")
        self.entries, self.read_to = [], 0  # (token, when, process) in the order of the log
        self.later, self.found, self.told = [], [], []
        self.disk = self.first = self.second = self.took = None
        self.bound = 0

    # ---- what the processes wrote

    def read(self):
        try:
            with open(self.log, "rb") as f:
                f.seek(self.read_to)
                data = f.read()
        except FileNotFoundError:
            return
        whole = data[:data.rfind(b"\n") + 1]
        self.read_to += len(whole)
        for line in whole.splitlines():
            token, at, pid = map(int, line.split())
            self.entries.append((token, at / 1e9, pid))

    def actors(self, command):
        tokens = {token for token, _, pid in self.entries if pid == command}
        return {pid for token, _, pid in self.entries if token in tokens}

    def may_own_at(self, node):
        """When the server had removed the first one's node; None: it has not, or was killed before it said so."""
        behind = time.time() - now_s()
        with open(self.audit, encoding="utf-8") as f:
            for line in f:
                if f"znode={self.path}/{node}\t" in line and "elet" in line and "result=success" in line:
                    at = datetime.datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f")
                    return at.replace(tzinfo=datetime.timezone.utc).timestamp() - behind
        return None

    # ---- what is done to them

    def do_later(self, seconds, act):
        self.later.append((now_s() + seconds, act))

    def hit(self, pid, how, name):
        """Stops or kills it now, and perhaps does something else later. Returns how many seconds later that is."""
        self.told.append(f"{name}: {how}")
        send(pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        if how not in ("stop, kill", "stop, go on"):
            return 0
        after = self.dice.choice((self.dice.random() * 1.5, self.dice.random() * 1.3 * self.session_s))
        self.told[-1] += f" after {after:.2f} s"
        self.do_later(after, lambda: send(pid, signal.SIGKILL if how == "stop, kill" else signal.SIGCONT))
        return after

    def strike(self):
        """(must the next one come; within how many seconds)"""
        first, s = self.first, self.session_s
        grace = GRACE_S if "deaf" in self.work else 0
        worst = NOTICED_S + GRACE_S + DEVICE_S + s
        if self.victim == "server":
            return False, self.strike_server() + 2 * s + HAND_OVER_S
        if self.victim == "disk":
            self.disk.frozen = True
            if self.how == "stall":
                return True, worst
            after = self.dice.random() * 6
            self.told.append(f"answers after {after:.2f} s")
            self.do_later(after, self.disk.thaw)
            return False, worst + after
        if self.victim == "check":
            check = until(lambda: [p for p in children(first.runner) if p != first.guardian], what="a check")[0]
            self.hit(check, self.how, "check")
            return False, NOTICED_S + s
        if self.victim == "all of them":
            after = (0.3 + self.dice.random()) * s
            for pid in sorted(first.tree()):
                send(pid, signal.SIGSTOP)
            self.told.append(f"all: stop, go on after {after:.2f} s")
            self.do_later(after, lambda: [send(pid, signal.SIGCONT) for pid in first.tree()])
            return False, after + worst
        if self.victim == "two of them":
            for name in self.dice.sample(("runner", "guardian", "command"), 2):
                self.hit(getattr(first, name), self.dice.choice(("stop", "kill")), name)
                if self.dice.random() < 0.5:
                    time.sleep(self.dice.random() * 0.5)
            return True, worst
        after = self.hit(getattr(first, self.victim), self.how, self.victim)
        stopped = {"runner": s, "guardian": DEVICE_S + s if self.watchdog else None, "command": NOTICED_S + grace}[self.victim]
        killed = 0 if self.victim == "guardian" else grace
        if self.how == "stop, go on" or (self.how == "stop" and stopped is None):
            return False, after + worst
        if self.how == "stop, kill":  # of the guardian: the watchdog may fire before that
            both = stopped if self.victim == "guardian" and self.watchdog else min(stopped or after, after) + killed
        return True, {"stop": stopped, "kill": killed}.get(self.how, both if self.how == "stop, kill" else 0) + HAND_OVER_S

    def strike_server(self):
        after = self.dice.random() * 1.5 * self.session_s
        self.told.append(f"for {after:.2f} s")
        if self.how == "stop, go on":
            self.server.process.send_signal(signal.SIGSTOP)
            self.do_later(after, lambda: self.server.process.send_signal(signal.SIGCONT))
        else:
            self.server.stop(signal.SIGKILL)
            self.do_later(after, self.server.start)
        return after

    # ---- a round

    def play(self):
        where = "/dev/null"
        if self.victim == "disk":
            self.disk = FrozenDisk(scratch("disk"))
            where = os.path.join(self.disk.where, "disk")
        self.first = Contender(self, where, self.work).started()
        node = nodes(self.server, self.path)[0]
        self.second = Contender(self)
        until(lambda: len(nodes(self.server, self.path)) == 2, what="the second one waits")
        until(lambda: self.read() or len(self.entries) > 20, what="the first one acts")
        token = self.entries[0][0]
        time.sleep(self.dice.random() * 1.5)  # any moment between two checks and two heartbeats
        hit_at = now_s()
        must, self.bound = self.strike()
        self.took = self.watch(token, hit_at, must, self.bound)
        self.judge(token, node)
        self.end()

    def kind(self):
        return f"{self.victim}: {self.how}"

    def line(self):
        took = f"{self.took:6.2f} s" if self.took is not None else "goes on "
        words = [*self.told, "watchdog" if self.watchdog else "no watchdog", *self.work.split()]
        said = [line for c in (self.first, self.second) if c and self.found for line in c.said_lines()]
        return f"{self.number:4} {self.kind():28} {took} of {self.bound:5.2f} s  {', '.join(words)}" + "".join(
            f"\n     {text}" for text in self.found + said)

    def watch(self, token, hit_at, must, bound):
        """Until the next one has acted for a while, or it need not come. Returns how long it took to come; None."""
        took, until_at, woken = None, hit_at + bound + BUSY_S, self.dice.random() < 0.5
        if not must:
            until_at = hit_at + bound
        while now_s() < until_at or (took is None and not must and not self.somebody_acts() and
                                     now_s() < hit_at + bound + BUSY_S):
            for due in [x for x in self.later if x[0] <= now_s()]:
                self.later.remove(due)
                due[1]()
            self.first.look_at_the_device()
            self.second.look_at_the_device()
            self.read()
            if took is None and (next_ := [at for t, at, _ in self.entries if t > token]):
                took, until_at = next_[0] - hit_at, now_s() + 1.5
                lives = self.first.alive()
                if lives and self.first.fired_at is None:
                    self.found.append(f"{UNSAFE}: {lives} of the first one's command is alive when the next one acts")
                if woken:
                    for pid in self.first.tree():
                        send(pid, signal.SIGCONT)
            time.sleep(0.01)
        for _, act in self.later:
            act()
        self.later = []
        if must and took is None:
            self.found.append(f"nobody took over within {bound + BUSY_S:.1f} s")
        elif took is None and not self.somebody_acts():
            self.found.append(f"nobody acts {now_s() - hit_at:.1f} s after the fault")
        return took

    def somebody_acts(self):
        return bool(self.entries) and self.entries[-1][1] > now_s() - 1

    def judge(self, token, node):
        if self.took is None:
            return
        if self.took > self.bound + BUSY_S:
            self.found.append(f"the next one came after {self.took:.2f} s, later than {self.bound:.2f} s")
        end, may_own = self.first.fired_at, self.may_own_at(node)
        first_of_next = min(at for t, at, _ in self.entries if t > token)
        may_own = first_of_next if may_own is None else min(may_own, first_of_next)
        if end is not None and end > may_own:
            self.found.append(f"{UNSAFE}: the watchdog fires at {end:.3f}, after another may own at {may_own:.3f}")
        seen = 0
        for t, at, pid in self.entries:
            if t == token and end is not None and at > end:
                continue  # there was no such process any more
            if t < seen or (t == token and at > may_own):
                self.found.append(f"{UNSAFE}: process {pid} of token {t} acts at {at:.3f}, after {seen}; "
                                  f"another may own since {may_own:.3f}")
                break
            seen = max(seen, t)

    def end(self):
        if self.disk:
            self.disk.thaw()
        if not self.first.end() and self.first.fired_at is None:
            self.found.append("the first one does not end")
        if self.took is not None and self.second.holder.run.process.poll() is None:
            self.second.started()
        if not self.second.end():
            self.found.append("the second one does not end")
        if self.disk:
            self.disk.close()


def lane(rounds, kind, report):
    audit = scratch("audit")
    server = ClaveServer(flags=[*TICK, "--audit", audit])
    server.env = {"TZ": "UTC"}
    server.start()
    for number, drawn in rounds:
        round_ = kind(server, audit, number, drawn)
        try:
            round_.play()
        except Exception as error:  # of this program, or of one that does not do what it should
            round_.found.append(f"{type(error).__name__}: {error}")
            server.stop(signal.SIGKILL)
            server.start()
        report(round_)
    server.stop()


def play(rounds, lanes, say=lambda text: None, kind=Round):
    """Plays these rounds, pairs of a number and what was drawn, and returns them; `say` gets a line of each."""
    played = []

    def report(round_):
        played.append(round_)
        say(round_.line())

    threads = [threading.Thread(target=lane, args=(rounds[i::lanes], kind, report)) for i in range(lanes)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return played


def table(played):
    kinds = collections.defaultdict(list)
    for r in played:
        kinds[r.kind()].append(r)
    rows = []
    for kind, rounds in sorted(kinds.items()):
        took = [(r.took, r.bound) for r in rounds if r.took is not None]
        longest = "{:.1f} s | {:.1f} s".format(*max(took)) if took else "- | -"
        fired = sum(bool(r.first and r.first.fired_at) for r in rounds)
        rows.append(f"| {kind} | {len(rounds)} | {len(took)} | {longest} | {fired} | {sum(bool(r.found) for r in rounds)} |")
    return "\n".join(["| what was hit | rounds | taken over | the longest | promised then | the watchdog fired | violations |",
                      "|---|---|---|---|---|---|---|", *rows])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=200)
    p.add_argument("--seed", type=int, default=time.time_ns() // 1000000 % 1000000)
    p.add_argument("--lanes", type=int, default=4, help="rounds at once")
    p.add_argument("--only", type=int, help="this round alone")
    a = p.parse_args()
    print(f"seed {a.seed}", flush=True)
    numbers = range(a.rounds) if a.only is None else [a.only]
    played = play([(n, draw(a.seed, n)) for n in numbers], min(a.lanes, len(numbers)), lambda text: print(text, flush=True))
    print(table(played))
    violated = [r.number for r in played if r.found]
    print(f"hangs: {len(played)} rounds, " + (f"VIOLATED in {violated}, seed {a.seed}" if violated else "all is well"))
    return 1 if violated or len(played) < len(numbers) else 0


if __name__ == "__main__":
    sys.exit(main())
