"""clave serve --require-auth: a client that authenticates is served, another is told why not, and
takes no session from the first."""
import signal
import socket
import struct
import threading
import unittest

from harness import PATIENCE, UNSAFE, ClaveServer, Running, clave, scratch

PING, CLOSE_SESSION, REFUSED = 11, -11, -124


def password(session):
    """As every ZooKeeper server makes it: java.util.Random, seeded with the id."""
    state, out = (session ^ 0xB3415C00 ^ 0x5DEECE66D) & (1 << 48) - 1, b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        out += struct.pack("<I", state >> 16 & 0xFFFFFFFF)
    return out


class Stranger:
    """A connection that has asked for this session, 0: a new one, and never authenticates."""

    def __init__(self, port, session=0):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.send(struct.pack(">iqiqi16s?", 0, 0, 4000, session, 16,
                              password(session) if session else bytes(16), False))
        self.session = struct.unpack(">iiqi16s", self.receive()[:36])[2]

    def send(self, frame):
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self):
        size = struct.unpack(">i", self.socket.recv(4, socket.MSG_WAITALL))[0]
        return self.socket.recv(size, socket.MSG_WAITALL)

    def call(self, op):
        """The error of the answer."""
        self.send(struct.pack(">ii", 1, op))
        return struct.unpack(">iqi", self.receive())[2]


class RequireAuth(unittest.TestCase):
    def test_clients(self):
        path = scratch("sock")
        server = ClaveServer(["--require-auth", "digest,uid", "--listen", f"unix:{path}"])
        server.start()
        self.addCleanup(server.stop)
        r = clave("create", "/a", connect=server.connect)
        self.assertNotEqual(r.code, 0)
        self.assertIn("the server requires clients to authenticate", r.err)
        self.assertEqual(clave("--auth", "digest:joe:pw", "create", "/a", connect=server.connect).code, 0)
        self.assertEqual(clave("get", "/a", connect=f"unix:{path}").code, 0)
        r = clave("--auth", "digest:joe:pw", "lock", "/l", "--", "true", connect=server.connect)
        self.assertEqual((r.code, r.err), (0, ""))
        # Nothing comes before the identities, so no connection is refused.
        r = clave("-v", "--auth", "digest:joe:pw", "lock", "/l", "--", "true", connect=server.connect)
        self.assertIn("-> CONNECTED", r.err)
        self.assertNotIn("SUSPENDED", r.err)

    def test_nobody_takes_the_session_of_a_holder(self):
        server = ClaveServer(["--require-auth", "digest"]).start()
        self.addCleanup(lambda: server.stop())
        me = ("--auth", "digest:joe:pw")
        holder = Running("-v", *me, "lock", "/l", "--", "sh", "-c", "echo held; exec sleep 600",
                         connect=server.connect)
        self.assertEqual(holder.line(), "held")
        node = clave(*me, "ls", "/l", connect=server.connect).out
        mine = Stranger(server.port)
        seen = []
        for session in range(mine.session - 4, mine.session):
            for op in (PING, CLOSE_SESSION):
                other = Stranger(server.port, session)
                if other.session == session:
                    seen.append(other.call(op))
                other.socket.close()
        self.assertIn(REFUSED, seen)
        self.assertEqual(set(seen), {REFUSED})
        self.assertEqual((mine.call(PING), mine.call(CLOSE_SESSION)), (0, 0))
        mine.socket.close()
        self.assertEqual(clave(*me, "ls", "/l", connect=server.connect).out, node,
                         UNSAFE + ": a stranger has ended the session of a holder")
        # The holder comes back with it by itself.
        server.stop(signal.SIGKILL)
        server.start()
        timer = threading.Timer(PATIENCE, holder.process.kill)
        timer.start()
        states = []
        for line in holder.process.stderr:
            states.append(line)
            if "-> RECONNECTED" in line:
                break
        timer.cancel()
        self.assertIn("-> RECONNECTED", states[-1])
        self.assertEqual(clave(*me, "ls", "/l", connect=server.connect).out, node)
        self.assertEqual([line for line in states if "LOST" in line], [])
        holder.end(signal.SIGTERM)

    def test_schemes(self):
        r = clave("serve", "--check-config", "--data", "/nowhere", "--require-auth", "digest,sasl")
        self.assertEqual(r.code, 64)
        self.assertIn("no such scheme 'sasl'", r.err)
        for empty in ("", ",", "digest,"):
            r = clave("serve", "--check-config", "--data", "/nowhere", "--require-auth", empty)
            self.assertEqual(r.code, 64, empty)

    def test_nobody_is_locked_out(self):
        def check(*flags):
            return clave("serve", "--check-config", "--data", "/nowhere", *flags)
        tls = ["--listen", "tls:*:2281", "--tls-cert", "/nowhere/cert", "--tls-clients", "none"]
        for flags in (["x509"], ["uid"], ["uid,x509"], ["x509"] + tls, ["uid"] + tls):
            r = check("--require-auth", *flags)
            self.assertEqual(r.code, 64, r)
            self.assertIn("locks everybody out", r.err)
        for flags in (["x509,digest"], ["ip"], ["uid", "--listen", "unix:/nowhere/sock"]):
            self.assertNotIn("locks everybody out", check("--require-auth", *flags).err)

    def test_a_super_user_that_nobody_is(self):
        r = clave("serve", "--check-config", "--data", "/nowhere", "--super-uid", "0")
        self.assertEqual(r.code, 0, r)
        self.assertIn("--super-uid 0 applies to nobody", r.err)


if __name__ == "__main__":
    unittest.main()
