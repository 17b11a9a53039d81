"""As much of the ZooKeeper protocol as a test of disks needs: one connection, its requests answered
in order. A connection that ends is a ConnectionError: what was not answered then has an unknown
outcome."""
import socket
import struct

CREATE, GET, SET, CLOSE = 1, 4, 5, -11
NO_NODE, NODE_EXISTS = -101, -110
WORLD = struct.pack(">ii", 1, 31) + b"\0\0\0\5world" + b"\0\0\0\6anyone"


def text(s):
    return struct.pack(">i", len(s)) + s.encode()


class Client:
    def __init__(self, path, patience):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(patience)
        self.xid = 0
        try:
            self.s.connect(path)
        except OSError as e:
            raise ConnectionError(str(e)) from e
        self.write(struct.pack(">iqiq", 0, 0, 30000, 0) + text("\0" * 16))
        self.read()

    def write(self, body):
        self.s.sendall(struct.pack(">i", len(body)) + body)

    def exactly(self, n):
        got = b""
        while len(got) < n:
            more = self.s.recv(n - len(got))
            if not more:
                raise ConnectionError("closed")
            got += more
        return got

    def read(self):
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def send(self, op, body=b""):
        self.xid += 1
        self.write(struct.pack(">ii", self.xid, op) + body)

    def answer(self):
        """The error and what follows it."""
        reply = self.read()
        return struct.unpack(">i", reply[12:16])[0], reply[16:]

    def send_create(self, path, data):
        self.send(CREATE, text(path) + text(data) + WORLD + struct.pack(">i", 0))

    def send_set(self, path, data):
        self.send(SET, text(path) + text(data) + struct.pack(">i", -1))

    def get(self, path):
        """None: there is no such node."""
        self.send(GET, text(path) + b"\0")
        error, body = self.answer()
        if error == NO_NODE:
            return None
        assert error == 0, error
        n = struct.unpack(">i", body[:4])[0]
        return body[4:4 + n].decode()

    def close(self):
        self.s.close()
