"""Sequences written by hand: the traps, each by itself. {} in a path stands for the sequence's own
top node."""
import wire as w
from accepted import since
from world import Step

BOB = [(31, "digest", "bob:ikIaKsbtGweaHnb/jKn7OHqbunM=")]
MODES = range(-1, 8)


def do(session, *requests):
    return Step("send", session, [(op, body) for op, body in requests])


def opened(*steps, sessions=1):
    return [Step("open", n) for n in range(sessions)] + list(steps)


def paths(top):
    """Of every illegal kind, and some that only look so."""
    return [None, "", "/", "x", top + "/", top + "//x", top + "/.", top + "/..", top + "/./x",
            top + "/a/../x", top + "/...", top + "/.x", top + "/x.", top + "/a b", "//",
            top + "/\0", top + "/a\0b", top + "/\x01", top + "/\x1f", top + "/\x7f",
            top + "/\x9f", top + "/\xa0", top + "/\ud800", top + "/\ue000", top + "/\uf8ff",
            top + "/\uf900", top + "/\uffef", top + "/\ufff0", top + "/\U0001f600", top + "/ü€",
            top + "/none/x", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"]


def creates(top):
    steps = []
    for op in (w.CREATE, w.CREATE2, w.CONTAINER):
        steps += [do(0, (op, w.create(f"{top}/m{op}-{m}-", b"x", m))) for m in MODES]
    for ttl in (-1, 0, 1, 100000000, 0xffffffffff, 0x10000000000):
        steps += [do(0, (w.CREATE_TTL, w.create(f"{top}/t{m}-{ttl}-", b"x", m, ttl=ttl)))
                  for m in MODES if not (ttl < 0 and m not in (5, 6))]
    steps += [do(0, (w.CREATE2, w.create(f"{top}/null", None))),
              do(0, (w.GET, w.read(f"{top}/null"))), do(0, (w.CHILDREN2, w.read(top)))]
    return opened(*steps)


def creates_of_any_path(top):
    return opened(*[do(0, (op, w.create(p, b"", flags))) for p in paths(top)
                    for op, flags in ((w.CREATE, 0), (w.CREATE2, 2)) if p != "/zookeeper"])


def other_requests_of_any_path(top):
    steps = []
    for p in paths(top):
        steps += [do(0, (op, w.read(p))) for op in (w.EXISTS, w.GET, w.CHILDREN, w.CHILDREN2)
                  if p not in ("", "/")]
        steps += [do(0, (op, w.text(p))) for op in (w.GET_ACL, w.SYNC, w.EPHEMERALS)]
        steps += [do(0, (w.DELETE, w.versioned(p, 77)))]
        if p != "/zookeeper/config":
            steps += [do(0, (w.SET, w.set_data(p, b"", 77))),
                      do(0, (w.SET_ACL, w.set_acl(p, w.OPEN_ACL, 77)))]
        if p:  # 3.8 takes null too, and hangs at the next event
            steps += [do(0, (w.ADD_WATCH, w.versioned(p, 0)))]
        if p != "":  # a path of its own in Apache, where no event ever happens
            steps += [do(0, (w.CHECK_WATCHES, w.versioned(p, 3))),
                      do(0, (w.REMOVE_WATCHES, w.versioned(p, 3)))]
    return opened(*steps)


def parents(top):
    return opened(
        do(0, (w.CREATE, w.create(f"{top}/e", b"", 1)), (w.CREATE, w.create(f"{top}/e/x"))),
        do(0, (w.CREATE, w.create(f"{top}/e/e", b"", 1))),
        do(0, (w.CONTAINER, w.create(f"{top}/c", b"", 4)), (w.CREATE, w.create(f"{top}/c/x"))),
        do(0, (w.CREATE_TTL, w.create(f"{top}/t", b"", 5, ttl=10 ** 7)),
           (w.CREATE, w.create(f"{top}/t/x"))),
        do(0, (w.DELETE, w.versioned(f"{top}/t")), (w.DELETE, w.versioned(f"{top}/none/x"))),
        do(0, (w.DELETE, w.versioned(f"{top}/t/x")), (w.DELETE, w.versioned(f"{top}/t", 1)),
           (w.DELETE, w.versioned(f"{top}/t", 0))),
        do(0, (w.EXISTS, w.read(top)), (w.CHILDREN2, w.read(top)),
           (w.ALL_CHILDREN, w.text(top)), (w.EPHEMERALS, w.text(top))))


def versions(top):
    p = f"{top}/v"
    steps = [do(0, (w.CREATE, w.create(p)))]
    for v in (-2, -1, 0, 1, 5, 2, 2 ** 31 - 1, -2 ** 31):
        steps += [do(0, (w.SET, w.set_data(p, b"x", v))),
                  do(0, (w.SET_ACL, w.set_acl(p, w.OPEN_ACL, v))),
                  do(0, (w.DELETE, w.versioned(p, 1000 + v if v < 2 ** 30 else v)))]
    return opened(*steps)


def sequences(top):
    p = f"{top}/s"
    steps = [do(0, (w.CREATE, w.create(p)))]
    for name in ("a-", "", "b-", "c/"):
        steps += [do(0, (w.CREATE, w.create(f"{p}/{name}", b"", m))) for m in (2, 3, 2)]
    steps += [do(0, (w.DELETE, w.versioned(f"{p}/a-0000000000"))),
              do(0, (w.CREATE2, w.create(f"{p}/a-", b"", 2))),
              do(0, (w.CREATE_TTL, w.create(f"{p}/t-", b"", 6, ttl=10 ** 7))),
              do(0, (w.MULTI, w.multi([(w.CREATE, w.create(f"{p}/m-", b"", 2)),
                                       (w.CREATE, w.create(f"{p}/m-", b"", 2)),
                                       (w.DELETE, w.versioned(f"{p}/none"))]))),
              do(0, (w.CREATE2, w.create(f"{p}/after-", b"", 2))), do(0, (w.CHILDREN2, w.read(p)))]
    return opened(*steps)


def access_lists(top):
    lists = [None, [], [(31, "world", "anyone")] * 2, [(31, "world", "nobody")],
             [(31, "auth", "")], [(31, "digest", "x")], [(31, "digest", "x:y")],
             [(31, "digest", "x:y:z")], [(31, "digest", ":y")], [(31, "digest", "x:")],
             [(31, "ip", "127.0.0.1")], [(31, "ip", "127.0.0.1/8")], [(31, "ip", "127.0.0.1/33")],
             [(31, "ip", "127.0.0.1/-1")], [(31, "ip", "127.0.0")], [(31, "ip", "")],
             [(31, "ip", "256.0.0.1")], [(31, "ip", "1.2.3.4/0")], [(31, "none", "x")],
             [(31, "super", "")], [(0, "world", "anyone")], [(255, "world", "anyone")],
             [(1, "world", "anyone"), (16, "ip", "127.0.0.0/24"), (1, "world", "anyone")]]
    steps = []
    for user in (None, b"bob:pw"):
        if user:
            steps.append(do(0, (w.AUTH, w.auth("digest", user))))
        for i, acl in enumerate(lists):
            p = f"{top}/{'u' if user else 'n'}{i}"
            steps += [do(0, (w.CREATE, w.create(p, b"", 0, acl))), do(0, (w.GET_ACL, w.text(p))),
                      do(0, (w.SET, w.set_data(p, b"1"))), do(0, (w.GET, w.read(p))),
                      do(0, (w.SET_ACL, w.set_acl(p, acl))), do(0, (w.GET_ACL, w.text(p))),
                      do(0, (w.DELETE, w.versioned(p)))]
    return opened(*steps)


def users(top):
    p = f"{top}/bobs"
    look = [do(n, (w.GET, w.read(p)), (w.SET, w.set_data(p, b"x")), (w.GET_ACL, w.text(p)),
               (w.CHILDREN, w.read(p)), (w.ALL_CHILDREN, w.text(p)),
               (w.MULTI, w.multi([(w.CHECK, w.versioned(p))])), (w.WHO, b"")) for n in range(3)]
    return opened(
        do(0, (w.WHO, b"")), do(0, (w.AUTH, w.auth("digest", b"bob:pw")), (w.WHO, b"")),
        do(0, (w.CREATE, w.create(p, b"", 0, [(31, "auth", "")])), (w.GET_ACL, w.text(p))),
        *look, do(1, (w.AUTH, w.auth("digest", b"super:test"))),
        do(2, (w.AUTH, w.auth("digest", b"joe:x")), (w.AUTH, w.auth("ip", b""))), *look,
        do(1, (w.CREATE, w.create(f"{p}/x", b"", 0, [(31, "auth", "")]))),
        do(1, (w.GET_ACL, w.text(f"{p}/x"))), do(2, (w.GET_ACL, w.text(f"{p}/x"))), sessions=3)


def refused_users(top):
    return [s for n, (scheme, secret) in enumerate(
        [("digest", b""), ("none", b"x"), ("world", b"anyone"), ("auth", b"x"),
         ("digest", b"nocolon"), ("digest", b"a:b:c"), ("super", b"super:test"), ("ip", b"1.2.3.4")])
        for s in (Step("open", n), do(n, (w.AUTH, w.auth(scheme, secret))), do(n, (w.WHO, b"")),
                  do(n, (w.CREATE, w.create(f"{top}/x{n}", b"", 0, [(31, "auth", "")]))))]


def multis(top):
    a, b = f"{top}/a", f"{top}/a/b"
    sets = [
        [], [(w.CREATE, w.create(a)), (w.CREATE, w.create(b)), (w.SET, w.set_data(a, b"1")),
             (w.DELETE, w.versioned(b)), (w.CHECK, w.versioned(a, 1))],
        [(w.CREATE, w.create(b)), (w.DELETE, w.versioned(a)), (w.CREATE, w.create(f"{top}/z"))],
        [(w.CHECK, w.versioned(a, 7)), (w.SET, w.set_data(a, b"x"))],
        [(w.CHECK, w.versioned(a, -1)), (w.SET, w.set_data(a, b"x", 1)),
         (w.SET, w.set_data(a, b"y", 2)), (w.DELETE, w.versioned(a, 3)), (w.CREATE, w.create(a))],
        [(w.SET_ACL, w.set_acl(a, w.OPEN_ACL))], [(w.GET, w.read(a))],
        [(w.EXISTS, w.read(a)), (w.CREATE, w.create(f"{top}/q"))],
        [(w.CREATE, w.create(f"{top}/e", b"", 1)), (w.CREATE, w.create(f"{top}/e/x"))],
        [(w.CREATE, w.create(f"{top}/e", b"", 1)), (w.CREATE, w.create(f"{top}/bad\0"))],
        [(w.CREATE, w.create(f"{top}/acl", b"", 0, []))],
        [(w.DELETE, w.versioned(top))], [(w.CREATE, w.create(None))],
        [(w.CONTAINER, w.create(f"{top}/c", b"", 4)),
         (w.CREATE_TTL, w.create(f"{top}/t", b"", 5, ttl=10 ** 7))],
    ]
    reads = [[], [(w.GET, w.read(a)), (w.CHILDREN, w.read(top)), (w.GET, w.read(f"{top}/none"))],
             [(w.CHILDREN, w.read(f"{top}/none"))], [(w.EXISTS, w.read(a))],
             [(w.GET, w.read(a, True))], [(w.DELETE, w.versioned(a))]]
    steps = [do(0, (w.MULTI, w.multi(ops))) for ops in sets]
    steps += [do(0, (w.MULTI_READ, w.multi(ops))) for ops in reads]
    return opened(*steps, do(0, (w.CHILDREN2, w.read(top)), (w.EXISTS, w.read(a))))


def all_watches_of_a_node(top):
    p = f"{top}/n"
    arm = do(0, (w.GET, w.read(p, True)), (w.EXISTS, w.read(p, True)),
             (w.CHILDREN, w.read(p, True)), (w.CHILDREN2, w.read(top, True)))
    return opened(
        arm, do(1, (w.CREATE, w.create(p))), arm, do(1, (w.SET, w.set_data(p, b"x"))),
        arm, do(1, (w.CREATE, w.create(f"{p}/x"))), arm,
        do(1, (w.SET_ACL, w.set_acl(p, w.OPEN_ACL))), do(1, (w.DELETE, w.versioned(f"{p}/x"))),
        arm, do(1, (w.DELETE, w.versioned(p))), arm, do(0, (w.CREATE, w.create(p))), arm,
        do(0, (w.SET, w.set_data(p, b"")), (w.DELETE, w.versioned(p))), sessions=2)


def persistent_watches(top):
    p, q = f"{top}/p", f"{top}/p/q"
    life = [do(2, (w.CREATE, w.create(p))), do(2, (w.SET, w.set_data(p, b"1"))),
            do(2, (w.CREATE, w.create(q))), do(2, (w.CREATE, w.create(f"{q}/r"))),
            do(2, (w.SET, w.set_data(f"{q}/r", b""))), do(2, (w.DELETE, w.versioned(f"{q}/r"))),
            do(2, (w.DELETE, w.versioned(q))), do(2, (w.DELETE, w.versioned(p)))]
    return opened(
        do(0, (w.ADD_WATCH, w.versioned(p, 0))), do(1, (w.ADD_WATCH, w.versioned(p, 1))), *life,
        do(1, (w.ADD_WATCH, w.versioned(top, 1)), (w.ADD_WATCH, w.versioned("/", 1))), *life,
        do(0, (w.ADD_WATCH, w.versioned(p, 2)), (w.ADD_WATCH, w.versioned(p, -1))),
        do(0, (w.CHECK_WATCHES, w.versioned(p, 3)), (w.CHECK_WATCHES, w.versioned(q, 3))),
        do(1, (w.CHECK_WATCHES, w.versioned("/", 3)), (w.REMOVE_WATCHES, w.versioned("/", 3)),
           (w.REMOVE_WATCHES, w.versioned("/", 3)), (w.REMOVE_WATCHES, w.versioned(top, 3))),
        do(0, (w.REMOVE_WATCHES, w.versioned(p, 3)), (w.CHECK_WATCHES, w.versioned(p, 3))),
        *life, sessions=3)


def removed_watches(top):
    p = f"{top}/n"
    kinds = [(w.GET, 2), (w.EXISTS, 2), (w.CHILDREN, 1), (w.GET, 3), (w.CHILDREN, 3), (w.GET, 1),
             (w.CHILDREN, 2), (w.GET, 0), (w.GET, 6), (w.GET, -1)]
    steps = [do(0, (w.CREATE, w.create(p)))]
    for op, kind in kinds:
        steps += [do(0, (op, w.read(p, True)), (w.CHECK_WATCHES, w.versioned(p, kind)),
                     (w.REMOVE_WATCHES, w.versioned(p, kind)),
                     (w.REMOVE_WATCHES, w.versioned(p, kind)),
                     (w.CHECK_WATCHES, w.versioned(p, 3))), do(1, (w.SET, w.set_data(p, b""))),
                  do(1, (w.CREATE, w.create(f"{p}/x", b"", 2)))]
    return opened(*steps, sessions=2)


def catching_up(top):
    a, b, c = f"{top}/a", f"{top}/b", f"{top}/c"
    steps = [do(1, (w.CREATE, w.create(a)), (w.CREATE, w.create(b)), (w.CREATE, w.create(f"{a}/x")),
                (w.SET, w.set_data(b, b"x")))]
    for since in (0, 3, 4, 5, 6, 1000):
        for op in (w.SET_WATCHES, w.SET_WATCHES2):
            lists = [[a, b, c, ""], [a, c], [a, b, c, "/"]] + [[a, c], [b]][:2 * (op - 101)]
            steps += [Step("drop", 0), Step("resume", 0), Step("catch_up", 0, op, since, lists),
                      do(1, (w.SET, w.set_data(a, b""))), do(1, (w.CREATE, w.create(c))),
                      do(1, (w.SET, w.set_data(b, b""))), do(1, (w.DELETE, w.versioned(c)))]
    return opened(*steps, sessions=2)


def sessions(top):
    e = f"{top}/e"
    return opened(
        do(0, (w.CREATE, w.create(e, b"", 1))), do(1, (w.EXISTS, w.read(e, True))),
        Step("resume", 0), do(0, (w.EXISTS, w.read(e))), Step("stranger", 0),
        do(0, (w.EXISTS, w.read(e))), Step("resume", 0), Step("drop", 0), Step("resume", 0, 1),
        Step("resume", 0, 2 ** 31 - 1), Step("resume", 0, -1), Step("resume", 0, 30000, -1),
        Step("resume", 0, 30000, 1), Step("resume", 0, 30000, 10000), Step("resume", 0),
        do(0, (w.EPHEMERALS, w.text("")), (w.EPHEMERALS, w.text(None))), Step("close", 0),
        Step("resume", 0), Step("open", 2, 1, b""), Step("open", 3, 0, b"\1more"),
        Step("open", 4, -1), Step("open", 5, 2 ** 31 - 1), do(2, (w.PING, b"")),
        do(2, (w.RECONFIG, w.text("a") + w.text(None) + w.text(None) + w.i64(-1))),
        do(2, (w.SASL, w.text(b""))), sessions=2)


def ends_of_sessions(top):
    steps = []
    for n in range(2, 5):
        steps += [Step("open", n)]
        steps += [do(n, (w.CREATE, w.create(f"{top}/e{n}-", b"", 3))) for _ in range(3)]
        steps += [do(0, (w.CHILDREN, w.read(top, True))), do(1, (w.ADD_WATCH, w.versioned(top, 1))),
                  Step("close", n)]
    return opened(*steps, do(0, (w.CHILDREN2, w.read(top))), sessions=2)


def sessions_that_expire(top):
    """A connection that is gone, and a client that says nothing: 4 s, and up to two ticks."""
    e = f"{top}/e"
    return [Step("open", 0, 1), Step("open", 1), Step("open", 2),
            do(0, (w.CREATE, w.create(e, b"", 1)), (w.CREATE, w.create(f"{top}/s-", b"", 3))),
            do(1, (w.EXISTS, w.read(e, True)), (w.CHILDREN, w.read(top, True))),
            do(2, (w.ADD_WATCH, w.versioned(top, 1))), Step("drop", 0), Step("expire", 1, 2),
            do(1, (w.EXISTS, w.read(e)), (w.CHILDREN2, w.read(top))), Step("resume", 0)]


def what_is_no_request(top):
    return [s for n, op in enumerate([0, 23, 99, 108, 1000, -1, -2, -12, 10])
            for s in (Step("open", n), do(n, (op, w.text(top))))] + [
        Step("open", 20), Step("frame", 20, w.GET, b""), Step("frame", 20, w.EXISTS, b"\0\0"),
        Step("frame", 20, w.ADD_WATCH, w.text(top)), Step("frame", 20, w.SYNC, b""),
        Step("frame", 20, w.GET, w.read(top) + b"more"), Step("frame", 20, w.CHILDREN, w.i32(-2)),
        Step("frame", 20, w.GET_ACL, w.i32(2 ** 31 - 1)), do(20, (w.EXISTS, w.read(top)))]


def quotas(top):
    """How many nodes, how many bytes: the nearest quota counts; without hard limits it is told only."""
    base = f"/zookeeper/quota{top}"
    def look(path=""):
        return do(0, (w.GET, w.read(f"{base}{path}/zookeeper_stats")))
    start = [do(0, (w.SET, w.set_data(top, b"abc"))), do(0, (w.CREATE, w.create(f"{top}/a", b"1"))),
             do(0, (w.CREATE, w.create(base))),
             do(0, (w.CREATE, w.create(f"{base}/zookeeper_limits", b"count=3,bytes=-1"))),
             do(0, (w.CREATE, w.create(f"{base}/zookeeper_stats", b"count=0,bytes=0"))), look()]
    changes = [(w.CREATE, w.create(f"{top}/b", b"12345")), (w.CREATE, w.create(f"{top}/b/c", None)),
               (w.SET, w.set_data(f"{top}/b", b"1234567")), (w.SET, w.set_data(f"{top}/b/c", b"1")),
               (w.SET, w.set_data(f"{top}/a", None)), (w.DELETE, w.versioned(f"{top}/b/c")),
               (w.CREATE, w.create(f"{top}/e", b"12", 1)), (w.CREATE, w.create(f"{top}/none/x")),
               (w.MULTI, w.multi([(w.CREATE, w.create(f"{top}/m", b"1")),
                                  (w.SET, w.set_data(f"{top}/m", b"123")),
                                  (w.CREATE, w.create(f"{top}/m/n", b"4"))])),
               (w.MULTI, w.multi([(w.DELETE, w.versioned(f"{top}/m/n")),
                                  (w.DELETE, w.versioned(f"{top}/m", 77))]))]
    inner = f"{base}/m"
    nested = [do(0, (w.CREATE, w.create(inner))),
              do(0, (w.CREATE, w.create(f"{inner}/zookeeper_limits", b"count=1,bytes=1"))),
              do(0, (w.CREATE, w.create(f"{inner}/zookeeper_stats", b""))), look("/m"),
              do(0, (w.CREATE, w.create(f"{top}/m/o", b"88"))), look("/m"), look(),
              do(0, (w.DELETE, w.versioned(f"{inner}/zookeeper_limits"))),
              do(0, (w.CREATE, w.create(f"{top}/m/p", b"99"))), look("/m"), look()]
    end = [do(0, (w.SET, w.set_data(f"{base}/zookeeper_stats", b"count=9,bytes=9"))),
           do(0, (w.DELETE, w.versioned(f"{top}/m/p"))), look()]
    return opened(*start, *[s for c in changes for s in (do(0, c), look())], *nested, *end)


def system_nodes(top):
    return opened(*[do(0, (op, w.read(p))) for op in (w.EXISTS, w.GET)
                    for p in ("/zookeeper", "/zookeeper/config", "/zookeeper/quota")],
                  do(0, (w.GET_ACL, w.text("/zookeeper/config"))), do(0, (w.GET_ACL, w.text("/"))),
                  do(0, (w.DELETE, w.versioned("/"))), do(0, (w.CREATE, w.create("/"))),
                  do(0, (w.SET, w.set_data("/zookeeper/config", b""))))


SCRIPTS = [creates, creates_of_any_path, other_requests_of_any_path, parents, versions, sequences,
           access_lists, users, refused_users, multis, all_watches_of_a_node, persistent_watches,
           removed_watches, catching_up, sessions, ends_of_sessions, sessions_that_expire,
           what_is_no_request,
           system_nodes, quotas]


# ---- what came later: with the versions that have it, clave is compared too -----------------------

@since(3, 7)
def hard_limits(top):
    """Of nodes and of bytes: reached exactly, exceeded by one, by every request that makes a node or sets
    data, and lowered below what is there."""
    base, a, b, c, d = f"/zookeeper/quota{top}", *(f"{top}/{n}" for n in "abcd")
    limits = f"{base}/zookeeper_limits"
    look = do(0, (w.GET, w.read(f"{base}/zookeeper_stats")))
    start = [do(0, (w.SET, w.set_data(top, b"abc"))), do(0, (w.CREATE, w.create(base))),
             do(0, (w.CREATE, w.create(limits, b"count=-1,bytes=-1=;byteHardLimit=13;countHardLimit=4"))),
             do(0, (w.CREATE, w.create(f"{base}/zookeeper_stats", b"count=0,bytes=0")))]
    changes = [(w.CREATE, w.create(a, None)), (w.CREATE, w.create(b, b"x" * 11)),
               (w.CREATE, w.create(b, b"x" * 10)), (w.SET, w.set_data(b, b"x" * 11)),
               (w.SET, w.set_data(b, b"x" * 11, 77)), (w.SET, w.set_data(a, b"")),
               (w.SET, w.set_data(a, b"1")), (w.SET, w.set_data(a, None)), (w.SET, w.set_data(b, None)),
               (w.SET, w.set_data(b, b"x" * 10)), (w.SET, w.set_data(b, b"y" * 10)),
               (w.CREATE, w.create(b, b"1")), (w.CREATE, w.create(c, b"1")), (w.CREATE, w.create(c, None)),
               *[(w.CREATE, w.create(d, None, flags)) for flags in range(4)],
               (w.CREATE2, w.create(d, None)), (w.CONTAINER, w.create(d, None, 4)),
               (w.CREATE_TTL, w.create(d, None, 5, ttl=100000000)),
               (w.MULTI, w.multi([(w.SET, w.set_data(b, b"1")), (w.CREATE, w.create(d))])),
               (w.MULTI, w.multi([(w.SET, w.set_data(b, b"1")), (w.SET, w.set_data(a, b"x" * 11))])),
               (w.DELETE, w.versioned(c)),
               (w.MULTI, w.multi([(w.CREATE, w.create(d)), (w.CREATE, w.create(f"{d}/e"))])),
               (w.MULTI, w.multi([(w.DELETE, w.versioned(a)), (w.CREATE, w.create(f"{d}"))])),
               (w.MULTI, w.multi([(w.SET, w.set_data(b, None)), (w.SET, w.set_data(top, b"x" * 13))])),
               (w.CREATE, w.create(c, b"", 1))]
    low = [do(0, (w.SET, w.set_data(limits, b"count=-1,bytes=-1=;byteHardLimit=5;countHardLimit=2"))),
           do(0, (w.SET, w.set_data(b, b"z" * 10))), look, do(0, (w.SET, w.set_data(b, b"z" * 11))), look,
           do(0, (w.DELETE, w.versioned(c))), do(0, (w.CREATE, w.create(c, None))), look,
           do(0, (w.SET, w.set_data(b, b"12"))), do(0, (w.SET, w.set_data(b, b"123"))), look,
           do(0, (w.SET, w.set_data(limits, b"count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=0"))),
           do(0, (w.SET, w.set_data(b, b"1"))), look]
    return opened(*start, look, *[s for change in changes for s in (do(0, change), look)], *low)


@since(3, 7)
def shorter_beyond_a_hard_limit(top):
    base, b = f"/zookeeper/quota{top}", f"{top}/b"
    return opened(do(0, (w.CREATE, w.create(b, b"x" * 10))), do(0, (w.CREATE, w.create(base))),
                  do(0, (w.CREATE, w.create(f"{base}/zookeeper_limits",
                                            b"count=-1,bytes=-1=;byteHardLimit=5;countHardLimit=-1"))),
                  do(0, (w.CREATE, w.create(f"{base}/zookeeper_stats", b""))),
                  do(0, (w.SET, w.set_data(b, b"y" * 10))), do(0, (w.SET, w.set_data(b, b"x" * 6))))


@since(3, 8, 2)
def stats_of_a_multi(top):
    a = f"{top}/a"
    return opened(do(0, (w.MULTI, w.multi([(w.CREATE2, w.create(a)), (w.CREATE2, w.create(f"{a}/s-", b"x", 2)),
                                           (w.SET, w.set_data(a, b"1"))]))),
                  do(0, (w.MULTI, w.multi([(w.CREATE2, w.create(f"{top}/b")), (w.CREATE2, w.create(a))]))),
                  do(0, (w.GET, w.read(a)), (w.CHILDREN2, w.read(top))))


@since(3, 9)
def watches_side_by_side(top):
    """Of several modes, on one path and around it; taken away one kind after the other."""
    p, q = f"{top}/p", f"{top}/p/q"
    life = [do(1, (w.CREATE, w.create(p))), do(1, (w.SET, w.set_data(p, b"1"))),
            do(1, (w.CREATE, w.create(q))), do(1, (w.SET, w.set_data(q, b""))),
            do(1, (w.DELETE, w.versioned(q))), do(1, (w.DELETE, w.versioned(p)))]
    one_shot = do(0, (w.EXISTS, w.read(p, True)), (w.EXISTS, w.read(q, True)),
                  (w.CHILDREN, w.read(top, True)))
    steps = [one_shot]
    for path in (p, q, top):
        steps += [do(0, (w.ADD_WATCH, w.versioned(path, mode))) for mode in (0, 1)]
        steps += life + [one_shot]
    for path in (q, p, top):
        for kind in (4, 5, 1, 2, 3, 6, 0, 4):
            steps += [do(0, (w.CHECK_WATCHES, w.versioned(path, kind)),
                         (w.REMOVE_WATCHES, w.versioned(path, kind)),
                         (w.CHECK_WATCHES, w.versioned(path, 3)))] + life + [one_shot]
    return opened(*steps, sessions=2)


@since(3, 9)
def watches_that_come_back(top):
    """One-shot, persistent and recursive on one path, over a lost connection."""
    p, q = f"{top}/p", f"{top}/p/q"
    lists = [[p], [q], [p], [p, q], [p, top]]
    arm = Step("catch_up", 0, w.SET_WATCHES2, 1, lists)
    return opened(do(1, (w.CREATE, w.create(p))), Step("drop", 0), Step("resume", 0), arm,
                  do(1, (w.CREATE, w.create(q))), do(1, (w.SET, w.set_data(q, b""))),
                  do(1, (w.SET, w.set_data(p, b""))), Step("drop", 0), do(1, (w.DELETE, w.versioned(q))),
                  Step("resume", 0), arm, do(1, (w.DELETE, w.versioned(p))), sessions=2)


@since(3, 9, 3)
def check_by_itself(top):
    return opened(do(0, (w.CHECK, w.versioned(top, -1))), do(1, (w.CREATE, w.create(f"{top}/x"))),
                  sessions=2)


@since(3, 9, 2)
def events_one_may_not_read(top):
    """Nothing is said of a node behind an access list, whatever kind of watch is on it."""
    p, q = f"{top}/p", f"{top}/p/q"
    shut = [(31, "digest", "bob:ikIaKsbtGweaHnb/jKn7OHqbunM=")]
    arm = [do(n, (w.EXISTS, w.read(p, True)), (w.CHILDREN, w.read(p, True)), (w.GET, w.read(q, True)))
           for n in (0, 1)]
    watch = [do(n, (w.ADD_WATCH, w.versioned(p, 0)), (w.ADD_WATCH, w.versioned(p, 1)),
                (w.ADD_WATCH, w.versioned(q, 0))) for n in (0, 1)]
    life = [do(2, (w.CREATE, w.create(p))), *arm, do(2, (w.SET_ACL, w.set_acl(p, shut))), *arm,
            do(2, (w.SET, w.set_data(p, b"1"))), *arm, do(2, (w.CREATE, w.create(q))), *arm,
            do(2, (w.SET, w.set_data(q, b"1"))), do(2, (w.SET_ACL, w.set_acl(q, shut))), *arm,
            do(2, (w.SET, w.set_data(q, b"1"))), *arm, do(2, (w.DELETE, w.versioned(q))), *arm,
            do(2, (w.DELETE, w.versioned(p))), *arm]
    return opened(do(1, (w.AUTH, w.auth("digest", b"bob:pw"))),
                  do(2, (w.AUTH, w.auth("digest", b"bob:pw"))), *life, *watch, *life, sessions=3)


@since(3, 9, 5)
def addresses_of_ipv6(top):
    return opened(*[do(0, (w.CREATE, w.create(f"{top}/{n}", b"", 0, [(31, "ip", a)])),
                       (w.GET, w.read(f"{top}/{n}")), (w.GET_ACL, w.text(f"{top}/{n}")))
                    for n, a in enumerate(["::1", "::1/128", "::/0", "::1/129", "fe80::1/64", "1::2::3",
                                           "::ffff:127.0.0.1", "::1/-1", "::1/", ":::", "1:2:3:4:5:6:7:8",
                                           "fe80::1%lo", "[::1]"])])


NEW_SCRIPTS = [hard_limits, shorter_beyond_a_hard_limit, stats_of_a_multi, watches_side_by_side,
               watches_that_come_back, check_by_itself, events_one_may_not_read, addresses_of_ipv6]
