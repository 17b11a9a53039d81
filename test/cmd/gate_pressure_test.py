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
SECRET = "holder-0123456789abcdef"
TTL_MS = 4000


class Pressure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ClaveServer(["--max-connections", "0"]).start()

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
        """A lock is renewed, each time on a new connection, while the flood goes on in another thread."""
        path = f"/pressure/{self.id()}"
        made = self.call("POST", "/v1/sessions", {"ttl_ms": TTL_MS})[2]
        mine = {"Clave_Session": made["secret"]}
        claim = self.call("POST", "/v1/claims", {"session": made["id"], "path": path, "kind": "lock"}, **mine)
        self.assertEqual(claim[0], 201, claim)
        stop, turns = threading.Event(), [0]

        def run():
            kept = []
            while not stop.is_set():
                flood(kept)
                while len(kept) > 4 * PLACES:
                    kept.pop(0).close()
                turns[0] += 1
            for s in kept:
                s.close()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            while turns[0] < 2 * PLACES:
                time.sleep(0.01)
            until = time.monotonic() + 1.25 * TTL_MS / 1000
            while time.monotonic() < until:
                begun = time.monotonic()
                status, _, told = self.call("POST", f"/v1/sessions/{made['id']}/renew", **mine)
                self.assertEqual(status, 200, told)
                self.assertLess(time.monotonic() - begun, TTL_MS / 3000)
                self.assertEqual(len(told["claims"]), 1, told)
                time.sleep(TTL_MS / 3000 / 4)
        finally:
            stop.set()
            thread.join()
        self.assertGreater(turns[0], 10 * PLACES, "the flood went on")

    def silent(self, kept, host="127.0.0.1"):
        kept.append(self.dial_from(host))
        time.sleep(0.005)  # 200 a second, on 20 places

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
        body = json.dumps({"path": "/pressure/hold", "kind": "semaphore", "limit": 2, "ttl_ms": 4000})
        streams = []
        for _ in range(2):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(PATIENCE)
            s.connect(self.unix)
            s.sendall((f"POST /v1/hold HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
            self.assertEqual(b"HTTP/1.1 200", s.recv(12))  # and no more is taken
            streams.append(s)

        def read():
            while streams[1].recv(1000):
                pass

        reader = threading.Thread(target=read)
        reader.start()
        until = time.monotonic() + PATIENCE
        while self.holders() != 2:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        begun = time.monotonic()
        while self.holders() == 2:
            self.assertLess(time.monotonic() - begun, 12, "the reader takes nothing")
            time.sleep(0.1)
        time.sleep(3)
        self.assertEqual(self.holders(), 1, "the one that is read goes on")
        streams[1].shutdown(socket.SHUT_RDWR)
        reader.join()
        for s in streams:
            s.close()

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


if __name__ == "__main__":
    unittest.main()
