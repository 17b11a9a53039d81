"""A gate in a server under load of every kind at once: locks that change hands, lists, metrics, streams, and clients that
vanish in the middle. Nobody holds what another holds, nothing is left behind, and the sanitizers have nothing to
say: it runs under ASan and TSan. CLAVE_LOAD=N: for longer."""
import http.client
import os
import signal
import threading
import time
import unittest

from gate_rig import Gate, Holder, ask
from harness import PATIENCE

STEPS = int(os.environ.get("CLAVE_LOAD", "15"))
LOCKERS = 4
LISTS = ("/metrics", "/v1/locks?prefix=/load", "/v1/locks/load/one", "/v1/elections", "/v1/history?path=/load/one", "/v1/deadlocks",
         "/v1/server", "/healthz", "/v1/znodes/load?children", "/ui/")
ENDS = (b"GET /v1/loc", b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/locks HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{\"ttl",
        b"POST /v1/hold HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 35\r\n\r\n"
        b"{\"path\":\"/load/held\",\"kind\":\"lock\"}\n")


class Load(unittest.TestCase):
    def setUp(self):
        self.gate = Gate(None, "--max-connections", "0").start()
        self.addCleanup(lambda: self.gate.process.poll() is None and self.gate.stop())
        self.holder, self.failures = Holder(), []

    @staticmethod
    def ask(c, method, path, body=None, **headers):
        status, _, told = ask(c, method, path, body, **headers)
        assert status in (200, 201, 204), (method, path, status, told)
        return told

    def lock(self):
        me, c = object(), self.gate.open()
        s = self.ask(c, "POST", "/v1/sessions", {"ttl_ms": 60000})
        mine = {"Clave_Session": s["secret"]}
        for _ in range(STEPS):
            claim = self.ask(c, "POST", "/v1/claims", {"session": s["id"], "path": "/load/one", "kind": "lock"}, Prefer="wait=60", **mine)
            self.holder.begin(me, int(claim["token"]))
            self.ask(c, "POST", f"/v1/sessions/{s['id']}/renew", **mine)
            self.holder.end(me)
            self.ask(c, "DELETE", "/v1/claims/" + claim["id"], **mine)
        self.ask(c, "DELETE", "/v1/sessions/" + s["id"], **mine)
        c.close()

    def look(self):
        c = self.gate.open()
        for _ in range(STEPS):
            for path in LISTS:
                status = ask(c, "GET", path)[0]
                assert status in (200, 404), (path, status)  # a lock that nobody holds at that moment
        c.close()

    def follow(self):
        for _ in range(STEPS):
            c = self.gate.open()
            c.request("GET", "/v1/events")
            r = c.getresponse()
            for _ in range(5):
                assert r.readline(), "the stream has ended"
            c.close()

    def vanish(self):
        for i in range(STEPS * len(ENDS)):
            s = self.gate.dial()
            s.sendall(ENDS[i % len(ENDS)])
            if i % 2 and i % len(ENDS) in (1, 2):
                s.recv(1)
            s.close()

    def run_one(self, work):
        try:
            work()
        except (AssertionError, OSError, http.client.HTTPException, KeyError) as e:
            self.failures.append(f"{work.__name__}: {type(e).__name__}: {e}")

    def await_files(self, most):
        until = time.monotonic() + PATIENCE
        while self.gate.open_files() > most:
            self.assertLess(time.monotonic(), until, "connections or sessions are left")
            time.sleep(0.02)

    def test_everything_at_once(self):
        self.gate.call("GET", "/v1/locks")  # so that what is opened once is open
        before = self.gate.open_files()
        works = [self.lock] * LOCKERS + [self.look, self.look, self.follow, self.vanish]
        threads = [threading.Thread(target=self.run_one, args=(w,), daemon=True) for w in works]
        for t in threads:
            t.start()
        self.gate.process.send_signal(signal.SIGHUP)
        for t in threads:
            t.join(4 * PATIENCE)
            self.assertFalse(t.is_alive(), self.failures)
        self.assertEqual(self.failures, [])
        self.await_files(before)
        streams = [self.gate.dial() for _ in range(3)]
        for s in streams:  # the end while somebody reads
            s.sendall(ENDS[1])
            self.assertTrue(s.recv(1))
        self.assertEqual(self.gate.stop(), 0)
        for s in streams:
            s.close()


if __name__ == "__main__":
    unittest.main()
