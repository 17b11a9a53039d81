"""A number that several processes change."""
from __future__ import annotations

from typing import Any, List, NamedTuple

from ._lib import encoded
from ._session import ProcessBound, Session, run


class Change(NamedTuple):
    """A change that was made to a counter."""

    before: int
    after: int


FUNCTIONS = {"get": "clave_async_counter_get", "add": "clave_async_counter_add", "set": "clave_async_counter_set",
             "compare and set": "clave_async_counter_compare_and_set"}


class CounterCore(ProcessBound):
    """A counter, in the layout of Curator's DistributedAtomicLong. Each change is done exactly once; Unknown is raised if
    the session was lost together with the answer, or after the client's timeout: it may have been done."""

    def __init__(self, session: Session, path: str) -> None:
        self.path, self._session = path, session
        self._pointer = session.make(f"cannot make a counter of {path}", "clave_async_counter_new",
                                     "clave_async_counter_free", session.pointer, encoded(path))

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self.close()

    def close(self) -> None:
        """Frees it, and its marker at the server."""
        self._session.free_object(self._pointer)

    async def _ask(self, what: str, *args: Any) -> Change:
        values: List[Any] = await self._session.ask(f"cannot {what} {self.path}", FUNCTIONS[what],
                                                    "bridge_on_counted", self._pointer, *args)
        return Change(*values)


class Counter(CounterCore):
    """A counter, for threads."""

    def get(self) -> int:
        """The value; 0 if there is no node."""
        return run(self._ask("get")).after

    def add(self, delta: int = 1) -> Change:
        """Adds, and creates the node if it is missing."""
        return run(self._ask("add", delta))

    def set(self, value: int) -> Change:
        """Sets it, whatever it is."""
        return run(self._ask("set", value))

    def compare_and_set(self, expected: int, value: int) -> Change:
        """Sets it if it is `expected`. BadVersion: it is not. NoNode: it is not created."""
        return run(self._ask("compare and set", expected, value))
