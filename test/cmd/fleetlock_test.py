"""FleetLock at `clave gate` and `clave serve --http`: what its specification says, the exact requests of its
clients, and a fleet that reboots by turns while gates and servers stop, are killed and are cut off."""
import http.client
import json
import os
import random
import signal
import socket
import threading
import time
import unittest

from gate_rig import Gate, Rig
from harness import PATIENCE, UNSAFE, ClaveServer, clave, scratch
from peers import Peer

MARK = {"fleet_lock_protocol": "true"}


def machine(group, name):
    return json.dumps({"client_params": {"group": group, "id": name}})


# The bytes that these clients send: reqwest of Zincati (Fedora CoreOS), and the client in Go of
# flatcar/fleetlock. HOST is the gate's address.
CLIENTS = {
    "zincati": (
        b"POST /v1/%s HTTP/1.1\r\nfleet-lock-protocol: true\r\ncontent-type: application/json\r\n"
        b"accept: */*\r\nhost: HOST\r\ncontent-length: LENGTH\r\n\r\n",
        b'{"client_params":{"group":"%s","id":"c988d2509fdf46e4aae5a8a3a0d2d0f4"}}'),
    "flatcar": (
        b"POST /v1/%s HTTP/1.1\r\nHost: HOST\r\nUser-Agent: Go-http-client/1.1\r\n"
        b"Content-Length: LENGTH\r\nFleet-Lock-Protocol: true\r\nAccept-Encoding: gzip\r\n\r\n",
        b'{"client_params":{"id":"flatcar-1","group":"%s"}}'),
}


def ready(gate):
    """It is connected to its server."""
    until = time.monotonic() + PATIENCE
    while gate.call("GET", "/readyz")[0] != 200:
        assert time.monotonic() < until, "the gate is never ready"
        time.sleep(0.02)
    return gate


class Protocol(Rig):
    flags = ("--fleetlock", "/reboots")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ready(cls.gate)

    def post(self, what, body, **headers):
        return self.gate.call("POST", f"/v1/{what}", body, **(headers or MARK))

    def raw(self, client, what, group):
        """The status of this client's own bytes."""
        head, body = CLIENTS[client]
        body = body % group.encode()
        head = (head % what.encode()).replace(b"HOST", self.gate.address.encode())
        with self.gate.dial() as s:
            s.sendall(head.replace(b"LENGTH", b"%d" % len(body)) + body)
            return int(s.recv(65536).split(b" ")[1])

    def assertFault(self, answer, status):
        self.assertEqual(answer[0], status, answer)
        self.assertIsInstance(answer[2]["kind"], str)
        self.assertTrue(answer[2]["kind"] and answer[2]["value"], answer)

    def test_a_slot_is_taken_once_and_given_back(self):
        for _ in range(2):
            self.assertEqual(self.post("pre-reboot", machine("one", "m1"))[0], 200)
            self.assertFault(self.post("pre-reboot", machine("one", "m2")), 409)
        self.assertEqual(self.post("steady-state", machine("one", "m2"))[0], 200)
        self.assertFault(self.post("pre-reboot", machine("one", "m2")), 409)
        for _ in range(2):
            self.assertEqual(self.post("steady-state", machine("one", "m1"))[0], 200)
        self.assertEqual(self.post("pre-reboot", machine("one", "m2"))[0], 200)

    def test_groups_have_limits_of_their_own(self):
        limit = clave("slot", "limit", "/reboots/pool.A-1", "2", connect=self.server.connect)
        self.assertEqual(limit.code, 0, limit)
        for name, status in (("m1", 200), ("m2", 200), ("m3", 409)):
            self.assertEqual(self.post("pre-reboot", machine("pool.A-1", name))[0], status)
        self.assertEqual(self.post("pre-reboot", machine("other", "m3"))[0], 200)
        listed = clave("slot", "list", "/reboots/pool.A-1", connect=self.server.connect)
        self.assertEqual(listed.out.split(), ["m1", "m2"], listed)
        told = self.gate.call("GET", "/v1/slots/reboots/pool.A-1")[2]
        self.assertEqual((told["limit"], [o["owner"] for o in told["owners"]], told["waiting"]),
                         (2, ["m1", "m2"], []))

    def test_bad_requests_are_400(self):
        good = machine("g", "m")
        for headers in ({"X": "y"}, {"fleet_lock_protocol": "1"}):
            self.assertFault(self.post("pre-reboot", good, **headers), 400)
        for body in ("", "x", "[]", "{}", '{"client_params": {}}', '{"client_params": {"id": "m"}}',
                     machine("", "m"), machine("a/b", "m"), machine("a b", "m"), machine("ä", "m"),
                     machine("..", "m"), machine("g", ""), machine("g", "\0"), machine("g", "x" * 129)):
            for what in ("pre-reboot", "steady-state"):
                self.assertFault(self.post(what, body), 400)
        self.assertEqual(self.gate.call("GET", "/v1/pre-reboot", **MARK)[0], 405)
        self.assertEqual(self.post("pre-reboot", machine("typed", "m"), Content_Type="text/html",
                                   **MARK)[0], 200)

    def test_the_requests_of_other_peoples_clients(self):
        for client in CLIENTS:
            for what, status in (("pre-reboot", 200), ("pre-reboot", 200), ("steady-state", 200),
                                 ("steady-state", 200)):
                with self.subTest(client=client, what=what):
                    self.assertEqual(self.raw(client, what, "default-" + client), status)
        self.assertEqual(self.raw("zincati", "pre-reboot", "shared"), 200)
        self.assertEqual(self.raw("flatcar", "pre-reboot", "shared"), 409)
        self.assertEqual(self.raw("zincati", "steady-state", "shared"), 200)
        self.assertEqual(self.raw("flatcar", "pre-reboot", "shared"), 200)

    def test_a_claim_and_a_machine_are_of_one_kind(self):
        """Who waits by a claim takes when the machine gives back."""
        self.assertEqual(self.post("pre-reboot", machine("mixed", "m"))[0], 200)
        claim = {"kind": "slot", "path": "/reboots/mixed"}
        status, _, told = self.gate.call("POST", "/v1/claims", claim, Clave_Owner="deploy")
        self.assertEqual((status, told["position"]), (202, 1))
        self.assertEqual(self.post("steady-state", machine("mixed", "m"))[0], 200)
        status, _, told = self.gate.call("GET", f"/v1/claims/{told['id']}", Prefer="wait=20")
        self.assertEqual((status, told["state"], told["owner"]), (200, "held", "deploy"))


class InServer(Protocol):
    """`clave serve --http`."""
    own = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = type("Own", (), {"connect": f"127.0.0.1:{cls.gate.zk_port}",
                                      "stop": staticmethod(lambda: None)})


class Open(unittest.TestCase):
    def started(self, *flags):
        server = ClaveServer().start()
        self.addCleanup(server.stop)
        gate = ready(Gate(server.connect, *flags).start())
        self.addCleanup(gate.stop)
        return server, gate

    def test_a_fleet_needs_no_token(self):
        path = scratch("tokens")
        with open(path, "w", encoding="ascii", opener=private) as f:
            f.write("machines-0123456789 lock /reboots name=machines\nothers-0123456789 read\n")
        server, gate = self.started("--fleetlock", "/reboots", "--fleetlock-from", "10.9.0.0/16,127.0.0.1",
                                    "--http-tokens", path)
        body = machine("g", "m")
        self.assertEqual(gate.call("POST", "/v1/pre-reboot", body, **MARK)[0], 200)
        self.assertEqual(gate.call("GET", "/v1/slots/reboots/g")[0], 401)
        self.assertEqual(gate.call("POST", "/v1/claims", {"kind": "slot", "path": "/reboots/g"},
                                   Clave_Owner="m")[0], 401)
        denied = ready(Gate(server.connect, "--fleetlock", "/reboots", "--fleetlock-from",
                            "10.9.0.0/16", "--http-tokens", path).start())
        self.addCleanup(denied.stop)
        for token, status in ((None, 401), ("machines-0123456789", 200), ("others-0123456789", 403),
                              ("wrong-0123456789", 401)):
            headers = dict(MARK, **({"Authorization": f"Bearer {token}"} if token else {}))
            told = denied.call("POST", "/v1/pre-reboot", body, **headers)
            self.assertEqual(told[0], status, told)
            self.assertTrue(status == 200 or told[2]["value"])

    def test_it_is_off_unless_switched_on(self):
        _, gate = self.started()
        self.assertEqual(gate.call("POST", "/v1/pre-reboot", machine("g", "m"), **MARK)[0], 404)

    def test_bad_flags_are_refused(self):
        for flags, text in ((("--fleetlock", "reboots"), "not the path of a znode"),
                            (("--fleetlock-from", "10.0.0.0/8"), "--fleetlock PATH"),
                            (("--fleetlock", "/r", "--fleetlock-from", "here"), "10.0.0.0/8")):
            r = clave("gate", "--http", "127.0.0.1:0", *flags, "--check-config", connect="127.0.0.1:1")
            self.assertEqual(r.code, 64, r)
            self.assertIn(text, r.err)

    def test_without_a_server_the_answer_comes_soon(self):
        server, gate = self.started("--fleetlock", "/reboots")
        self.assertEqual(gate.call("POST", "/v1/pre-reboot", machine("g", "m"), **MARK)[0], 200)
        server.process.send_signal(signal.SIGSTOP)
        try:
            for what in ("pre-reboot", "steady-state"):
                begun = time.monotonic()
                status, _, told = gate.call("POST", f"/v1/{what}", machine("g", "m"), **MARK)
                self.assertIn(status, (503, 504))
                self.assertTrue(told["kind"] and told["value"])
                self.assertLess(time.monotonic() - begun, 8)
        finally:
            server.process.send_signal(signal.SIGCONT)


class Cutter(Peer):
    """Between a gate and its server: cuts the connections, and loses what the server answers."""

    def __init__(self, port):
        self.to = port
        self.pairs = []
        self.loses = False
        self.lost = 0
        super().__init__(None)

    def talk(self, s):
        server = socket.create_connection(("127.0.0.1", self.to))
        self.sockets.append(server)
        self.pairs.append((s, server))
        self.run(self.pass_on, s, server, False)
        self.run(self.pass_on, server, s, True)

    def pass_on(self, a, b, is_answer):
        try:
            while True:
                data = a.recv(65536)
                if data and is_answer and self.loses:
                    self.lost += 1
                    break
                if not data:
                    break
                b.sendall(data)
        finally:
            self.cut_pair(a, b)

    @staticmethod
    def cut_pair(*pair):
        for s in pair:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        for pair in self.pairs:
            self.cut_pair(*pair)

    def lose(self):
        """The next answer that comes, with its connection."""
        before, until = self.lost, time.monotonic() + PATIENCE
        self.loses = True
        while self.lost == before:
            assert time.monotonic() < until, "the server answers nothing"
            time.sleep(0.005)
        self.loses = False


class Fleet:
    """What is rebooting, as the machines know it."""

    def __init__(self, limit):
        self.limit, self.mutex, self.down, self.most = limit, threading.Lock(), set(), 0

    def begin(self, name):
        with self.mutex:
            self.down.add(name)
            self.most = max(self.most, len(self.down))
            assert len(self.down) <= self.limit, f"{UNSAFE}: {sorted(self.down)} reboot at a time"

    def end(self, name):
        with self.mutex:
            self.down.remove(name)


class Machine(threading.Thread):
    """Asks any gate until it may reboot, reboots, and tells until it is heard."""

    def __init__(self, fleet, gates, name, ending):
        super().__init__(daemon=True)
        self.fleet, self.gates, self.name_, self.ending = fleet, gates, name, ending
        self.random = random.Random(name)
        self.fault, self.turns = None, 0

    def ask(self, what):
        """Whether the answer is yes."""
        gate = self.random.choice(self.gates)
        try:
            status = gate.call("POST", f"/v1/{what}", machine("web", self.name_), **MARK)[0]
        except (OSError, http.client.HTTPException):
            status = 0
        assert status in (0, 200, 409, 503, 504), status
        return status == 200

    def insist(self, what):
        until = time.monotonic() + 200
        while not self.ask(what):
            assert time.monotonic() < until, f"{self.name_}: {what} is never granted"
            time.sleep(self.random.uniform(0.02, 0.2))

    def run(self):
        try:
            while self.turns < 2 or not self.ending.is_set():
                self.insist("pre-reboot")
                self.fleet.begin(self.name_)
                time.sleep(self.random.uniform(0.01, 0.1))  # it reboots
                self.fleet.end(self.name_)
                self.insist("steady-state")
                self.turns += 1
        except Exception as fault:  # told by the test
            self.fault = fault


class Reboots(unittest.TestCase):
    """Twenty machines reboot by turns, two at a time, whatever happens to gates and servers."""

    def await_true(self, what):
        until = time.monotonic() + 60
        while not what():
            self.assertLess(time.monotonic(), until, "no machine gets its turn")
            time.sleep(0.02)

    def restart(self, what, how):
        what.process.send_signal(how)
        what.process.wait(PATIENCE)
        what.process.stdout.close()
        what.start()

    def test_never_more_than_the_limit_and_all_get_their_turn(self):
        server = ClaveServer().start()
        cutters = [Cutter(server.port) for _ in range(2)]
        gates = [Gate(c.connect, "--fleetlock", "/reboots").start() for c in cutters]
        for end in [server.stop] + [c.close for c in cutters] + [g.stop for g in gates]:
            self.addCleanup(end)
        limit = clave("slot", "limit", "/reboots/web", "2", connect=server.connect)
        self.assertEqual(limit.code, 0, limit)
        fleet = Fleet(2)
        ending = threading.Event()
        machines = [Machine(fleet, gates, f"m{i:02}", ending) for i in range(20)]
        for m in machines:
            m.start()
        acts = [lambda: self.restart(gates[0], signal.SIGKILL),
                lambda: self.restart(gates[1], signal.SIGTERM),
                lambda: self.restart(server, signal.SIGKILL),
                lambda: self.restart(server, signal.SIGTERM),
                cutters[0].cut, cutters[1].cut] + [cutters[0].lose, cutters[1].lose] * 3
        random.Random(27).shuffle(acts)
        for act in acts:
            act()
            turns = sum(m.turns for m in machines)  # until they have gone on
            self.await_true(lambda: sum(m.turns for m in machines) > turns)
        ending.set()
        for m in machines:
            m.join(250)
        self.assertEqual([repr(m.fault) for m in machines if m.fault], [])
        self.assertGreaterEqual(min(m.turns for m in machines), 2)
        self.assertEqual((fleet.down, fleet.most), (set(), 2))
        self.assertGreaterEqual(sum(c.lost for c in cutters), 6)
        left = clave("slot", "list", "/reboots/web", connect=server.connect)
        self.assertEqual((left.code, left.out.strip()), (0, ""), left)


def private(path, flags):
    return os.open(path, flags, 0o600)


if __name__ == "__main__":
    unittest.main()
