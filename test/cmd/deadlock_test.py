"""`clave locks --deadlocks`, and `clave lock --detect-deadlock`: commands under locks that take
others, in two orders; and kazoo's locks in the same cycle."""
import json
import os
import unittest

from harness import CLAVE, Running, clave, scratch, server
from lock_rig import TICK, queue, until

try:
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock
except ImportError:
    KazooClient = None


class Nested:
    """A command under one lock which takes another when it is told to, with these flags."""

    def __init__(self, server, first, then, *flags, verb="lock"):
        self.fifo = scratch("go")
        os.mkfifo(self.fifo)
        inner = " ".join([CLAVE, "lock", *flags, then, "--", "true"])
        self.run = Running(*verb.split(), "--name", first.strip("/").replace("/", "-"), first, "--",
                           "sh", "-c", f'echo "$CLAVE_OWNER"; read go <{self.fifo}; {inner}',
                           connect=server.connect)
        self.owner = self.run.line()

    def go(self):
        with open(self.fifo, "w") as f:
            f.write("go\n")
        return self

    def stop(self):
        return self.run.end(15).code


class Deadlocks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=TICK)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def look(self, *words, code=79):
        r = clave("locks", "--deadlocks", *words, connect=self.server.connect)
        self.assertEqual(r.code, code, r)
        return r

    def found(self, *words):
        return [json.loads(line) for line in self.look("--json", *words).out.splitlines()]

    def in_queue(self, path, n):
        until(lambda: len(queue(self.server, path)) == n, what=path)

    def test_none(self):
        clave("create", "/none", connect=self.server.connect)
        self.assertEqual(self.look("/none", code=0).out, "")
        self.assertEqual(self.look(code=0).out, "")
        self.assertIn("clave: locks: no deadlock\n", self.look("/none", "-v", code=0).err)
        self.assertIn("/typo: no such node", self.look("/none", "/typo", code=66).err)
        r = clave("locks", "--deadlocks", "none", connect=self.server.connect)
        self.assertEqual(r.code, 66, r)
        r = clave("locks", "--deadlocks", "--force", "/none", connect=self.server.connect)
        self.assertEqual(r.code, 64, r)

    def test_two_orders(self):
        a = Nested(self.server, "/two/a", "/two/b")
        b = Nested(self.server, "/two/b", "/two/a")
        self.assertRegex(a.owner, "^[0-9a-f]{16}$")
        a.go()
        self.in_queue("/two/b", 2)
        self.look("/two", code=0)
        b.go()
        self.in_queue("/two/a", 2)
        members = self.found("/two")[0]["members"]
        self.assertEqual(len(members), 4)
        self.assertEqual({m["path"] for m in members}, {"/two/a", "/two/b", None})
        self.assertIn(a.owner, [m["owner"] for m in members])
        self.assertTrue(any(m["owner"].startswith(a.owner + "/") for m in members))
        self.assertIsNone(self.found("/two/a", "/two/b")[0]["victim"])
        text = self.look().out
        self.assertTrue(text.startswith("deadlock of 4\n"), text)
        self.assertIn("(two-a) is to outlast", text)
        self.assertIn("waits for /two/b behind", text)
        a.stop()
        self.assertEqual(b.run.end().code, 0)
        self.look("/two", code=0)

    def test_one_gives_up(self):
        a = Nested(self.server, "/one/a", "/one/b", "--detect-deadlock")
        b = Nested(self.server, "/one/b", "/one/a", "--detect-deadlock=/one")
        a.go()
        self.in_queue("/one/b", 2)
        b.go()
        gave_up, went_on = b.run.end(), a.run.end()
        self.assertEqual(gave_up.code, 79, gave_up)
        self.assertEqual(went_on.code, 0, went_on)
        self.assertRegex(gave_up.err, r"clave: lock: /one/a: given up to end a deadlock: .* waits "
                                      r"for /one/a behind .*\(one-a\), .* is to outlast .* waits "
                                      r"for /one/b behind")

    def test_its_own_lock(self):
        r = clave("lock", "/own", "--", CLAVE, "--json", "lock", "--detect-deadlock", "/own", "--",
                  "true", connect=self.server.connect)
        self.assertEqual(r.code, 79, r)
        events = [json.loads(line) for line in r.err.splitlines()]
        self.assertIn("deadlock", [e["event"] for e in events])

    def test_leases(self):
        a = Nested(self.server, "/leases/s", "/leases/m", verb="semaphore -n 1")
        b = Running("lock", "/leases/m", "--", CLAVE, "semaphore", "-n", "1", "--detect-deadlock=/",
                    "/leases/s", "--", "true", connect=self.server.connect)
        self.in_queue("/leases/s", 3)  # two leases, and who acquires one
        a.go()
        b = b.end()
        self.assertEqual(b.code, 79, b)
        self.assertEqual(a.run.end().code, 0)

    @unittest.skipUnless(KazooClient, "no kazoo")
    def test_kazoo_in_the_cycle(self):
        k = KazooClient(self.server.connect)
        k.start()
        has = Lock(k, "/kazoo/k", extra_lock_patterns=["-lock-"])
        wants = Lock(k, "/kazoo/c", extra_lock_patterns=["-lock-"])
        self.assertTrue(has.acquire())
        c = Nested(self.server, "/kazoo/c", "/kazoo/k", "--detect-deadlock")
        waiting = k.handler.spawn(wants.acquire)
        self.in_queue("/kazoo/c", 2)
        self.look("/kazoo", code=0)
        c.go()
        r = c.run.end()
        self.assertEqual(r.code, 79, r)
        self.assertIn("waits for /kazoo/k behind", r.err)
        waiting.join(30)
        self.assertTrue(wants.is_acquired)
        k.stop()
        k.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
