"""One candidate of elections_test.py, with kazoo's Election; to stand in one queue with Curator
and clave its lock takes their names."""
import os
import random
import sys
import time

from kazoo.client import KazooClient
from kazoo.recipe.election import Election
from kazoo.recipe.lock import Lock


def main():
    what, connect, path, log, name, stop, session_ms = sys.argv[1:]

    class CuratorLock(Lock):
        _NODE_NAME = "-latch-" if what == "latch" else "-lock-"
        _EXCLUDE_NAMES = [_NODE_NAME]

    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    zk = KazooClient(connect, timeout=int(session_ms) / 1000)
    zk.start(timeout=30)
    dice = random.Random(name)

    def lead():
        stat = zk.exists(f"{path}/{election.lock.node}")
        if stat is None or stat.ephemeralOwner != zk.client_id[0]:
            sys.exit("the leader's node is not ours")
        os.write(fd, f"+ {name} {stat.czxid}\n".encode())
        time.sleep(dice.randrange(3) / 1000)
        os.write(fd, f"- {name} {stat.czxid}\n".encode())

    while not os.path.exists(stop):
        election = Election(zk, path, name)
        election.lock = CuratorLock(zk, path, name)
        election.run(lead)
    zk.stop()


main()
