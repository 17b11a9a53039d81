"""Znodes, semaphores, slots, elections, jobs that run once, caches, watches, who is in a queue."""
import asyncio
import os
import re
import signal
import subprocess
import threading
import time
import unittest

import clave
import clave.aio
import clave.metrics
from rig import CLAVE, PATIENCE, Case, until


class Arguments(Case):
    def test_a_text_with_nul(self):
        """libclave's texts end at it: two keys of `once` would be one."""
        c = self.open()
        for work in (lambda: c.create("/n\0ul"), lambda: c.lock("/n\0ul"), lambda: c.election("/e", id="n\0ul").enter(),
                     lambda: c.once("/o", "n\0ul", print), lambda: c.slots("/s", 1).take("n\0ul"),
                     lambda: c.semaphore("/s", limit_path="/n\0ul"), lambda: clave.Client("n\0ul"),
                     lambda: c.set_acl("/", [clave.Acl(clave.Perm.ALL, "digest", "n\0ul")])):
            with self.assertRaisesRegex(ValueError, "NUL"):
                work()

    def test_a_call_that_libclave_refuses(self):
        """It is begun on another thread, which answers it like any other."""
        c = self.open()
        for work in lambda: c.get("x"), lambda: c.multi([clave.Check("x")]), lambda: c.lock("x"):
            with self.assertRaises(clave.Error) as refused:
                work()
            self.assertEqual(refused.exception.name, "EPATH")

        async def awaited():
            async with clave.aio.Client(self.server.connect) as other:
                with self.assertRaises(clave.Error) as refused:
                    await other.get("x")
                self.assertEqual(refused.exception.name, "EPATH")
                self.assertEqual(other._session._calls, {})

        asyncio.run(awaited())
        self.assertEqual(c._session._calls, {})

    def test_the_timeout_of_a_client_is_that_of_every_call(self):
        c = self.open(timeout=0.3, session_timeout=60)
        slots, election, semaphore = c.slots("/silent", 1), c.election("/silent"), c.semaphore("/silent", limit_path="/limit")
        hold, term = c.lock("/silent/lock").acquire(), election.enter().lead()
        slot = slots.take("me")
        calls = [lambda: c.get("/"), lambda: c.participants("/silent"), lambda: c.deadlocks("/"), lambda: c.revoke("/silent/x"),
                 election.leader, election.participants, election.transfer, slots.list, lambda: slots.give("you", 1),
                 lambda: slots.set_limit(2), lambda: slots.break_("you", "a test"), lambda: semaphore.set_limit(2, True),
                 lambda: hold.set("/silent", b""), lambda: hold.multi([clave.Check("/", -1)]), lambda: term.publish(b""),
                 lambda: term.transfer("nobody"), lambda: slots.hold(slot).set("/silent", b""),
                 lambda: hold.release(confirm=True)]
        self.server.signal(signal.SIGSTOP)
        self.addCleanup(self.server.signal, signal.SIGCONT)
        for call in calls:
            began = time.monotonic()
            with self.assertRaises(clave.Unknown):
                call()
            self.assertLess(time.monotonic() - began, 5)


class Znodes(Case):
    def test_a_text_is_its_utf_8(self):
        c = self.open()
        c.create("/text", "déjà")
        self.assertEqual(c.get("/text").data.decode(), "déjà")
        c.set("/text", bytearray(b"array"))
        self.assertEqual(c.get("/text").data, b"array")
        c.multi([clave.Set("/text", "é"), clave.Create("/text/a", memoryview(b"view"))])
        self.assertEqual([c.get(p).data for p in ("/text", "/text/a")], ["é".encode(), b"view"])
        with c.lock("/text/lock") as hold, c.election("/text/lead") as term:
            hold.set("/text", "held")
            hold.multi([clave.Create("/text/b", "multi")])
            term.publish("me")
        self.assertEqual([c.get(p).data for p in ("/text", "/text/b")], [b"held", b"multi"])
        c.add_auth("digest", "me:secret")
        with self.assertRaises(TypeError):
            c.set("/text", 5)
        with clave.Client(self.server.connect, auths=[("digest", "me:secret")]) as other:
            other.create("/text/c", acls=[clave.Acl(clave.Perm.ALL, "auth", "")])

    def test_versions(self):
        c = self.open()
        self.assertEqual(c.create("/v/a", b"0", parents=True), "/v/a")
        node = c.get("/v/a")
        self.assertEqual((node.data, node.stat.version), (b"0", 0))
        self.assertEqual(c.set("/v/a", b"1", 0).version, 1)
        with self.assertRaises(clave.BadVersion):
            c.set("/v/a", b"2", 0)
        with self.assertRaises(clave.NodeExists):
            c.create("/v/a")
        with self.assertRaises(clave.NotEmpty):
            c.delete("/v")
        self.assertIsNone(c.exists("/v/b"))
        made = c.create("/v/s-", b"", clave.Mode.EPHEMERAL_SEQUENTIAL)
        self.assertEqual(c.get(made).stat.ephemeral_owner, c.session_id)
        self.assertEqual(c.children("/v"), ["a", made.split("/")[-1]])
        c.sync("/v")

    def test_transaction(self):
        c = self.open()
        self.assertEqual(c.multi([clave.Create("/t", b"1"), clave.Create("/t/n-", b"", clave.Mode.PERSISTENT_SEQUENTIAL)]),
                         ["/t", "/t/n-0000000000"])
        with self.assertRaises(clave.BadVersion) as failed:
            c.multi([clave.Set("/t", b"2"), clave.Check("/t", 7)])
        self.assertIn("operation 1 on /t", str(failed.exception))
        self.assertEqual(c.get("/t").data, b"1")
        c.multi([clave.Delete("/t/n-0000000000"), clave.Delete("/t")])

    def test_access(self):
        c, d = self.open(auths=[("digest", b"me:secret")]), self.open()
        c.create("/mine", b"x", acls=[clave.Acl(clave.Perm.ALL, "auth", "")])
        with self.assertRaises(clave.NoAuth):
            d.get("/mine")
        d.add_auth("digest", b"me:secret")
        self.assertEqual(d.get("/mine").data, b"x")
        acls, stat = c.get_acl("/mine")
        self.assertEqual((acls[0].perms, acls[0].scheme), (clave.Perm.ALL, "digest"))
        self.assertEqual(c.set_acl("/mine", [clave.Acl(clave.Perm.READ, "world", "anyone")], stat.aversion).aversion, 1)


class Semaphores(Case):
    def test_leases(self):
        c, d = self.open(), self.open()
        with c.semaphore("/pool", 2) as first, d.semaphore("/pool", 2) as second:
            self.assertLess(first.token, second.token)
            with self.assertRaises(clave.Busy):
                c.semaphore("/pool", 2).acquire(0)
            self.assertEqual(len(c.participants("/pool", "semaphore")), 2)
        semaphore = c.semaphore("/pool", 2)
        both = semaphore.acquire_many(2)
        both[0].release(confirm=True)
        both[1].release()
        self.assertEqual(self.queue(c, "/pool/leases"), [])
        semaphore.set_limit(3)
        self.assertEqual(semaphore.limit, 3)

    def test_lost(self):
        c = self.open()
        with self.assertRaises(clave.Lost), c.semaphore("/fragile", 1) as lease:
            c.delete(lease.node)
            self.assertTrue(lease.lost.wait(PATIENCE))

    def test_decorator(self):
        c = self.open()
        self.assertEqual(c.semaphore("/limited", 1)(lambda: len(c.children("/limited/leases")))(), 1)


class SlotsTest(Case):
    def test_take_and_give(self):
        c, d = self.open(), self.open()
        slots = c.slots("/slots", limit=1)
        slot = slots.take("db-1", by="me", reason="upgrade")
        self.assertEqual((slot.id, slot.by, slot.reason), ("db-1", "me", "upgrade"))
        self.assertEqual(d.slots("/slots").take("db-1").token, slot.token)  # it owns that one already
        with self.assertRaises(clave.Busy):
            d.slots("/slots").take("db-2", timeout=0)
        c.close()
        other = d.slots("/slots")
        view = other.list()
        self.assertEqual((view.limit, [s.id for s in view.slots], view.broken), (1, ["db-1"], None))
        hold = other.hold(slot)
        hold.create("/by-a-slot")
        self.assertEqual(other.break_("db-1", "it is gone", by="me"), slot.token)
        with self.assertRaises(clave.Lost):
            hold.delete("/by-a-slot")
        self.assertEqual(other.list().broken.reason, "it is gone")
        self.assertEqual(other.give("db-1"), 0)
        other.set_limit(2)
        self.assertEqual(other.list().limit, 2)

    def test_a_take_that_waits(self):
        c, queued = self.open(), threading.Event()
        slots = c.slots("/waiting", limit=1)
        slots.take("a")
        taken = []
        thread = threading.Thread(target=lambda: taken.append(self.open().slots(
            "/waiting", on_queued=lambda ahead: queued.set()).take("b")))
        thread.start()
        self.assertTrue(queued.wait(PATIENCE))
        self.assertGreater(slots.give("a"), 0)
        thread.join(PATIENCE)
        self.assertEqual(taken[0].id, "b")


class Elections(Case):
    def test_block(self):
        c, d = self.open(), self.open()
        election = c.election("/lead", id="first")
        with election as term:
            leader = election.leader()
            self.assertEqual(leader.identity.text, "first")
            self.assertEqual(leader.stat.czxid, term.token)
            with self.assertRaises(clave.Busy):
                d.election("/lead", timeout=0.05).__enter__()
            self.queued(c, "/lead", 1)
        self.assertEqual(self.queue(c, "/lead"), [])
        self.assertIsNone(election.leader())

    def test_terms_and_followers(self):
        c, d, news = self.open(), self.open(), []
        watch = d.election("/terms").follow(lambda leader, value: news.append((leader and leader.identity.text, value)))
        tokens = []
        for term in c.election("/terms", id="a").terms():
            term.publish(b"here")
            until(lambda: ("a", b"here") in news, "the value")
            tokens.append(term.token)
            if len(tokens) == 2:
                break
        self.assertLess(tokens[0], tokens[1])
        until(lambda: news[-1] == (None, None), "nobody leads")
        watch.close()

    def test_transfer(self):
        c, d = self.open(), self.open()
        first = c.election("/hand", id="a").enter()
        term = first.lead(PATIENCE)
        second = d.election("/hand", id="b").enter()
        self.queued(c, "/hand", 2)
        self.assertEqual((first.is_leader, second.is_leader, first.node), (True, False, term.node))
        node = [p.node for p in c.election("/hand").participants() if p.identity.text == "b"]
        term.transfer(node[0])
        self.assertGreater(second.lead(PATIENCE).token, 0)
        first.close()
        second.close()

    def test_lost(self):
        c = self.open()
        with self.assertRaises(clave.Lost), c.election("/fallen") as term:
            c.delete(term.node)
            self.assertTrue(term.lost.wait(PATIENCE))

    def test_decorator(self):
        @self.open().election("/decorated")
        def work(term, more):
            return term.valid_for(), more

        self.assertEqual(work(7), (True, 7))


class Jobs(Case):
    def test_once(self):
        c = self.open()
        self.assertEqual(c.once("/report", "daily", lambda hold: hold.valid_for(), period=3600)[:2], (True, True))
        again = c.once("/report", "daily", lambda hold: self.fail("again"), period=3600)
        self.assertEqual((again.here, again.former.state), (False, "done"))
        ran_by = again.former.identity
        self.assertEqual((ran_by.host, ran_by.pid), (os.uname().nodename, os.getpid()))
        self.assertIn("unittest", ran_by.command)
        done = subprocess.run([CLAVE, "--connect", self.server.connect, "lock", "--once", "daily", "--for", "1h",
                               "--done-code", "9", "/report", "--", "true"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 9)

    def test_a_failure_does_not_count(self):
        c = self.open()
        with self.assertRaises(ZeroDivisionError):
            c.once("/fails", "k", lambda hold: 1 // 0)
        ran = c.once("/fails", "k", lambda hold: 5)
        self.assertEqual((ran.value, ran.former.state), (5, "failed"))

    def test_delay(self):
        c = self.open()
        with self.assertRaises(clave.Lost), c.lock("/delay") as hold, hold.delayed("/delay-mark", 0.05):
            c.delete(hold.node)
        self.assertIsNotNone(c.exists("/delay-mark"))
        with c.lock("/delay") as hold, hold.delayed("/delay-mark", 0.05):
            pass
        self.assertIsNone(c.exists("/delay-mark"))
        with self.assertRaises(ZeroDivisionError), c.lock("/delay") as hold, hold.delayed("/delay-mark", 0.05):
            raise ZeroDivisionError  # the lock is released, so nobody need wait
        self.assertIsNone(c.exists("/delay-mark"))


class Copies(Case):
    def test_mapping(self):
        c, seen = self.open(), []
        c.create("/settings/colour", b"red", parents=True)
        with c.cache("/settings", lambda event, path, now, was: seen.append((event, path))) as settings:
            self.assertEqual(settings["/settings/colour"], b"red")
            self.assertEqual(dict(settings), {"/settings": b"", "/settings/colour": b"red"})
            self.assertIn("/settings/colour", settings)
            self.assertNotIn("/settings/size", settings)
            with self.assertRaises(KeyError):
                settings["/settings/size"]
            c.set("/settings/colour", b"blue")
            until(lambda: settings["/settings/colour"] == b"blue", "blue")
            self.assertEqual(settings.node("/settings/colour").stat.version, 1)
            self.assertEqual(settings.children("/settings"), ["/settings/colour"])
            self.assertEqual(len(settings), 2)
            until(lambda: (clave.CacheEvent.CHANGED, "/settings/colour") in seen, "CHANGED")
        with self.assertRaises(clave.Closed):
            settings["/settings/colour"]

    def test_instances(self):
        c, seen = self.open(), []
        c.create("/services/web/a", b'{"name":"web","id":"a","address":"h","port":80,"payload":{"zone":3}}', parents=True)
        c.create("/services/web/b", b"127.0.0.1")
        with c.instances("web", lambda event, now, was: seen.append((event.name, (now or was) and (now or was).id))) as web:
            first, odd = web
            self.assertEqual((first.address, first.port, first.ssl_port, first.payload, first.type, first.up),
                             ("h", 80, None, {"zone": 3}, "DYNAMIC", True))
            self.assertEqual((odd.path, odd.fault, odd.up), ("/services/web/b", "is not a JSON object", False))
            self.assertEqual([web.pick(), web.pick(clave.Pick.STICKY)], [first, first])
            web.note_error(first)
            web.note_error(first)
            self.assertIsNone(web.pick())
            c.set("/services/web/b", b'{"name":"web","id":"b","enabled":true}')
            until(lambda: ("CHANGED", "b") in seen, "CHANGED")
            self.assertEqual(web.pick().id, "b")
            c.delete("/services/web/b")
            until(lambda: ("DOWN", "b") in seen, "DOWN")
            self.assertTrue(web.current)
        with self.assertRaises(clave.Closed):
            web.pick()
        with c.instances(base="/services") as everything:
            self.assertEqual([i.id for i in everything], ["a"])
            with self.assertRaises(clave.Error):
                everything.pick()

    def test_an_instance_is_registered(self):
        c = self.open()
        data = clave.instance_data("web", "a", "h", 80, payload={"zone": 3}, uri="{scheme}://{address}:{port}/{[}{id}{]}")
        with c.persistent_node("/registered/web/a", data, replace=True) as node, c.instances("web", base="/registered") as web:
            first = web.pick()
            self.assertEqual((first.uri, first.payload, first.ssl_port, first.up), ("http://h:80/{a}", {"zone": 3}, None, True))
            self.assertEqual(first.uri_spec["parts"][0], {"value": "scheme", "variable": True})
            node.set(clave.instance_data("web", "a", "h", ssl_port=443, enabled=False))
            until(lambda: [(i.uri, i.ssl_port, i.up) for i in web] == [(None, 443, False)], "disabled")
        for uri, fault in ("{scheme", r"has a { without }"), ("}", r"has a } without {: write {]} for one"):
            with self.assertRaisesRegex(ValueError, re.escape(fault)):
                clave.instance_data("web", "a", "h", uri=uri)

    def test_counter(self):
        c = self.open()
        orders = c.counter("/counters/orders")
        self.assertEqual(orders.get(), 0)
        with self.assertRaises(clave.NoNode):
            orders.compare_and_set(0, 1)
        self.assertEqual([orders.add(), orders.add(-3)], [(0, 1), (1, -2)])
        self.assertEqual(c.get("/counters/orders").data, (-2).to_bytes(8, "big", signed=True))  # as Curator's
        self.assertEqual(orders.set(2**62), (-2, 2**62))
        with self.assertRaises(clave.BadVersion):
            orders.compare_and_set(1, 2)
        self.assertEqual(orders.compare_and_set(2**62, 5).after, 5)
        many = [self.open().counter("/counters/orders") for _ in range(4)]
        threads = [threading.Thread(target=lambda n=n: [n.add() for _ in range(25)]) for n in many]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(orders.get(), 105)

    def test_persistent_node(self):
        c, other, seen = self.open(), self.open(), []
        with c.persistent_node("/group/a", b"up", lambda event, path, number: seen.append((event.name, path))) as node:
            self.assertEqual((node.path, node.present, c.get("/group/a").data), ("/group/a", True, b"up"))
            node.set(b"busy")
            other.delete("/group/a")
            until(lambda: len(seen) == 3, "created again")
            self.assertEqual(other.get("/group/a").data, b"busy")
            second = other.persistent_node("/group/a", b"other")
            with self.assertRaises(clave.Busy):
                second.wait(1)
        self.assertEqual(seen, [("PRESENT", "/group/a"), ("ABSENT", "/group/a"), ("PRESENT", "/group/a")])
        second.wait(10)
        second.close()
        self.assertFalse(second.present)
        self.assertIsNone(other.exists("/group/a"))
        with other.persistent_node("/group/n-", kind=clave.Kept.EPHEMERAL_SEQUENTIAL) as numbered:
            self.assertRegex(numbered.path, "/group/n-[0-9]{10}")
        with self.assertRaises(clave.Error):
            other.persistent_node("/group/t", kind=clave.Kept.TTL)

    def test_watch(self):
        c, seen = self.open(), []
        watcher = c.watch("/watched", lambda event, path: seen.append((event.name, path)))
        until(lambda: seen == [("ARMED", "/watched")] and watcher.armed, "armed")
        c.create("/watched/a", parents=True)
        until(lambda: ("CREATED", "/watched/a") in seen, "created")
        watcher.close()


class Queues(Case):
    def test_participants(self):
        c, d = self.open(), self.open()
        with c.lock("/who"):
            held = c.participants("/who")[0]
            self.assertEqual((held.identity.pid, held.stat.ephemeral_owner), (os.getpid(), c.session_id))
        asked = threading.Event()
        with c.rwlock("/who-rw", on_asked=lambda hold: asked.set()).write as hold:
            self.assertEqual([p.node for p in d.participants("/who-rw", "both")], [hold.node.split("/")[-1]])
            self.assertEqual(d.participants("/who-rw", "read"), [])
            d.revoke(hold.node)
            self.assertTrue(asked.wait(PATIENCE))

    def test_deadlock(self):
        c, d = self.open(), self.open()
        failed = []
        self.assertEqual(c.deadlocks("/"), [])

        def other():
            with d.lock("/dead/b"):
                ready.set()
                with d.lock("/dead/a"):
                    pass

        ready = threading.Event()
        with c.lock("/dead/a"):
            thread = threading.Thread(target=other)
            thread.start()
            self.assertTrue(ready.wait(PATIENCE))
            self.queued(c, "/dead/a", 2)
            lock = c.lock("/dead/b", detect_deadlocks=0.05)
            try:
                lock.acquire(PATIENCE)
            except clave.Deadlock as e:
                failed.append(e)
            self.assertIn("/dead/a", lock.deadlock())
        thread.join(PATIENCE)
        self.assertEqual(len(failed), 1)

    def test_metrics(self):
        self.open()
        self.assertIn("clave_client_", clave.metrics.page())
        self.assertIn("openmetrics", clave.metrics.content_type("application/openmetrics-text"))


if __name__ == "__main__":
    unittest.main()
