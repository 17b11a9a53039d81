"""A server of the soak whose disk fails at times. A server that ends for it is started again, as by a
supervisor, until it serves."""
import collections
import errno
import os
import random
import sys
import time

from harness import ClaveServer, PATIENCE, ask, scratch
from plan import Plan

FAULTS = (errno.ENOSPC, errno.EIO, errno.EROFS)
CALLS = 400    # so many are made before a fault, at most
LASTS_S = 5    # a fault that does not come once
PAUSE_S = 0.5  # between two starts
SNAP_COUNT = "200"  # so that many faults hit snapshots and new logs
ALIVE = 20     # transactions after a fault: it serves


class FailingServer(ClaveServer):
    def __init__(self, library, flags):
        super().__init__(flags + ["--snap-count", SNAP_COUNT])
        self.plan, self.random = Plan(scratch("plan")), random.Random(1)
        self.env = self.plan.environment(library, os.path.dirname(self.data))
        self.outcomes = collections.Counter()

    def zxid(self):
        """-1: it does not answer."""
        told = dict(line.split(": ", 1) for line in ask(self.port, b"srvr").decode().splitlines()
                    if ": " in line)
        return int(told.get("Zxid", "-1"), 0)

    def start_again(self):
        """Whether it serves."""
        self.process.stdout.close()
        time.sleep(PAUSE_S)
        try:
            self.start()
        except AssertionError:
            self.process.wait(PATIENCE)
            return False
        return True

    def wait_until_it_works(self):
        """How often it had to be started."""
        starts, until = 0, time.monotonic() + PATIENCE
        first = -1
        while first < 0 or self.zxid() < first + ALIVE:
            if self.process.poll() is not None:
                starts += 1
                self.start_again()
                first = -1
            if first < 0:
                first = self.zxid()
            if time.monotonic() > until:
                raise AssertionError("the server does not serve, and its disk works")
            time.sleep(0.1)
        return starts

    def fail(self):
        """One fault, until it serves again."""
        number, lasts = self.random.choice(FAULTS), self.random.random() < 0.5
        self.plan.fail(self.random.randint(1, CALLS), number, lasts,
                       is_short=self.random.random() < 0.2)
        until = time.monotonic() + PATIENCE
        while self.plan.struck == 0 and time.monotonic() < until:
            time.sleep(0.01)
        ends = 0
        until = time.monotonic() + (LASTS_S if lasts else 0)
        while time.monotonic() < until:
            if self.process.poll() is not None:
                ends += 1
                self.start_again()
            time.sleep(0.1)
        self.plan.work()
        ends += self.wait_until_it_works()
        told = f"{errno.errorcode[number]} {'for a while' if lasts else 'once'}"
        self.outcomes[f"{told}: {'the server ended' if ends else 'it served on'}"] += 1
        print(f"{told}, {self.plan.call or 'nothing'}: started {ends} times", file=sys.stderr, flush=True)
