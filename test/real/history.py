"""What the holders have logged, and what has to be true of it. Times are CLOCK_BOOTTIME, in ns."""
import collections

AWAKE_NS = 200000000  # until who was asleep, or not run, has had the time to look at its clock


class Hold:
    """One hold, as its holder saw it. `newest`: when it was last sure that it holds."""

    def __init__(self, ns, name, token, how):
        self.begin = self.newest = ns
        self.name, self.token, self.how = name, token, how
        self.release = self.gone = self.lost = None
        self.writes = {}  # number: wrote, refused, unsure

    def __str__(self):
        return f"{self.name} (token {self.token})"

    def heard(self):
        """When it knew that it holds no more; None: never."""
        known = [ns for ns in (self.release, self.gone, self.lost) if ns is not None]
        return min(known) if known else None


class History:
    """Of one lock or election, from an open log. `killed` and `asleep` are told by whoever did
    that to a holder."""

    def __init__(self, log):
        self.holds, self._by_key = [], {}
        self._log, self._rest = log, ""
        self.killed = []  # (name, ns)
        self.asleep = []  # (name, from, to)

    def refresh(self):
        """Reads what has been appended since."""
        lines = (self._rest + self._log.read()).split("\n")
        self._rest = lines.pop()
        for line in lines:
            ns, what, name, token, detail = line.split()
            self.add(int(ns), what, name, int(token), detail)
        return self

    def add(self, ns, what, name, token, detail):
        if what == "late":
            self.asleep.append((name, int(detail), ns + AWAKE_NS))
            return
        if what == "grant":
            hold = Hold(ns, name, token, detail)
            self.holds.append(hold)
            self._by_key[name, token] = hold
            return
        hold = self._by_key.get((name, token))
        if not hold:
            return  # lost before it was known to be granted
        if what in ("held", "release"):
            hold.newest = max(hold.newest, ns)
        if what in ("release", "gone", "lost"):
            setattr(hold, what, ns)
        elif what in ("wrote", "refused", "unsure"):
            hold.writes[detail] = what

    def of(self, name):
        return [h for h in self.holds if h.name == name]

    def served_since(self, ns):
        return {h.name for h in self.holds if h.begin > ns}

    def in_order(self):
        return sorted(self.holds, key=lambda h: h.begin)

    # ---- what has to be true: each says what is not

    def overlaps(self):
        """Nobody is sure of a hold once another's has begun."""
        found, before = [], None
        for hold in self.in_order():
            if before and before.newest >= hold.begin:
                found.append(f"{before} held on for {(before.newest - hold.begin) / 1e6:.1f} ms "
                             f"when {hold} had been granted")
            if not before or hold.newest >= before.newest:
                before = hold
        return found

    def tokens_out_of_order(self):
        """A latch that was suspended and is first still leads on with its token."""
        holds = self.in_order()
        return [f"{b} came after {a}" for a, b in zip(holds, holds[1:])
                if b.token < a.token or (b.token == a.token and b.name != a.name)]

    def excuse(self, hold, until):
        """Killed, asleep or not run by its machine, it hears nothing."""
        return (any(name == hold.name and hold.newest <= ns <= until for name, ns in self.killed)
                or any(name == hold.name and begin <= until <= end
                       for name, begin, end in self.asleep))

    def losses_unheard(self):
        """Who holds no more knows it when the next hold begins. A command is not told: its end
        is (overlaps)."""
        holds = self.in_order()
        return [f"{a} had not heard of its end when {b} was granted"
                for a, b in zip(holds, holds[1:])
                if a.how != "command" and not (a.heard() and a.heard() < b.begin)
                and not self.excuse(a, b.begin)]

    def stale_writes(self, names):
        """`names`: of all nodes that were written, NAME.TOKEN.NUMBER-SEQUENCE."""
        found, newest = [], 0
        for name in sorted(names, key=lambda n: n[-10:]):
            token = int(name.rsplit(".", 2)[1])
            if token < newest:
                found.append(f"{name} was written after a write of {newest}")
            newest = max(newest, token)
        return found

    def untrue_writes(self, names):
        """Refused, and there; or done, and not there: (the name without the sequence, what)."""
        there = {name[:-10] for name in names}
        told = [(f"{h.name}.{h.token}.{number}-", what)
                for h in self.holds for number, what in h.writes.items()]
        return [(name, what) for name, what in told
                if what != "unsure" and (what == "wrote") != (name in there)]

    def faults(self, names, lost_since=()):
        """`lost_since`: names of writes that were done, and that the servers have lost since."""
        unsafe = (self.overlaps() + self.tokens_out_of_order() + self.stale_writes(names)
                  + [f"{name}: {what}, which is not so"
                     for name, what in self.untrue_writes(names) if name not in lost_since])
        return [f"SAFETY VIOLATED: {text}" for text in unsafe] + self.losses_unheard()

    def summary(self, names):
        ends = [("released", sum(h.release is not None for h in self.holds)),
                ("lost", sum(h.release is None and h.heard() is not None for h in self.holds)),
                ("guarded writes", len(names)),
                ("refused", sum(list(h.writes.values()).count("refused") for h in self.holds)),
                ("unknown", sum(list(h.writes.values()).count("unsure") for h in self.holds))]
        told = f"{len(self.holds)} holds: " + ", ".join(f"{n} {what}" for what, n in ends)
        by = collections.Counter(h.name for h in self.holds)
        return told + "\n    by " + ", ".join(f"{name} {n}" for name, n in sorted(by.items()))
