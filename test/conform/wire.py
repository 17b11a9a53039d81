"""A raw client of the ZooKeeper protocol, of its own and not clave's: requests as bytes, every
message that comes as plain data, nothing hidden, nothing retried."""
import socket
import struct

CREATE, DELETE, EXISTS, GET, SET, GET_ACL, SET_ACL, CHILDREN, SYNC = range(1, 10)
PING, CHILDREN2, CHECK, MULTI, CREATE2, RECONFIG, CHECK_WATCHES, REMOVE_WATCHES = range(11, 19)
CONTAINER, DELETE_CONTAINER, CREATE_TTL, MULTI_READ = range(19, 23)
AUTH, SET_WATCHES, SASL, EPHEMERALS, ALL_CHILDREN, SET_WATCHES2, ADD_WATCH, WHO = range(100, 108)
CLOSE = -11
NAMES = {1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 6: "getACL",
         7: "setACL", 8: "getChildren", 9: "sync", 11: "ping", 12: "getChildren2", 13: "check",
         14: "multi", 15: "create2", 16: "reconfig", 17: "checkWatches", 18: "removeWatches",
         19: "createContainer", 20: "deleteContainer", 21: "createTTL", 22: "multiRead",
         100: "auth", 101: "setWatches", 102: "sasl", 103: "getEphemerals",
         104: "getAllChildrenNumber", 105: "setWatches2", 106: "addWatch", 107: "whoAmI",
         -11: "closeSession"}
# What each of the servers' special xids answers.
XID_EVENT, XID_PING, XID_AUTH, XID_SET_WATCHES = -1, -2, -4, -8
SPECIAL = {PING: XID_PING, AUTH: XID_AUTH, SET_WATCHES: XID_SET_WATCHES,
           SET_WATCHES2: XID_SET_WATCHES}
OPEN_ACL = [(31, "world", "anyone")]
PATIENCE = 10  # seconds for an answer


# ---- writing --------------------------------------------------------------------------------

def i32(v):
    return struct.pack(">i", v)


def i64(v):
    return struct.pack(">q", v)


def text(s):
    """A string or a buffer; None is null."""
    if s is None:
        return i32(-1)
    raw = s if isinstance(s, bytes) else s.encode("utf-8", "surrogatepass")
    return i32(len(raw)) + raw


def texts(items):
    return i32(-1) if items is None else i32(len(items)) + b"".join(text(t) for t in items)


def acls(items):
    if items is None:
        return i32(-1)
    return i32(len(items)) + b"".join(i32(p) + text(s) + text(i) for p, s, i in items)


def flag(v):
    return b"\1" if v else b"\0"


def create(path, data=b"", flags=0, acl=OPEN_ACL, ttl=None):
    return text(path) + text(data) + acls(acl) + i32(flags) + (b"" if ttl is None else i64(ttl))


def read(path, watch=False):
    return text(path) + flag(watch)


def versioned(path, version=-1):
    return text(path) + i32(version)


def set_data(path, data, version=-1):
    return text(path) + text(data) + i32(version)


def set_acl(path, acl, version=-1):
    return text(path) + acls(acl) + i32(version)


def auth(scheme, secret):
    return i32(0) + text(scheme) + text(secret)


def multi(ops):
    body = b"".join(i32(op) + b"\0" + i32(-1) + raw for op, raw in ops)
    return body + i32(-1) + b"\1" + i32(-1)


# ---- reading --------------------------------------------------------------------------------

class Reader:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, n):
        if n < 0 or self.at + n > len(self.raw):
            raise ValueError("a message that is too short")
        self.at += n
        return self.raw[self.at - n:self.at]

    def i32(self):
        return struct.unpack(">i", self.take(4))[0]

    def i64(self):
        return struct.unpack(">q", self.take(8))[0]

    def flag(self):
        return self.take(1) != b"\0"

    def buffer(self):
        n = self.i32()
        return None if n == -1 else self.take(n)

    def text(self):
        raw = self.buffer()
        return None if raw is None else raw.decode("utf-8", "surrogateescape")

    def texts(self):
        return [self.text() for _ in range(self.i32())]

    def acls(self):
        return [(self.i32(), self.text(), self.text()) for _ in range(self.i32())]

    def stat(self):
        names = ("czxid", "mzxid", "ctime", "mtime", "version", "cversion", "aversion",
                 "ephemeralOwner", "dataLength", "numChildren", "pzxid")
        longs = ("czxid", "mzxid", "ctime", "mtime", "ephemeralOwner", "pzxid")
        return {n: self.i64() if n in longs else self.i32() for n in names}

    def results(self):
        out = []
        while True:
            kind, done, err = self.i32(), self.flag(), self.i32()
            if done:
                return out + [("end", kind, err)]
            out.append(("result", kind, err, self.result(kind)))

    def result(self, kind):
        if kind == CREATE:
            return self.text()
        if kind == CREATE2:
            return [self.text(), self.stat()]
        if kind == SET:
            return self.stat()
        if kind == CHILDREN:
            return sorted(self.texts())
        if kind == GET:
            return [self.buffer(), self.stat()]
        return self.i32() if kind == -1 else None

    def body(self, op):
        """What a reply without an error carries. Lists without an order are sorted."""
        if op in (CREATE, SYNC):
            return self.text()
        if op in (CREATE2, CONTAINER, CREATE_TTL):
            return [self.text(), self.stat()]
        if op in (EXISTS, SET, SET_ACL):
            return self.stat()
        if op in (GET, RECONFIG):
            return [self.buffer(), self.stat()]
        if op == GET_ACL:
            return [self.acls(), self.stat()]
        if op in (CHILDREN, EPHEMERALS):
            return sorted(self.texts())
        if op == CHILDREN2:
            return [sorted(self.texts()), self.stat()]
        if op in (ALL_CHILDREN, ADD_WATCH):
            return self.i32()
        if op in (MULTI, MULTI_READ):
            return self.results()
        if op == SASL:
            return self.buffer()
        if op == WHO:
            return sorted((self.text(), self.text()) for _ in range(self.i32()))
        return None


# ---- a connection ----------------------------------------------------------------------------

class Closed(Exception):
    """By the server."""


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.held = b""
        self.xid = 0
        self.waiting = []  # (xid, op) in the order of their replies

    def send_frame(self, raw):
        try:
            self.socket.sendall(i32(len(raw)) + raw)
        except OSError:
            pass  # reading tells

    def frame(self):
        while len(self.held) < 4 or len(self.held) < 4 + struct.unpack(">i", self.held[:4])[0]:
            try:
                more = self.socket.recv(65536)
            except ConnectionError:
                more = b""
            if not more:
                raise Closed
            self.held += more
        n = struct.unpack(">i", self.held[:4])[0]
        raw, self.held = self.held[4:4 + n], self.held[4 + n:]
        return raw

    def shake(self, session=0, passwd=b"\0" * 16, timeout=30000, seen=0, tail=b"\0"):
        self.send_frame(i32(0) + i64(seen) + i32(timeout) + i64(session) + text(passwd) + tail)
        r = Reader(self.frame())
        answer = {"version": r.i32(), "timeout": r.i32(), "session": r.i64(),
                  "passwd": r.buffer(), "tail": r.raw[r.at:]}
        return answer

    def request(self, op, body, xid=None):
        if xid is None:
            self.xid += op not in SPECIAL
            xid = SPECIAL.get(op, self.xid)
        self.waiting.append((xid, op))
        return i32(xid) + i32(op) + body

    def message(self):
        """The next one: ("event", ...) or ("reply", ...)."""
        r = Reader(self.frame())
        xid, zxid, err = r.i32(), r.i64(), r.i32()
        if xid == XID_EVENT:
            return ("event", r.i32(), r.i32(), r.text(), zxid)
        op = self.waiting.pop(0)[1] if self.waiting else 0
        body = r.body(op) if err == 0 and r.at < len(r.raw) else None
        rest = len(r.raw) - r.at
        return ("reply", NAMES.get(op, op), xid, zxid, err, body, rest)

    def close(self):
        self.socket.close()
