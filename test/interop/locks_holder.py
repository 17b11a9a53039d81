"""One holder of locks_test.py, with kazoo's read-write lock and semaphore.

To stand in one queue with Curator and clave the locks take their names. "rw-stock" are kazoo's own
names, told of clave's: with those Curator does not go together.

  locks_holder.py CONNECT PATH LOG NAME STOP SESSION_MS rw|rw-stock|semaphore|semaphore-mutex"""
import functools
import os
import random
import sys
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock

LIMITS = {"semaphore": 3, "semaphore-mutex": 1}
CLAVE_NAMES = ("__WRIT__", "__READ__")


class CuratorLock(Lock):
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class FairReads:
    """kazoo 2.8 has a read wait for every write there is, those behind it too, while they wait for
    the read: both stand still for ever. Here it waits for those before it."""

    def _get_predecessor(self, node):
        number = int(node[-10:])
        matches = [self._contenders_re.search(n) for n in self.client.get_children(self.path)]
        before = [m for m in matches if m and int(m.group(1)) < number]
        return max(before, key=lambda m: int(m.group(1))).string if before else None


class CuratorWrite(Lock):
    _NODE_NAME = "-__WRIT__"
    _EXCLUDE_NAMES = ["-__WRIT__", "-__READ__"]


class CuratorRead(FairReads, Lock):
    _NODE_NAME = "-__READ__"
    _EXCLUDE_NAMES = ["-__WRIT__"]


class StockRead(FairReads, ReadLock):
    pass


class Holder:
    def __init__(self, connect, path, log, name, stop, session_ms, what):
        self.path, self.name, self.stop, self.what = path, name, stop, what
        self.fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.dice = random.Random(name)
        self.zk = KazooClient(connect, timeout=int(session_ms) / 1000)
        self.zk.start(timeout=30)
        self.zk.Lock = functools.partial(CuratorLock, self.zk)  # the semaphore's

    def hold(self, kind, node):
        stat = self.zk.exists(node)
        if stat is None or stat.ephemeralOwner != self.zk.client_id[0]:
            sys.exit("the node is not ours")
        os.write(self.fd, f"+ {self.name} {kind} {stat.czxid}\n".encode())
        time.sleep(self.dice.randrange(3) / 1000)
        os.write(self.fd, f"- {self.name} {kind} {stat.czxid}\n".encode())

    def read_or_write(self):
        writes = self.dice.randrange(3) == 0
        if self.what == "rw":
            lock = (CuratorWrite if writes else CuratorRead)(self.zk, self.path)
        elif writes:
            lock = WriteLock(self.zk, self.path, extra_lock_patterns=CLAVE_NAMES)
        else:
            lock = StockRead(self.zk, self.path, extra_lock_patterns=CLAVE_NAMES[:1])
        lock.acquire()
        self.hold("W" if writes else "R", f"{self.path}/{lock.node}")
        lock.release()

    def take_lease(self):
        """Curator's layout: its leases are children of PATH/leases, who acquires stands in
        PATH/locks."""
        semaphore = Semaphore(self.zk, f"{self.path}/leases", max_leases=LIMITS[self.what])
        semaphore.lock_path = f"{self.path}/locks"
        semaphore.acquire()
        self.hold("S", semaphore.create_path)
        semaphore.release()

    def run(self):
        while not os.path.exists(self.stop):
            if self.what.startswith("rw"):
                self.read_or_write()
            else:
                self.take_lease()
        self.zk.stop()


Holder(*sys.argv[1:]).run()
