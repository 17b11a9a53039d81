"""The differences that stay, each with its reason: docs/conformance.md lists them too."""
# A message: ["reply", op, xid, zxid, err, body, rest] or ["event", ...].
OP, ZXID, ERR, BODY, REST = 1, 3, 4, 5, 6


def is_reply(a, b):
    return a[0] == "reply" and b[0] == "reply" and a[OP] == b[OP]


def null_path_in_multi(step, a, b):
    """Apache 3.8 takes a zxid for it that it never logs: a gap, on which 3.9.4 would not start."""
    return is_reply(a, b) and a[OP] == "multi" and a[ERR] == b[ERR] == -5


def check_of_no_path(step, a, b):
    """checkWatches in 3.8 cannot do with a path that does not begin with a slash."""
    return is_reply(a, b) and a[OP] == "checkWatches" and a[ERR] == -5


def error_of_a_damaged_request(step, a, b):
    """Which error a damaged request gets: the fault that is seen first."""
    return (step.what == "frame" and is_reply(a, b) and a[ERR] != 0 and b[ERR] != 0 and
            a[:ERR] == b[:ERR])


def check_below_recursive(step, a, b):
    """checkWatches is about the path alone since 3.9; in 3.8 also about recursive watches above."""
    return is_reply(a, b) and a[OP] == "checkWatches" and (a[ERR], b[ERR]) == (0, -121)


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


def timeout_of_the_beginning(a, b):
    """A session that comes back gets no longer timeout than the disk knows."""
    x, y = a[0], b[0]
    return x[0] == y[0] and x[1] > y[1] and x[2:] == y[2:] and a[1] == b[1]


RULES = [order_of_users, null_path_in_multi, results_behind_an_error, echo_of_no_text,
         exists_needs_read, check_below_recursive, check_of_no_path, error_of_a_damaged_request]


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


def accept(step, a, b):
    """The names of the rules that explain every difference of a step; empty: not all are."""
    if step.what == "resume" and isinstance(a[0], list) and timeout_of_the_beginning(a, b):
        return [timeout_of_the_beginning.__doc__]
    if step.what not in ("send", "frame") or not isinstance(a[0], list):
        return []
    names = []
    for x, y in pairs(a, b) or [(None, None)]:
        rule = x and next((r for r in RULES if r(step, x, y)), None)
        if not rule:
            return []
        names.append(" ".join(rule.__doc__.split()))
    return names
