"""One holder in the queue of queue_test.py, with kazoo's Lock.

kazoo's own name in lock nodes is __lock__; to stand in one queue with Curator and clave a
subclass takes theirs. With a last argument "clave.kazoo" it is the one of that module."""
import os
import random
import sys
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


class CuratorLock(Lock):
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


def main():
    connect, path, log, name, stop, session_ms = sys.argv[1:7]
    kind = CuratorLock
    if sys.argv[7:]:
        from clave.kazoo import Lock as kind
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    zk = KazooClient(connect, timeout=int(session_ms) / 1000)
    zk.start(timeout=30)
    dice = random.Random(name)
    while not os.path.exists(stop):
        lock = kind(zk, path)
        lock.acquire()
        stat = zk.exists(f"{path}/{lock.node}")
        if stat is None or stat.ephemeralOwner != zk.client_id[0]:
            sys.exit("the lock node is not ours")
        os.write(fd, f"+ {name} {stat.czxid}\n".encode())
        time.sleep(dice.randrange(3) / 1000)
        os.write(fd, f"- {name} {stat.czxid}\n".encode())
        lock.release()
    zk.stop()


main()
