"""One holder in the queue of packages_test.py, with the Python package.

  package_holder.py threads|asyncio CONNECT PATH LOG NAME STOP SESSION_MS

Each hold is a line "+ NAME TOKEN" and, at its end, "- NAME TOKEN" if it was still held, "! NAME TOKEN" if it was lost.
While the file STOP-NAME exists it does not let go, and says "= NAME TOKEN"."""
import asyncio
import contextlib
import os
import sys
import time

import clave
import clave.aio

STEP_S = 0.005
form, connect, path, log, name, stop, session_ms = sys.argv[1:]
fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
session_s = int(session_ms) / 1000


def append(sign, hold):
    os.write(fd, f"{sign} {name} {hold.token}\n".encode())


said = 0  # the token of the hold that has said that it does not let go


def goes_on(hold):
    global said
    if not os.path.exists(f"{stop}-{name}") or not hold.valid_for():
        return False
    if said != hold.token:
        said = hold.token
        append("=", hold)
    return True


def in_threads():
    with clave.Client(connect, session_timeout=session_s) as c:
        lock = c.lock(path)
        while not os.path.exists(stop):
            with contextlib.suppress(clave.Lost), lock as hold:
                append("+", hold)
                time.sleep(STEP_S)
                while goes_on(hold):
                    time.sleep(STEP_S)
                append("-" if hold.valid_for() else "!", hold)


async def in_asyncio():
    async with clave.aio.Client(connect, session_timeout=session_s) as c:
        lock = c.lock(path)
        while not os.path.exists(stop):
            with contextlib.suppress(clave.Lost):
                async with lock as hold:
                    append("+", hold)
                    with contextlib.suppress(asyncio.CancelledError):  # by the loss
                        await asyncio.sleep(STEP_S)
                        while goes_on(hold):
                            await asyncio.sleep(STEP_S)
                    append("-" if hold.valid_for() else "!", hold)


if form == "threads":
    in_threads()
else:
    asyncio.run(in_asyncio())
