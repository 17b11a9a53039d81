"""kazoo's recipes in its soak: contenders for locks, and one thread with the others.

Not here: kazoo 2.8's DoubleBarrier, which waits for ever when a connection is lost within it, and its
ReadLock, which waits for writers behind it, as they do for it."""
import threading
from concurrent.futures import ThreadPoolExecutor

from worker import PATIENCE, Lost

LEASES = 2


class Holders:
    """Who is inside of each lock, counted in this process: at most so many at once, however often
    the server went away meanwhile."""

    def __init__(self, worker):
        self.worker, self.mutex, self.inside = worker, threading.Lock(), {}

    def visit(self, what, limit, stay):
        with self.mutex:
            self.inside[what] = self.inside.get(what, 0) + 1
            if self.inside[what] > limit:
                self.worker.fail(f"SAFETY VIOLATED: {self.inside[what]} are inside of {what}")
        stay()
        with self.mutex:
            self.inside[what] -= 1


class Contender:
    """One of several that take turns; each has a session of its own."""

    def __init__(self, worker, client, holders):
        self.worker, self.client, self.zk, self.holders = worker, client, client.zk, holders
        self.path = f"{worker.root}/recipes"

    def stay(self, lock=None):
        """A request while it is held; the node of the lock has to be ours."""
        if lock is None:
            self.worker.surely("exists", self.zk.exists, self.path)
            return
        stat = self.worker.surely("exists", self.zk.exists, f"{lock.path}/{lock.node}")
        self.worker.same("the lock's owner", stat and stat.ephemeralOwner, self.client.id)

    def lock(self):
        lock = self.zk.Lock(f"{self.path}/lock", "me")
        self.worker.count("Lock")
        lock.acquire()
        self.holders.visit("Lock", 1, lambda: self.stay(lock))
        lock.release()

    def semaphore(self):
        semaphore = self.zk.Semaphore(f"{self.path}/semaphore", max_leases=LEASES)
        self.worker.count("Semaphore")
        semaphore.acquire()
        self.holders.visit("Semaphore", LEASES, self.stay)
        semaphore.release()
        self.zk.remove_listener(semaphore._watch_session)  # of which it adds one each time

    def election(self):
        self.worker.count("Election")
        self.zk.Election(f"{self.path}/election", "me").run(
            lambda: self.holders.visit("Election", 1, self.stay))

    def chores(self):
        return [self.lock, self.semaphore, self.election]


class Others:
    """The recipes that one thread can try; each from the beginning when a connection was lost."""

    def __init__(self, worker, make_client):
        self.worker, self.make_client = worker, make_client
        self.zk, self.other = worker.zk, worker.other.zk
        self.path = f"{worker.root}/recipes"

    def undisturbed(self, call):
        """Whether no connection was lost in it: its answers are exact then."""
        before = self.worker.losses
        try:
            call()
        except Lost:
            return False
        return self.worker.losses == before

    def queue(self):
        path = f"{self.path}/queue"
        self.worker.clear(path)
        put, got = self.zk.Queue(path), self.other.Queue(path)
        answers = []

        def use():
            for value, priority in ((b"b", 100), (b"c", 100), (b"a", 7)):
                self.worker.attempt("Queue.put", put.put, value, priority)
            answers.append(self.worker.attempt("Queue.len", len, put))
            for _ in range(4):
                answers.append(self.worker.attempt("Queue.get", got.get))
        if self.undisturbed(use):
            self.worker.same("the queue", answers, [3, b"a", b"b", b"c", None])

    def locking_queue(self):
        path = f"{self.path}/lockingqueue"
        self.worker.clear(path)
        client = self.make_client(self.worker, "queue", timeout=self.worker.session_s / 2)
        queue, answers = client.zk.LockingQueue(path), []

        def use():
            self.worker.attempt("LockingQueue.put", queue.put_all, [b"1", b"2"])
            for _ in range(2):
                answers.append(self.worker.attempt("LockingQueue.get", queue.get, PATIENCE / 3))
                answers.append(self.worker.attempt("LockingQueue.consume", queue.consume))
            answers.append(self.worker.attempt("LockingQueue.get", queue.get, 0.01))
        if self.undisturbed(use):
            self.worker.same("the queue", answers, [b"1", True, b"2", True, None])
        client.close()

    def counter(self):
        """With its connection lost in between kazoo counts twice what it does not know of."""
        counter = self.zk.Counter(f"{self.path}/counter")
        first = self.worker.surely("Counter.value", lambda: counter.value)
        before = self.worker.losses
        self.worker.surely("Counter.add", lambda: counter + 3)
        self.worker.surely("Counter.sub", lambda: counter - 1)
        now = self.worker.surely("Counter.value", lambda: counter.value)
        if self.worker.losses == before:
            self.worker.same("the counter", now, first + 2)

    def party(self):
        path = f"{self.path}/party"
        one, two = self.zk.Party(path, "one"), self.other.Party(path, "two")
        for p in (one, two):
            self.worker.surely("Party.join", p.join)
        self.worker.same("the party", self.worker.surely("Party", sorted, one), ["one", "two"])
        self.worker.surely("Party.leave", one.leave)
        self.worker.same("the party", self.worker.surely("Party", list, two), ["two"])
        self.worker.surely("Party.leave", two.leave)
        self.worker.same("the party", self.worker.surely("Party", len, one), 0)

    def barrier(self):
        path = f"{self.path}/barrier"
        here, there = self.zk.Barrier(path), self.other.Barrier(path)
        self.worker.surely("Barrier.create", here.create)
        self.worker.same("the barrier", self.worker.surely("Barrier.wait", there.wait, 0.01), False)
        with ThreadPoolExecutor(1) as pool:
            passed = pool.submit(self.wait_at, there)
            self.worker.surely("Barrier.remove", here.remove)
            self.worker.same("the barrier", passed.result(PATIENCE), True)

    def wait_at(self, barrier):
        """Again and again: its watch is gone when the connection is."""
        passed = []
        self.worker.wait("the barrier", lambda: passed.append(
            self.worker.surely("Barrier.wait", barrier.wait, 2)) or passed[-1])
        return passed[-1]

    def chores(self):
        return [self.queue, self.locking_queue, self.counter, self.party, self.barrier]


def recipes(worker, make_client):
    """The lists of chores, one for each thread."""
    worker.make(f"{worker.root}/recipes")
    holders = Holders(worker)
    contenders = [Contender(worker, make_client(worker, f"contender {n}"), holders)
                  for n in range(LEASES + 1)]
    return [c.client for c in contenders], \
        [Others(worker, make_client).chores()] + [c.chores() for c in contenders]
