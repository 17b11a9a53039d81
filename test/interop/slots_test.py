"""Slots on Apache's server: twenty takers of three, half of them with `clave slot` and half over HTTP, by two gates of
one key. Programs are killed at any time, and one gate is, too; the log of the server's transactions tells afterwards
whether there ever were four owners, or one whose slot nobody gave back."""
import json
import os
import random
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
import slot_test  # noqa: E402
from gate_rig import Gate  # noqa: E402
from harness import PATIENCE, UNSAFE, ApacheServer, clave, has_apache, scratch  # noqa: E402
from lock_rig import until  # noqa: E402


class OnApache(slot_test.Many):
    TURNS = 60

    def setUp(self):
        super().setUp()
        self.addCleanup(self.over.set)
        self.kills = 0
        self.server.stop()
        self.server = ApacheServer()
        self.server.tick_ms = 500
        self.server.start()
        key = scratch("key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write("0123456789abcdef" * 4 + "\n")
        self.gates = [Gate(self.server.connect, "--http-key", key).start() for _ in range(2)]
        self.addCleanup(lambda: [g.stop() for g in self.gates if g.process.poll() is None])

    def claim(self, dice, method, path, name, body=None, **headers):
        """(status, JSON), of one of the gates; (0, {}) when that is gone."""
        try:
            status, _, told = dice.choice(self.gates).call(method, path, body, Clave_Owner=name, **headers)
        except OSError:
            return 0, {}
        return status, told if isinstance(told, dict) else {}

    def taker(self, name, seed):
        if seed % 2 == 0:
            super().taker(name, seed)
            return
        dice = random.Random(seed)
        while not self.over.is_set():
            status, told = self.claim(dice, "POST", "/v1/claims", name, {"kind": "slot", "path": "/fleet"}, Prefer="wait=5")
            if status not in (200, 201):
                continue
            token = int(told["token"])
            with self.guard:
                self.taken[token] = name
                self.turns += 1
                if self.turns >= self.TURNS:
                    self.over.set()
            status, seen = self.claim(dice, "GET", f"/v1/claims/{told['id']}", name)
            if status == 404 or (status == 200 and seen["token"] != told["token"]):
                self.faults.append(f"{UNSAFE}: {name} lost its slot {token}: {status} {seen}")
            with self.guard:
                self.giving.add(token)
            self.claim(dice, "DELETE", f"/v1/claims/{told['id']}", name)

    def killer(self):
        """Not often: a place that a killed taker leaves in the queue is there for a second."""
        dice = random.Random(7)
        while not self.over.wait(dice.uniform(0.5, 1.5)):
            with self.guard:
                if self.running:
                    dice.choice(sorted(self.running, key=lambda p: p.pid)).kill()
                    self.kills += 1

    def test_twenty_takers(self):
        self.assertEqual(self.call("limit", "/fleet", str(self.LIMIT))[0], 0)
        threads = [threading.Thread(target=self.taker, args=(f"t{i}", i)) for i in range(self.TAKERS)]
        threads += [threading.Thread(target=self.sampler), threading.Thread(target=self.killer)]
        for t in threads:
            t.start()
        until(lambda: self.turns >= self.TURNS // 2, patience=2 * PATIENCE, what="half of the turns")
        self.gates[0].stop(signal.SIGKILL)
        self.gates[0].start()
        self.over.wait(4 * PATIENCE)
        self.over.set()
        for t in threads:
            t.join()
        self.assertEqual(self.faults, [])
        self.assertGreaterEqual(self.turns, self.TURNS)
        self.assertGreater(self.kills, 1)
        ways = {int(name[1:]) % 2 for name in self.taken.values()}
        self.assertEqual(ways, {0, 1}, "both kinds of takers took slots")
        self.assertLessEqual(len(self.call("list", "/fleet")[1].splitlines()), self.LIMIT)
        until(lambda: clave("ls", "/fleet/queue", connect=self.server.connect).out == "",
              patience=2 * PATIENCE, what="no place is left in the queue")
        self.server.stop()
        creates = set(self.history())
        self.assertEqual(set(self.taken) - creates, set(), "each token that was answered is of a create")


if __name__ == "__main__":
    if not has_apache():
        print("Apache ZooKeeper is not installed")
        sys.exit(77)
    unittest.main()
