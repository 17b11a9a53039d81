"""What is held: its token, how long it is valid, and the writes that only its holder may do."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import sys
import threading
import weakref
from types import TracebackType
from typing import Any, Callable, Coroutine, Iterator, List, Optional, Sequence, Set, Type

from ._lib import NEVER, TRY, Data, IdentityStruct, array, counted, encoded, library
from ._session import Leaving, ProcessBound, Session, finish, log, run
from .errors import ECLOSED, ELOST, ENOTHELD, Error, check, error
from .times import Duration, milliseconds
from .znodes import Mode, Op, explain, ops_array, paths_of

GiveBack = Callable[["HoldCore", bool], Coroutine[Any, Any, None]]


def identity(revocable: bool = False) -> bytes:
    """What a lock node says of its owner: host, process, program, and the `clave lock` that runs it."""
    return _identity(revocable, os.getpid(), os.environ.get("CLAVE_OWNER"), os.environ.get("TRACEPARENT"))


def runner() -> IdentityStruct:
    """Who runs a job, for others to see."""
    return IdentityStruct(host=encoded(os.uname().nodename), pid=os.getpid(),
                          command=" ".join(sys.argv)[:1000].encode("utf-8", "replace"))


@functools.lru_cache(maxsize=8)
def _identity(revocable: bool, pid: int, owner: Optional[str], traceparent: Optional[str]) -> bytes:
    made = runner()
    made.revocable = 1 if revocable else -1
    made.owner = f"{owner}/{pid}".encode() if owner else None
    made.traceparent = encoded(traceparent) if traceparent else None
    text = ctypes.create_string_buffer(4096)
    length = library.clave_identity_format(ctypes.byref(made), text, len(text))
    return text.raw[:length] if length < len(text) else b""


class HoldCore(ProcessBound):
    """One hold of a lock, a lease or a leadership. Any thread may use it."""

    def __init__(self, session: Session, path: str, grant: Sequence[Any], give_back: GiveBack,
                 on_lost: Optional[Callable[[Any], Any]] = None) -> None:
        self._session, self._path, self._give_back, self._on_lost = session, path, give_back, on_lost
        self._grant = session.adopt(grant[0], "clave_async_grant_free")  # until nobody has the hold
        self.token: int = grant[1]
        """The fencing token, which grows with every grant, on any client."""
        self.session_id: int = grant[2]
        self.node: str = grant[3]
        """The full path of the node that stands for the hold."""
        self._over, self._leaving = False, Leaving()
        self.owner = 0
        self._why = 0
        self._depends = False
        with session._lock:
            session.holds.add(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._path}, token {self.token}>"

    def __del__(self) -> None:
        if hasattr(self, "_grant"):
            self._session.free_object(self._grant)

    @property
    def released(self) -> bool:
        """Whether its release was begun, which nothing stops."""
        return self._over or self._leaving.begun

    def _check_not_released(self) -> None:
        if self.released:
            raise error(ENOTHELD, self._path, "it was released")

    def _become_lost(self) -> None:
        """Tells it to whom it holds for."""

    def _lose(self, why: int) -> None:
        """Its loss, told once; not that of a hold that was given back, nor of an earlier hold of this owner."""
        with self._session._lock:
            if self._why or self.released or (not self._session.closed and self.valid_for()):
                return
            self._why = why or ELOST
        if why != ECLOSED:
            log("WARNING", "%s is lost, token %d: %s", self._path, self.token, library.clave_strerror(self._why).decode())
        self._become_lost()
        if self._on_lost:
            self._on_lost(self)

    def remaining(self) -> float:
        """Seconds until which nobody else can have it; 0: it is lost. From memory."""
        if self.released or self._why:
            return 0.0
        deadline = self._session.now("clave_async_grant_deadline", self._grant)
        if deadline == NEVER:  # a slot: only the server knows when it is given or broken
            return math.inf
        return 0.0 if deadline == TRY else max(0.0, (deadline - int(library.clave_now())) / 1000)

    def valid_for(self, duration: Duration = 0) -> bool:
        """True while it is held and certainly will be for so long. From memory."""
        return not self.released and not self._why and bool(self._session.now(
            "clave_async_grant_valid_for", self._grant, int(library.clave_now()), milliseconds(duration)) & 0xFF)

    def check(self, duration: Duration = 0) -> None:
        """Raises Lost unless `valid_for`; Closed when the client was closed. Call it before each step of the work."""
        self._check_not_released()
        if not self.valid_for(duration):
            raise error(ECLOSED if self._why == ECLOSED else ELOST, self._path,
                        library.clave_strerror(self._why or ELOST).decode())

    @property
    def resumed(self) -> bool:
        """Whether it goes on with the hold that another process has handed over, with its token. From memory."""
        return bool(self._session.now("clave_async_grant_is_resumed", self._grant) & 0xFF)

    def depend(self, duration: Optional[Duration]) -> None:
        """From now on this hold ends unless `alive` is called at least so often, by any thread: work that hangs loses
        it, although heartbeats go on. None ends that. Lost: it is over. A thread that hangs and wakes up may still
        write: use the token, or the writes of this hold."""
        ms = 0 if duration is None else milliseconds(duration)
        if duration is not None and ms == 0:
            raise ValueError("a hold cannot depend on a sign of life every 0 seconds: give more, or None to end that")
        self._say("clave_async_grant_depend", ms)
        self._depends = True

    def alive(self) -> None:
        """A sign of life from the work, for `depend`. From memory. Lost: it is over, or was silent for too long; then
        the work has to stop."""
        self._say("clave_async_grant_alive")

    @contextlib.contextmanager
    def depending(self, duration: Duration) -> Iterator[Callable[[], None]]:
        """`depend` for a block, which gets `alive`; as a decorator, for each call of a function."""
        self.depend(duration)
        try:
            yield self.alive
        finally:
            with contextlib.suppress(Error):  # it is over
                self.depend(None)

    def _say(self, name: str, *args: int) -> None:
        self._check_not_released()
        code = ctypes.c_int(self._session.now(name, self._grant, int(library.clave_now()), *args)).value
        check(self._why if code == ELOST and self._why else code, self._path)

    async def _release(self, confirm: bool) -> None:
        self._check_not_released()
        try:
            await self._give_back(self, confirm)
        except Error:  # it had been lost, or the session has ended
            self._over = True
            raise
        self._over = True

    async def _leave(self, failed: bool) -> None:
        """At the end of a block: a loss is raised unless the block failed by itself."""
        if self.released:
            return
        try:
            await self._release(False)
        except Error:
            if not failed:
                raise

    async def _create(self, path: str, data: Data, mode: Mode) -> str:
        values = await self._write("create", "clave_async_grant_create", path, *counted(data), int(mode))
        return str(values[0] or path)

    async def _set(self, path: str, data: Data, version: int) -> None:
        await self._write("set", "clave_async_grant_set", path, *counted(data), version)

    async def _delete(self, path: str, version: int) -> None:
        await self._write("delete", "clave_async_grant_delete", path, version)

    async def _write(self, what: str, name: str, path: str, *args: Any) -> List[Any]:
        self._check_not_released()
        return await self._session.ask(f"cannot {what} {path}", name, "bridge_on_result", self._grant, encoded(path),
                                       *args)

    async def _multi(self, ops: Sequence[Op], others: Sequence["HoldCore"]) -> List[str]:
        for hold in (self, *others):
            hold._check_not_released()
        grants = array(ctypes.c_void_p, [self._grant] + [other._grant for other in others])
        values = await self._session.ask_all("guarded transaction", "clave_async_grant_multi", "bridge_on_result", grants,
                                             len(grants), ops_array(ops), len(ops))
        explain(values, ops, "guarded transaction")
        return paths_of(values[1:], ops)


class Holds:
    """The holds that a lock has given, and the losses that were told before their hold was there."""

    def __init__(self, session: Session) -> None:
        self._lock = session._lock
        self._all: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._early: Set[int] = set()

    def of(self, owner: int) -> List[Any]:
        with self._lock:
            return [hold for hold in self._all if hold.owner == owner]

    def expect(self, owner: int) -> None:
        """Losses from before are of earlier holds."""
        self._early.discard(owner)

    def add(self, hold: Any) -> bool:
        """False: its loss was told already."""
        with self._lock:
            self._all.add(hold)
            early = hold.owner in self._early
            self._early.discard(hold.owner)
        return not early

    def lose(self, owner: int) -> List[Any]:
        """Those of this owner, whose loss is told."""
        with self._lock:
            found = self.of(owner)
            if not found:
                self._early.add(owner)
        return found


class Hold(HoldCore):
    """One hold, for threads. It is a context manager: the end of the block releases it, and raises Lost when it had
    been lost and nothing else was raised."""

    _event: Optional[threading.Event] = None

    @property
    def lost(self) -> threading.Event:
        """Set when the hold is lost, before another can have it."""
        if self._event is None:
            self._event = threading.Event()
            if self._why:
                self._event.set()
        return self._event

    def _become_lost(self) -> None:
        if self._event:
            self._event.set()

    def __enter__(self) -> "Hold":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        finish(lambda: self._leave(kind is not None), lambda: self.released)

    def release(self, confirm: bool = False) -> None:
        """Releases it. ``confirm`` waits until the server has confirmed it; otherwise the node is deleted in the
        background, ahead of every later request. Lost: it had been lost, and is released all the same. A release that
        the exception of a signal handler has interrupted is repeated until ``released`` says that it was begun."""
        run(self._release(confirm))

    def create(self, path: str, data: Data = b"", mode: Mode = Mode.PERSISTENT) -> str:
        """Creates a node, only while this is held; returns its final path. Lost: nothing was done."""
        return run(self._create(path, data, mode))

    def set(self, path: str, data: Data, version: int = -1) -> None:
        """Sets a node's data, only while this is held. Lost: nothing was done."""
        run(self._set(path, data, version))

    def delete(self, path: str, version: int = -1) -> None:
        """Deletes a node, only while this is held. Lost: nothing was done."""
        run(self._delete(path, version))

    def multi(self, ops: Sequence[Op], others: Sequence[HoldCore] = ()) -> List[str]:
        """Does all operations, only while this and the others are held, or none. Returns their final paths."""
        return run(self._multi(ops, others))

    @contextlib.contextmanager
    def delayed(self, path: str, pause: Duration) -> Iterator[None]:
        """For a lock with a pause after a holder that was lost: a block that waits first, if there was one. It keeps a
        mark at `path`, the same for all users of this lock and not below its path, while the block runs."""
        from .once import Delay
        delay = Delay(self, path, pause)
        run(delay.begin())
        try:
            yield
        except BaseException:
            with contextlib.suppress(Error):
                run(delay.end())
            raise
        run(delay.end())
