"""What every acquire raises when its time is over: Busy only if a server has shown another before it."""
import asyncio
import signal
import unittest

import clave
import clave.aio
from rig import PATIENCE, Server, until

ACQUIRES = {
    "lock": lambda c, t: c.lock("/lock").acquire(t),
    "read lock": lambda c, t: c.rwlock("/rw").read.acquire(t),
    "write lock": lambda c, t: c.rwlock("/rw").write.acquire(t),
    "multilock": lambda c, t: c.multilock("/lock", "/other").acquire(t),
    "semaphore": lambda c, t: c.semaphore("/semaphore", 1).acquire(t),
    "slots": lambda c, t: c.slots("/slots", 1).take("ours", timeout=t),
    "election": lambda c, t: c.election("/election").enter().lead(t or 0.5),  # one that has just entered knows nothing
}
WAITS = (0, 0.5)
SESSION = 4


def held(server, client):
    """By a client that stays until the server goes."""
    c = clave.Client(server.connect)
    candidate = c.election("/election").enter()
    server.held = [c.lock("/lock").acquire(PATIENCE), c.rwlock("/rw").write.acquire(PATIENCE),
                   c.semaphore("/semaphore", 1).acquire(PATIENCE), c.slots("/slots", 1).take("theirs"),
                   candidate.lead(PATIENCE), candidate, c]


def lost_connection(server, client):
    held(server, client)
    server.signal(signal.SIGKILL)
    until(lambda: client.state == "SUSPENDED", "the loss of the connection")


def lost_session(server, client):
    lost_connection(server, client)
    until(lambda: client.state == "LOST", "the loss of the session")


SITUATIONS = (("a held lock", held, clave.Busy), ("a lost connection", lost_connection, clave.Unreachable),
              ("a lost session", lost_session, clave.Unreachable), ("no server", None, clave.Unreachable))


class Table(unittest.TestCase):
    def situation(self, prepare):
        """A server, and the session timeout for its clients: while the connection is lost the session is not."""
        server = Server().start()
        self.addCleanup(server.stop)
        if prepare is None:
            server.signal(signal.SIGKILL)
        return server, 40 if prepare is lost_connection else SESSION

    def check(self, kind, what, wait, error):
        with self.subTest(what, wait=wait):
            self.assertIs(type(error), kind, error)
            if kind is clave.Busy and wait == 0 and what not in ("slots", "multilock", "election"):
                self.assertIn("1 owner, 0 before it", str(error))

    def test_threads(self):
        for name, prepare, kind in SITUATIONS:
            with self.subTest(name):
                server, timeout = self.situation(prepare)
                c = clave.Client(server.connect, session_timeout=timeout)
                if prepare:
                    c.wait(PATIENCE)
                    prepare(server, c)
                for what, acquire in ACQUIRES.items():
                    for wait in WAITS:
                        error = None
                        try:
                            acquire(c, wait)
                        except clave.Error as e:
                            error = e
                        self.check(kind, what, wait, error)
                c.close(0.1)

    def test_asyncio(self):
        async def run(prepare, kind):
            server, timeout = self.situation(prepare)
            c = clave.aio.Client(server.connect, session_timeout=timeout)
            if prepare:
                await c.wait(PATIENCE)
                await asyncio.get_running_loop().run_in_executor(None, prepare, server, c)
            for what, acquire in ACQUIRES.items():
                for wait in WAITS:
                    error = None
                    try:
                        await acquire(c, wait)
                    except clave.Error as e:
                        error = e
                    self.check(kind, what, wait, error)
            await c.close(0.1)
        for name, prepare, kind in SITUATIONS:
            with self.subTest(name):
                asyncio.run(run(prepare, kind))


if __name__ == "__main__":
    unittest.main()
