"""The same ten jobs with kazoo, in one queue with nobody else: bench/python/run counts the lines of each, and runs it."""
import json
import threading
import time

from kazoo.exceptions import LockTimeout, NoNodeError
from kazoo.protocol.states import KazooState
from kazoo.recipe.cache import TreeCache, TreeEvent


def under_a_lock(zk, work):
    with zk.Lock("/jobs/a"):
        work()


def only_if_free(zk, work):
    lock = zk.Lock("/jobs/b")
    if lock.acquire(blocking=False):
        try:
            work()
        finally:
            lock.release()


def beside_other_readers(zk, work):
    with zk.ReadLock("/jobs/c"):
        work()


def three_at_a_time(zk, work):
    with zk.Semaphore("/jobs/d", max_leases=3):
        work()


def as_leader(zk, work):
    zk.Election("/jobs/e").run(work)


def until_it_is_lost(zk, work):
    lost = threading.Event()

    def listen(state):
        if state != KazooState.CONNECTED:
            lost.set()

    zk.add_listener(listen)
    try:
        with zk.Lock("/jobs/f"):
            for _ in range(3):
                if lost.is_set():
                    raise RuntimeError("the lock may be lost")
                work()
    finally:
        zk.remove_listener(listen)


def write_only_while_held(zk, work):
    lock = zk.Lock("/jobs/g")
    with lock:
        write = zk.transaction()
        write.check(f"/jobs/g/{lock.node}", 0)
        write.set_data("/jobs/result", work())
        for result in write.commit():
            if isinstance(result, Exception):
                raise result


def once_a_day(zk, work):
    with zk.Lock("/jobs/h"):
        try:
            data, stat = zk.get("/jobs/h-once")
            if json.loads(data)["done"] and time.time() - stat.mtime / 1000 < 86400:
                return
        except NoNodeError:
            zk.create("/jobs/h-once", b'{"done": false}')
        work()
        zk.set("/jobs/h-once", b'{"done": true}')


def from_a_copy_of_the_settings(zk, work):
    ready = threading.Event()
    cache = TreeCache(zk, "/jobs/settings")
    cache.listen(lambda event: event.event_type == TreeEvent.INITIALIZED and ready.set())
    cache.start()
    try:
        ready.wait()
        work(cache.get_data("/jobs/settings/colour").data)
    finally:
        cache.close()


def two_locks(zk, work):
    first, second = zk.Lock("/jobs/i"), zk.Lock("/jobs/j")
    with first:
        try:
            second.acquire(timeout=60)
        except LockTimeout:
            raise RuntimeError("not acquired") from None
        try:
            work()
        finally:
            second.release()
