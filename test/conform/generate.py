"""Sequences by chance: a seed makes the same one every time, for one version of Apache's."""
import random

import wire as w
from world import Step

SESSIONS = 3
TREE = ["a", "b", "a/x", "a/y", "b/x", "a/x/1", "a/x/2", "b/x/1"]
KINDS = ["tree", "watch", "access", "multi", "session", "pipeline", "damaged"]
USERS = [b"bob:pw", b"joe:x", b"super:test"]
# A session keeps to one mode of watches before 3.9, where one mode replaces another (see
# conformance.md).
ONE_SHOT, PERSISTENT, RECURSIVE = range(3)


class Generator:
    def __init__(self, seed, top, version):
        self.r = random.Random(seed)
        self.top = top
        self.kind = self.r.choice(KINDS)
        self.mixed = version >= (3, 9)
        self.in_multis = [w.CREATE, w.CREATE, w.CONTAINER]
        if version >= (3, 8, 2):  # before, it was answered as create
            self.in_multis.append(w.CREATE2)
        self.modes = [self.r.choice([ONE_SHOT, ONE_SHOT, PERSISTENT, RECURSIVE])
                      for _ in range(SESSIONS)]

    def mode(self, session):
        """Of the next watch."""
        return self.r.choice(self.modes) if self.mixed else self.modes[session]

    # ---- what requests are about -------------------------------------------------------------

    def path(self):
        if self.r.random() < 0.04 and self.kind != "access":  # lists up there would stay
            return self.r.choice(["", "/", "x", self.top + "/", self.top + "//a", self.top + "/.",
                                  self.top + "/a\0", self.top + "/none/of/them", "/zookeeper"])
        if self.r.random() < 0.06:
            return self.top
        return f"{self.top}/{self.r.choice(TREE)}"

    def data(self):
        return self.r.choice([None, b"", b"x", b"12345678", bytes(300), b"\xff" * 1000])

    def version(self, most=3):
        return self.r.choice([-1, -1, -1, -1, self.r.randrange(most), self.r.randrange(most), -2])

    def acl(self):
        if self.kind != "access":
            return w.OPEN_ACL
        pool = [(31, "world", "anyone"), (1, "world", "anyone"), (31, "auth", ""),
                (31, "digest", "bob:ikIaKsbtGweaHnb/jKn7OHqbunM="), (31, "ip", "127.0.0.0/8"),
                (30, "ip", "10.0.0.1"), (self.r.randrange(32), "world", "anyone"),
                (self.r.randrange(32), "digest", "joe:1"), (31, "world", "x"), (31, "digest", "x")]
        return self.r.choices(pool, k=self.r.choice([1, 1, 1, 2, 3, 0]))

    # ---- requests ----------------------------------------------------------------------------

    def create(self, op=None):
        op = op or self.r.choice([w.CREATE, w.CREATE, w.CREATE2, w.CONTAINER, w.CREATE_TTL])
        p = self.path()
        if op == w.CREATE_TTL:
            mode = self.r.choice([5, 5, 6])
            return op, w.create(p, self.data(), mode, self.acl(), self.r.choice([10 ** 8, 10 ** 9]))
        mode = 4 if op == w.CONTAINER else self.r.choice([0, 0, 0, 0, 1, 2, 3])
        return op, w.create(p, self.data(), mode, self.acl())

    def write(self):
        pick = self.r.random()
        if pick < 0.45:
            return self.create()
        if pick < 0.65:
            return w.SET, w.set_data(self.path(), self.data(), self.version())
        if pick < 0.9:
            return w.DELETE, w.versioned(self.path(), self.version())
        return w.SET_ACL, w.set_acl(self.path(), self.acl(), self.version())

    def read(self, watch=False):
        op = self.r.choice([w.EXISTS, w.GET, w.CHILDREN, w.CHILDREN2, w.GET_ACL, w.ALL_CHILDREN,
                            w.EPHEMERALS, w.SYNC])
        if op in (w.GET_ACL, w.ALL_CHILDREN, w.EPHEMERALS, w.SYNC):
            p = self.path()
            return op, w.text(self.top if op == w.ALL_CHILDREN and p in ("", "/") else p)
        p = self.path()
        return op, w.read(self.top if p in ("", "/") else p, watch)

    def watch(self, session):
        mode, p = self.mode(session), self.path()
        p = p if p.startswith(self.top) else self.top
        pick = self.r.random()
        if pick < 0.12:
            return self.r.choice([w.CHECK_WATCHES, w.REMOVE_WATCHES]), w.versioned(
                p, self.r.choice([1, 2, 3, 4, 5] if self.mixed else
                                 [1, 2, 3] if mode == ONE_SHOT else [3]))
        if mode != ONE_SHOT:
            return w.ADD_WATCH, w.versioned(p, mode - 1)
        return self.r.choice([w.EXISTS, w.GET, w.CHILDREN, w.CHILDREN2]), w.read(p, True)

    def multi(self):
        if self.r.random() < 0.25:
            ops = [(self.r.choice([w.GET, w.CHILDREN]), w.read(self.path() or self.top))
                   for _ in range(self.r.randrange(6))]
            return w.MULTI_READ, w.multi([o for o in ops if o[1] != w.read("/")])
        ops = []
        for _ in range(self.r.choice([0, 1, 2, 2, 3, 4, 6])):
            pick = self.r.random()
            if pick < 0.4:
                ops.append(self.create(self.r.choice(self.in_multis)))
            elif pick < 0.6:
                ops.append((w.SET, w.set_data(self.path(), self.data(), self.version())))
            elif pick < 0.8:
                ops.append((w.DELETE, w.versioned(self.path(), self.version())))
            else:
                ops.append((w.CHECK, w.versioned(self.path(), self.version())))
        return w.MULTI, w.multi(ops)

    def request(self, session):
        """One that suits the kind of the sequence."""
        pick = self.r.random()
        if self.kind in ("watch", "session", "pipeline") and pick < 0.35:
            return self.watch(session)
        if self.kind in ("multi", "pipeline") and pick > 0.5:
            return self.multi()
        if self.kind == "access" and pick < 0.12:
            return w.AUTH, w.auth("digest", self.r.choice(USERS))
        if self.kind == "access" and pick < 0.18:
            return w.WHO, b""
        return self.read() if pick > 0.8 else self.write()

    def damaged(self, session):
        """A request cut short, grown, or with a byte changed. Not createTTL, and no null path in
        a multi or a persistent watch: Apache 3.8 would not get over those."""
        op, body = self.write() if self.r.random() < 0.6 else self.read()
        if op in (w.CREATE_TTL, w.ALL_CHILDREN):  # of "/" it counts what others have left
            op, body = w.CREATE, w.create(self.path())
        raw = bytearray(body)
        pick = self.r.random()
        if pick < 0.4:
            raw = raw[:self.r.randrange(len(raw) + 1)]
        elif pick < 0.6:
            raw += self.r.randbytes(self.r.randrange(1, 9))
        else:
            raw[self.r.randrange(len(raw))] = self.r.choice([0, 1, 0x7f, 0x80, 0xff, 0x2f])
        return Step("frame", session, op, bytes(raw))

    # ---- steps -------------------------------------------------------------------------------

    def turn(self, session):
        """A session goes away, comes back, or ends."""
        pick = self.r.random()
        if pick < 0.3:
            return [Step("drop", session), Step("resume", session), self.again(session)]
        if pick < 0.5:
            return [Step("resume", session), self.again(session)]
        if pick < 0.6:
            return [Step("stranger", session), Step("resume", session)]
        return [Step("close", session), Step("open", session)]

    def again(self, session):
        """setWatches, as a client does it that was away."""
        some = [[f"{self.top}/{n}" for n in self.r.sample(TREE, self.r.randrange(4))]
                for _ in range(3)]
        mode = self.mode(session)
        if mode == ONE_SHOT and self.r.random() < 0.5:
            op, lists = w.SET_WATCHES, some
        elif mode == ONE_SHOT:
            op, lists = w.SET_WATCHES2, some + [[], []]
        elif self.mixed:
            op, lists = w.SET_WATCHES2, some + some[:2]
        else:
            op, lists = w.SET_WATCHES2, [[], [], []] + (
                [some[0], []] if mode == PERSISTENT else [[], some[0]])
        return Step("catch_up", session, op, self.r.randrange(25), lists)

    def steps(self):
        out = [Step("open", n) for n in range(SESSIONS)]
        for name in TREE[:self.r.randrange(6)]:
            out.append(Step("send", 0, [(w.CREATE, w.create(f"{self.top}/{name}", b"", 0))]))
        for _ in range(self.r.randrange(10, 40)):
            session = self.r.randrange(SESSIONS)
            if self.kind == "session" and self.r.random() < 0.2:
                out += self.turn(session)
                continue
            if self.kind == "damaged" and self.r.random() < 0.4:
                out.append(self.damaged(session))
                continue
            many = self.r.randrange(1, 12) if self.kind == "pipeline" else 1
            out.append(Step("send", session, [self.request(session) for _ in range(many)]))
        out.append(Step("send", 0, [(w.CHILDREN2, w.read(self.top))] + [
            (w.GET, w.read(f"{self.top}/{name}")) for name in TREE]))
        return out


def generate(seed, top, version):
    return Generator(seed, top, version).steps()
