"""What a program is told without asking: the log, and a loss when its client is closed."""
import asyncio
import logging
import os
import signal
import threading
import unittest
from unittest import mock

import clave
import clave._session
import clave.aio
from rig import PATIENCE, Case, Server, until


class Log(Case):
    """What goes to the logger "clave"."""

    def logged(self, part, level="WARNING"):
        """A block in which this is logged."""
        return _Logged(self, part, level)

    def test_a_stock_lock_of_kazoo(self):
        c = self.open()
        c.create("/kazoo/0123456789abcdef0123456789abcdef__lock__0000000000", parents=True)
        with self.logged("has the default name of a kazoo lock"), self.assertRaises(clave.Busy):
            c.lock("/kazoo").acquire(0.2)

    def test_a_loss(self):
        c = self.open()
        hold = c.lock("/log/lost").acquire()
        with self.logged(f"/log/lost is lost, token {hold.token}: "):
            c.delete(hold.node)

    def test_a_loss_in_asyncio(self):
        async def lose():
            async with clave.aio.Client(self.server.connect) as c:
                hold = await c.lock("/log/lost").acquire()
                await c.delete(hold.node)
                await asyncio.wait_for(hold.lost.wait(), PATIENCE)

        with self.logged("/log/lost is lost"):
            asyncio.run(lose())

    def test_no_server_and_its_return(self):
        server = Server().start()
        self.addCleanup(server.stop)
        c = clave.Client(server.connect, session_timeout=4)
        self.addCleanup(c.close, 0)
        c.wait(PATIENCE)
        with self.logged("connected again", "INFO"), self.logged("the session is lost"), \
                self.logged("the connection is lost: "):
            server.signal(signal.SIGSTOP)
            until(lambda: c.state == "LOST", "the loss")
            server.signal(signal.SIGCONT)
            c.wait(PATIENCE)

    def test_long_waits(self):
        """The thresholds are seconds and minutes."""
        c, d = self.open(), self.open()
        with mock.patch.multiple(clave._session.Patience, FIRST=0.1, SECOND=0.2):
            with self.logged("cannot acquire /log/wait yet, after ", "INFO"), c.lock("/log/wait"):
                with self.assertRaises(clave.Busy):
                    d.lock("/log/wait", 1).acquire()
            nobody = clave.Client("127.0.0.1:1", connect_timeout=1)
            self.addCleanup(nobody.close, 0)
            with self.logged("cannot connect yet: no server for "), self.assertRaises(clave.Unreachable):
                nobody.__enter__()
            with self.logged("cannot acquire /x yet: no server for "), self.assertRaises(clave.Unreachable):
                nobody.lock("/x", 1).acquire()

            async def awaited():
                async with clave.aio.Client(self.server.connect) as e:
                    with self.assertRaises(clave.Busy):
                        await e.lock("/log/wait", 1).acquire()

            with self.logged("cannot acquire /log/wait yet, after ", "INFO"), c.lock("/log/wait"):
                asyncio.run(awaited())


class _Logged(logging.Handler):
    def __init__(self, case, part, level):
        super().__init__(level)
        self.case, self.part, self.lines, self.came = case, part, [], threading.Event()

    def emit(self, record):
        self.lines.append(record.getMessage())
        if self.part in self.lines[-1]:
            self.came.set()

    def __enter__(self):
        logger = logging.getLogger("clave")
        logger.addHandler(self)
        logger.setLevel("INFO")
        logger.propagate = False

    def __exit__(self, kind, value, trace):
        self.case.assertTrue(kind or self.came.wait(PATIENCE), f"{self.part!r} is not in {self.lines}")
        logging.getLogger("clave").removeHandler(self)


class Closing(Case):
    """A client that is closed holds nothing any more, and says so."""

    def test_threads(self):
        c, told = self.open(), []
        lock = c.lock("/close/lock", on_lost=lambda hold: told.append((hold, hold.valid_for())))
        hold, lease = lock.acquire(), c.semaphore("/close/pool", 1).acquire()
        candidate = c.election("/close/lead").enter()
        term, both, released = candidate.lead(), c.multilock("/close/a", "/close/b").acquire(), c.lock("/close/r").acquire()
        released.release()
        waiting = threading.Thread(target=hold.lost.wait)
        waiting.start()
        c.close()
        waiting.join(PATIENCE)
        self.assertEqual(told, [(hold, False)])
        for held in [hold, lease, term, *both.holds.values()]:
            self.assertTrue(held.lost.is_set())
            self.assertFalse(held.valid_for())
            self.assertEqual(held.remaining(), 0)
            with self.assertRaises(clave.Closed):
                held.check()
        self.assertFalse(released.lost.is_set())

    def test_asyncio(self):
        """The task of a block is cancelled, which raises Lost; not the one that closes the client."""
        async def run():
            c = clave.aio.Client(self.server.connect)
            await c.wait(PATIENCE)
            entered = asyncio.Event()

            async def other():
                async with c.lock("/close/other"):
                    entered.set()
                    await asyncio.sleep(PATIENCE)

            task = asyncio.ensure_future(other())
            await asyncio.wait_for(entered.wait(), PATIENCE)
            with self.assertRaises(clave.Closed):
                async with c.lock("/close/aio") as hold:
                    await c.close()
                    self.assertTrue(hold.lost.is_set())
                    self.assertFalse(hold.valid_for())
            with self.assertRaises(clave.Error):
                await task
        asyncio.run(run())


class Prefork(Case):
    def test_a_client_for_each_process(self):
        """The recipe for gunicorn --preload in the README."""
        scope = {}
        exec(RECIPE.replace("clave.Client()", f"clave.Client({self.server.connect!r})"), scope)
        client = scope["client"]
        with client().lock("/prefork"):
            pid = os.fork()
            if pid == 0:
                try:
                    try:
                        client().lock("/prefork").acquire(0)
                    except clave.Busy:
                        os._exit(0)
                finally:
                    os._exit(9)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        client().close()


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "README.md"), encoding="utf-8") as page:
    RECIPE = next(block for block in page.read().split("```")[1::2] if "lru_cache" in block)[len("python\n"):]


if __name__ == "__main__":
    unittest.main()
