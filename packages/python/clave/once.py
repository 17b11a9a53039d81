"""A job that several processes start and one of them runs; a pause after a holder that was lost."""
from __future__ import annotations

import ctypes
from typing import Any, List, NamedTuple, Optional

from ._lib import DelayOptions, OnceOptions, options
from .errors import EDONE, check
from .hold import HoldCore, runner
from .queues import Identity, identity_of
from .times import Duration, milliseconds

_STATES = ("none", "started", "done", "failed")


class Record(NamedTuple):
    """A run of a job. `began` is milliseconds since 1970 by the servers' clock; `age` and `took` are seconds."""

    state: str
    began: int
    age: Optional[float]
    took: float
    token: int
    identity: Identity


class Ran(NamedTuple):
    """What `once` did: whether it ran the job here, what the job returned, and the previous run."""

    here: bool
    value: Any
    former: Optional[Record]


def record_of(values: List[Any]) -> Optional[Record]:
    if not values or values[0] == 0:
        return None
    state, began, age, took, token, who = values
    return Record(_STATES[state], began, None if age < 0 else age / 1000, took / 1000, token, identity_of(who))


def record_path(path: str, key: str) -> str:
    """Where `clave lock --once KEY PATH` keeps it."""
    return f"{path}-once/{key}"


class Once:
    """One run of a job, under a hold that excludes the others."""

    def __init__(self, hold: HoldCore, path: str, period: Optional[Duration], at_most_once: bool) -> None:
        self.former: Optional[Record] = None
        self._hold, self._path, self._pointer = hold, path, 0
        self._options = options(OnceOptions, path=path, period_ms=period and milliseconds(period),
                                at_most_once=at_most_once, identity=ctypes.pointer(runner()))

    async def begin(self) -> bool:
        """Whether the job is to be run now; then it is recorded as started."""
        made = ctypes.c_void_p()
        session = self._hold._session
        try:
            values = await session.ask_all(f"cannot begin {self._path}", "clave_async_once_begin", "bridge_on_once", made,
                                           self._hold._grant, self._options)
        finally:
            if made.value:
                self._pointer = session.adopt(made.value, "clave_async_once_free")
        self.former = record_of(values[1:])
        if values[0] == EDONE:
            session.free_object(self._pointer)
            return False
        check(values[0], f"cannot begin {self._path}")
        return True

    async def end(self, succeeded: bool) -> None:
        """Records how it ended; Lost: the run stays recorded as started."""
        session = self._hold._session
        await session.ask(f"cannot record the end of {self._path}", "clave_async_once_end", "bridge_on_once",
                          self._pointer, succeeded)
        session.free_object(self._pointer)


class Delay:
    """A mark that a holder leaves when it is lost: the next one waits before it works, so that a late write of the lost
    holder arrives before its work."""

    def __init__(self, hold: HoldCore, path: str, pause: Duration) -> None:
        self._hold, self._path, self._pointer = hold, path, 0
        self._options = options(DelayOptions, path=path, delay_ms=milliseconds(pause), identity=ctypes.pointer(runner()))

    async def begin(self) -> None:
        """Waits, if the previous holder was lost."""
        made = ctypes.c_void_p()
        session = self._hold._session
        try:
            await session.ask(f"cannot mark {self._path}", "clave_async_delay_begin", "bridge_on_delay", made,
                              self._hold._grant, self._options, timeout=None)  # it waits for the pause
        finally:
            if made.value:
                self._pointer = session.adopt(made.value, "clave_async_delay_free")

    async def end(self) -> None:
        """The work is over: removes the mark."""
        session = self._hold._session
        await session.ask(f"cannot remove the mark {self._path}", "clave_async_delay_end", "bridge_on_delay",
                          self._pointer)
        session.free_object(self._pointer)
