"""A client of the bare protocol, and the loads that bench/stalls runs beside its probes."""
import socket
import struct
import time

WINDOW = 1000
WATCHES = 20000
EXPIRY_MS = 15000
SWEPT = 20000
PING, CREATE, DELETE, EXISTS, GET, SET, LIST, CREATE_CONTAINER, CREATE_TTL = 11, 1, 2, 3, 4, 5, 8, 19, 21
EPHEMERAL, CONTAINER, TTL = 1, 4, 5
LONGEST_MS = 40000
LARGE = 100  # nodes that are overwritten in turn


# ---- a client ---------------------------------------------------------------------------------

def text(s):
    return struct.pack(">i", len(s)) + s


def frame(xid, op, body=b""):
    return text(struct.pack(">ii", xid, op) + body)


def create(path, flags=0, op=CREATE, more=b"", data=b"123456789"):
    return frame(1, op, text(path) + text(data) + struct.pack(">ii", 1, 31) + text(b"world") +
                 text(b"anyone") + struct.pack(">i", flags) + more)


def delete(path):
    return frame(1, DELETE, text(path) + struct.pack(">i", -1))


class Client:
    def __init__(self, port, timeout_ms=20000):
        self.begin(port, timeout_ms)
        self.begun()

    def begin(self, port, timeout_ms, then=b"", by=""):
        self.s = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(by, 0))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.s.sendall(text(struct.pack(">iqiq", 0, 0, timeout_ms, 0) + text(bytes(16))) + then)

    def begun(self):
        if struct.unpack(">i", self.reply()[4:8])[0] <= 0:
            raise OSError("no session")

    def exactly(self, n):
        got = bytearray()
        while len(got) < n:
            more = self.s.recv(n - len(got))
            if not more:
                raise OSError("the server has hung up")
            got += more
        return bytes(got)

    def reply(self):
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def call(self, request):
        self.s.sendall(request)
        return self.reply()

    def stream(self, requests, until=None):
        """Sends them with WINDOW in flight. All replies are as long as the first."""
        requests = iter(requests)
        size = 4 + len(self.call(next(requests)))
        in_flight = 0
        batch = []
        for r in requests:
            batch.append(r)
            if len(batch) < WINDOW // 4:
                continue
            self.s.sendall(b"".join(batch))
            in_flight += len(batch)
            batch = []
            if in_flight >= WINDOW:
                self.exactly(size * (WINDOW // 4))
                in_flight -= WINDOW // 4
            if until and time.monotonic() > until:
                break
        self.s.sendall(b"".join(batch))
        self.exactly(size * (in_flight + len(batch)))


def path(i):
    return b"/stalls/%03d/node-%08d" % (i % 1000, i)


def fill(port, znodes):
    c = Client(port)
    c.call(create(b"/stalls"))
    c.stream(create(b"/stalls/%03d" % i) for i in range(1000))
    c.stream(create(path(i)) for i in range(znodes))


# ---- what runs beside, each a process of its own ------------------------------------------------

def write(server, znodes, until):
    c = Client(server.port)

    def sets():
        i = 0
        while True:
            i = (i + 7919) % znodes
            yield frame(1, SET, text(path(i)) + text(b"987654321") + struct.pack(">i", -1))
    c.stream(sets(), until)


def write_large(server, until, size, window):
    """Overwrites nodes of so many bytes."""
    c = Client(server.port)
    c.call(create(b"/large"))
    for i in range(LARGE):
        c.call(create(b"/large/%d" % i, data=bytes(size)))
    data = text(b"x" * size)
    in_flight = i = 0
    while time.monotonic() < until:
        c.s.sendall(frame(1, SET, text(b"/large/%d" % (i % LARGE)) + data + struct.pack(">i", -1)))
        i += 1
        in_flight += 1
        if in_flight == window:
            c.reply()
            in_flight -= 1
    for _ in range(in_flight):
        c.reply()
    for i in range(LARGE):
        c.call(delete(b"/large/%d" % i))


def write_100k(server, _znodes, until):
    write_large(server, until, 100000, 20)


def write_500k(server, _znodes, until):
    write_large(server, until, 500000, 4)


def write_1m(server, _znodes, until):
    write_large(server, until, 1000000, 2)


def ask(port, word):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        s.sendall(word)
        while s.recv(1 << 20):
            pass


def stop_disk(server, _znodes, until):
    while time.monotonic() < until - 2:
        time.sleep(2)
        server.stop_disk(1)
        time.sleep(1)


def ask_often(server, _znodes, until):
    c = Client(server.port)
    # Of znodes that never are: events would come between the replies.
    c.stream(frame(1, EXISTS, text(b"/stalls/none-%08d" % i) + b"\1") for i in range(WATCHES))
    while time.monotonic() < until:
        for word in (b"wchp", b"dump", b"mntr"):
            ask(server.port, word)
            c.call(frame(-2, PING))
        time.sleep(0.2)


def scrape(server, _znodes, until):
    while time.monotonic() < until:
        with socket.create_connection(("127.0.0.1", server.metrics), timeout=60) as s:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while s.recv(1 << 20):
                pass
        time.sleep(0.1)


def be_swept(server, _znodes, until):
    """Half of the nodes with a time to live outlive the sweeps, which look at them all the same."""
    c = Client(server.port)
    c.call(create(b"/swept"))
    c.stream(create(b"/swept/ttl-%06d" % i, TTL, CREATE_TTL, struct.pack(">q", 1 if i % 2 else 3600000))
             for i in range(SWEPT))
    c.stream(create(b"/swept/con-%06d" % i, CONTAINER, CREATE_CONTAINER) for i in range(SWEPT // 4))
    c.stream(create(b"/swept/con-%06d/child" % i) for i in range(SWEPT // 4))
    c.stream(delete(b"/swept/con-%06d/child" % i) for i in range(SWEPT // 4))
    time.sleep(max(0, until - time.monotonic()))


def make_wide(port, children):
    c = Client(port)
    c.call(create(b"/wide"))
    c.stream(create(b"/wide/node-%08d" % i) for i in range(children))


def list_wide(server, _znodes, until):
    c = Client(server.port)
    while time.monotonic() < until:
        c.s.sendall(frame(1, LIST, text(b"/wide") + b"\0") * 100)
        for _ in range(100):
            c.reply()


def leave_owner(port, owned):
    """Dies without closing its session."""
    c = Client(port, EXPIRY_MS)
    c.call(create(b"/owner"))
    c.stream(create(b"/owner/node-%06d" % i, EPHEMERAL) for i in range(owned))


def come_and_die(server, _znodes, _until):
    leave_sessions(server.port, server.sessions, LONGEST_MS)


def leave_sessions(port, sessions, timeout_ms=EXPIRY_MS):
    """Opens them, and dies without closing them. Their sockets are reset: those left in TIME_WAIT
    are ended by the kernel a minute later, all together, in the CPU time of whoever runs then. They
    have an address of their own: from one with so many dead sessions the server takes no new one."""
    held = []
    for first in range(0, sessions, 200):
        some = []
        for i in range(first, min(first + 200, sessions)):
            c = Client.__new__(Client)
            c.begin(port, timeout_ms, create(b"/stalls/gone-%06d" % i, EPHEMERAL), "127.0.0.2")
            c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            some.append(c)
        for c in some:
            c.begun()
            c.reply()
        held += some
    for h in held:  # so that all of them expire together
        h.s.sendall(frame(-2, PING))
    for h in held:
        h.reply()
