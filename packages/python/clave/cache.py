"""A copy of a tree of nodes in memory, kept up to date; a watch that stays."""
from __future__ import annotations

import enum
import math
import threading
import time
from types import TracebackType
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Type

from ._lib import CacheOptions, PersistentWatcherOptions, address, encoded, options
from ._session import ProcessBound, Session
from .errors import ENONODE, ETIMEDOUT, Error, check, error
from .times import Duration, milliseconds
from .znodes import Node, Stat


class CacheEvent(enum.IntEnum):
    """What happened to a cache. STALE: the connection is gone, until RESYNCED. ENDED is the last one."""

    CREATED = 0
    CHANGED = 1
    DELETED = 2
    INITIALIZED = 3
    STALE = 4
    RESYNCED = 5
    FULL = 6
    ENDED = 7


class CacheStatus(NamedTuple):
    """What a cache is at one moment; `zxid` is of the newest point at which it was equal to the tree."""

    nodes: int
    bytes: int
    zxid: int
    current: bool
    complete: bool


_SLICE = 0.5  # seconds after which a wait looks whether the client was closed
CacheCallback = Callable[[CacheEvent, str, Optional[Node], Optional[Node]], None]


def _node(fields: Optional[List[Any]]) -> Optional[Node]:
    return Node(fields[0], fields[2] or b"", Stat(*fields[1])) if fields else None


class CacheCore(ProcessBound, Mapping[str, bytes]):
    """A mapping from the paths of the nodes to their data. Questions are answered from memory."""
    _current: Any  # an Event of threading or asyncio, made before this

    def __init__(self, session: Session, path: str, callback: Optional[CacheCallback] = None, *,
                 single_node: bool = False, without_data: bool = False, max_data: int = 0, max_nodes: int = 0,
                 max_bytes: int = 0, refresh: Duration = 0) -> None:
        self.path, self._session, self._callback = path, session, callback
        self._ended = 0
        self._source = session.source(self._event, 0xFF if callback else 1 << CacheEvent.INITIALIZED |
                                      1 << CacheEvent.RESYNCED | 1 << CacheEvent.STALE | 1 << CacheEvent.ENDED)
        made = options(CacheOptions, single_node=single_node, without_data=without_data, max_data=max_data,
                       max_nodes=max_nodes, max_bytes=max_bytes, refresh_ms=milliseconds(refresh))
        self._pointer = session.make(f"cannot make a cache of {path}", "clave_async_cache_new", "clave_async_cache_free",
                                     session.pointer, encoded(path), made, address("bridge_on_cache_event"), self._source)

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self.close()

    def close(self) -> None:
        """Stops following."""
        self._session.free_object(self._pointer, self._source)

    def _event(self, kind: int, path: str, now: Optional[List[Any]], was: Optional[List[Any]], err: int) -> None:
        if kind == CacheEvent.ENDED:
            self._ended = err
        self._changed(kind)
        if self._callback:
            self._callback(CacheEvent(kind), path, _node(now), _node(was))

    def _changed(self, kind: int) -> None:
        if kind == CacheEvent.STALE:
            self._current.clear()
        elif kind in (CacheEvent.INITIALIZED, CacheEvent.RESYNCED, CacheEvent.ENDED):
            self._current.set()

    def node(self, path: str) -> Node:
        """A node with its stat. KeyError: the cache has none there."""
        try:
            (fields,) = self._session.query(path, "bridge_cache_get", self._pointer, encoded(path))
        except Error as failed:
            if failed.code == ENONODE:
                raise KeyError(path) from None
            raise
        node = _node(fields)
        assert node
        return node

    def children(self, path: str) -> List[str]:
        """The paths of a node's children. KeyError: the cache has no node there."""
        try:
            return sorted(self._session.query(path, "bridge_cache_children", self._pointer, encoded(path)))
        except Error as failed:
            if failed.code == ENONODE:
                raise KeyError(path) from None
            raise

    def status(self) -> CacheStatus:
        """How large it is, and how current."""
        nodes, size, zxid, current, complete = self._session.query(self.path, "bridge_cache_status", self._pointer)
        return CacheStatus(nodes, size, zxid, bool(current), bool(complete))

    def __getitem__(self, path: str) -> bytes:
        return self.node(path).data

    def __iter__(self) -> Iterator[str]:
        try:
            return iter(self._session.query(self.path, "bridge_cache_walk", self._pointer, encoded(self.path)))
        except Error as failed:
            if failed.code == ENONODE:
                return iter(())
            raise

    def __len__(self) -> int:
        return self.status().nodes


class Cache(CacheCore):
    """A cache for threads: its callback runs on a thread of the session's events. A block waits at its beginning until
    the cache is current."""

    def __init__(self, session: Session, path: str, callback: Optional[CacheCallback] = None, **more: Any) -> None:
        self._current = threading.Event()
        super().__init__(session, path, callback, **more)

    def wait(self, timeout: Optional[Duration] = None) -> None:
        """Waits until it is current. Unknown: not in time. NoAuth: the path may not be read."""
        until = math.inf if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        while not self._current.wait(min(_SLICE, max(0.0, until - time.monotonic()))):
            self._session.check_open()
            if time.monotonic() >= until:
                raise error(ETIMEDOUT, f"the cache of {self.path} is not current")
        check(self._ended, f"the cache of {self.path} has ended")

    def __enter__(self) -> "Cache":
        self.wait(30)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class WatchEvent(enum.IntEnum):
    """What a watcher saw. ARMED: events come from here on, so read the nodes now. SUSPENDED: none until the next ARMED.
    """

    ARMED = 0
    SUSPENDED = 1
    CREATED = 2
    DELETED = 3
    CHANGED = 4
    CHILDREN = 5
    ENDED = 6


class Watcher(ProcessBound):
    """A watch that stays, on a node and all below it, until it is closed or forgotten."""

    def __init__(self, session: Session, path: str, callback: Callable[[WatchEvent, str], None],
                 single_node: bool = False) -> None:
        self._session, self._callback = session, callback
        self._source = session.source(self._event, 0x7F)
        self._pointer = session.make(f"cannot watch {path}", "clave_async_persistent_watcher_new",
                                     "clave_async_persistent_watcher_free", session.pointer, encoded(path),
                                     options(PersistentWatcherOptions, single_node=single_node),
                                     address("bridge_on_persistent_watcher"), self._source)

    def _event(self, kind: int, path: str, err: int) -> None:
        self._callback(WatchEvent(kind), path)

    @property
    def armed(self) -> bool:
        """From ARMED to SUSPENDED."""
        return bool(self._session.now("clave_async_persistent_watcher_is_armed", self._pointer) & 0xFF)

    def close(self) -> None:
        self._session.free_object(self._pointer, self._source)

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self.close()
