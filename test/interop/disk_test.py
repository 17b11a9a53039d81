"""One data directory, served in turn by clave and by Apache ZooKeeper, each killed with -9.

Whatever one has written the other reads back: every node with its data, its access list and each
field of its Stat, the sequence numbers, and the session of a client that stays alive through it
all. Apache compares the digest of its tree with ours at every transaction it replays, and we ours
with its."""
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
from harness import (ApacheServer, ClaveServer, PATIENCE, UNSAFE, ask, clave, free_port,  # noqa: E402
                     has_apache, scratch)
from load_first import load_first  # noqa: E402

try:
    from kazoo.client import KazooClient
    from kazoo.exceptions import KazooException, NoAuthError, NoNodeError, NotEmptyError
    from kazoo.retry import KazooRetry
    from kazoo.security import Permissions, make_acl, make_digest_acl
except ImportError:
    print("kazoo is not installed: nothing was tested")
    sys.exit(77)
if not has_apache():
    print("Apache ZooKeeper is not installed: nothing was tested")
    sys.exit(77)

AUTH = ("digest", "joe:secret")
SNAP_COUNT = 40  # few, so that there are several logs and snapshots
SESSION_S = 35   # longer than it takes to start a Java process


def patiently(call, *args, **keywords):
    return KazooRetry(max_tries=-1, delay=0.1, backoff=1, deadline=PATIENCE)(call, *args, **keywords)


def dump(connect):
    """path -> (data, Stat, access list) of all nodes, as one sees it who may read them."""
    zk = KazooClient(connect, timeout=10, auth_data=[AUTH])
    zk.start(timeout=PATIENCE)
    nodes, todo = {}, ["/"]
    while todo:
        path = todo.pop()
        try:
            data, stat = zk.get(path)
            acls, _ = zk.get_acls(path)
            names = zk.get_children(path)
        except NoAuthError:
            nodes[path] = "closed"
            continue
        nodes[path] = (data, stat, sorted(acls))
        todo += [path.rstrip("/") + "/" + name for name in names]
    zk.stop()
    zk.close()
    return nodes


def fill(zk, top, connect):
    """A bit of everything below `top`, and changes to what was there before."""
    zk.ensure_path(top)
    zk.set(top, b"a little")
    for i in range(60):
        zk.create(f"{top}/s-", b"%d" % i, sequence=True)
    for i in range(0, 60, 7):
        name = sorted(n for n in zk.get_children(top) if n.startswith("s-"))[i % 3]
        zk.delete(f"{top}/{name}")
    zk.create(f"{top}/deep/er/and/deeper", b"", makepath=True)
    zk.create(f"{top}/big", os.urandom(500000))
    zk.set(f"{top}/big", os.urandom(700000), version=0)
    zk.create(f"{top}/\u00fcml\u00e4ut \u20ac", "\u00e9".encode())
    for _ in range(5):
        zk.set(f"{top}/deep", b"again")
    zk.create(f"{top}/joes", b"x", acl=[make_digest_acl(*AUTH[1].split(":"), all=True)])
    zk.create(f"{top}/locals", b"x", acl=[make_acl("ip", "127.0.0.0/8", all=True),
                                          make_acl("world", "anyone", read=True)])
    zk.create(f"{top}/nobodys", b"x", acl=[make_acl("ip", "10.1.2.3", all=True)])
    zk.create(f"{top}/changed", b"x")
    for _ in range(3):
        zk.set_acls(f"{top}/changed", [make_acl("world", "anyone", read=True, admin=True),
                                       make_digest_acl(*AUTH[1].split(":"), write=True)])
    t = zk.transaction()
    t.create(f"{top}/multi", b"1")
    t.create(f"{top}/multi/s-", sequence=True)
    t.create(f"{top}/multi/gone")
    t.set_data(f"{top}/multi", b"2")
    t.delete(f"{top}/multi/gone")
    t.check(top, -1)
    assert not any(isinstance(r, Exception) for r in t.commit())
    t = zk.transaction()
    t.create(f"{top}/never")
    t.create(f"{top}/multi/s-", sequence=True)
    t.delete(f"{top}/multi")
    t.delete(f"{top}/joes")
    assert isinstance(t.commit()[2], NotEmptyError)
    for call in (lambda: zk.delete(f"{top}/none"), lambda: zk.set(f"{top}/nobodys", b""),
                 lambda: zk.create(top), lambda: zk.set(top, b"", version=77)):
        try:
            call()
            raise AssertionError("it should have failed")
        except KazooException:
            pass
    for words in (["--container", f"{top}/box"], ["--ttl", "10h", f"{top}/leased"], [f"{top}/without-data"]):
        result = clave("create", *words, connect=connect)
        assert result.code == 0, result
    zk.create(f"{top}/box/full")


def leave_ephemerals(connect, top):
    """A client that closes its session: nothing of it stays, but for the counters."""
    zk = KazooClient(connect, timeout=10)
    zk.start(timeout=PATIENCE)
    for i in range(5):
        zk.create(f"{top}/passing-", b"", ephemeral=True, sequence=True)
    zk.stop()
    zk.close()


class Disk(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.port, self.data = free_port(), scratch("data")
        self.connect = f"127.0.0.1:{self.port}"
        self.server = None

    def tearDown(self):
        if self.server:
            self.server.stop(signal.SIGKILL)

    def serve(self, kind):
        """The same directory and the same address, whoever serves it."""
        server = ApacheServer if kind == "apache" else ClaveServer
        s = server(["--snap-count", str(SNAP_COUNT), "--extended-types"])
        s.port, s.data = self.port, self.data
        self.server = s.start()

    def kill(self):
        self.server.stop(signal.SIGKILL)
        self.server = None
        result = clave("data", "check", self.data)
        self.assertEqual(result.code, 0, f"{UNSAFE}: corruption: {result}")

    def files(self, kind):
        return sorted(n for n in os.listdir(os.path.join(self.data, "version-2"))
                      if n.startswith(kind + "."))

    def mismatches(self):
        for line in ask(self.port, b"mntr").decode().splitlines():
            if line.startswith("zk_digest_mismatches_count"):
                return int(line.split()[1])
        return None

    def compare(self, before, after):
        self.assertEqual(sorted(before), sorted(after), f"{UNSAFE}: lost writes, or others")
        for path in before:
            self.assertEqual(before[path], after[path], f"{UNSAFE}: {path} is another")

    def test_there_and_back(self):
        self.serve("clave")
        living = KazooClient(self.connect, timeout=SESSION_S, auth_data=[AUTH],
                             connection_retry=KazooRetry(max_tries=-1, delay=0.1, max_delay=0.5))
        living.start(timeout=PATIENCE)
        self.addCleanup(living.close)
        self.addCleanup(living.stop)
        session = living.client_id
        living.create("/mine", b"still here", ephemeral=True)
        rounds = ["clave", "apache", "clave", "apache", "clave"]
        for number, (now, then) in enumerate(zip(rounds, rounds[1:])):
            top = f"/round-{number}-{now}"
            patiently(fill, living, top, self.connect)
            leave_ephemerals(self.connect, top)
            living.create(f"{top}/alive-", b"me", ephemeral=True, sequence=True)
            living.set("/mine", b"%d" % number)
            before = dump(self.connect)
            sequence = living.create(f"{top}/s-", b"", sequence=True)
            living.delete(sequence)
            before[top] = living.get(top) + (sorted(living.get_acls(top)[0]),)
            self.kill()
            if now == "clave" and number == 0:
                self.assertGreater(len(self.files("log")), 2)
                self.assertGreater(len(self.files("snapshot")), 2)
            self.serve(then)
            self.compare(before, dump(self.connect))
            if then == "clave" or self.server.version >= (3, 6):  # before, the tree had no digest
                self.assertEqual(self.mismatches(), 0)
            # The session goes on, and so do the numbers.
            self.assertEqual(patiently(living.get, "/mine")[1].ephemeralOwner, session[0])
            self.assertEqual(living.client_id, session)
            following = living.create(f"{top}/s-", b"", sequence=True)
            self.assertEqual(int(following[-10:]), int(sequence[-10:]) + 1)
            self.assertIsNone(living.exists(f"{top}/never"))
        living.stop()
        left = dump(self.connect)
        self.assertEqual([p for p, n in left.items() if n != "closed" and n[1].ephemeralOwner], [])
        self.assertNotIn("/mine", left)

    def test_a_session_nobody_goes_on_with(self):
        """It ends with its timeout, on the other server, and its nodes with it."""
        self.serve("clave")
        zk = KazooClient(self.connect, timeout=4)
        zk.start(timeout=PATIENCE)
        zk.create("/forgotten", b"", ephemeral=True)
        self.kill()
        zk.stop()
        zk.close()
        self.serve("apache")
        watcher = KazooClient(self.connect, timeout=10)
        watcher.start(timeout=PATIENCE)
        gone = watcher.handler.event_object()
        if watcher.exists("/forgotten", watch=lambda e: gone.set()):
            gone.wait(PATIENCE)
        self.assertIsNone(watcher.exists("/forgotten"))
        watcher.stop()
        watcher.close()


if __name__ == "__main__":
    load_first()
    unittest.main()
