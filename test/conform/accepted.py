"""The differences that stay, each with its reason: docs/evidence/conformance.md lists them too."""
# A message: ["reply", op, xid, zxid, err, body, rest] or ["event", ...].
OP, ZXID, ERR, BODY, REST = 1, 3, 4, 5, 6


def before(*version):
    """Of Apache before this version only."""
    def mark(rule):
        rule.before = version
        return rule
    return mark


def since(*version):
    def mark(rule):
        rule.since = version
        return rule
    return mark


def holds(rule, version):
    return getattr(rule, "since", (0,)) <= version < getattr(rule, "before", (99,))


def is_reply(a, b):
    return a[0] == "reply" and b[0] == "reply" and a[OP] == b[OP]


@before(3, 9, 4)
def null_path_in_multi(step, a, b):
    """Apache takes a zxid for it that it never logs: a gap, on which 3.9.4 would not start."""
    return is_reply(a, b) and a[OP] == "multi" and a[ERR] == b[ERR] == -5


@since(3, 9)
def damage_takes_no_zxid(step, a, b):
    """A damaged write: 3.9 sees it before it takes a zxid, others and clave after it."""
    return (step.what == "frame" and is_reply(a, b) and a[ERR] == b[ERR] == -5 and
            a[ZXID] == b[ZXID] - 1)


damage_takes_no_zxid.ends = True  # all zxids after it differ


def check_of_null(step, a, b):
    """checkWatches of a path that is null: no watcher in 3.5 and 3.9, as of any path without one."""
    return is_reply(a, b) and a[OP] == "checkWatches" and (a[ERR], b[ERR]) == (-121, -5)


@before(3, 6)
def access_list_of_null(step, a, b):
    """An access list that is null: INVALIDACL since 3.6."""
    return is_reply(a, b) and (a[ERR], b[ERR]) == (-5, -114)


@before(3, 6)
def delete_of_nothing(step, a, b):
    """Up to 3.5 whether the node is there is asked before whether one may delete it."""
    return is_reply(a, b) and a[OP] == "delete" and (a[ERR], b[ERR]) == (-101, -102)


@before(3, 9)
def check_of_no_path(step, a, b):
    """checkWatches cannot do with a path that does not begin with a slash, from 3.6 to 3.8."""
    return is_reply(a, b) and a[OP] == "checkWatches" and a[ERR] == -5


def error_of_a_damaged_request(step, a, b):
    """Which error a damaged request gets: the fault that is seen first."""
    return (step.what == "frame" and is_reply(a, b) and a[ERR] != 0 and b[ERR] != 0 and
            a[:ERR] == b[:ERR])


@before(3, 9)
def check_below_recursive(step, a, b):
    """checkWatches is about the path alone since 3.9; before also about recursive watches above."""
    return is_reply(a, b) and a[OP] == "checkWatches" and (a[ERR], b[ERR]) == (0, -121)


@before(3, 9, 2)
def exists_needs_read(step, a, b):
    """exists needs READ since 3.8.4 and 3.9.2 (ZOOKEEPER-2590)."""
    return is_reply(a, b) and a[OP] == "exists" and (a[ERR], b[ERR]) == (0, -102)


def results_behind_an_error(step, a, b):
    """Apache lets an empty list of results follow an error: no client reads it."""
    return is_reply(a, b) and a[ERR] == b[ERR] != 0 and a[:REST] == b[:REST] and b[REST] == 0


def echo_of_no_text(step, a, b):
    """sync echoes its path: clave as it came, Java as its own encoding has it."""
    if not (is_reply(a, b) and a[OP] == "sync" and isinstance(b[BODY], str)):
        return False
    return [c for c in a[BODY] if c.isascii()] == [c for c in b[BODY] if c.isascii()]


def order_of_users(step, a, b):
    """The order of the entries that "auth" stands for, where a connection has several users."""
    return (is_reply(a, b) and a[OP] == "getACL" and a[ERR] == b[ERR] == 0 and
            sorted(a[BODY][0]) == sorted(b[BODY][0]) and a[BODY][1:] == b[BODY][1:])


def shorter_beyond_a_limit(step, a, b):
    """Data that become shorter and still exceed a hard limit of bytes: clave accepts them."""
    return is_reply(a, b) and a[OP] == "setData" and (a[ERR], b[ERR]) == (-125, 0)


shorter_beyond_a_limit.ends = True  # the node has other data


def sasl(step, a, b):
    """Apache without JAAS sends no token and no error, and kazoo begins again until its session ends."""
    return is_reply(a, b) and a[OP] == "sasl" and (a[ERR], b[ERR]) == (0, -115)


def timeout_of_the_beginning(a, b):
    """A session that comes back gets no longer timeout than the disk knows."""
    x, y = a[0], b[0]
    return x[0] == y[0] and x[1] > y[1] and x[2:] == y[2:] and a[1] == b[1]


RULES = [order_of_users, null_path_in_multi, damage_takes_no_zxid, check_of_null,
         access_list_of_null, delete_of_nothing, results_behind_an_error, echo_of_no_text,
         exists_needs_read, check_below_recursive, check_of_no_path, error_of_a_damaged_request,
         shorter_beyond_a_limit, sasl]


def pairs(a, b):
    """The messages at the same places; None when they are not as many."""
    if len(a[0]) != len(b[0]) or sorted(a[1]) != sorted(b[1]):
        return None
    out = list(zip(a[0], b[0]))
    for n in a[1]:
        if len(a[1][n]) != len(b[1][n]):
            return None
        out += zip(a[1][n], b[1][n])
    return [(x, y) for x, y in out if x != y]


def accept(step, a, b, version):
    """The rules that explain every difference of a step from Apache's version; empty: not all are."""
    if step.what == "resume" and isinstance(a[0], list) and timeout_of_the_beginning(a, b):
        return [timeout_of_the_beginning]
    if step.what not in ("send", "frame") or not isinstance(a[0], list):
        return []
    rules = [r for r in RULES if holds(r, version)]
    found = []
    for x, y in pairs(a, b) or [(None, None)]:
        rule = x and next((r for r in rules if r(step, x, y)), None)
        if not rule:
            return []
        found.append(rule)
    return found
