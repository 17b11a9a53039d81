"""Semaphores: a limited number of leases across processes."""
from __future__ import annotations

import functools
from types import TracebackType
from typing import Any, Callable, List, Optional, Sequence, Type, TypeVar, cast

from ._lib import SemaphoreOptions, address, encoded, options
from ._session import Call, ProcessBound, Session, number, run, take
from .errors import ELOST, error
from .hold import Hold, HoldCore, Holds, identity
from .lock import LockOptions, leave, owner
from .times import Duration, deadline

_LOST, _ASKED, _QUEUED = 1, 2, 3  # clave_lease_event_kind
Function = TypeVar("Function", bound=Callable[..., Any])


class SemaphoreCore(ProcessBound):
    hold_class: Type[HoldCore] = HoldCore

    def __init__(self, session: Session, path: str, limit: int, limit_path: Optional[str], opts: LockOptions) -> None:
        self.path, self._session, self._opts = path, session, opts
        self._leases = Holds(session)
        kinds = 1 << _LOST | (1 << _ASKED if opts.on_asked else 0) | (1 << _QUEUED if opts.on_queued else 0)
        self._source = session.source(self._event, kinds)
        data = identity(opts.revocable)
        fields = {k: v for k, v in opts.fields.items() if k != "strict"}
        made = options(SemaphoreOptions, limit=limit, limit_path=limit_path, data=data, len=len(data),
                       event_cb=address("bridge_on_lease_event"), event_arg=self._source, **fields)
        self._pointer = session.make(f"cannot make a semaphore on {path}", "clave_async_semaphore_new",
                                     "clave_async_semaphore_free", session.pointer, encoded(path), made)

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self._session.free_object(self._pointer, self._source)

    def _event(self, kind: int, lease: int, request: int, ahead: int, why: int) -> None:
        if kind == _QUEUED and self._opts.on_queued:
            self._opts.on_queued(ahead)
        elif kind == _LOST:
            for hold in self._leases.lose(lease):
                hold._lose(why)
        elif kind == _ASKED and self._opts.on_asked:
            for hold in self._leases.of(lease):
                self._opts.on_asked(hold)

    async def _take(self, timeout: Optional[Duration], calls: List[Call]) -> HoldCore:
        return (await self._take_many(1, timeout, calls))[0]

    async def _take_many(self, n: int, timeout: Optional[Duration], calls: List[Call]) -> List[HoldCore]:
        what, request = f"cannot acquire {self.path}", number()
        (rows,) = await self._session.ask(what, "clave_async_semaphore_acquire", "bridge_on_leases", self._pointer, request,
                                          n, deadline(timeout),
                                          cancel=("clave_async_semaphore_cancel", self._pointer, request), calls=calls)
        leases = [self._lease(*row) for row in rows if len(row) > 1]
        if len(leases) < n:  # one was lost in the same moment
            raise error(ELOST, what)
        return leases

    def _lease(self, pointer: int, *grant: Any) -> HoldCore:
        async def give_back(hold: HoldCore, confirm: bool) -> None:
            what = f"cannot release {self.path}"
            if confirm:
                await self._session.ask(what, "clave_async_lease_release", "bridge_on_lease_left", pointer,
                                        calls=hold._leaving.calls)
            else:
                self._session.check(what, "clave_async_lease_release", pointer, None, None, result=hold._leaving.result)

        lease = self.hold_class(self._session, self.path, grant, give_back, self._opts.on_lost)
        lease.owner = pointer
        if not self._leases.add(lease):
            lease._lose(ELOST)
        return lease

    async def _set_limit(self, limit: int, shared: bool) -> None:
        what = f"cannot set the limit of {self.path}"
        if shared:
            await self._session.ask(what, "clave_async_semaphore_set_limit", "bridge_on_result", self._pointer, limit)
        else:
            self._session.check(what, "clave_async_semaphore_set_limit", self._pointer, limit, None, None)

    @property
    def limit(self) -> int:
        """How many leases there are; 0: a shared limit is not known yet."""
        return self._session.now("clave_async_semaphore_limit", self._pointer) & 0xFFFFFFFF

    def deadlock(self) -> Optional[str]:
        """Who waits for whom in the deadlock that most recently ended an acquire."""
        return self._session.text("clave_async_semaphore_deadlock", self._pointer)


class Semaphore(SemaphoreCore):
    """A semaphore for threads: a context manager that gives one lease, and a decorator."""

    hold_class = Hold

    def acquire(self, timeout: Optional[Duration] = None) -> Hold:
        """Waits for a lease, in the order of arrival; arguments and errors as of `Lock.acquire`."""
        return take(self._take, self._opts.timeout if timeout is None else timeout, [])

    def acquire_many(self, n: int, timeout: Optional[Duration] = None) -> List[Hold]:
        """Waits for n leases: all, or none."""
        return take(functools.partial(self._take_many, n), self._opts.timeout if timeout is None else timeout, [])

    def set_limit(self, limit: int, shared: bool = False) -> None:
        """Changes the limit; `shared`: in its node, for all."""
        run(self._set_limit(limit, shared))

    def __enter__(self) -> Hold:
        held: List[Hold] = self.__dict__.setdefault("_held", {}).setdefault(owner(self._session), [])
        return take(self._take, self._opts.timeout, held)

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        leave(lambda: self.__dict__["_held"].get(owner(self._session)), kind is not None)

    def __call__(self, function: Function) -> Function:
        @functools.wraps(function)
        def limited(*args: Any, **keywords: Any) -> Any:
            with self.acquire():
                return function(*args, **keywords)
        return cast(Function, limited)
