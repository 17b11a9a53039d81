"""A holder or a candidate over plain HTTP, as a careless program sends it: logs what it believes as holder.c does.

  holder_http.py lock|latch GATE,... PATH LOG NAME STOP SESSION_MS HOLD_MS

Each request goes to one of the gates drawn by chance, or to what is in front of them. Of some it does not await the
answer, and it repeats them, perhaps at another; a claim by its Idempotency-Key. Half of its holds have a max_hold_ms,
half may be asked for. It believes in a hold for valid_ms from when it sent the request, and writes with Clave-Guard."""
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
import uuid

# It looks at its clock between requests only, and hears of an end by that alone.
STEP_S, LATE_NS, STEPS_A_WRITE = 0.005, 10_000_000, 8
PATIENCE_S, IMPATIENCE_S, IMPATIENT = 2.0, 0.04, 0.2  # the last: which part of the requests


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Holder:
    def __init__(self, what, gates, path, log, name, stop, session_ms, hold_ms):
        self.kind, self.what = {"lock": "lock", "latch": "election"}[what], what
        self.gates, self.path, self.name, self.stop = gates.split(","), path, name, stop
        self.session_ms, self.hold_ns = int(session_ms), int(hold_ms) * 1_000_000
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.dice, self.session, self.writes, self.heard = random.Random(), None, 0, now_ns()

    def note(self, ns, event, token, detail="-"):
        os.write(self.log, f"{ns} {event} {self.name} {token} {detail}\n".encode())

    def awake(self):
        """The time. It has heard nothing since it looked last."""
        ns = now_ns()
        if ns - self.heard > LATE_NS:
            self.note(ns, "late", 0, self.heard)
        self.heard = ns
        return ns

    def is_over(self):
        return os.path.exists(self.stop)

    # ---- requests

    def ask(self, method, path, body=None, patience=PATIENCE_S, **headers):
        """(when it was sent, status, JSON); status 0: there is no answer."""
        if self.dice.random() < IMPATIENT:
            patience = min(patience, IMPATIENCE_S)
        request = urllib.request.Request(
            self.dice.choice(self.gates) + path, None if body is None else json.dumps(body).encode(), method=method,
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['CLAVE_GATE_TOKEN']}",
                     **({"Clave-Session": self.session["secret"]} if self.session else {}),
                     **{key.replace("_", "-"): value for key, value in headers.items()}})
        sent = now_ns()
        try:
            with urllib.request.urlopen(request, timeout=max(patience, 0.01)) as answer:
                status, told = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, told = error.code, error.read()
        except OSError:
            return sent, 0, {}
        try:
            return sent, status, json.loads(told or b"{}")
        except ValueError:  # of what is in front of the gates
            return sent, 0, {}

    def enter(self):
        while not self.session and not self.is_over():
            _, status, told = self.ask("POST", "/v1/sessions", {"ttl_ms": self.session_ms, "name": self.name})
            self.session = told if status == 201 else None

    def has_session(self, status, told):
        """No certain answer, and no end of the session."""
        if status in (401, 403, 404, 410) and told.get("cause") in ("expired", "closed", "silent") or told.get(
                "code") in ("EEXPIRED", "ESESSION", "EOTHERKEY"):
            self.session = None
        return self.session is not None

    # ---- one hold

    def acquire(self, key):
        """(token, until when it may be relied on), or None."""
        body = {"path": self.path, "kind": self.kind, "name": self.name, "revocable": self.dice.random() < 0.5}
        if self.dice.random() < 0.5:
            body["max_hold_ms"] = self.dice.randrange(100, 2 * self.session_ms)
        if self.dice.random() < 0.5:
            body["depend_ms"] = self.dice.randrange(self.session_ms // 2, 2 * self.session_ms)
        self.sign_ms = body.get("depend_ms", 0) // 4
        self.signs = self.dice.choice([5, sys.maxsize])  # then its work hangs
        while not self.is_over():
            sent, status, told = self.ask("POST", "/v1/claims", body, Idempotency_Key=key, Prefer="wait=1")
            if status in (200, 201) and told.get("state") == "held":
                return int(told["token"]), sent + told["valid_ms"] * 1_000_000
            if not self.has_session(status, told) or status in (404, 409, 410):
                return None
        return None

    def sign(self, key, until):
        """The same, after a sign of life of its work."""
        sent, status, told = self.ask("POST", f"/v1/claims/{key}/alive", patience=(until - now_ns()) / 3e9)
        self.signs -= status == 200
        if status == 200 and told["state"] == "held":
            return max(until, sent + told["valid_ms"] * 1_000_000)
        return until if self.has_session(status, told) and status not in (404, 410) else 0

    def renew(self, key, until):
        """Until when it may be relied on, or 0: it is lost."""
        patience = (until - now_ns()) / 3e9
        sent, status, told = self.ask("POST", f"/v1/sessions/{self.session['id']}/renew", patience=patience)
        mine = next((c for c in told.get("claims", []) if c["id"] == key), {}) if status == 200 else {}
        if mine.get("state") == "held":
            return max(until, sent + mine["valid_ms"] * 1_000_000)
        if mine.get("state") in ("lost", "released"):
            return 0
        return until if self.has_session(status, told) else 0

    def write(self, token, patience):
        number, self.writes = self.writes, self.writes + 1
        self.note(now_ns(), "write", token, number)
        create = {"op": "create", "path": f"{self.path}-writes/{self.name}.{token}.{number}-", "mode": "persistent_sequential"}
        _, status, _ = self.ask("POST", "/v1/multi", {"ops": [create]}, patience, Clave_Guard=f"{self.path};token={token}")
        done = "wrote" if status == 200 else "refused" if status in (409, 410) else "unsure"
        self.note(now_ns(), done, token, number)

    def keep(self, key, token, until):
        """Whether it is to be given back."""
        begin = renewed = signed = now = self.awake()
        if begin >= until:
            return True
        self.note(begin, "grant", token, self.what)
        for i in range(sys.maxsize):
            now = self.awake()
            if now >= until:
                break
            over = self.is_over() or now - begin >= self.hold_ns
            self.note(now, "release" if over else "held", token, now_ns())
            if over:
                return True
            if now - renewed > self.session_ms * 1_000_000 // 5:
                renewed, until = now, self.renew(key, until)
            elif self.sign_ms and self.signs > 0 and now - signed > self.sign_ms * 1_000_000:
                signed, until = now, self.sign(key, until)
            elif i % STEPS_A_WRITE == 0:
                self.write(token, (until - now) / 4e9)
            time.sleep(STEP_S)
        self.note(now, "gone" if until else "lost", token)
        if self.session:
            self.write(token, PATIENCE_S)  # which must not be done, unless it holds still
        return True

    def release(self, key, token):
        while self.session:
            _, status, told = self.ask("DELETE", f"/v1/claims/{key}")
            if status in (204, 404, 410):
                self.note(now_ns(), "released", token, "ok")
            if not self.has_session(status, told) or status in (204, 404, 410):
                return

    def run(self):
        while not self.is_over():
            self.enter()
            key = str(uuid.uuid4())
            self.note(self.awake(), "ask", 0, "acquire")
            held = self.acquire(key) if self.session else None
            if held:
                self.keep(key, *held)
            self.release(key, held[0] if held else 0)
        if self.session:
            self.ask("DELETE", f"/v1/sessions/{self.session['id']}")


if __name__ == "__main__":
    Holder(*sys.argv[1:]).run()
