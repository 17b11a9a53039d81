"""A holder of kazoo's: logs what it believes as holder.c does, until it has lost what it held. A
careful user: what counts is Lock.is_acquired, and that the connection is CONNECTED.

  holder_kazoo.py CONNECT PATH LOG SESSION_MS

To stand in one queue with clave and Curator it takes their names (see test/interop)."""
import logging
import os
import sys
import time

from kazoo.client import KazooClient, KazooState
from kazoo.recipe.lock import Lock


class CuratorLock(Lock):
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def main():
    logging.disable()
    connect, path, log, session_ms = sys.argv[1:]
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    zk = KazooClient(connect, timeout=int(session_ms) / 1000)
    zk.start(timeout=60)
    lock = CuratorLock(zk, path)
    lock.acquire()
    token = zk.exists(f"{path}/{lock.node}").czxid

    def note(ns, what, detail):
        os.write(fd, f"{ns} {what} kazoo-lock {token} {detail}\n".encode())

    note(now_ns(), "grant", "lock")
    ns = now_ns()
    while lock.is_acquired and zk.state == KazooState.CONNECTED:
        note(ns, "held", "-")
        time.sleep(0.005)
        ns = now_ns()
    note(now_ns(), "gone", zk.state)
    os._exit(0)  # not waiting for an end of the session


main()
