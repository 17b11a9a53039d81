"""Reads the files of test/sim/faults and changes sources as they say.

    what: the server expires a session at three quarters of its time
    in: src/server/request/session_tracker.c clave__session_touch
    - session_end_of_tick(t, t->now + s->timeout_ms)
    + t->now + s->timeout_ms * 3 / 4

Each `in:` names a file and a function of it (or a table or another object), and quotes the
piece that changes, which stands there once. Tokens are compared: line breaks, indentation
and comments do not matter. Without a `+` line the piece is taken out."""
import os
import re

TOKEN = re.compile(r"""
    (?P<skipped> \s+ | /\*.*?\*/ | //[^\n]* | ^[ ]*\#(?:\\\n|[^\n])* )
  | (?P<token> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | \.?[0-9][\w.]* | \w+
             | -> | \+\+ | -- | <<= | >>= | << | >> | [-+*/%&|^=!<>]= | && | \|\| | \.\.\. | . )
    """, re.X | re.S | re.M)
OPEN, CLOSE = "([{", ")]}"


class Bad(Exception):
    pass


class Fault:
    """what it breaks, what finds it if no seed does, and [(file, function, old, new)]."""

    def __init__(self, path):
        try:
            with open(path, encoding="utf-8") as f:
                text = f.read()
        except FileNotFoundError:
            raise Bad("there is no such fault") from None
        head, *parts = re.split(r"^in: ", text, flags=re.M)
        lines = re.fullmatch(r"what: (.+)\n(?:survives: (.+)\n)?", head)
        parts = [re.fullmatch(r"(\S+) (\w+)\n((?:- .*\n)+)((?:\+ .*\n)*)", p) for p in parts]
        if not lines or not parts or not all(parts):
            raise Bad("is not in the form of test/sim/fault_file.py: what:, in: FILE FUNCTION, -, +")
        self.what, self.survives = lines.groups()
        self.changes = [(p[1], p[2], quoted(p[3]), quoted(p[4])) for p in parts]

    def apply(self, root):
        """{file: its text with the fault}"""
        changed = {}
        for name, function, old, new in self.changes:
            if name not in changed:
                try:
                    with open(os.path.join(root, name), encoding="utf-8") as f:
                        changed[name] = f.read()
                except FileNotFoundError:
                    raise Bad(f"no longer applies: there is no {name}") from None
            try:
                changed[name] = replace(changed[name], function, old, new)
            except Bad as e:
                raise Bad(f"no longer applies: {name}: {e}") from None
        return changed


def quoted(lines):
    return "\n".join(line[2:] for line in lines.splitlines())


def tokens(text):
    """(token, where it begins, where it ends) of C."""
    return [(m["token"], *m.span()) for m in TOKEN.finditer(text) if m["token"]]


def definitions(found):
    """(name, its first token, the one after its last) of what is defined outside functions."""
    start = depth = 0
    head = None # the number of tokens before the body or the initializer
    for i, (token, _, _) in enumerate(found):
        if depth == 0 and head is None and token in ("{", "="):
            head = i
        depth += (token in OPEN) - (token in CLOSE)
        ends_body = token == "}" and found[head - 1][0] == ")" if head else False
        if depth == 0 and (token == ";" or ends_body):
            if head:
                yield name_of(found[start:head]), start, i + 1
            start, head = i + 1, None


def name_of(head):
    """The last word that is in no brackets."""
    depth = 0
    for token, _, _ in reversed(head):
        depth += (token in CLOSE) - (token in OPEN)
        if depth == 0 and token not in OPEN:
            return token
    return None


def replace(text, function, old, new):
    found = tokens(text)
    places = [(a, b) for name, a, b in definitions(found) if name == function]
    if len(places) != 1:
        raise Bad(f"{function} is defined {len(places)} times")
    start, end = places[0]
    wanted = [t for t, _, _ in tokens(old)]
    words = [t for t, _, _ in found[start:end]]
    at = [i for i in range(len(words)) if words[i:i + len(wanted)] == wanted]
    if len(at) != 1:
        raise Bad(f"{function} has this {len(at)} times: {' '.join(old.split())}")
    first, last = found[start + at[0]], found[start + at[0] + len(wanted) - 1]
    return text[:first[1]] + new + text[last[2]:]
