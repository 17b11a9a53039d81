"""kazoo on the server: create, watch, multi, ephemeral nodes, sessions that go on."""
import os
import queue
import signal
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
from harness import PATIENCE, ClaveServer, Served, spawn  # noqa: E402

try:
    from kazoo.client import KazooClient
    from kazoo.exceptions import (BadArgumentsError, BadVersionError, NodeExistsError, NoNodeError,
                                  NotEmptyError, RolledBackError)
    from kazoo.protocol.connection import PURESASL_AVAILABLE
    from kazoo.protocol.states import KazooState, KeeperState
    from kazoo.security import make_digest_acl
except ImportError:
    print("kazoo is not installed: nothing was tested")
    sys.exit(77)

DOOMED = """
import sys, time
from kazoo.client import KazooClient
zk = KazooClient(sys.argv[1], timeout=8)
zk.start()
zk.create("/left-behind", b"mine", ephemeral=True)
print(zk.client_id[0], zk.client_id[1].hex(), flush=True)
time.sleep(3600)
"""


class Kazoo(Served):
    def client(self, **keywords):
        zk = KazooClient(self.server.connect, timeout=8, **keywords)
        zk.start(timeout=PATIENCE)
        self.addCleanup(zk.close)
        self.addCleanup(zk.stop)
        return zk

    def test_nodes(self):
        zk = self.client()
        self.assertEqual(zk.create("/n", b"one"), "/n")
        with self.assertRaises(NodeExistsError):
            zk.create("/n")
        data, stat = zk.get("/n")
        self.assertEqual((data, stat.version, stat.czxid), (b"one", 0, stat.mzxid))
        self.assertEqual(zk.set("/n", b"two", version=0).version, 1)
        with self.assertRaises(BadVersionError):
            zk.set("/n", b"three", version=0)
        self.assertEqual(zk.create("/n/s-", sequence=True), "/n/s-0000000000")
        self.assertEqual(zk.create("/n/s-", sequence=True), "/n/s-0000000001")
        self.assertEqual(sorted(zk.get_children("/n")), ["s-0000000000", "s-0000000001"])
        with self.assertRaises(NotEmptyError):
            zk.delete("/n")
        zk.delete("/n", recursive=True)
        self.assertIsNone(zk.exists("/n"))
        with self.assertRaises(NoNodeError):
            zk.get("/n")
        self.assertEqual(zk.sync("/"), "/")

    def test_acl(self):
        owner, other = self.client(), self.client()
        owner.add_auth("digest", "joe:secret")
        owner.create("/acl", b"x", acl=[make_digest_acl("joe", "secret", all=True)])
        self.assertEqual(owner.get("/acl")[0], b"x")
        with self.assertRaises(Exception) as e:
            other.get("/acl")
        self.assertEqual(type(e.exception).__name__, "NoAuthError")
        other.add_auth("digest", "joe:secret")
        self.assertEqual(other.get("/acl")[0], b"x")
        self.assertEqual(other.get_acls("/acl")[0][0].perms, 31)

    def test_watches(self):
        zk, other = self.client(), self.client()
        events = queue.Queue()
        see = lambda e: events.put((e.type, e.path))
        self.assertIsNone(zk.exists("/w", watch=see))
        other.create("/w", b"0")
        self.assertEqual(events.get(timeout=PATIENCE), ("CREATED", "/w"))
        zk.get("/w", watch=see)
        other.set("/w", b"1")
        self.assertEqual(events.get(timeout=PATIENCE), ("CHANGED", "/w"))
        zk.get_children("/w", watch=see)
        other.create("/w/c")
        self.assertEqual(events.get(timeout=PATIENCE), ("CHILD", "/w"))
        zk.get("/w/c", watch=see)
        other.delete("/w/c")
        self.assertEqual(events.get(timeout=PATIENCE), ("DELETED", "/w/c"))
        self.assertTrue(events.empty())

    @unittest.skipIf(os.environ.get("CLAVE_TEST_SERVER") == "apache", "Apache bounds no watches")
    def test_a_client_survives_a_refused_watch(self):
        bounded = ClaveServer(["--max-connection-watches", "1"]).start()
        self.addCleanup(bounded.stop)
        zk = KazooClient(bounded.connect, timeout=8)
        zk.start(timeout=PATIENCE)
        self.addCleanup(zk.close)
        self.addCleanup(zk.stop)
        events = queue.Queue()
        self.assertIsNone(zk.exists("/a", watch=lambda e: events.put(e.path)))
        with self.assertRaises(BadArgumentsError):
            zk.exists_async("/b", watch=lambda e: events.put(e.path)).get(timeout=PATIENCE)
        session = zk.client_id
        zk.create_async("/b").get(timeout=PATIENCE)
        zk.create_async("/a").get(timeout=PATIENCE)
        self.assertEqual(events.get(timeout=PATIENCE), "/a")
        self.assertTrue(events.empty())
        self.assertEqual((zk.client_id, zk.connected), (session, True))

    def test_multi(self):
        zk = self.client()
        t = zk.transaction()
        t.create("/m", b"x")
        t.create("/m/s-", sequence=True)
        t.check("/m", 0)
        t.set_data("/m", b"y")
        self.assertEqual([r if isinstance(r, (str, bool)) else r.version for r in t.commit()],
                         ["/m", "/m/s-0000000000", True, 1])
        t = zk.transaction()
        t.create("/m/a")
        t.check("/m", 7)
        t.delete("/m/s-0000000000")
        kinds = [type(r) for r in t.commit()]
        self.assertEqual(kinds[:2], [RolledBackError, BadVersionError])
        self.assertEqual(zk.get_children("/m"), ["s-0000000000"])

    def test_ephemeral(self):
        zk, other = self.client(), self.client()
        gone = queue.Queue()
        zk.create("/e", b"", ephemeral=True)
        stat = other.exists("/e", watch=lambda e: gone.put(e.type))
        self.assertEqual(stat.ephemeralOwner, zk.client_id[0])
        zk.stop()
        self.assertEqual(gone.get(timeout=PATIENCE), "DELETED")

    def test_session_of_a_killed_client_goes_on_in_another(self):
        import subprocess
        p = spawn(["/usr/bin/python3", "-c", DOOMED, self.server.connect],
                  stdout=subprocess.PIPE, text=True)
        sid, password = p.stdout.readline().split()
        p.kill()
        p.wait()
        p.stdout.close()
        heir = self.client(client_id=(int(sid), bytes.fromhex(password)))
        self.assertEqual(heir.client_id[0], int(sid))
        self.assertEqual(heir.get("/left-behind")[1].ephemeralOwner, int(sid))
        wrong = self.client(client_id=(int(sid), b"\1" * 16))
        self.assertNotEqual(wrong.client_id[0], int(sid))

    def test_sessions_outlive_the_server(self):
        zk, other = self.client(), self.client()
        sid = zk.client_id[0]
        gone = queue.Queue()
        zk.create("/stays", b"x", ephemeral=True)
        self.server.stop(signal.SIGKILL)
        self.server.start()
        self.assertEqual(zk.retry(zk.get, "/stays")[1].ephemeralOwner, sid)
        self.assertEqual(zk.client_id[0], sid)
        self.assertEqual(other.retry(other.get, "/stays")[0], b"x")
        other.exists("/stays", watch=lambda e: gone.put(e.type))
        zk.stop()
        self.assertEqual(gone.get(timeout=PATIENCE), "DELETED")

    def test_a_server_that_requires_authentication(self):
        """A client comes back with its session, and so its lock, before it has authenticated."""
        if os.environ.get("CLAVE_TEST_SERVER") == "apache":
            self.skipTest("Apache has the rule from 3.7 on, by properties")
        ruled = ClaveServer(["--require-auth", "digest"]).start()
        self.addCleanup(lambda: ruled.stop())
        back = queue.Queue()
        zk = KazooClient(ruled.connect, timeout=8, auth_data=[("digest", "joe:secret")])
        zk.start(timeout=PATIENCE)
        self.addCleanup(zk.close)
        self.addCleanup(zk.stop)
        sid = zk.client_id[0]
        lock = zk.Lock("/lock", "holder")
        self.assertTrue(lock.acquire(timeout=PATIENCE))
        node = zk.get_children("/lock")
        zk.add_listener(back.put)

        def is_back():
            self.assertEqual(back.get(timeout=PATIENCE), KazooState.SUSPENDED)
            self.assertEqual(back.get(timeout=PATIENCE), KazooState.CONNECTED)
            self.assertEqual(zk.retry(zk.get_children, "/lock"), node)
            self.assertEqual(zk.client_id[0], sid)
            self.assertEqual(zk.retry(zk.get, "/lock/" + node[0])[1].ephemeralOwner, sid)
        for _ in range(2):
            zk._connection._socket.shutdown(socket.SHUT_RDWR)
            is_back()
        ruled.stop(signal.SIGKILL)
        ruled.start()
        is_back()
        lock.release()

    def test_lock_and_election(self):
        zk, other = self.client(), self.client()
        first, second = zk.Lock("/lock", "first"), other.Lock("/lock", "second")
        self.assertTrue(first.acquire(timeout=PATIENCE))
        self.assertFalse(second.acquire(blocking=False))
        self.assertEqual(first.contenders()[0], "first")
        first.release()
        self.assertTrue(second.acquire(timeout=PATIENCE))
        second.release()
        led = []
        zk.Election("/election").run(lambda: led.append(1))
        self.assertEqual(led, [1])

    def test_sasl(self):
        """No server here has SASL. clave says so at once, Apache's leaves kazoo to its session's end."""
        if not PURESASL_AVAILABLE:
            self.skipTest("pure-sasl is not installed")
        ends = queue.Queue()
        long = self.server.name == "clave"
        zk = KazooClient(self.server.connect, timeout=10 * PATIENCE if long else 4, sasl_options={
            "mechanism": "DIGEST-MD5", "username": "user", "password": "secret"})
        zk.add_listener(lambda _: zk.client_state == KeeperState.AUTH_FAILED and ends.put(True))
        self.addCleanup(zk.close)
        self.addCleanup(zk.stop)
        zk.start_async()
        self.assertTrue(ends.get(timeout=PATIENCE))


if __name__ == "__main__":
    unittest.main()
