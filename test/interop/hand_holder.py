"""One holder of elementary_test.py, as such programs are written by hand: the exercises of every
course on ZooKeeper, with nothing but create, getChildren, exists and delete.

  hand_holder.py simple|fair|unfair CONNECT PATH LOG NAME STOP SESSION_MS"""
import os
import random
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError

PREFIX = {"simple": "lock_", "fair": "c_"}


class Program:
    def __init__(self, what, connect, path, log, name, stop, session_ms):
        self.what, self.path, self.name, self.stop = what, path, name, stop
        self.fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.dice = random.Random(name)
        self.zk = KazooClient(connect, timeout=int(session_ms) / 1000)
        self.zk.start(timeout=30)
        self.zk.ensure_path(path if what in PREFIX else os.path.dirname(path))

    def work(self, node):
        czxid = self.zk.exists(node).czxid
        os.write(self.fd, f"+ {self.name} {czxid}\n".encode())
        time.sleep(self.dice.randrange(3) / 1000)
        os.write(self.fd, f"- {self.name} {czxid}\n".encode())

    def wait_until_gone(self, node):
        gone = threading.Event()
        if self.zk.exists(node, watch=lambda event: gone.set()):
            gone.wait()

    def queue(self):
        """The simple lock and the fair election: all the same."""
        node = self.zk.create(f"{self.path}/{PREFIX[self.what]}", ephemeral=True, sequence=True)
        own = os.path.basename(node)
        while True:
            before = [n for n in sorted(self.zk.get_children(self.path)) if n < own]
            if not before:
                break
            self.wait_until_gone(f"{self.path}/{before[-1]}")
        self.work(node)
        self.zk.delete(node)

    def race(self):
        try:
            self.zk.create(self.path, self.name.encode(), ephemeral=True)
        except NodeExistsError:
            self.wait_until_gone(self.path)
            return
        self.work(self.path)
        self.zk.delete(self.path)
        time.sleep(self.dice.randrange(50) / 1000)  # or it would be the first each time

    def run(self):
        while not os.path.exists(self.stop):
            if self.what == "unfair":
                self.race()
            else:
                self.queue()
        self.zk.stop()


Program(*sys.argv[1:]).run()
