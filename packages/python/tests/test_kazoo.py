"""clave.kazoo: kazoo's recipes in one queue with clave's, whose names are Curator's."""
import inspect
import threading
import time
import unittest

import clave
from rig import PATIENCE, Case

try:
    import clave.kazoo
    import kazoo.client
    import kazoo.recipe.election
    import kazoo.recipe.lock
    from kazoo.exceptions import LockTimeout
except ImportError:
    raise unittest.SkipTest("kazoo is not installed")


class Kazoo(Case):
    def setUp(self):
        self.zk = clave.kazoo.KazooClient(self.server.connect)
        self.zk.start(timeout=PATIENCE)
        self.addCleanup(self.zk.close)
        self.addCleanup(self.zk.stop)
        self.c = self.open()

    def test_lock(self):
        theirs, ours = self.zk.Lock("/lock", "me"), self.c.lock("/lock", timeout=0)
        with ours:
            self.assertFalse(theirs.acquire(blocking=False))
            with self.assertRaises(LockTimeout):
                theirs.acquire(timeout=0.05)
        with theirs:
            self.assertEqual(theirs.contenders(), ["me"])
            with self.assertRaises(clave.Busy):
                ours.acquire()
        ours.acquire().release()

    def test_the_same_by_a_changed_import(self):
        with self.c.lock("/import"):
            self.assertFalse(clave.kazoo.Lock(self.zk, "/import").acquire(blocking=False))

    def test_read_and_write(self):
        ours = self.c.rwlock("/rw", timeout=0)
        with self.zk.ReadLock("/rw"):
            with self.assertRaises(clave.Busy):
                ours.write.acquire()
            with ours.read:
                self.assertFalse(self.zk.WriteLock("/rw").acquire(blocking=False))
        with self.zk.WriteLock("/rw"):
            for side in ours.read, ours.write:
                with self.assertRaises(clave.Busy):
                    side.acquire()
        with ours.write:
            self.assertFalse(self.zk.ReadLock("/rw").acquire(blocking=False))

    def test_a_read_does_not_wait_for_a_write_behind_it(self):
        self.zk.ensure_path("/fair")
        first = self.c.rwlock("/fair").write.acquire()
        read = self.zk.ReadLock("/fair")
        got = threading.Event()
        reader = threading.Thread(target=lambda: read.acquire() and got.set())
        reader.start()
        self.queued(self.c, "/fair", 2)
        other = self.open()
        writer = threading.Thread(target=lambda: other.rwlock("/fair").write.acquire().release())
        writer.start()
        self.queued(self.c, "/fair", 3)
        first.release()
        self.assertTrue(got.wait(PATIENCE))
        read.release()
        writer.join(PATIENCE)
        self.assertFalse(writer.is_alive())

    def test_semaphore(self):
        ours = self.c.semaphore("/pool", 2, timeout=0)
        with self.zk.Semaphore("/pool", max_leases=2), ours:
            self.assertFalse(self.zk.Semaphore("/pool", max_leases=2).acquire(blocking=False))
            with self.assertRaises(clave.Busy):
                ours.acquire()
        ours.acquire().release()

    def test_the_limit_of_a_semaphore(self):
        """As with kazoo's own: in the data of the path, and not compared when that is something else."""
        self.zk.Semaphore("/limit", max_leases=3).acquire()
        self.assertEqual(self.c.get("/limit").data, b"3")
        with self.assertRaises(ValueError):
            self.zk.Semaphore("/limit", max_leases=2).acquire(blocking=False)
        self.c.create("/other-data", "a$")
        self.assertTrue(self.zk.Semaphore("/other-data", max_leases=1).acquire())
        self.assertTrue(self.zk.Semaphore("/other-data", max_leases=2).acquire(blocking=False))

    def test_election(self):
        led = []
        with self.c.lock("/lead"):
            election = self.zk.Election("/lead", "me")
            thread = threading.Thread(target=election.run, args=(led.append, "leads"))
            thread.start()
            self.queued(self.c, "/lead", 2)
            self.assertEqual(election.contenders()[1], "me")
            self.assertEqual(led, [])
        thread.join(PATIENCE)
        self.assertEqual(led, ["leads"])

    def test_turns(self):
        """Both kinds take turns, and no two are inside."""
        inside, seen = [], []

        def turn(lock, n):
            for _ in range(n):
                with lock:
                    inside.append(1)
                    seen.append(len(inside))
                    time.sleep(0)
                    inside.pop()

        threads = [threading.Thread(target=turn, args=(lock, 10)) for lock in
                   (self.zk.Lock("/turns"), self.zk.Lock("/turns"), self.c.lock("/turns"), self.open().lock("/turns"))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(seen, [1] * 40, "SAFETY VIOLATED: two holders")

    def test_a_node_of_an_earlier_session_is_not_adopted(self):
        lock = self.zk.Lock("/adopt")
        self.zk.ensure_path("/adopt")
        other = self.open()
        other.create(f"/adopt/{lock.prefix}0000000000", b"", clave.Mode.EPHEMERAL)
        lock.create_tried = True  # as after a lost answer
        self.assertTrue(lock.acquire(blocking=False))
        self.assertEqual(self.c.get(f"/adopt/{lock.node}").stat.ephemeral_owner, self.zk.client_id[0])

    def test_programs_written_for_kazoo(self):
        """What their documentation shows, with nothing but the import changed."""
        from clave.kazoo import KazooClient, KazooState
        states = []
        zk = KazooClient(hosts=self.server.connect)
        zk.add_listener(states.append)
        zk.start()
        self.addCleanup(zk.close)
        self.addCleanup(zk.stop)
        self.assertEqual(states, [KazooState.CONNECTED])
        zk.ensure_path("/program/jobs")
        made = zk.create("/program/made/n-", b"1", ephemeral=True, sequence=True, makepath=True)
        self.assertEqual(zk.retry(zk.get, made)[0], b"1")
        seen = threading.Event()

        @zk.DataWatch(made)
        def changed(data, stat):
            if data == b"2":
                seen.set()

        transaction = zk.transaction()
        transaction.check(made, 0)
        transaction.set_data(made, b"2")
        self.assertNotIn(True, [isinstance(r, Exception) for r in transaction.commit()])
        self.assertTrue(seen.wait(PATIENCE))
        with zk.Lock("/program/lock", "my-identifier"):
            with self.assertRaises(clave.Busy):
                self.c.lock("/program/lock").acquire(0)
        self.assertEqual(zk.get_children("/program/lock"), [])


class Names(unittest.TestCase):
    """Held against the kazoo that is installed."""

    OURS = {"KazooClient", "Lock", "ReadLock", "WriteLock", "Semaphore", "Election"}
    MODULES = kazoo.client, kazoo.recipe.lock, kazoo.recipe.election

    def public(self, what):
        return {name for name in dir(what) if not name.startswith("_")}

    def test_every_name_is_there(self):
        for module in self.MODULES:
            for name in self.public(module):
                theirs, ours = getattr(module, name), getattr(clave.kazoo, name)
                if name in self.OURS:
                    self.assertTrue(issubclass(ours, theirs) and ours is not theirs, name)
                elif inspect.isclass(theirs):
                    self.assertIs(ours, theirs, name)
        with self.assertRaises(AttributeError):
            clave.kazoo.NoSuchName

    def test_signatures(self):
        for name in self.OURS:
            theirs = next(getattr(m, name) for m in reversed(self.MODULES) if hasattr(m, name))
            ours = getattr(clave.kazoo, name)
            self.assertEqual(self.public(ours), self.public(theirs))
            for method in self.public(theirs) | {"__init__", "__enter__", "__exit__"}:
                if callable(getattr(theirs, method, None)) and (name, method) != ("KazooClient", "__init__"):
                    with self.subTest(f"{name}.{method}"):
                        self.assertEqual(list(inspect.signature(getattr(ours, method)).parameters),
                                         list(inspect.signature(getattr(theirs, method)).parameters))

    def test_a_client_makes_all_recipes(self):
        theirs, ours = kazoo.client.KazooClient(), clave.kazoo.KazooClient()
        made = {name for name in vars(theirs) if name[0].isupper()}
        self.assertLessEqual(self.OURS - {"KazooClient"}, made)
        for name in made:
            source = clave.kazoo if name in self.OURS else kazoo.client
            self.assertIs(getattr(ours, name).func, getattr(source, name))


if __name__ == "__main__":
    unittest.main()
