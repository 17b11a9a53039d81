"""Gates that are stopped and started again, as for an upgrade: what is held is held on, and clients go on
with whichever gate answers."""
import os
import signal
import threading
import time
import unittest

from gate_rig import Gate
from harness import PATIENCE, ClaveServer, Running, clave, scratch
from lock_rig import until


def key_file():
    path = scratch("key")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
        f.write("5a" * 32 + "\n")
    return path


class User(threading.Thread):
    """Holds a lock: a session that is renewed, and a claim, at the gate that answers."""

    def __init__(self, gates, path):
        super().__init__(daemon=True)
        self.gates = gates
        self.path = path
        self.ending = threading.Event()
        self.fault = None
        self.renewed = 0
        self.tokens = set()
        status, _, self.session = gates[0].call("POST", "/v1/sessions", {"ttl_ms": 20000})
        assert status == 201, self.session
        self.id = self.claim(gates[0], {})["id"]

    def claim(self, gate, key):
        body = {"session": self.session["id"], "path": self.path, "kind": "lock"}
        status, _, told = gate.call("POST", "/v1/claims", body, Prefer="wait=10",
                                    Clave_Session=self.session["secret"], **key)
        # It is shutting down, not connected yet, or not connected any more: "suspended" proves nothing.
        if status == 503 or (status == 202 and told["state"] == "suspended"):
            raise ConnectionError
        if status != 201:
            raise AssertionError(f"{status} {told}")
        self.tokens.add(told["token"])
        return told

    def turn(self, gate):
        status, _, told = gate.call("POST", f"/v1/sessions/{self.session['id']}/renew",
                                    Clave_Session=self.session["secret"])
        if status == 503:
            return
        if status != 200 or told["valid_ms"] < 10000:
            raise AssertionError(f"{status} {told}")
        self.claim(gate, {"Idempotency_Key": self.id})
        self.renewed += 1

    def run(self):
        try:
            while not self.ending.wait(0.05):
                for gate in self.gates:
                    try:
                        self.turn(gate)
                        break
                    except (OSError, EOFError):  # it is down: the next one
                        pass
        except Exception as e:  # pylint: disable=broad-except
            self.fault = e


class Restarts(unittest.TestCase):
    def setUp(self):
        self.server = ClaveServer(["--max-connections", "0"]).start()
        self.gates = []

    def tearDown(self):
        for g in self.gates:
            if g.process.poll() is None:
                g.stop()
        self.server.stop()

    def nodes(self, path):
        return clave("ls", path, connect=self.server.connect).out.split()

    def held_for(self, gate, user, claim):
        """How much longer a claim may be used, or None: it is over."""
        status, _, told = gate.call("POST", f"/v1/sessions/{user['id']}/renew", Clave_Session=user["secret"])
        self.assertEqual(status, 200, told)
        return next((c["valid_ms"] for c in told["claims"] if c["id"] == claim["id"] and c["state"] == "held"), None)

    def test_a_longest_hold_goes_on(self):
        """In `clave serve --http`, with the key that it keeps: it is killed while a lock, a lock that may be asked for and a
        leadership are held for 6 s at most."""
        most = 6000
        gate = Gate(None).start()
        self.gates = [gate]
        user = gate.call("POST", "/v1/sessions", {"ttl_ms": 20000})[2]
        own, claims, begun = {"Clave_Session": user["secret"]}, [], time.monotonic()
        for more in ({}, {"revocable": True}, {"kind": "election"}):
            body = {"session": user["id"], "path": f"/longest/{len(claims)}", "max_hold_ms": most, **more}
            status, _, told = gate.call("POST", "/v1/claims", body, Prefer="wait=10", **own)
            self.assertEqual(status, 201, told)
            claims.append(told)
        granted = time.monotonic()
        while time.monotonic() < granted + most / 3000:
            time.sleep(0.05)
        gate.stop(signal.SIGKILL)
        gate.start()
        for c in claims:
            asked = time.monotonic()
            valid = self.held_for(gate, user, c)
            if valid is None:  # this machine was busy all the time
                self.assertGreater(time.monotonic(), begun + most / 1000)
            else:
                self.assertLessEqual(asked + valid / 1000, granted + most / 1000)
        until = time.monotonic() + PATIENCE
        while any(self.held_for(gate, user, c) is not None for c in claims):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def test_gates_agree_since_when_a_lock_is_held(self):
        """Where its node tells, which each gate reads; otherwise a gate that has not seen the grant does not guess."""
        self.gates = [Gate(self.server.connect).start() for _ in range(2)]
        work = "lock", "/since/told", "--", "sh", "-c", "echo held; exec sleep 60"
        holder = Running(*work, connect=self.server.connect)
        self.addCleanup(lambda: (holder.process.kill(), holder.process.wait()))
        self.assertEqual(holder.line(), "held")
        waiter = Running(*work, connect=self.server.connect)
        self.addCleanup(lambda: (waiter.process.kill(), waiter.process.wait()))
        until(lambda: len(self.nodes("/since/told")) == 2, what="both are in the queue")
        session = self.gates[0].call("POST", "/v1/sessions", {"ttl_ms": 20000})[2]
        claim = {"session": session["id"], "path": "/since/untold"}
        self.assertEqual(self.gates[0].call("POST", "/v1/claims", claim, Clave_Session=session["secret"])[0], 201)
        holder.process.terminate()
        self.assertEqual(waiter.line(), "held")

        def told(gate, path):
            lock = gate.call("GET", path)[2]
            return lock["held_since_by"], lock["held_since"]
        until(lambda: told(self.gates[0], "/v1/locks/since/told")[0] == "node", what="the grant is written down")
        lock = self.gates[0].call("GET", "/v1/locks/since/told")[2]
        self.assertGreater(lock["held_since"], lock["holders"][0]["since"])
        seen = told(self.gates[0], "/v1/locks/since/untold")
        self.assertEqual(seen[0], "gate")
        self.gates[1].stop()
        self.gates[1].start()
        for gate in self.gates:
            until(lambda g=gate: told(g, "/v1/locks/since/told") == ("node", lock["held_since"]), what="the same at each gate")
            self.assertEqual(told(gate, "/v1/locks/since/told?fresh"), ("node", lock["held_since"]))
        self.assertEqual(told(self.gates[0], "/v1/locks/since/untold"), seen)
        self.assertEqual(told(self.gates[1], "/v1/locks/since/untold"), (None, None))

    def test_a_rolling_restart_loses_nothing(self):
        key = key_file()
        self.gates = [Gate(self.server.connect, "--http-key", key).start() for _ in range(2)]
        users = [User(self.gates, f"/l{i}") for i in range(4)]
        before = [self.nodes(u.path) for u in users]
        for u in users:
            u.start()
        for gate in self.gates + self.gates:
            renewed = [u.renewed for u in users]
            until = time.monotonic() + PATIENCE
            while any(u.renewed < n + 2 and not u.fault for u, n in zip(users, renewed)):
                self.assertLess(time.monotonic(), until)
                time.sleep(0.02)
            self.assertEqual(gate.stop(signal.SIGTERM), 0)
            gate.start()
        for u in users:
            u.ending.set()
            u.join(PATIENCE)
            self.assertIsNone(u.fault, u.path)
            self.assertEqual(len(u.tokens), 1, u.path)
        self.assertEqual(before, [self.nodes(u.path) for u in users])
        for u in users:
            status, _, told = self.gates[0].call("DELETE", "/v1/sessions/" + u.session["id"],
                                                 Clave_Session=u.session["secret"])
            self.assertEqual(status, 204, told)
            self.assertEqual(self.nodes(u.path), [])

    def test_without_a_key_what_is_held_stands_until_it_is_not_valid(self):
        self.gates = [Gate(self.server.connect).start()]
        status, _, s = self.gates[0].call("POST", "/v1/sessions", {"ttl_ms": 4000})
        self.assertEqual(status, 201, s)
        sent = time.monotonic()
        status, _, told = self.gates[0].call("POST", "/v1/claims", {"session": s["id"], "path": "/a"},
                                             Clave_Session=s["secret"])
        self.assertEqual(status, 201, told)
        self.assertEqual(self.gates[0].stop(), 0)
        while time.monotonic() < sent + told["valid_ms"] / 1000:
            nodes = self.nodes("/a")
            if time.monotonic() < sent + told["valid_ms"] / 1000:
                self.assertEqual(len(nodes), 1)
            time.sleep(0.1)
        until = time.monotonic() + PATIENCE
        while self.nodes("/a"):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.1)


if __name__ == "__main__":
    unittest.main()
