"""clave serve under clients that want to harm it, or only behave so: memory stays bounded, and
others are served."""
import re
import resource
import signal
import socket
import struct
import subprocess
import time
import unittest

from gate_rig import is_sanitized
from harness import (CLAVE, PATIENCE, UNSAFE, ClaveServer, ask, clave, environment, free_port, scratch,
                     spawn)

HANDSHAKE = struct.pack(">iiqiqi", 44, 0, 0, 30000, 0, 16) + b"\0" * 16


def frame(xid, op, body):
    return struct.pack(">iii", 8 + len(body), xid, op) + body


def get(path):
    return frame(1, 4, struct.pack(">i", len(path)) + path + b"\0")


def resident_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def dial(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", port))
    return s


class Load(unittest.TestCase):
    def served(self, connect):
        """A write and a read by somebody else, soon."""
        begin = time.monotonic()
        r = clave("create", "--sequential", "/n-", connect=connect)
        self.assertEqual(r.code, 0, r)
        self.assertLess(time.monotonic() - begin, 8)  # sooner than who has no session is cut off

    def put(self, connect, size):
        r = subprocess.run([CLAVE, "--connect", connect, "create", "/big", "-"], input=b"x" * size,
                           stdout=subprocess.DEVNULL, check=False, env=environment())
        self.assertEqual(r.returncode, 0)

    def test_clients_that_do_not_read(self):
        clients, size, bound = 150, 500 * 1024, 16 * 1024 * 1024
        s = ClaveServer(["--max-undelivered", str(bound), "--max-connections", "0"]).start()
        self.addCleanup(s.stop)
        self.put(s.connect, size)
        before = resident_kb(s.process.pid)
        deaf = []
        for _ in range(clients):
            c = dial(s.port)
            self.addCleanup(c.close)
            c.sendall(HANDSHAKE + get(b"/big") * 8)
            deaf.append(c)
        self.served(s.connect)
        # Each alone may have 4 MiB; all together twice the bound, and each what is on its way into
        # the kernel.
        self.assertLess(resident_kb(s.process.pid) - before,
                        2 * bound // 1024 + clients * 64 + 10000)
        self.served(s.connect)
        # Who begins to read gets all that it has asked for, or has been cut off before.
        whole = 0
        for c in reversed(deaf):
            if whole > 0:
                break
            c.settimeout(PATIENCE)
            n = 0
            try:
                while n < 8 * size:
                    got = c.recv(1 << 20)
                    if not got:
                        break
                    n += len(got)
            except ConnectionError:
                pass
            whole += n >= 8 * size
        self.assertGreater(whole, 0)

    def test_a_slow_reader_is_no_standstill(self):
        """It owes for longer than it may when others make it too much: the server was not late."""
        port, owes = free_port(), 4
        p = spawn([CLAVE, "serve", "--data", scratch("d"), "-l", f"127.0.0.1:{port}",
                   "--max-undelivered", str(1 << 20), "--max-connections", "0", "--tick", "1s"],
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                  env=environment())
        self.assertIn("serving", p.stdout.readline())
        self.put(f"127.0.0.1:{port}", 500 * 1024)
        ask = HANDSHAKE + get(b"/big") * 3
        first = dial(port)
        self.addCleanup(first.close)
        first.sendall(ask)
        time.sleep(owes)  # what is measured
        for _ in range(8):
            c = dial(port)
            self.addCleanup(c.close)
            c.sendall(ask)
        self.served(f"127.0.0.1:{port}")
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=PATIENCE)
        self.assertIn("does not read its output", err)
        late = [int(ms) for ms in re.findall(r"was not running for (\d+) ms", err)]
        self.assertFalse([ms for ms in late if ms >= (owes - 1) * 1000], err)

    def test_slow_readers_and_writers(self):
        """Those who take a little now and then hold nobody up."""
        s = ClaveServer(["--max-undelivered", str(1 << 20), "--max-outstanding", "100",
                         "--max-connections", "0"]).start()
        self.addCleanup(s.stop)
        clave("create", "/some", "x" * 5000, connect=s.connect)
        slow = []
        for _ in range(50):
            c = dial(s.port)
            self.addCleanup(c.close)
            c.sendall(HANDSHAKE + get(b"/some") * 100)
            slow.append(c)
        for _ in range(20):
            for c in slow:
                c.recv(2000)
        self.served(s.connect)
        for c in slow[:10]:  # all of it comes
            c.settimeout(PATIENCE)
            n = 20 * 2000
            while n < 100 * 5000:
                got = c.recv(65536)
                self.assertTrue(got)
                n += len(got)

    def test_half_open(self):
        """Thousands that never say who they are."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        count = min(20000, hard - 200)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        s = ClaveServer(["--max-connections", "0"]).start()
        self.addCleanup(s.stop)
        before = resident_kb(s.process.pid)
        halves = []
        for i in range(count):
            c = socket.create_connection(("127.0.0.1", s.port))
            if i % 2:
                c.sendall(b"\0\0\3")  # the beginning of a length
            self.addCleanup(c.close)
            halves.append(c)
        self.served(s.connect)
        self.assertLess(resident_kb(s.process.pid) - before, count * 6)
        for c in (halves[0], halves[1], halves[-1]):  # after ten seconds without a session
            c.settimeout(PATIENCE)
            self.assertEqual(c.recv(1), b"")
        self.served(s.connect)

    def test_all_at_once(self):
        """What one turn of the server leaves undone goes on in the next, without another event."""
        s = ClaveServer(["--max-connections", "0"]).start()
        self.addCleanup(s.stop)
        for _ in range(3):
            many = [socket.socket() for _ in range(400)]
            s.process.send_signal(signal.SIGSTOP)
            for c in many:
                c.settimeout(PATIENCE)
                c.connect(("127.0.0.1", s.port))
                c.sendall(HANDSHAKE)
            s.process.send_signal(signal.SIGCONT)
            for c in many:
                self.assertEqual(len(c.recv(40, socket.MSG_WAITALL)), 40)
            s.process.send_signal(signal.SIGSTOP)
            for c in many:
                c.sendall(struct.pack(">iii", 8, -2, 11))
            s.process.send_signal(signal.SIGCONT)
            for c in many:
                self.assertEqual(len(c.recv(20, socket.MSG_WAITALL)), 20)
            s.process.send_signal(signal.SIGSTOP)
            for c in many:
                c.close()
            s.process.send_signal(signal.SIGCONT)
            until = time.monotonic() + PATIENCE
            while b"zk_num_alive_connections\t1\n" not in ask(s.port, b"mntr"):  # the one that asks
                self.assertLess(time.monotonic(), until)
        self.served(s.connect)

    def test_many_requests_of_one_client(self):
        """Those of another one that wait meanwhile come first in the next turn: their zxids show it."""
        s = ClaveServer().start()
        self.addCleanup(s.stop)
        clients = [socket.socket() for _ in range(4)]
        for c in clients:
            c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            c.settimeout(PATIENCE)
            c.connect(("127.0.0.1", s.port))
            c.sendall(HANDSHAKE)
            c.recv(40, socket.MSG_WAITALL)

        def create(name):
            body = struct.pack(">iii", 1, 1, len(name)) + name + struct.pack(
                ">iiii5si6si", 0, 1, 31, 5, b"world", 6, b"anyone", 0)
            return struct.pack(">i", len(body)) + body

        def zxid(c):
            n, = struct.unpack(">i", c.read(4))
            return struct.unpack(">iqi", c.read(n)[:16])[1]
        many = 4000
        s.process.send_signal(signal.SIGSTOP)
        clients[0].setblocking(False)
        waiting = b"".join(create(b"/many-%d" % i) for i in range(many))
        waiting = waiting[clients[0].send(waiting):]
        for i, c in enumerate(clients[1:]):
            c.sendall(create(b"/one-%d" % i))
        s.process.send_signal(signal.SIGCONT)
        clients[0].settimeout(PATIENCE)
        clients[0].sendall(waiting)
        replies = [c.makefile("rb") for c in clients]
        zxids = [zxid(replies[0]) for _ in range(many)]
        for r in replies[1:]:
            own = zxid(r)
            self.assertLess(sum(z < own for z in zxids), many // 2)
        for c in clients + replies:
            c.close()

    @unittest.skipIf(is_sanitized(), "a sanitizer takes its address space at the start")
    def test_no_more_memory(self):
        """The log says why a client was cut off; what was acknowledged is read, and deletes make room."""
        port, most = free_port(), 120 << 20
        p = spawn([CLAVE, "serve", "--data", scratch("d"), "-l", f"127.0.0.1:{port}"], stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environment(),
                  before=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
        self.assertIn("serving", p.stdout.readline())
        at, made = f"127.0.0.1:{port}", 0
        while (r := clave("create", f"/n{made}", "-", connect=at, stdin=b"x" * 1000000)).code == 0:
            made += 1
        self.assertEqual(r.code, 69, r)
        self.assertGreater(made, 10)
        for i in range(made):
            self.assertEqual(len(clave("get", f"/n{i}", connect=at).out), 1000000, f"{UNSAFE}: a lost write")
        for path in "/n0", "/n1":
            self.assertEqual(clave("rm", path, connect=at).code, 0)
        self.assertEqual(clave("create", "/again", "x", connect=at).code, 0)
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 0)
        self.assertIn(" is disconnected: out of memory\n", err)

    def test_more_connections_than_files(self):
        port = free_port()
        p = spawn(["prlimit", "--nofile=100:100", CLAVE, "serve", "--data", scratch("d"), "-l",
                   f"127.0.0.1:{port}", "--max-connections", "0"], stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environment())
        self.assertIn("serving", p.stdout.readline())
        many = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
        self.addCleanup(lambda: [c.close() for c in many])
        many[0].sendall(HANDSHAKE)
        many[0].settimeout(PATIENCE)
        self.assertTrue(many[0].recv(100))  # those who are in are served
        for c in many:
            c.close()
        self.served(f"127.0.0.1:{port}")
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 0)
        self.assertIn("the limit of open files allows no more (ulimit -n, LimitNOFILE=)", err)
        self.assertLess(err.count("turned away 127"), PATIENCE)  # a line a second, not each


if __name__ == "__main__":
    unittest.main()
