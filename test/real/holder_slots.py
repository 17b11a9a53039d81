"""An owner of slots: takes one, looks whether it is still its own, gives it back, and logs what it was told.

  holder_slots.py python|http|fleetlock SERVERS PATH LOG NAME STOP SESSION_MS HOLD_MS

SERVERS: those of the Python package, or the URLs of gates; each request goes to one of them drawn by chance, and one
without an answer is repeated, perhaps at another. A line of the log is as those of holder.c: what is asked, then what
was answered:

  ask     DETAIL take            took     TOKEN is the slot's (0: FleetLock has none)
  ask     DETAIL look            seen     TOKEN: of the slot that the name owns; 0: it owns none
  ask     DETAIL give            given    DETAIL: ok, or none: it owned none
                                 no       none of these: it was refused, and was not done
                                 unsure   nobody knows
"""
import base64
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request

LOOK_S, TRY_S = 0.03, 3


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Unsure(Exception):
    """It may have been done."""


class Refused(Exception):
    """It was not done."""


class Python:
    def __init__(self, servers, path, name, session_ms):
        import clave  # pylint: disable=import-error,import-outside-toplevel
        self.clave, self.name = clave, name
        self.client = clave.Client(servers, session_timeout=session_ms / 1000)
        self.slots = self.client.slots(path)

    def ask(self, question, *args, **keywords):
        try:
            return question(*args, **keywords)
        except self.clave.Error as error:
            raise (Unsure if error.kind == "UNKNOWN" else Refused)(error.name) from error

    def take(self):
        return self.ask(self.slots.take, self.name, timeout=TRY_S).token

    def look(self):
        return next((s.token for s in self.ask(self.slots.list).slots if s.id == self.name), 0)

    def give(self, token):
        return self.ask(self.slots.give, self.name, token) != 0


class Http:
    def __init__(self, servers, path, name, _session_ms):
        self.gates, self.path, self.name = servers.split(","), path, name
        self.dice = random.Random()

    def ask(self, method, path, body=None, **headers):
        """(status, JSON). 5xx: the gate does not know, or is not there."""
        request = urllib.request.Request(
            self.dice.choice(self.gates) + path, None if body is None else json.dumps(body).encode(), method=method,
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['CLAVE_GATE_TOKEN']}",
                     **{key.replace("_", "-"): value for key, value in headers.items()}})
        try:
            with urllib.request.urlopen(request, timeout=2 * TRY_S) as answer:
                status, told = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, told = error.code, error.read()
        except OSError as error:
            raise Unsure(str(error)) from error
        if status >= 500 or status in (408, 429):
            raise Unsure(status)
        return status, json.loads(told or b"{}")

    def claim(self):
        return "/v1/claims/slot." + base64.urlsafe_b64encode(f"{self.path}\n{self.name}".encode()).decode().rstrip("=")

    def take(self):
        status, told = self.ask("POST", "/v1/claims", {"kind": "slot", "path": self.path}, Clave_Owner=self.name,
                                Prefer=f"wait={TRY_S}")
        if status in (200, 201):
            return int(told["token"])
        if status == 202:
            raise Unsure("it waits, and may be given one")
        raise Refused(status)

    def look(self):
        status, told = self.ask("GET", self.claim(), Clave_Owner=self.name)
        if status not in (200, 404, 410):
            raise Refused(status)
        return int(told.get("token") or 0)

    def give(self, token):
        status, told = self.ask("DELETE", f"{self.claim()}?token={token}", Clave_Owner=self.name)
        if status >= 400 and status != 404:
            raise Refused(status)
        return told.get("given") is True


class FleetLock(Http):
    look = None  # there is no question

    def reboot(self, what):
        status, _ = self.ask("POST", f"/v1/{what}", {"client_params": {"id": self.name, "group": self.path.split("/")[-1]}},
                             Fleet_Lock_Protocol="true")
        if status != 200:
            raise Refused(status)
        return 0

    def take(self):
        return self.reboot("pre-reboot")

    def give(self, token):
        return self.reboot("steady-state") == token


class Owner:
    def __init__(self, form, servers, path, log, name, stop, session_ms, hold_ms):
        self.name, self.stop, self.hold_s = name, stop, int(hold_ms) / 1000
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.door = {"python": Python, "http": Http, "fleetlock": FleetLock}[form](servers, path, name, int(session_ms))

    def note(self, what, token, detail):
        os.write(self.log, f"{now_ns()} {what} {self.name} {token} {detail}\n".encode())

    def ask(self, what, question, *args):
        """(whether there is a certain answer, the answer)."""
        self.note("ask", 0, what)
        try:
            return True, question(*args)
        except (Unsure, Refused) as error:
            self.note("no" if isinstance(error, Refused) else "unsure", 0, what)
            time.sleep(LOOK_S)
            return isinstance(error, Refused), None

    def turn(self):
        """It may own one of an earlier turn, or of a life before it was killed: it takes that one again."""
        _, token = self.ask("take", self.door.take)
        if token is None:
            return
        self.note("took", token, "-")
        self.look_for(self.hold_s)
        certain, gave = False, None
        while not certain:
            certain, gave = self.ask("give", self.door.give, token)
        if gave is not None:
            self.note("given", token, "ok" if gave else "none")
        self.look_for(self.hold_s)

    def look_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not os.path.exists(self.stop):
            if self.door.look:
                _, seen = self.ask("look", self.door.look)
                if seen is not None:
                    self.note("seen", seen, "-")
            time.sleep(LOOK_S)

    def run(self):
        while not os.path.exists(self.stop):
            self.turn()


if __name__ == "__main__":
    Owner(*sys.argv[1:]).run()
