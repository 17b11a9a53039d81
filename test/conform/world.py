"""One sequence of requests on one server: several sessions, one step after the other, and a
transcript of all that came back, made comparable: zxids count from the sequence's beginning, times
say only whether they agree with their zxids, sessions have numbers."""
import time

import wire


class Step:
    """What a session does: open, resume, drop, send requests, close."""

    def __init__(self, what, session, *details):
        self.what, self.session, self.details = what, session, details

    def __repr__(self):
        shown = [[(wire.NAMES.get(op, op), body) for op, body in d]
                 if isinstance(d, list) and all(isinstance(r, tuple) for r in d) else d
                 for d in self.details]
        return f"{self.what}({self.session}, {', '.join(map(repr, shown))})"


class Session:
    def __init__(self):
        self.connection = None
        self.id, self.passwd = 0, b"\0" * 16


class World:
    """The sessions of one sequence on the server at a port."""

    def __init__(self, port, base, events_have_zxids):
        self.port, self.base, self.events_have_zxids = port, base, events_have_zxids
        self.sessions = {}

    # ---- what is comparable ------------------------------------------------------------------

    def zxid(self, z):
        return z - self.base if z > self.base else min(z, 0) or "old"

    def owner(self, sid):
        if sid == 0:
            return 0
        return next((f"session {n}" for n, s in self.sessions.items() if s.id == sid), "another")

    def plain(self, value):
        if isinstance(value, dict) and "czxid" in value:
            st = dict(value)
            born, changed = st.pop("ctime"), st.pop("mtime")
            st["times"] = born == changed or (st["czxid"] != st["mzxid"] and born < changed)
            st["ephemeralOwner"] = self.owner(st["ephemeralOwner"])
            for name in ("czxid", "mzxid", "pzxid"):
                st[name] = self.zxid(st[name])
            return st
        if isinstance(value, (list, tuple)):
            return [self.plain(v) for v in value]
        return value

    def message(self, m):
        if m[0] == "event":
            return list(m[:-1]) + ([self.zxid(m[-1])] if self.events_have_zxids else [])
        kind, op, xid, zxid, err, body, rest = m
        return [kind, op, xid, self.zxid(zxid), err, self.plain(body), rest]

    # ---- what comes --------------------------------------------------------------------------

    def listen(self, s):
        """All messages up to the last reply that is due."""
        out = []
        c = s.connection
        try:
            while c.waiting:
                out.append(self.message(c.message()))
        except wire.Closed:
            out.append(["closed"])
            self.hang_up(s)
        except (TimeoutError, ValueError) as e:
            out.append(["nothing more", str(e)])
            self.hang_up(s)
        return out

    def hang_up(self, s):
        if s.connection:
            s.connection.close()
        s.connection = None

    def hear_others(self, but):
        """A ping to every other session: what stands before its answer came with this step."""
        out = {}
        others = [(n, s) for n, s in self.sessions.items() if n != but and s.connection]
        for _, s in others:
            s.connection.send_frame(s.connection.request(wire.PING, b""))
        for n, s in others:
            heard = self.listen(s)
            if heard[-1][0] == "reply":
                heard[-1] = heard[-1][:3] + heard[-1][4:]  # whose write its zxid shows is chance
            out[n] = heard
        return out

    # ---- what is done ------------------------------------------------------------------------

    def shake(self, s, again, **details):
        s.connection = wire.Connection(self.port)
        try:
            answer = s.connection.shake(**details)
        except wire.Closed:
            self.hang_up(s)
            return ["closed"]
        told = [answer["version"], answer["timeout"], answer["tail"]]
        if again:
            told += [answer["session"] == s.id, answer["passwd"] == s.passwd]
        else:
            s.id, s.passwd = answer["session"], answer["passwd"]
            told += [s.id != 0, len(s.passwd)]
        if answer["session"] == 0:
            told.append(self.listen_to_the_end(s))
        return told

    def listen_to_the_end(self, s):
        s.connection.waiting.append((0, 0))
        return self.listen(s)

    def open(self, s, timeout=30000, tail=b"\0"):
        return self.shake(s, False, timeout=timeout, tail=tail)

    def resume(self, s, timeout=30000, ahead=None):
        seen = 0 if ahead is None else self.base + ahead
        old = s.connection
        told = self.shake(s, True, session=s.id, passwd=s.passwd, timeout=timeout, seen=seen)
        if old:  # the server has to close it, but for a client it does not look at
            old.socket.settimeout(0.2 if told == ["closed"] else wire.PATIENCE)
            old.waiting.append((0, 0))
            try:
                while True:
                    old.message()
            except (wire.Closed, TimeoutError) as e:
                told.append(type(e).__name__)
            old.close()
        return told

    def stranger(self, s):
        """With the id and a wrong password: refused, and the session stays."""
        other = Session()
        other.id, other.passwd = s.id, b"\1" * 16
        return self.shake(other, True, session=s.id, passwd=other.passwd)

    def drop(self, s):
        self.hang_up(s)

    def send(self, s, requests):
        """All in one write; then all that comes until the last reply."""
        c = s.connection
        frames = [c.request(op, body) for op, body in requests]
        raw = b"".join(wire.i32(len(f)) + f for f in frames)
        try:
            c.socket.sendall(raw)
        except OSError:
            pass
        return self.listen(s)

    def frame(self, s, op, raw):
        """A request whose body is no good: its header, and whatever comes."""
        c = s.connection
        c.send_frame(c.request(op, b"") + raw)
        return self.listen(s)

    def catch_up(self, s, op, since, lists):
        body = wire.i64(self.base + since) + b"".join(wire.texts(paths) for paths in lists)
        return self.send(s, [(op, body)])

    def expire(self, s, count):
        """Waits for so many events of somebody else's session that has ended by itself, in the
        order in which nodes go: none."""
        told = []
        begin = time.monotonic()
        while len(told) < count:
            told.append(self.message(s.connection.message()))
        lasted = time.monotonic() - begin
        return sorted(told, key=repr) + ["in time" if 1 < lasted < 9 else lasted]

    def close(self, s):
        told = self.send(s, [(wire.CLOSE, b"")])
        if s.connection:
            told += self.listen_to_the_end(s)
        return told

    def run(self, steps):
        """The transcript: what each step gave to its session and to the others."""
        out = []
        for step in steps:
            s = self.sessions.setdefault(step.session, Session())
            if s.connection is None and step.what not in ("open", "resume", "stranger"):
                out.append(["no connection", {}])
                continue
            told = getattr(self, step.what)(s, *step.details)
            heard = self.hear_others(step.session)
            if step.what in ("close", "expire"):  # its nodes go in no particular order
                heard = {n: sorted(m, key=repr) for n, m in heard.items()}
                events = sum(m[0] == "event" for m in told)  # before the answer, all of them
                told[:events] = sorted(told[:events], key=repr)
            out.append([told, heard])
        self.end()
        return out

    def end(self):
        for s in self.sessions.values():
            if s.connection is None and s.id:
                try:
                    self.resume(s)
                except OSError:
                    continue
            if s.connection:
                self.close(s)
            self.hang_up(s)
