"""Lock nodes that may not be read: nothing of them is known but that they stand there. That is
what has to be said, and nobody may take it for a lock that nobody owns."""
import json
import time
import unittest

from gate_rig import Gate
from harness import PATIENCE, Running, clave, server
from lock_rig import TICK, queue

JOE = ["--auth", "digest:joe:secret"]


class Unreadable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=TICK)
        cls.shows_stat = cls.server.name == "apache" and cls.server.version < (3, 8, 4)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def verb(self, *words, **keywords):
        return clave(*words, connect=self.server.connect, **keywords)

    def hold(self, verb, path):
        """A holder whose node is joe's alone; its token."""
        self.held = held = Running(*JOE, verb, "--acl", "creator", path, "--", "sh", "-c",
                       "echo $CLAVE_TOKEN; exec sleep 1000", connect=self.server.connect)
        token = held.line()

        def end():
            held.process.terminate()
            held.end()
        self.addCleanup(end)
        return token

    def test_break_does_not_take_it_for_nobodys(self):
        self.hold("lock", "/live")
        node = queue(self.server, "/live")[0]["node"]
        r = self.verb("locks", "break", "/live", node)
        self.assertEqual((r.code, r.out), (73, ""), r)
        self.assertIn("may not be read", r.err)
        self.assertEqual([p["node"] for p in queue(self.server, "/live")], [node])
        r = self.verb("locks", "break", "/live", "0")
        self.assertEqual(r.code, 66, r)

    def test_check_does_not_say_that_it_is_free(self):
        for verb in "lock", "elect":
            path = "/check-" + verb
            token = self.hold(verb, path)
            r = self.verb("check", path, token)
            self.assertEqual(r.code, 77, r)
            self.assertIn(f"{path}: not authorised", r.err)
            self.assertEqual(self.verb(*JOE, "check", path, token).code, 0)
            self.assertEqual(self.verb(*JOE, "check", path, int(token) + 1).code, 76)

    def test_what_is_not_known_is_not_shown(self):
        self.hold("lock", "/shown")
        self.hold("elect", "/led")
        self.assertEqual(self.verb("locks", "/shown").out, "1 holder  -      - - - - -\n")
        self.assertEqual(self.verb("candidates", "/led").out, "1 leader  -      - -\n")
        self.assertEqual(self.verb("leader", "/led").out, "leader - -\n")
        for words in ["locks", "/shown"], ["candidates", "/led"], ["leader", "/led"]:
            shown = json.loads(self.verb("--json", *words).out)
            self.assertTrue(shown["node"].startswith("_c_"), shown)
            for key in "token", "session", "since_ms", "age_ms":
                self.assertIsNone(shown.get(key), (words, shown))
            self.assertIn("token", shown)

    def gate(self, *flags):
        gate = Gate(self.server.connect, *flags).start()
        self.addCleanup(gate.stop)
        return gate

    def until(self, gate, path, wanted):
        """What the gate says of a lock, when it says that."""
        end = time.monotonic() + PATIENCE
        while True:
            status, _, told = gate.call("GET", "/v1/locks" + path)
            if wanted(status, told):
                return told
            self.assertLess(time.monotonic(), end, (status, told))
            time.sleep(0.02)

    def test_the_gate_shows_that_the_lock_is_held(self):
        token = self.hold("lock", "/gate/shown")
        gate = self.gate()
        status, _, lock = gate.call("GET", "/v1/locks/gate/shown")
        self.assertEqual(status, 200, lock)
        self.assertEqual((lock["nholders"], lock["nwaiters"]), (1, 0), lock)
        place = lock["holders"][0]
        self.assertEqual(place["node"], queue(self.server, "/gate/shown")[0]["node"])
        self.assertIsNone(place["host"])
        if not self.shows_stat:
            self.assertIsNone(lock["held_since"])
            self.assertEqual({k: v for k, v in place.items() if k != "node" and v is not None},
                             {"role": "holder", "unreadable": True}, place)
            self.assertNotIn(f'"token": "{token}"', json.dumps(lock))
        status, _, problem = gate.call("GET", f"/v1/locks/gate/shown?token={token}")
        self.assertEqual((status, problem["code"]), (403, "ENOAUTH"), problem)
        _, _, told = gate.call("GET", "/v1/locks?prefix=/gate")
        self.assertEqual([(one["path"], one["nholders"]) for one in told["locks"]], [("/gate/shown", 1)])
        self.assertTrue(told["complete"])
        # Those behind it, and its end, are seen as they come, though they have no events.
        waiter = Running(*JOE, "lock", "--acl", "creator", "/gate/shown", "--", "true", connect=self.server.connect)
        lock = self.until(gate, "/gate/shown", lambda status, told: told.get("nwaiters") == 1)
        self.assertEqual(lock["waiters"][0]["role"], "waiting")
        self.assertEqual(lock["oldest_wait_ms"] is None, not self.shows_stat)
        self.held.process.terminate()
        self.assertEqual(waiter.end().code, 0)
        self.until(gate, "/gate/shown", lambda status, told: status == 404)

    def test_the_gate_with_an_identity_shows_whose_it_is(self):
        token = self.hold("lock", "/joes")
        gate = self.gate(*JOE)
        _, _, lock = gate.call("GET", "/v1/locks/joes")
        self.assertEqual(lock["holders"][0]["token"], token)
        self.assertNotIn("unreadable", lock["holders"][0])
        self.assertTrue(gate.call("GET", f"/v1/locks/joes?token={token}")[2]["holds"])

    def test_what_is_below_an_unreadable_node_is_not_known(self):
        r = self.verb(*JOE, "create", "--acl", "creator", "/dark")
        self.assertEqual(r.code, 0, r)
        self.hold("lock", "/dark/lock")
        gate = self.gate()
        for path in "/dark", "/dark/lock", "/dark/a/b":
            for of in "/v1/locks", "/v1/elections":
                status, _, problem = gate.call("GET", of + path)
                self.assertEqual((status, problem["code"]), (403, "ENOAUTH"), problem)
                self.assertIn("may not read /dark,", problem["detail"])
        _, _, told = gate.call("GET", "/v1/locks?prefix=/dark")
        self.assertEqual((told["locks"], told["unreadable"] > 0), ([], True), told)

    def test_top_shows_it(self):
        self.hold("lock", "/top/shown")
        r = self.verb("top", "--once", "/top")
        who = "session 0x[0-9a-f]+ +<[0-9a-z]+" if self.shows_stat else r"\(not readable\) +-"
        self.assertRegex(r.out, r"/top/shown +lock +" + who + " +0")
        lock = json.loads(self.verb("top", "--json", "/top").out)
        self.assertEqual(lock["holders"][0].get("unreadable", False), not self.shows_stat)


if __name__ == "__main__":
    unittest.main()
