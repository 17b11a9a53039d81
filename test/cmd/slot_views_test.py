"""Slots where locks are seen: `/v1/locks`, events, history, metrics, `clave top`; over a restart, too."""
import json
import re
import shlex
import time
import unittest

from gate_rig import Gate
from harness import PATIENCE, Running, clave


class Seen(unittest.TestCase):
    PATH = "/fleet/reboot"

    def setUp(self):
        self.gate = Gate(None, "--http-metric-paths", "/fleet").start()
        self.addCleanup(lambda: self.gate.process.poll() is None and self.gate.stop())
        self.connect = f"127.0.0.1:{self.gate.zk_port}"
        self.slot("limit", "2")

    def slot(self, part, *words):
        r = clave("slot", part, self.PATH, *words, connect=self.connect)
        self.assertEqual(r.code, 0, r)
        return r.out

    def take(self, name, *words):
        return json.loads(self.slot("take", "--id", name, "--json", *words))

    def lock(self):
        status, _, lock = self.gate.call("GET", f"/v1/locks{self.PATH}")
        return lock if status == 200 else {"holders": [], "waiters": []}

    def await_true(self, what):
        until = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), until, self.lock())
            time.sleep(0.02)

    def names(self, side):
        return [p["name"] for p in self.lock()[side]]

    def past(self):
        return [(e["what"], e["place"]["name"], e["cause"]) for e in self.gate.call("GET", f"/v1/history?path={self.PATH}")[2]["entries"]]

    def test_what_others_put_among_slots_is_told_with_what_ends_it(self):
        def tell(words):
            r = clave(*words, connect=self.connect)
            self.assertEqual(r.code, 0, r)
            return r.out

        node = f"{self.PATH}/owners/it's me; ls"
        tell(("create", node, ""))
        self.await_true(lambda: "strangers" in self.lock())
        lock = self.lock()
        self.assertEqual((lock["kind"], lock["limit"], lock["nholders"], lock["nstrangers"]), ("slot", 2, 0, 1))
        self.assertEqual([s["node"] for s in lock["strangers"]], [node])
        listed = self.gate.call("GET", "/v1/locks")[2]["locks"]
        self.assertEqual([l["strangers"] for l in listed], [lock["strangers"]])
        self.assertEqual(json.loads(tell(("locks", "--json")))["strangers"], lock["strangers"])
        self.assertIn("this is not a slot, but counts as one", tell(("top", "--once")))
        told = re.search(r"\((.*): this is not a slot, but counts as one; to remove it: clave (.*)\)", tell(("locks",)))
        self.assertEqual(told[1], node)
        detail = lock["strangers"][0]["detail"]
        self.assertEqual(detail, f"this is not a slot, but counts as one; to remove it: clave {told[2]}")
        tell(shlex.split(told[2]))
        self.await_true(lambda: "strangers" not in self.lock())

        self.take("web1")
        tell(("set", f"{self.PATH}/limit", "four"))
        self.await_true(lambda: self.lock().get("detail"))
        lock = self.lock()
        self.assertEqual((lock["limit"], lock["nholders"]), (None, 1))
        told = re.search(r"\(the limit is no number, so nobody takes a slot; to set it: clave (.*)\)", tell(("locks",)))
        self.assertEqual(lock["detail"], f"the limit is no number, so nobody takes a slot; to set it: clave {told[1]}")
        tell([w if w != "N" else "2" for w in shlex.split(told[1])])
        self.await_true(lambda: self.lock()["limit"] == 2)
        self.assertNotIn("detail", self.lock())

    def test_a_semaphores_strangers_are_told(self):
        semaphore = Running("semaphore", "-n", "2", "/pool", "--", "sleep", "600", connect=self.connect)
        self.addCleanup(semaphore.end, 15)
        node = "/pool/leases/notes.txt"
        self.await_true(lambda: self.gate.call("GET", "/v1/locks/pool")[0] == 200)
        self.assertEqual(clave("create", node, "", connect=self.connect).code, 0)
        r = clave("locks", "/pool", connect=self.connect)
        self.assertEqual(r.code, 0, r)
        self.assertIn(f"{node}: this is not a lease, but counts as one; to remove it: clave rm -r {node}", r.err)
        self.await_true(lambda: "strangers" in self.gate.call("GET", "/v1/locks/pool")[2])

    def test_owners_and_waiters_are_one_lock(self):
        first = self.take("web1", "--by", "ann", "--reason", "kernel")
        self.take("web2")
        waiter = Running("slot", "take", self.PATH, "--id", "web3", connect=self.connect)
        self.await_true(lambda: self.names("holders") == ["web1", "web2"] and self.names("waiters") == ["web3"])
        lock = self.lock()
        self.assertEqual((lock["kind"], lock["limit"], lock["nholders"], lock["nwaiters"]), ("slot", 2, 2, 1))
        one = lock["holders"][0]
        self.assertEqual((one["role"], one["token"], one["session"], one["by"], one["reason"], one["host"]),
                         ("slot", str(first["token"]), None, "ann", "kernel", first["host"]))
        self.assertEqual(lock["held_since"], one["since"])
        self.assertEqual([l["path"] for l in self.gate.call("GET", "/v1/locks")[2]["locks"]], [self.PATH])
        metrics = self.gate.call("GET", "/metrics")[2].decode()
        self.assertIn(f'clave_lock_holders{{path="{self.PATH}",kind="slot"}} 2\n', metrics)
        self.assertIn(f'clave_lock_held_since_timestamp_seconds{{path="{self.PATH}",kind="slot"}}', metrics)
        top = clave("top", connect=self.connect).out
        self.assertRegex(top, rf"(?m)^{self.PATH} +slot +web1 \+1 .*: kernel$")
        self.slot("give", "--id", "web1")
        self.assertEqual(waiter.end().code, 0)
        self.await_true(lambda: self.names("holders") == ["web2", "web3"])

    def test_what_became_of_them_is_remembered(self):
        self.take("web1")
        self.await_true(lambda: ("granted", "web1", None) in self.past())
        self.slot("give", "--id", "web1")
        self.await_true(lambda: ("ended", "web1", "released") in self.past())
        self.take("web2")
        self.await_true(lambda: ("granted", "web2", None) in self.past())
        self.slot("break", "web2", "--reason", "gone")
        self.await_true(lambda: ("ended", "web2", "broken") in self.past())
        before = self.past()
        self.assertEqual(before, [(what, name, cause) for name, cause in (("web1", "released"), ("web2", "broken"))
                                  for what, cause in (("queued", None), ("granted", None), ("ended", cause))])
        self.gate.stop()
        self.gate.start()
        self.await_true(lambda: self.past() == before)


unittest.main()
