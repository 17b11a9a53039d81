"""`clave locks --deadlocks`, and `clave lock --detect-deadlock`: commands under locks that take
others, in two orders; and kazoo's locks in the same cycle."""
import json
import os
import unittest

from harness import CLAVE, Running, Served, clave, scratch, server
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


class Deadlocks(Served):
    flags = TICK

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
        self.assertIs(self.found("/two")[0]["certain"], True)
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
        self.in_queue("/leases/s", 2)  # who has the lease, and who waits for it
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

    @unittest.skipUnless(KazooClient, "no kazoo")
    def test_sessions_may_have_a_thread_that_goes_on(self):
        clients = [KazooClient(self.server.connect) for _ in range(2)]
        paths = ["/may/a", "/may/b"]
        for k, path in zip(clients, paths):
            k.start()
            self.assertTrue(Lock(k, path).acquire())
        waiting = [k.handler.spawn(Lock(k, path).acquire) for k, path in zip(clients, reversed(paths))]
        for path in paths:
            self.in_queue(path, 2)
        r = self.look("/may", "-v", code=0)
        self.assertTrue(r.out.startswith("possible deadlock of 2\n"), r)
        self.assertIn("no certain deadlock", r.err)
        one = json.loads(self.look("--json", "/may", code=0).out)
        self.assertEqual((one["certain"], len(one["members"])), (False, 2))
        for k in clients:
            k.stop()
            k.close()
        for w in waiting:
            w.join(30)


class Inner(Served):
    """A command under a lock that takes the same lock again: it would wait for ever, and says so."""

    flags = TICK

    def nested(self, *levels, env=None):
        words = []
        for level in levels:
            words += [CLAVE, *level.split(), "--"]
        return clave(*words[1:], "echo", "ran", connect=self.server.connect, env=env)

    def refused(self, *levels):
        r = self.nested(*levels)
        self.assertEqual((r.code, r.out), (79, ""), r)
        self.assertIn("that this one runs under", r.err)
        self.assertIn("it would wait forever", r.err)
        return r

    def test_the_same_lock(self):
        r = self.refused("lock --name outer /same", "lock /same")
        self.assertRegex(r.err, r"/same: held by the 'clave lock' that this one runs under, .*\(outer\)")
        self.refused("lock /same", "lock -w 1h /same")
        self.refused("lock /same", "lock /other", "lock /same")

    def test_json(self):
        r = self.nested("lock /json", "lock --json /json")
        event = json.loads(r.err.splitlines()[-1])
        self.assertEqual((r.code, event["event"], event["path"]), (79, "deadlock", "/json"))

    def test_who_does_not_wait(self):
        r = self.nested("lock /same", "lock -n /same")
        self.assertEqual(r.code, 75, r)
        r = self.nested("lock /same", "lock /same/below")
        self.assertEqual((r.code, r.out), (0, "ran\n"), r)

    def test_readers_and_writers(self):
        r = self.nested("rwlock -r /rw", "rwlock -r /rw")
        self.assertEqual((r.code, r.out), (0, "ran\n"), r)
        self.refused("rwlock -r /rw", "rwlock /rw")
        self.refused("rwlock /rw", "rwlock -r /rw")

    def test_leases(self):
        two = "semaphore -n 2 /leases/n"
        r = self.nested(two, two)
        self.assertEqual((r.code, r.out), (0, "ran\n"), r)
        self.refused(two, two, two)

    def test_leases_that_others_give_back(self):
        """It waits: the other lease is somebody else's."""
        two = "semaphore -n 2 /leases/o"
        other = Running(*two.split(), "--", "sh", "-c", "echo up; exec sleep 1000",
                        connect=self.server.connect)
        self.assertEqual(other.line(), "up")
        inner = Running(*two.split(), "--", CLAVE, *two.split(), "--", "echo", "ran",
                        connect=self.server.connect)
        # Two leases, and who waits for one.
        until(lambda: len(queue(self.server, "/leases/o")) == 3)
        other.end(15)
        r = inner.end()
        self.assertEqual((r.code, r.out), (0, "ran\n"), r)

    def test_other_servers(self):
        """The lock of the same path is another one there."""
        far = server(flags=TICK)
        r = self.nested("lock /same", f"lock -c {far.connect} /same")
        self.assertEqual((r.code, r.out), (0, "ran\n"), r)
        far.stop()

    def test_another_way_to_the_same_servers(self):
        self.refused("lock /same", f"lock -c {self.server.connect},{self.server.connect} /same")


if __name__ == "__main__":
    unittest.main(verbosity=2)
