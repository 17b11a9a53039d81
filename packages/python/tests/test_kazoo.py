"""clave.kazoo: kazoo's recipes in one queue with clave's, whose names are Curator's."""
import threading
import time
import unittest

import clave
from rig import PATIENCE, Case

try:
    import clave.kazoo
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



if __name__ == "__main__":
    unittest.main()
