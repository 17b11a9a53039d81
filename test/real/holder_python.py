"""A holder or a candidate of the Python package: logs what it believes as holder.c does.

  holder_python.py threads|asyncio lock|latch CONNECT PATH LOG NAME STOP SESSION_MS HOLD_MS BLOCK

While the file BLOCK exists, the event loop of asyncio is blocked. A holder whose hold is gone tries to write once more,
with the node of that hold, past the package."""
import asyncio
import concurrent.futures
import contextlib
import os
import sys
import threading
import time

import clave
import clave.aio

STEP_S, LATE_NS, STEPS_A_WRITE = 0.005, 100000000, 5


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Holder:
    """What both forms share. `start` begins a write and does not wait for it; it is told whether it is of a hold."""

    def __init__(self, form, what, connect, path, log, name, stop, session_ms, hold_ms, block):
        self.what, self.path, self.name, self.stop, self.block = what, path, name, stop, block
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.hold_ns, self.number = int(hold_ms) * 1000000, 0
        kind = clave.aio.Client if form == "asyncio" else clave.Client
        self.open = lambda: kind(connect, session_timeout=int(session_ms) / 1000)
        self.client = self.start = None

    def note(self, ns, what, token, detail="-"):
        os.write(self.log, f"{ns} {what} {self.name} {token} {detail}\n".encode())

    def is_over(self):
        return os.path.exists(self.stop)

    def contested(self):
        """The lock or the election."""
        kind = self.client.lock if self.what == "lock" else self.client.election
        return kind(self.path, on_lost=lambda hold: self.note(now_ns(), "lost", hold.token, "ELOST"))

    def late(self, before):
        """Called every few milliseconds where losses are heard: how long that has not run."""
        now = now_ns()
        if now - before > LATE_NS:
            self.note(now, "late", 0, before)
        return now


class Turn:
    """One hold, from its grant to its end."""

    def __init__(self, holder, hold):
        self.holder, self.hold, self.steps, self.writing = holder, hold, 0, None
        self.begin = now_ns()
        if hold.valid_for():  # not lost by now
            holder.note(self.begin, "grant", hold.token, holder.what)

    def step(self):
        """What a holder does every few milliseconds: False at the end."""
        h, ns = self.holder, now_ns()
        if not self.hold.valid_for():
            h.note(now_ns(), "gone", self.hold.token)
            self.write(self.as_former_holder)
            return False
        over = h.is_over() or ns - self.begin >= h.hold_ns
        h.note(ns, "release" if over else "held", self.hold.token, now_ns())
        if not over and self.steps % STEPS_A_WRITE == 0 and (self.writing is None or self.writing.done()):
            self.writing = self.write(self.as_holder)
        self.steps += 1
        return not over

    def as_holder(self, path):
        return self.hold.create(path, b"", clave.Mode.PERSISTENT_SEQUENTIAL)

    def as_former_holder(self, path):
        return self.holder.client.multi([clave.Check(self.hold.node),
                                         clave.Create(path, b"", clave.Mode.PERSISTENT_SEQUENTIAL)])

    def write(self, how):
        h, token = self.holder, self.hold.token
        number, h.number = h.number, h.number + 1

        h.note(now_ns(), "write", token, number)

        def end(error):
            what = "wrote" if error is None else "unsure" if error.kind == "UNKNOWN" else "refused"
            h.note(now_ns(), what, token, number)

        return h.start(how, f"{h.path}-writes/{h.name}.{token}.{number}-", end)


# ---- threads --------------------------------------------------------------------------------


def watch_the_clock(h):
    before = now_ns()
    while True:
        time.sleep(STEP_S)
        before = h.late(before)


def in_threads(h):
    threading.Thread(target=watch_the_clock, args=(h,), daemon=True).start()

    def write(how, path, end):
        try:
            how(path)
        except clave.Error as error:
            end(error)
        else:
            end(None)

    with h.open() as h.client, concurrent.futures.ThreadPoolExecutor(1) as pool:
        h.start = lambda *args: pool.submit(write, *args)
        contested = h.contested()
        for hold in contested.terms() if h.what == "latch" else locked(h, contested):
            turn = Turn(h, hold)
            while turn.step():
                time.sleep(STEP_S)
            if h.is_over():
                break


def locked(h, lock):
    while not h.is_over():
        h.note(now_ns(), "ask", 0, "acquire")
        with contextlib.suppress(clave.Lost), lock as hold:
            yield hold


# ---- asyncio --------------------------------------------------------------------------------


async def watch_the_loop(h):
    before = now_ns()
    while True:
        await asyncio.sleep(STEP_S)
        before = h.late(before)
        while os.path.exists(h.block):
            time.sleep(STEP_S)


async def keep(h, hold):
    turn = Turn(h, hold)
    try:
        while turn.step():
            await asyncio.sleep(STEP_S)
    except asyncio.CancelledError:  # by its loss
        turn.step()
        raise


async def in_asyncio(h):
    async def write(how, path, end):
        try:
            await how(path)
        except clave.Error as error:
            end(error)
        else:
            end(None)

    writes = set()

    def start(*args):
        task = asyncio.create_task(write(*args))
        writes.add(task)
        task.add_done_callback(writes.discard)
        return task

    h.start = start
    async with h.open() as h.client:
        watch = asyncio.create_task(watch_the_loop(h))
        contested = h.contested()
        if h.what == "latch":
            async with contextlib.aclosing(contested.terms()) as terms:
                async for term in terms:
                    await keep(h, term)
                    if h.is_over():
                        break
        while not h.is_over():
            h.note(now_ns(), "ask", 0, "acquire")
            with contextlib.suppress(clave.Lost):
                async with contested as hold:
                    await keep(h, hold)
        await asyncio.gather(*writes)
        watch.cancel()


if __name__ == "__main__":
    holder = Holder(*sys.argv[1:])
    if sys.argv[1] == "asyncio":
        asyncio.run(in_asyncio(holder))
    else:
        in_threads(holder)
