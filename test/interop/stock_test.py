"""kazoo's Lock as it comes beside a lock of clave: it is granted although clave holds. `clave locks`
says what it is, and so does `clave lock`; named as docs/guide/from-kazoo.md advises, it waits."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
from harness import PATIENCE, Running, clave, server  # noqa: E402

try:
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock
except ImportError:
    print("kazoo is not installed: nothing was tested")
    sys.exit(77)

NOTE = "kazoo default name: takes no part in this queue, extra_lock_patterns aside"
WARNING = "has the default name of a kazoo lock, which takes no part in this queue"


class SharedLock(Lock):
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class Stock(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server()
        cls.zk = KazooClient(cls.server.connect, timeout=20)
        cls.zk.start(timeout=PATIENCE)

    @classmethod
    def tearDownClass(cls):
        cls.zk.stop()
        cls.zk.close()
        cls.server.stop()

    def verb(self, *words):
        return clave(*words, connect=self.server.connect)

    def hold(self, *words):
        """A command that runs under a lock of clave's until its test has ended."""
        held = Running("--session-timeout", "20s", *words, "--", "sh", "-c",
                       "echo held; exec sleep 1000", connect=self.server.connect)
        self.addCleanup(lambda: held.end(15))
        self.assertEqual(held.line(), "held")

    def test_a_second_holder(self):
        self.hold("lock", "/two")
        stock = self.zk.Lock("/two", "stock-user")
        self.assertTrue(stock.acquire(blocking=False), "is this still so?")
        self.addCleanup(stock.release)
        lines = self.verb("locks", "/two").out.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].startswith("1 holder "), lines)
        self.assertNotIn("kazoo", lines[0])
        self.assertTrue(lines[1].startswith("2 outside "), lines)
        self.assertTrue(lines[1].endswith(f" stock-user ({NOTE})"), lines)
        shown = [json.loads(line) for line in self.verb("--json", "locks", "/two").out.splitlines()]
        self.assertEqual([(p["role"], p["holder"], p["note"]) for p in shown],
                         [("holder", True, None), ("outside", False, NOTE)])

    def test_who_comes_later_is_warned(self):
        stock = self.zk.Lock("/before", "stock-user")
        self.assertTrue(stock.acquire(blocking=False))
        self.addCleanup(stock.release)
        r = self.verb("lock", "-n", "/before", "--", "true")
        self.assertEqual(r.code, 75, r)
        self.assertIn(f"clave: lock: /before/{stock.node} {WARNING}", r.err)
        self.assertEqual(r.err.count(WARNING), 1)
        r = self.verb("--json", "lock", "-n", "/before", "--", "true")
        first = json.loads(r.err.splitlines()[0])
        self.assertEqual((first["event"], first["path"]), ("warning", "/before"))
        self.assertIn(WARNING, first["text"])

    def test_the_holder_is_warned(self):
        """It lists the queue when it comes: here a node of kazoo's with a number after its own."""
        node = self.zk.Lock("/held").prefix + "0000000007"
        self.zk.create(f"/held/{node}", makepath=True, ephemeral=True)
        r = self.verb("lock", "-n", "/held", "--", "true")
        self.assertEqual(r.code, 0, r)
        self.assertIn(f"/held/{node} {WARNING}", r.err)

    def test_elections(self):
        self.hold("elect", "/led")
        election = self.zk.Lock("/led", "stock-user")
        self.assertTrue(election.acquire(blocking=False))
        self.addCleanup(election.release)
        line = self.verb("candidates", "/led").out.splitlines()[1]
        self.assertTrue(line.endswith(f" stock-user ({NOTE})"), line)

    def test_named_as_advised_it_waits(self):
        self.hold("lock", "/shared")
        shared = SharedLock(self.zk, "/shared", "shared-user")
        self.assertFalse(shared.acquire(blocking=False))
        self.assertNotIn("kazoo", self.verb("locks", "/shared").out)


if __name__ == "__main__":
    unittest.main()
