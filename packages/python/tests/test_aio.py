"""asyncio: one descriptor for all, cancelled tasks leave nothing behind, a loss ends the work."""
import asyncio
import contextlib
import ctypes
import select
import signal
import sys
import threading
import time
import unittest

import clave
import clave.aio
from clave._lib import library
from rig import PATIENCE, Server, descriptors, memory


class Case(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.stop)

    async def open(self, **more):
        client = clave.aio.Client(self.server.connect, **more)
        self.addAsyncCleanup(client.close)
        await client.wait(PATIENCE)
        return client

    async def queue(self, client, path):
        await client.sync(path)
        return await client.children(path)

    async def queued(self, client, path, n):
        async def look():
            while len(await self.queue(client, path)) != n:
                await asyncio.sleep(0.005)
        await asyncio.wait_for(look(), PATIENCE)


class Locks(Case):
    async def test_block(self):
        async with clave.aio.Client(self.server.connect) as c:
            async with c.lock("/block", timeout=10) as hold:
                hold.check(1)
                await hold.create("/guarded", b"1")
                await hold.set("/guarded", b"2", 0)
                self.assertEqual(await hold.multi([clave.Check("/guarded", 1)]), ["/guarded"])
                await hold.delete("/guarded")
            self.assertEqual(await self.queue(c, "/block"), [])
        with self.assertRaises(clave.Closed):
            await c.sync()

    async def test_tasks_exclude_each_other(self):
        c = await self.open()
        lock, inside, threads = c.lock("/tasks"), [], threading.active_count()

        async def work():
            async with lock as outer, lock as inner:  # reentrant for a task
                self.assertEqual(outer.token, inner.token)
                inside.append(1)
                self.assertEqual(len(inside), 1, "SAFETY VIOLATED: two tasks in one lock")
                await asyncio.sleep(0)
                inside.pop()

        files = descriptors()
        await asyncio.gather(*(work() for _ in range(100)))
        self.assertEqual((threading.active_count(), descriptors()), (threads, files))
        self.assertEqual(await self.queue(c, "/tasks"), [])

    async def test_a_cancelled_task_leaves_nothing_behind(self):
        c, d = await self.open(), await self.open()
        async with c.lock("/cancelled"):
            lock = d.lock("/cancelled")
            task = asyncio.create_task(lock.acquire())
            await self.queued(c, "/cancelled", 2)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await d.sync()
            self.assertEqual(len(await self.queue(c, "/cancelled")), 1)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(lock.acquire(), 0.05)
            with self.assertRaises(clave.Busy):
                await lock.acquire(0.05)

    async def test_cancelled_at_any_moment(self):
        """Before it is sent, while the answer is under way, when it has come: nothing is held afterwards."""
        c = await self.open()
        await c.create("/moment")
        for i in range(200):
            lock = c.lock("/moment")
            task = asyncio.create_task(lock.acquire())
            await asyncio.sleep(i / 100000)
            if i % 3 == 0:
                time.sleep(0.002)  # the answer waits in the channel
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await (await task).release()
            self.assertEqual(await self.queue(c, "/moment"), [], i)

    async def test_a_loss_ends_the_block(self):
        c = await self.open()
        told = []
        with self.assertRaises(clave.Lost):
            async with c.lock("/lost", on_lost=told.append) as hold:
                await c.delete(hold.node)
                await asyncio.sleep(PATIENCE)
        self.assertEqual(told, [hold])
        await asyncio.sleep(0)  # the task is not cancelled any more
        with self.assertRaises(clave.Lost):
            async with c.lock("/lost", cancel=False) as hold:
                await c.delete(hold.node)
                await asyncio.wait_for(hold.lost.wait(), PATIENCE)

    async def lose_unseen(self, c, path, work):
        """Has a task get a lock on this path that it waits for, and lose it, while this loop is blocked; its outcome."""
        with clave.Client(self.server.connect) as d:
            with d.lock(path):
                task = asyncio.create_task(work())
                await self.queued(c, path, 2)
            # From here on this loop does not run, until the notes of the grant and of the loss are both there.
            self.assertTrue(select.select([c._session._fd], [], [], PATIENCE)[0])
            for node in d.children(path):
                d.delete(f"{path}/{node}")
            library.clave_sync(c._session._client, b"/", ctypes.c_int64(PATIENCE * 1000))  # its answer comes after the event
            return await asyncio.wait_for(task, PATIENCE / 2)

    async def test_lost_before_the_blocked_loop_knew_that_it_holds(self):
        c, told = await self.open(), []

        async def work():
            async with c.lock("/lost-early", on_lost=told.append):
                await asyncio.sleep(PATIENCE)

        async def work_with_several():
            async with c.multilock("/lost-early-too", "/lost-other").hold() as held:
                await held.holds["/lost-early-too"].lost.wait()

        for path, how in ("/lost-early", work), ("/lost-early-too", work_with_several):
            with self.subTest(path), self.assertRaises(clave.Lost):
                await self.lose_unseen(c, path, how)
        self.assertEqual(len(told), 1)

    async def test_a_cancelled_call_is_forgotten(self):
        c, d = await self.open(), await self.open()
        async with d.lock("/waited-for"):
            for _ in range(10):
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(c.lock("/waited-for").acquire(), 0.01)
        await c.sync("/")
        self.assertEqual(c._session._calls, {})

    async def test_a_loss_before_a_block_without_await_cancels_nothing_behind_it(self):
        c, ran = await self.open(), []

        async def work():
            try:
                async with c.lock("/lost-before"):
                    ran.append("the block")
            finally:
                await asyncio.sleep(0)  # a cancellation left over would end it here
                ran.append("behind it")

        with self.assertRaises(clave.Lost):
            await self.lose_unseen(c, "/lost-before", work)
        self.assertEqual(ran, ["behind it"])
        self.assertEqual(await self.queue(c, "/lost-before"), [])

    async def test_a_cancellation_of_others_stays_one(self):
        c = await self.open()
        entered = asyncio.Event()

        async def work():
            async with c.lock("/cancelled-inside"):
                entered.set()
                await asyncio.sleep(PATIENCE)

        task = asyncio.create_task(work())
        await entered.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual(await self.queue(c, "/cancelled-inside"), [])

    async def test_a_cancellation_of_others_is_not_taken_for_the_loss(self):
        c = await self.open()
        entered = asyncio.Event()
        holds = []

        async def work():
            async with c.lock("/cancelled-twice") as hold:
                holds.append(hold)
                entered.set()
                await asyncio.sleep(PATIENCE)

        task = asyncio.create_task(work())
        await entered.wait()
        told = holds[0]._become_lost
        holds[0]._become_lost = lambda: (told(), task.cancel())  # both in one turn of the loop
        await c.delete(holds[0].node)
        with self.assertRaises(asyncio.CancelledError if sys.version_info >= (3, 11) else clave.Lost):
            await task

    async def test_a_close_that_is_cancelled_goes_on(self):
        before = descriptors()
        client = clave.aio.Client(self.server.connect)
        await client.wait(PATIENCE)
        hold = await client.lock("/closing").acquire()
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        closing.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await closing
        while client._session._channel:
            await asyncio.sleep(0.005)
        self.assertEqual(descriptors(), before)
        with self.assertRaises(clave.Closed):
            hold.check()

    async def test_the_session_survives_a_blocked_event_loop(self):
        c = await self.open(session_timeout=4)
        async with c.lock("/blocked") as hold:
            time.sleep(5)
            hold.check()

    async def test_decorator_and_kinds(self):
        c = await self.open()

        @c.lock("/decorated")
        async def work(x):
            return x

        self.assertEqual(await work(3), 3)
        both = c.rwlock("/rw")
        async with both.write as write, both.read as read:
            self.assertEqual(write.token, read.token)
        async with c.multilock("/m/a", ("/m/b", "read")).hold() as held:
            held.check()
            self.assertEqual(sorted(held.holds), ["/m/a", "/m/b"])
        async with c.semaphore("/pool", 2) as lease:
            lease.check()
            (other,) = await c.semaphore("/pool", 2).acquire_many(1)
            await other.release(confirm=True)
        slots = c.slots("/slots", limit=1)
        slot = await slots.take("a", reason="test")
        self.assertEqual((await slots.list()).slots, [slot])
        self.assertEqual(await slots.give("a", slot.token), slot.token)

    async def test_closed_while_tasks_wait(self):
        c, d = await self.open(), await self.open()
        async with d.lock("/closing"):
            task = asyncio.create_task(c.lock("/closing").acquire())
            await self.queued(d, "/closing", 2)
            await c.close()
            with self.assertRaises(clave.Closed):
                await task


class Elections(Case):
    async def test_lead(self):
        c, d = await self.open(), await self.open()
        election = c.election("/lead", id="a")
        async with election.lead() as term:
            await term.publish(b"x")
            self.assertEqual((await election.leader()).identity.text, "a")
            with self.assertRaises(clave.Busy):
                await d.election("/lead", timeout=0.05).enter().lead(0.05)
        with self.assertRaises(clave.Lost):
            async with election.lead() as term:
                await c.delete(term.node)
                await asyncio.sleep(PATIENCE)
        tokens = []
        async with contextlib.aclosing(election.terms()) as terms:
            async for term in terms:
                tokens.append(term.token)
                if len(tokens) == 2:
                    break
        self.assertLess(tokens[0], tokens[1])
        await self.queued(c, "/lead", 0)
        self.assertEqual(await election(lambda term, x: asyncio.sleep(0, x))(7), 7)

    async def test_once_cache_and_queues(self):
        c, seen = await self.open(), []

        async def work(hold):
            return hold.token

        self.assertTrue((await c.once("/job", "k", work)).here)
        self.assertFalse((await c.once("/job", "k", work)).here)
        await c.create("/tree/a", b"1", parents=True)
        async with c.cache("/tree", lambda event, path, now, was: seen.append(path)) as tree:
            self.assertEqual(dict(tree), {"/tree": b"", "/tree/a": b"1"})
        self.assertEqual(sorted(seen), ["/tree", "/tree", "/tree/a"])  # the one again is INITIALIZED
        await c.create("/services/web/a", b'{"name":"web","id":"a"}', parents=True)
        async with c.instances("web") as web:
            self.assertEqual([i.id for i in web], ["a"])
        number = c.counter("/counters/n")
        self.assertEqual([(await number.add(2)).after, (await number.set(7)).before, await number.get()], [2, 2, 7])
        self.assertEqual(await number.compare_and_set(7, 8), (7, 8))
        async with c.persistent_node("/group/a", b"up") as node:
            await node.set(b"busy")
            self.assertEqual((await c.get("/group/a")).data, b"busy")
        self.assertIsNone(await c.exists("/group/a"))
        self.assertEqual(await c.participants("/job"), [])
        self.assertEqual(await c.deadlocks("/tree"), [])


class Loss(unittest.IsolatedAsyncioTestCase):
    async def test_a_server_that_stands_still(self):
        server = Server().start()
        self.addCleanup(server.stop)
        async with clave.aio.Client(server.connect, session_timeout=4) as c:
            began = time.monotonic()
            with self.assertRaises(clave.Lost):
                async with c.lock("/still"):
                    server.signal(signal.SIGSTOP)
                    await asyncio.sleep(PATIENCE)
            self.assertLess(time.monotonic() - began, 4)
            server.signal(signal.SIGCONT)


class Leaks(Case):
    async def test_ten_thousand_locks(self):
        c = await self.open()

        async def turn(n):
            for i in range(n):
                hold = await c.lock(f"/leaks/{i % 10}").acquire()
                await hold.release()

        await turn(1000)
        files, before = descriptors(), memory()
        await turn(5000)
        self.assertEqual(descriptors(), files)
        self.assertLess(memory() - before, 2 << 20)


if __name__ == "__main__":
    unittest.main()
