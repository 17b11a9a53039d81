"""A gate whose connections are all taken: by silent ones, by ones that are turned away, again and again, from the
holder's own address and from others. The holder's renewals get through all the time. A hold that is not read ends."""
import json
import os
import socket
import threading
import time
import unittest

from gate_rig import Gate, ask
from harness import PATIENCE, ClaveServer, clave, scratch

PLACES = 20
HEARTBEATS = 12  # a hold that is not read has ended by then
RENEWALS, FLOODED = 8, 2 * PLACES  # so many connections come before each of them
SECRET, GREEDY = "holder-0123456789abcdef", "greedy-0123456789abcdef"
TTL_MS = 4000


class Pressure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ClaveServer(["--max-connections", "0", "--min-session-timeout", "2s"]).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        tokens = scratch("tokens")
        with open(os.open(tokens, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(f"{SECRET} lock name=holder\nuid={os.getuid()} lock\n")
        self.unix = scratch("gate.sock")
        self.gate = Gate(self.server.connect, "--http-max-connections", str(PLACES), "--http-tokens", tokens,
                         "--http", "unix:" + self.unix).start()
        self.addCleanup(self.gate.stop)

    def dial_from(self, host):
        return socket.create_connection(("127.0.0.1", self.gate.port), PATIENCE, (host, 0))

    def call(self, method, path, body=None, **headers):
        return self.gate.call(method, path, body, Authorization=f"Bearer {SECRET}", **headers)

    def renewals(self, flood):
        """A lock is renewed, each time on a new connection, while the flood goes on in another thread: many times over it
        takes all places between two renewals."""
        path = f"/pressure/{self.id()}"
        made = self.call("POST", "/v1/sessions", {"ttl_ms": TTL_MS})[2]
        mine = {"Clave_Session": made["secret"]}
        claim = self.call("POST", "/v1/claims", {"session": made["id"], "path": path, "kind": "lock"}, **mine)
        self.assertEqual(claim[0], 201, claim)
        stop, turns, more = threading.Event(), [0], threading.Condition()

        def run():
            kept = []
            while not stop.is_set():
                flood(kept)
                while len(kept) > 4 * PLACES:
                    kept.pop(0).close()
                with more:
                    turns[0] += 1
                    more.notify()
            for s in kept:
                s.close()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            for renewal in range(RENEWALS):
                with more:
                    self.assertTrue(more.wait_for(lambda n=renewal: turns[0] >= (n + 1) * FLOODED, PATIENCE))
                begun = time.monotonic()
                status, _, told = self.call("POST", f"/v1/sessions/{made['id']}/renew", **mine)
                self.assertEqual(status, 200, told)
                self.assertLess(time.monotonic() - begun, TTL_MS / 3000)
                self.assertEqual(len(told["claims"]), 1, told)
        finally:
            stop.set()
            thread.join()

    def silent(self, kept, host="127.0.0.1"):
        kept.append(self.dial_from(host))
        time.sleep(0.002)  # at most 500 a second, on 20 places

    def test_silent_ones_of_the_same_address(self):
        self.renewals(self.silent)

    def test_silent_ones_of_another_address(self):
        self.renewals(lambda kept: self.silent(kept, "127.0.0.2"))

    def test_silent_ones_of_sixteen_addresses(self):
        hosts = [0]

        def flood(kept):
            hosts[0] = (hosts[0] + 1) % 16
            self.silent(kept, f"127.0.0.{2 + hosts[0]}")

        self.renewals(flood)

    def test_ones_that_are_turned_away(self):
        def flood(kept):
            self.silent(kept)
            kept[-1].sendall(b"GET /v1/locks HTTP/1.1\r\nHost: localhost\r\n\r\n")

        self.renewals(flood)

    def test_heads_that_never_end_and_bodies_that_never_come(self):
        def flood(kept):
            self.silent(kept)
            kept[-1].sendall((b"GET /v1/loc", b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n"
                              b"Content-Type: application/json\r\n\r\n{")[len(kept) % 2])

        self.renewals(flood)

    def test_a_hold_that_is_not_read_ends(self):
        """Beside one that is. On a Unix socket, where no kernel of a reader's takes anything for it."""
        body = json.dumps({"path": "/pressure/hold", "kind": "semaphore", "limit": 2, "ttl_ms": 2000})
        streams = []
        for _ in range(2):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(PATIENCE)
            s.connect(self.unix)
            s.sendall((f"POST /v1/hold HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
            self.assertEqual(b"HTTP/1.1 200", s.recv(12))  # and no more is taken
            streams.append(s)

        until = time.monotonic() + PATIENCE
        while self.holders() != 2:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        heard = self.heard(streams[1])  # by then the other one has had as many
        while self.holders() == 2:
            self.assertLess(next(heard), HEARTBEATS, "the reader takes nothing")
        last = next(heard)
        while next(heard) < last + 2:
            self.assertEqual(self.holders(), 1, "the one that is read goes on")
        for s in streams:
            s.close()

    @staticmethod
    def heard(stream):
        """How many heartbeats have come, after each of them."""
        n = 0
        while data := stream.recv(1000):
            n += data.count(b"heartbeat")
            yield n

    def holders(self):
        listed = clave("ls", "/pressure/hold/leases", connect=self.server.connect).out.split()
        return len(listed)

    def test_one_connection_for_all_renewals(self):
        """A connection whose sender is known stays, however long it is idle between requests."""
        c = self.gate.open()
        bearer = {"Authorization": f"Bearer {SECRET}"}
        self.assertEqual(ask(c, "GET", "/v1/whoami", **bearer)[0], 200)
        kept = [self.dial_from("127.0.0.1") for _ in range(10 * PLACES)]
        self.assertEqual(self.gate.call("GET", "/healthz")[0], 200)
        self.assertEqual(ask(c, "GET", "/v1/whoami", **bearer)[0], 200)
        self.assertLessEqual(self.gate.open_files(), PLACES + 60)
        for s in kept:
            s.close()


class OneSender(unittest.TestCase):
    """Before a server that takes 60 connections of the gate's address, as Apache does: one token takes all that it can, at
    two gates, and another user goes on beside it."""
    OF_ADDRESS, SHARE = 60, 47

    def setUp(self):
        self.server = ClaveServer(["--min-session-timeout", "2s"]).start()
        self.addCleanup(self.server.stop)
        self.files = []
        for text in (f"{SECRET} lock name=holder\n{GREEDY} lock name=greedy\n", "7" * 64):
            self.files.append(scratch("file"))
            with open(os.open(self.files[-1], os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
                f.write(text)

    def gate(self, *flags):
        gate = Gate(self.server.connect, "--http-tokens", self.files[0], "--http-key", self.files[1], *flags).start()
        self.addCleanup(gate.stop)
        return gate

    def call(self, gate, secret, method, path, body=None, **headers):
        """Answered in time for one who renews."""
        begun = time.monotonic()
        answer = gate.call(method, path, body, Authorization=f"Bearer {secret}", **headers)
        self.assertLess(time.monotonic() - begun, TTL_MS / 3000, answer)
        return answer

    def takes_all(self, gate):
        made = []
        for _ in range(self.OF_ADDRESS):
            answer = self.call(gate, GREEDY, "POST", "/v1/sessions", {"ttl_ms": 60000})
            if answer[0] != 201:
                break
            made.append(answer[2])
        self.assertEqual(answer[0], 429, answer)
        self.assertIn("--http-max-sender-sessions", answer[2]["detail"])
        return made

    def test_one_token_takes_all_it_can(self):
        gate, other = self.gate(), self.gate()
        mine = [self.call(gate, SECRET, "POST", "/v1/sessions", {"ttl_ms": TTL_MS})[2]]
        self.renews(gate, mine[0])
        taken = self.takes_all(gate)
        self.assertEqual(len(taken), self.SHARE)
        # Nor by taking up what was made at another gate, which is another connection of the same address.
        counted = [self.call(other, GREEDY, "POST", f"/v1/sessions/{s['id']}/renew", Clave_Session=s["secret"])[0]
                   for s in taken]
        self.assertEqual(counted, [200] * self.SHARE)
        self.assertEqual(self.call(other, GREEDY, "POST", "/v1/sessions", {})[0], 429)
        for _ in range(3):
            made = self.call(gate, SECRET, "POST", "/v1/sessions", {"ttl_ms": TTL_MS})
            self.assertEqual(made[0], 201, made)
            mine.append(made[2])
            for s in mine:
                self.renews(gate, s)
        metrics = gate.call("GET", "/metrics", Authorization=f"Bearer {SECRET}")[2]
        self.assertIn(b'clave_http_refused_total{reason="sessions"} 1', metrics)

    def renews(self, gate, s):
        own = {"Clave_Session": s["secret"]}
        if "claim" not in s:
            s["claim"] = self.call(gate, SECRET, "POST", "/v1/claims", {"session": s["id"], "path": f"/of/{s['id']}"}, **own)
            self.assertEqual(s["claim"][0], 201, s)
        told = self.call(gate, SECRET, "POST", f"/v1/sessions/{s['id']}/renew", **own)
        self.assertEqual((told[0], [c["state"] for c in told[2]["claims"]]), (200, ["held"]), told)

    def test_what_is_set_is_more(self):
        self.assertEqual(len(self.takes_all(self.gate("--http-max-sender-sessions", "50"))), 50)


if __name__ == "__main__":
    unittest.main()
