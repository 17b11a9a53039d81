"""A holder of kazoo's: logs what it believes as holder.c does, until it has lost what it held; with NAME, again and
again. A careful user: what counts is Lock.is_acquired, and that the connection is CONNECTED.

  holder_kazoo.py CONNECT PATH LOG SESSION_MS [NAME STOP HOLD_MS]

To stand in one queue with clave and Curator it takes their names (see test/interop)."""
import logging
import os
import sys
import time

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException
from kazoo.recipe.lock import Lock


class CuratorLock(Lock):
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Holder:
    def __init__(self, connect, path, log, session_ms, name="kazoo-lock", stop="", hold_ms=0):
        self.fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.name, self.stop, self.hold_ns = name, stop, int(hold_ms) * 1000000
        self.zk = KazooClient(connect, timeout=int(session_ms) / 1000)
        self.lock = CuratorLock(self.zk, path)

    def note(self, ns, what, token, detail="-"):
        os.write(self.fd, f"{ns} {what} {self.name} {token} {detail}\n".encode())

    def holds(self):
        return self.lock.is_acquired and self.zk.state == KazooState.CONNECTED

    def hold(self):
        self.note(now_ns(), "ask", 0, "acquire")
        self.lock.acquire()
        token = self.zk.exists(f"{self.lock.path}/{self.lock.node}").czxid
        begin = ns = now_ns()
        self.note(ns, "grant", token, "lock")
        while self.holds():
            over = self.hold_ns and ns - begin >= self.hold_ns
            self.note(ns, "release" if over else "held", token, now_ns())
            if over:
                return
            time.sleep(0.005)
            ns = now_ns()
        self.note(now_ns(), "gone", token, self.zk.state)

    def run(self):
        self.zk.start(timeout=60)
        if not self.stop:
            self.hold()
        while self.stop and not os.path.exists(self.stop):
            try:
                self.hold()
                self.lock.release()
            except (KazooException, AttributeError):  # the latter: its node went between acquire and exists
                pass


if __name__ == "__main__":
    logging.disable()
    Holder(*sys.argv[1:]).run()
    os._exit(0)  # not waiting for an end of the session
