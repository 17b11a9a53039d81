"""A schedule of faults, drawn from a seed, and how it is carried out."""
import heapq
import time

LINK = ("cut", "unplug", "deafen", "mute", "slow")


class Fault:
    """`what` is done to `target` at `at`, and undone `lasts` later (both in s)."""

    def __init__(self, at, lasts, target, what):
        self.at, self.lasts, self.target, self.what = at, lasts, target, what

    def __str__(self):
        return f"{self.at:6.2f} s  {self.target.title()}: {self.what} for {self.lasts:.2f} s"


class LinkTarget:
    whats = LINK

    def __init__(self, whose, link):
        self.whose, self.link = whose, link

    def title(self):
        return f"link of {self.whose} to {self.link.network.name}"

    def do(self, what):
        getattr(self.link, what)()

    def undo(self, what):
        self.link.heal()


class ServerTarget:
    """A server or a gate is killed and started again, or sleeps."""
    whats = ("kill", "freeze")

    def __init__(self, member):
        self.member = member

    def title(self):
        return self.member.name

    def do(self, what):
        getattr(self.member, what)()

    def undo(self, what):
        if what == "kill":
            self.member.start()
        else:
            self.member.thaw()


class WorkerTarget:
    """A holder's process, or one of those of `clave lock`, is killed or sleeps, or its event loop is blocked."""

    def __init__(self, worker):
        self.worker = worker
        self.whats = worker.faults

    def title(self):
        return f"holder {self.worker.name}"

    def do(self, what):
        if what.startswith("kill"):
            self.worker.kill(what)
        else:
            self.worker.freeze(what)

    def undo(self, what):
        if what.startswith("kill"):
            self.worker.revive()
        else:
            self.worker.thaw()


class HolderTarget:
    """Whoever holds then: its process, or its link. One without an event loop is stopped in place of a block."""
    whats = ("stop", "block", "kill -9", "cut", "deafen", "mute")

    def __init__(self, field):
        self.field, self.now = field, None

    def title(self):
        return f"whoever holds {self.field.path}"

    def do(self, what):
        holds = self.field.history.refresh().in_order()
        worker = next((w for w in self.field.workers if holds and w.name == holds[-1].name), None)
        self.now = None
        if not worker or worker.killed or worker.asleep:
            return
        if what in LINK:
            self.now = LinkTarget(worker.name, worker.place.links[0]), what
        else:
            if what == "block" and what not in worker.faults:
                what = "stop"
            self.now = WorkerTarget(worker), next(w for w in worker.faults if w.startswith(what))
        self.now[0].do(self.now[1])

    def undo(self, what):
        if self.now:
            self.now[0].undo(self.now[1])


def draw(dice, targets, seconds, session_s, every_s):
    """One fault at a time for each target; about one begins every `every_s`. The last is over
    by `seconds`."""
    faults, free_at, at = [], [0.0] * len(targets), 0.0
    while True:
        at += dice.expovariate(1 / every_s)
        lasts = 0.05 + session_s * 2 * dice.random()
        free = [i for i, t in enumerate(free_at) if t <= at]
        if at + lasts > seconds:
            return faults
        if not free:
            continue
        i = dice.choice(free)
        free_at[i] = at + lasts + 0.2  # so that it is itself again
        faults.append(Fault(at, lasts, targets[i], dice.choice(targets[i].whats)))


def play(faults, watch):
    """Carries them out; `watch` is called all the while."""
    began, steps = time.monotonic(), []
    for n, fault in enumerate(faults):
        heapq.heappush(steps, (fault.at, n, fault, True))
        heapq.heappush(steps, (fault.at + fault.lasts, n, fault, False))
    while steps:
        at, _, fault, begins = heapq.heappop(steps)
        while time.monotonic() - began < at:
            watch()
            time.sleep(max(0, min(0.05, at - (time.monotonic() - began))))
        (fault.target.do if begins else fault.target.undo)(fault.what)
