"""Locks: the mutex, the two sides of a read-write lock, several locks as one."""
from __future__ import annotations

import ctypes
import functools
import os
import threading
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union, cast

from . import _hubs
from ._lib import MultilockOptions, MultilockPart, MutexOptions, address, array, encoded, options
from ._session import Call, Leaving, ProcessBound, Session, finish, number, run, take
from .errors import ELOST, ENOTHELD, Error, check, error
from .hold import Hold, HoldCore, Holds, identity
from .times import Duration, deadline, milliseconds
from .znodes import Acl, acl_fields

if TYPE_CHECKING:
    import asyncio

_QUEUED, _HELD, _LOST, _ASKED = 0, 2, 3, 4  # clave_mutex_event_kind
_MUTEX_OPTIONS_SIZE = ctypes.sizeof(MutexOptions)
_SIDES = {"mutex": 0, "read": 1, "write": 2}  # clave_multilock_kind
Part = Union[str, Tuple[str, str]]
"""A lock of several: its path, or its path and "mutex", "read" or "write"."""
Function = TypeVar("Function", bound=Callable[..., Any])
_thread = threading.local()
_tasks: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()


def owner(session: Session) -> int:
    """The owner of what is acquired here: this thread, task or greenlet. A lock is reentrant for its owner."""
    if session.loop:
        from asyncio import current_task  # loaded by clave.aio
        task = current_task()
        if task is not None:
            return _tasks.setdefault(task, number())
    if session.hub and session.hub.is_here():
        return _tasks.setdefault(session.hub.current(), number())
    if not session.hub and not session.loop and _hubs.kind():
        raise RuntimeError("gevent or eventlet has replaced threads after this client was opened: replace them first")
    if getattr(_thread, "pid", None) != os.getpid():
        _thread.number, _thread.pid = number(), os.getpid()
    found: int = _thread.number
    return found


def leave(find: Callable[[], Any], failed: bool) -> None:
    """The end of a block, in a thread: what it has held is the last in the list that `find` finds, and then no more.
    There is no list in a child process, whose parent it is that holds."""
    found: List[Tuple[List[Any], Any, int]] = []

    async def end() -> None:
        if not found:
            held = find()
            if not held:
                return
            found.append((held, held[-1], len(held)))
        held, hold, depth = found[0]
        try:
            await hold._leave(failed)
        except Error:
            del held[depth - 1:]
            raise
        del held[depth - 1:]

    finish(end, lambda: bool(found) and len(found[0][0]) < found[0][2])


class LockOptions:
    """What all locks have in common; the names are those of the arguments of `Client.lock`."""

    def __init__(self, timeout: Optional[Duration] = None, *, max_hold: Optional[Duration] = None,
                 min_valid: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None, strict: bool = False,
                 detect_deadlocks: Optional[Duration] = None,
                 on_lost: Optional[Callable[[Any], None]] = None, on_asked: Optional[Callable[[Any], None]] = None,
                 on_queued: Optional[Callable[[int], None]] = None) -> None:
        self.timeout, self.on_lost, self.on_asked, self.on_queued = timeout, on_lost, on_asked, on_queued
        self.revocable = on_asked is not None
        self.fields: Dict[str, Any] = dict(strict=strict, revocable=self.revocable, **acl_fields(acls))
        for field, duration in (("max_hold_ms", max_hold), ("min_valid_ms", min_valid),
                                ("detect_deadlocks_ms", detect_deadlocks)):
            if duration:
                self.fields[field] = milliseconds(duration)

    @property
    def kinds(self) -> int:
        return 1 << _LOST | (1 << _ASKED if self.on_asked else 0) | (1 << _QUEUED if self.on_queued else 0)

    def struct(self, source: int = 0) -> Any:
        data = identity(self.revocable)
        return MutexOptions(_MUTEX_OPTIONS_SIZE, data, len(data), event_arg=source or None,
                            event_cb=address("bridge_on_mutex_event") if source else None, **self.fields)


class Mutex:
    """A mutex of libclave and its source of events; both sides of a read-write lock are two of them."""

    def __init__(self, session: Session, path: str, opts: LockOptions) -> None:
        self.session, self.path, self.opts = session, path, opts
        self.holds = Holds(session)
        self.source = session.source(self.event, opts.kinds)

    def event(self, kind: int, who: int, ahead: int, predecessor: Optional[str], why: int) -> None:
        if kind == _QUEUED and self.opts.on_queued:
            self.opts.on_queued(ahead)
        elif kind == _LOST:
            for hold in self.holds.lose(who):
                hold._lose(why)
        elif kind == _ASKED and self.opts.on_asked:
            for hold in self.holds.of(who):
                self.opts.on_asked(hold)


class LockCore(ProcessBound):
    """A lock on a path: the mutex, or a side of a read-write lock."""

    hold_class: Type[HoldCore] = HoldCore

    def __init__(self, session: Session, path: str, opts: LockOptions, mutex: Optional[Mutex] = None,
                 pointer: int = 0) -> None:
        self.path, self._session, self._opts = path, session, opts
        self._mutex = mutex or Mutex(session, path, opts)
        self._owned = not pointer
        self._pointer = pointer or session.make(f"cannot make a lock on {path}", "clave_async_mutex_new",
                                                "clave_async_mutex_free", session.pointer, encoded(path),
                                                opts.struct(self._mutex.source))

    def __del__(self) -> None:
        if getattr(self, "_owned", False) and hasattr(self, "_pointer"):
            self._session.free_object(self._pointer, self._mutex.source)

    async def _take(self, timeout: Optional[Duration], calls: List[Call]) -> HoldCore:
        who = owner(self._session)
        self._mutex.holds.expect(who)
        grant = await self._session.ask(f"cannot acquire {self.path}", "clave_async_mutex_acquire", "bridge_on_acquired",
                                        self._pointer, who, deadline(timeout),
                                        cancel=("clave_async_mutex_cancel", self._pointer, who), calls=calls)

        async def give_back(hold: HoldCore, confirm: bool) -> None:
            what = f"cannot release {self.path}"
            if confirm:
                await self._session.ask(what, "clave_async_mutex_release", "bridge_on_released", self._pointer, who,
                                        calls=hold._leaving.calls)
            else:
                self._session.check(what, "clave_async_mutex_release", self._pointer, who, None, None,
                                    result=hold._leaving.result)

        hold = self.hold_class(self._session, self.path, grant, give_back, self._opts.on_lost)
        hold.owner = who
        if not self._mutex.holds.add(hold):
            hold._lose(ELOST)
        return hold

    def deadlock(self) -> Optional[str]:
        """Who waits for whom in the deadlock that most recently ended an acquire."""
        return self._session.text("clave_async_mutex_deadlock", self._pointer)


class Lock(LockCore):
    """A lock for threads, as `Client.lock` makes it. It is reentrant for a thread, and excludes all others, here and
    elsewhere. As a context manager it gives the `Hold`; as a decorator it runs each call of a function under the lock.
    """

    hold_class = Hold

    def acquire(self, timeout: Optional[Duration] = None) -> Hold:
        """Waits for the lock, for `timeout` instead of the lock's own; 0: only if it is free now, which waits for no
        connection either (Client.wait does). Busy, Unreachable and others: it is not held, and nothing is left in the
        queue."""
        return take(self._take, self._opts.timeout if timeout is None else timeout, [])

    def __enter__(self) -> Hold:
        held: List[Hold] = self.__dict__.setdefault("_held", {}).setdefault(owner(self._session), [])
        return take(self._take, self._opts.timeout, held)

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        leave(lambda: self.__dict__["_held"].get(owner(self._session)), kind is not None)

    def __call__(self, function: Function) -> Function:
        @functools.wraps(function)
        def locked(*args: Any, **keywords: Any) -> Any:
            with self.acquire():
                return function(*args, **keywords)
        return cast(Function, locked)


def sides(session: Session, path: str, opts: LockOptions, kind: Type[LockCore]) -> Tuple[LockCore, LockCore]:
    """The two sides of a read-write lock. Each keeps both alive."""
    mutex = Mutex(session, path, opts)
    whole = session.make(f"cannot make a read-write lock on {path}", "clave_async_rwlock_new", "clave_async_rwlock_free",
                         session.pointer, encoded(path), opts.struct(mutex.source))
    weakref.finalize(mutex, session.free_object, whole, mutex.source)
    read, write = (session.now(f"clave_async_rwlock_{side}", whole) for side in ("read", "write"))
    return kind(session, path, opts, mutex, read), kind(session, path, opts, mutex, write)


class RWLock(ProcessBound):
    """A read-write lock for threads: `read` and `write` are its sides, each a `Lock`. A thread that holds the write may
    also acquire the read, and then release the write; one that holds the read alone is refused the write."""

    def __init__(self, session: Session, path: str, opts: LockOptions) -> None:
        read, write = sides(session, path, opts, Lock)
        self.read, self.write = cast(Lock, read), cast(Lock, write)


class MultilockCore(ProcessBound):
    """Several locks as one: all are acquired, in the order of their paths, or none."""

    def __init__(self, session: Session, parts: Sequence[Part], opts: LockOptions) -> None:
        self._session, self._opts = session, opts
        structs = [MultilockPart(*((encoded(p), 0) if isinstance(p, str) else (encoded(p[0]), _SIDES[p[1]])))
                   for p in parts]
        self.paths = sorted(p if isinstance(p, str) else p[0] for p in parts)
        self._holds = Holds(session)
        self._source = session.source(self._event, 1 << _LOST)
        made = options(MultilockOptions, each=ctypes.pointer(opts.struct()), event_arg=self._source,
                       event_cb=address("bridge_on_multilock_event"))
        self._pointer = session.make(f"cannot make a lock on {', '.join(self.paths)}", "clave_async_multilock_new",
                                     "clave_async_multilock_free", session.pointer, array(MultilockPart, structs),
                                     len(structs), made)

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self._session.free_object(self._pointer, self._source)

    def _event(self, kind: int, who: int, path: str, why: int) -> None:
        for whole in self._holds.lose(who):
            if not whole.released:
                whole.holds[path]._lose(why)

    async def _take(self, timeout: Optional[Duration], calls: List[Call]) -> "MultiHold":
        who = owner(self._session)
        what = f"cannot acquire {', '.join(self.paths)}"
        self._holds.expect(who)
        values = await self._session.ask_all(what, "clave_async_multilock_acquire", "bridge_on_multilock", self._pointer,
                                             who, deadline(timeout),
                                             cancel=("clave_async_multilock_cancel", self._pointer, who),
                                             calls=calls)
        check(values[0], f"cannot acquire {values[1]}" if values[1:] and values[1] else what)
        whole = MultiHold(self, who)
        if not self._holds.add(whole):
            for hold in whole.holds.values():
                hold._lose(ELOST)
        return whole


class MultiHold(ProcessBound):
    """All locks of a `Multilock`, held: `holds` has the `Hold` of each by its path. Each has a token of its own."""

    def __init__(self, lock: MultilockCore, who: int) -> None:
        self._lock, self.owner, self._leaving = lock, who, Leaving()
        self.holds: Dict[str, Hold] = {}
        session = lock._session
        for path in lock.paths:
            made = ctypes.c_void_p()
            mutex = session.now("clave_async_multilock_at", lock._pointer, encoded(path))
            session.check(path, "clave_async_mutex_grant", mutex, who, made)
            grant = [made.value, session.now("clave_async_grant_token", made.value),
                     session.now("clave_async_grant_session_id", made.value),
                     session.text("clave_async_grant_node", made.value)]
            self.holds[path] = Hold(session, path, grant, self._give_back_part, lock._opts.on_lost)

    async def _give_back_part(self, hold: HoldCore, confirm: bool) -> None:
        raise error(ENOTHELD, hold._path, "it is a part of a multilock, which is released as a whole")

    def check(self, duration: Duration = 0) -> None:
        """Raises Lost unless all are held and certainly will be for so long."""
        for hold in self.holds.values():
            hold.check(duration)

    def release(self) -> None:
        """Releases all, in reverse order; does not wait for the server. Lost: one of them had been lost."""
        run(self._leave(False))

    @property
    def released(self) -> bool:
        """Whether its release was begun, which nothing stops."""
        return self._leaving.begun

    async def _leave(self, failed: bool) -> None:
        if self.released:
            return
        lock = self._lock
        try:
            lock._session.check(f"cannot release {', '.join(lock.paths)}", "clave_async_multilock_release", lock._pointer,
                                self.owner, None, None, result=self._leaving.result)
        except Error:
            if not failed:
                raise


class Multilock(MultilockCore):
    """Several locks as one, for threads: a context manager that gives the `MultiHold`."""

    def acquire(self, timeout: Optional[Duration] = None) -> MultiHold:
        """Acquires all within one timeout, or none."""
        return take(self._take, self._opts.timeout if timeout is None else timeout, [])

    def __enter__(self) -> MultiHold:
        held: List[MultiHold] = self.__dict__.setdefault("_held", {}).setdefault(owner(self._session), [])
        return take(self._take, self._opts.timeout, held)

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        leave(lambda: self.__dict__["_held"].get(owner(self._session)), kind is not None)
