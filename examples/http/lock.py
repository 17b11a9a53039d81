#!/usr/bin/python3
"""lock.py PATH COMMAND [ARG]...   runs a command while it holds a lock of a gate; or, imported:

    with Lock("http://127.0.0.1:8080", "/jobs/nightly") as lock:
        write(data, token=lock.token)      # a store that refuses smaller tokens is always safe
        if lock.valid_for() < 1: ...       # seconds in which nobody else can hold it

For https with an authority of your own, `ca` (CLAVE_GATE_CA) is the file of its certificate.

Only Python's standard library. The rule that makes it safe: valid_ms counts from when the request was SENT, by
a clock that goes on while the machine sleeps; and only an answer to our own question moves the deadline."""
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid


def now():
    """Seconds since the start of the machine, its sleep included: CLOCK_MONOTONIC stands still meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lost(Exception):
    """It is not held, or not any more."""


class Lock:
    def __init__(self, gate, path, kind="lock", ttl=10.0, bearer=None, ca=None):
        self.gate, self.path, self.kind, self.ttl = urllib.parse.urlsplit(gate), path, kind, ttl
        self.headers = {"Authorization": "Bearer " + bearer} if bearer else {}
        self.tls = ssl.create_default_context(cafile=ca) if self.gate.scheme == "https" else None
        self.id = self.token = None
        self.key = str(uuid.uuid4())
        self.deadline = 0.0  # by now()
        self.over = threading.Event()

    def ask(self, method, target, body=None, timeout=10.0, **headers):
        """(status, JSON or None, when it was sent). OSError, HTTPException: nobody knows what happened."""
        at = (self.gate.hostname, self.gate.port)
        c = http.client.HTTPSConnection(*at, timeout=timeout, context=self.tls) if self.tls else \
            http.client.HTTPConnection(*at, timeout=timeout)
        try:
            c.connect()
            sent = now()
            given = {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
            if body is not None:
                given["Content-Type"] = "application/json"
            c.request(method, self.gate.path.rstrip("/") + target, json.dumps(body) if body is not None else None, given)
            r = c.getresponse()
            data = r.read()
            return r.status, json.loads(data) if data else None, sent
        finally:
            c.close()

    def acquire(self):
        try:
            status, made, _ = self.ask("POST", "/v1/sessions", {"ttl_ms": int(self.ttl * 1000), "name": "lock.py"})
        except (OSError, http.client.HTTPException) as e:
            raise Lost(f"no answer from {self.gate.geturl()}: {e}") from e
        if status != 201:
            raise Lost(made)
        self.id, self.ttl = made["id"], made["ttl_ms"] / 1000
        self.headers["Clave-Session"] = made["secret"]
        while True:
            try:
                status, claim, sent = self.claim(60, 30)
            except (OSError, ValueError, http.client.HTTPException):
                status = 503
            if status in (200, 201) and claim["state"] == "held":
                break
            if status in (429, 502, 503, 504):  # nobody knows, or too many wait
                time.sleep(1)
            elif status != 202:
                raise Lost(claim)
        self.token = int(claim["token"])
        self.deadline = sent + claim["valid_ms"] / 1000
        threading.Thread(target=self.renew, daemon=True).start()
        return self

    def claim(self, timeout, wait):
        """A repeated request with the same key finds the same place in the queue, at whichever gate it arrives."""
        wanted = {"session": self.id, "path": self.path, "kind": self.kind}
        return self.ask("POST", "/v1/claims", wanted, timeout, Idempotency_Key=self.key, Prefer=f"wait={wait}")

    def renew(self):
        every = self.ttl / 3
        while not self.over.wait(min(every, max(self.valid_for(), 0))):
            left, every = self.valid_for(), self.ttl / 20  # sooner when it is not answered
            if left <= 0:
                return
            try:
                status, told, sent = self.ask("POST", f"/v1/sessions/{self.id}/renew", timeout=left / 2)
                mine = told["claims"][0] if status == 200 and told["claims"] else None
                if status == 200 and not mine:  # by a gate that does not know the claim yet
                    status, mine, sent = self.claim(left / 2, 1)
            except (OSError, ValueError, http.client.HTTPException):
                continue
            if status in (200, 201) and mine["state"] == "held" and int(mine["token"]) == self.token:
                self.deadline, every = sent + mine["valid_ms"] / 1000, self.ttl / 3
            elif status in (200, 201, 410):  # it has ended, or the session has
                self.deadline = 0.0
                return

    def valid_for(self):
        """Seconds in which nobody else can hold it; a tenth of the session's time is kept for clocks that
        run at different rates, and to stop in."""
        return self.deadline - now() - self.ttl / 10

    def release(self):
        self.over.set()
        try:
            self.ask("DELETE", f"/v1/sessions/{self.id}", timeout=2)
        except (OSError, http.client.HTTPException):
            pass  # the session ends by itself

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


def main():
    if len(sys.argv) < 3:
        sys.exit(print("usage: lock.py PATH COMMAND [ARG]...", file=sys.stderr) or 64)
    gate, bearer = os.environ.get("CLAVE_GATE", "http://127.0.0.1:8080"), os.environ.get("CLAVE_GATE_TOKEN")
    try:
        with Lock(gate, sys.argv[1], ttl=int(os.environ.get("CLAVE_TTL_MS", "10000")) / 1000, bearer=bearer,
                  ca=os.environ.get("CLAVE_GATE_CA")) as lock:
            p = subprocess.Popen(sys.argv[2:], env={**os.environ, "CLAVE_TOKEN": str(lock.token)})
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda n, _: p.send_signal(n))
            while lock.valid_for() > 0:
                try:
                    sys.exit(p.wait(min(lock.valid_for(), 0.5)) if lock.valid_for() > 0 else 75)
                except subprocess.TimeoutExpired:
                    pass
            p.terminate()
            try:
                p.wait(lock.ttl / 20)
            except subprocess.TimeoutExpired:
                p.kill()
            raise Lost("not renewed in time")
    except Lost as e:
        sys.exit(print(f"lock.py: no lock: {e}", file=sys.stderr) or 75)


if __name__ == "__main__":
    main()
