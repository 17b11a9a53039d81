"""Tokens and certificates of a gate are rotated under load: clients lock, renew, release and read events
meanwhile. No request fails but those with a token that was taken away; new connections see the new certificate;
nobody holds what another holds. CLAVE_ROTATIONS=N: for longer."""
import http.client
import json
import os
import threading
import time
import unittest

from gate_rig import Holder, ask
from gate_tls_rig import CA, TlsGate, der_of
from harness import PATIENCE, ClaveServer, scratch

ROTATIONS = int(os.environ.get("CLAVE_ROTATIONS", "12"))
LOCKERS, READERS, STEPS = 4, 2, 3
STAYS = "stays-0123456789abcdef"


def taken(n):
    """The token that rotation n takes away."""
    return f"taken-0123456789-{n}"


class Client(threading.Thread):
    """Does its work until it is told to end, or fails; `done` counts what it has done."""

    def __init__(self, world, token=STAYS):
        super().__init__(daemon=True)
        self.world, self.headers = world, {"Authorization": "Bearer " + token}
        self.ends, self.done, self.failure, self.status = False, 0, None, None

    def run(self):
        try:
            while not self.ends:
                self.work()
        except (AssertionError, OSError, http.client.HTTPException, KeyError) as e:
            self.failure = f"{type(e).__name__}: {e}"

    def ask(self, c, method, path, body=None, want=(200, 201), **headers):
        self.status, _, told = ask(c, method, path, body, **self.headers, **headers)
        assert self.status in want, (method, path, self.status, told)
        self.done += 1
        return told


class Locker(Client):
    """On a connection of its own each time, so that there are handshakes all the time."""

    def work(self):
        c = self.world.gate.open()
        s = self.ask(c, "POST", "/v1/sessions", {"ttl_ms": 20000})
        mine = {"Clave_Session": s["secret"]}
        claim = self.ask(c, "POST", "/v1/claims", {"session": s["id"], "path": "/rotated", "kind": "lock"},
                         (201, 202), Prefer="wait=20", **mine)
        assert claim["state"] == "held", claim
        self.world.holder.begin(self, int(claim["token"]))
        renewed = self.ask(c, "POST", f"/v1/sessions/{s['id']}/renew", **mine)
        assert renewed["claims"][0]["state"] == "held", renewed
        self.world.holder.end(self)
        self.ask(c, "DELETE", "/v1/claims/" + claim["id"], want=(200, 204), **mine)
        self.ask(c, "DELETE", "/v1/sessions/" + s["id"], want=(200, 204), **mine)
        c.close()


class Reader(Client):
    """Of one stream of events, which does not end."""

    def work(self):
        c = self.world.gate.open()
        c.request("GET", "/v1/events", headers=self.headers)
        r = c.getresponse()
        assert r.status == 200, r.read()
        while not self.ends:
            line = r.readline()
            assert line or self.ends, "the stream has ended"
            self.done += line.startswith(b"event:")
        c.close()


class Taken(Client):
    """Its token will be taken away."""

    def work(self):
        c = self.world.gate.open()
        while not self.ends:
            self.ask(c, "GET", "/v1/locks")


class Rotation(unittest.TestCase):
    def setUp(self):
        self.server = ClaveServer(["--max-connections", "0"]).start()
        self.addCleanup(self.server.stop)
        self.tokens = scratch("tokens")
        self.write_tokens(0)
        self.gate = TlsGate(self.server.connect, "--http-tokens", self.tokens).start()
        self.addCleanup(lambda: self.gate.process.poll() is None and self.gate.stop())
        self.holder = Holder()

    def write_tokens(self, first):
        with open(self.tokens + ".new", "w", encoding="utf-8") as f:
            f.write(f"{STAYS} admin\n")
            f.writelines(f"{taken(n)} read\n" for n in range(first, ROTATIONS))
        os.chmod(self.tokens + ".new", 0o600)
        os.rename(self.tokens + ".new", self.tokens)

    def await_true(self, what, clients):
        until = time.monotonic() + 2 * PATIENCE
        while not what():
            for c in clients:
                self.assertIsNone(c.failure, type(c).__name__)
            self.assertLess(time.monotonic(), until, [(type(c).__name__, c.done) for c in clients])
            time.sleep(0.005)

    def await_work(self, clients):
        before = [c.done for c in clients]
        self.await_true(lambda: all(c.done >= b + STEPS for c, b in zip(clients, before)), clients)

    def test_rotation_under_load(self):
        stay = [Locker(self) for _ in range(LOCKERS)] + [Reader(self) for _ in range(READERS)]
        go = [Taken(self, taken(n)) for n in range(ROTATIONS)]
        for c in stay + go:
            c.start()
        certificate = None
        for n in range(ROTATIONS):
            self.await_work(stay + go[n:])
            self.write_tokens(n + 1)
            if n % 3 == 2:  # one that cannot be used: the last one stays
                with open(self.gate.cert, "w", encoding="ascii") as f:
                    f.write("no certificate\n")
            else:
                certificate = CA.server()
                self.gate.renew(certificate)
            self.gate.reload()
            self.assertEqual(self.gate.presented(), der_of(certificate))
            self.await_true(lambda taken=go[n]: taken.failure, stay + go[n + 1:])
            self.assertEqual(go[n].status, 401, go[n].failure)
        self.await_work(stay)
        for c in stay:
            c.ends = True
        for c in stay[:LOCKERS]:
            c.join(PATIENCE)
            self.assertIsNone(c.failure)
        self.assertEqual(self.gate.stop(), 0)  # ends the streams
        print(json.dumps({"requests": sum(c.done for c in stay), "grants": "no two at once"}))


if __name__ == "__main__":
    unittest.main()
