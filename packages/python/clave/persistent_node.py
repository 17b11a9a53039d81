"""A node that stays as long as its owner."""
from __future__ import annotations

import ctypes
import enum
import math
import threading
import time
from types import TracebackType
from typing import Any, Callable, Optional, Sequence, Type

from ._lib import Data, PersistentNodeOptions, address, counted, encoded, options
from ._session import ProcessBound, Session, run
from .errors import EBUSY, ETIMEDOUT, Closed, check, error
from .times import Duration, milliseconds
from .znodes import Acl, acl_fields


class Kept(enum.IntEnum):
    """What ends the node: EPHEMERAL, the session or a close; PERSISTENT, a close; TTL, a close, or `ttl` after its owner
    died."""

    EPHEMERAL = 0
    EPHEMERAL_SEQUENTIAL = 1
    PERSISTENT = 2
    TTL = 3


class NodeEvent(enum.IntEnum):
    """PRESENT: the node was created; the number is its czxid. ABSENT: it is gone, and will be created again. CONFLICT:
    another session's node is there; the number is that session, or 0. FAILED: the server refuses."""

    PRESENT = 0
    ABSENT = 1
    CONFLICT = 2
    FAILED = 3


_SLICE = 0.5  # seconds after which a wait looks whether the client was closed
NodeCallback = Callable[[NodeEvent, str, int], None]


class PersistentNodeCore(ProcessBound):
    """A node that is created, and created again after a deletion and in each new session, until it is closed."""
    _known: Any  # an Event of threading or asyncio, made before this: it is there, or was refused

    def __init__(self, session: Session, path: str, data: Data = b"", callback: Optional[NodeCallback] = None, *,
                 kind: Kept = Kept.EPHEMERAL, ttl: Duration = 0, replace: bool = False,
                 acls: Optional[Sequence[Acl]] = None) -> None:
        self._session, self._callback = session, callback
        self._what = f"cannot keep {path}"
        self._failed, self._conflict = 0, False
        self._source = session.source(self._event, 0xF)
        content, length = counted(data)
        made = options(PersistentNodeOptions, replace=replace, ttl_ms=milliseconds(ttl),
                       data=content, len=length,
                       event_cb=address("bridge_on_persistent_node_event"), event_arg=self._source, **acl_fields(acls))
        made.kind = int(kind)
        self._pointer = session.make(self._what, "clave_async_persistent_node_new", "clave_async_persistent_node_free",
                                     session.pointer, encoded(path), made)

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self.free()

    def free(self) -> None:
        """Stops keeping it, without waiting: an ephemeral node is deleted, a persistent one stays."""
        self._session.free_object(self._pointer, self._source)

    def _event(self, kind: int, path: str, number: int, err: int) -> None:
        self._conflict = kind == NodeEvent.CONFLICT
        self._failed = err if kind == NodeEvent.FAILED else 0
        if kind in (NodeEvent.PRESENT, NodeEvent.FAILED):
            self._known.set()
        else:
            self._known.clear()
        if self._callback:
            self._callback(NodeEvent(kind), path, number)

    def _late(self) -> int:
        return EBUSY if self._conflict else ETIMEDOUT

    async def _set(self, data: Data) -> None:
        await self._session.ask(self._what, "clave_async_persistent_node_set", "bridge_on_persistent_node", self._pointer,
                                *counted(data))

    async def _close(self) -> None:
        try:
            await self._session.ask(self._what, "clave_async_persistent_node_close", "bridge_on_persistent_node",
                                    self._pointer)
        finally:
            self.free()

    @property
    def present(self) -> bool:
        """It is there, as far as is known here."""
        try:
            return bool(self._session.now("clave_async_persistent_node_is_present", self._pointer) & 0xFF)
        except Closed:
            return False

    @property
    def path(self) -> str:
        """Of a sequential node with its number, once it is there."""
        return ctypes.string_at(self._session.now("clave_async_persistent_node_path", self._pointer)).decode()


class PersistentNode(PersistentNodeCore):
    """A node that stays, for threads: the callback runs on a thread of the session's events. A block waits at its
    beginning until the node is there, and at its end until it is gone."""

    def __init__(self, session: Session, path: str, data: Data = b"", callback: Optional[NodeCallback] = None,
                 **more: Any) -> None:
        self._known = threading.Event()
        super().__init__(session, path, data, callback, **more)

    def wait(self, timeout: Optional[Duration] = None) -> None:
        """Waits until the node is there. Busy: another session has a node there. Unknown: not in time."""
        until = math.inf if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        while not self._known.wait(min(_SLICE, max(0.0, until - time.monotonic()))):
            self._session.check_open()
            if time.monotonic() >= until:
                raise error(self._late(), self._what)
        check(self._failed, self._what)

    def set(self, data: Data) -> None:
        """Changes the data, and waits until the node has them."""
        run(self._set(data))

    def close(self) -> None:
        """Deletes the node, whatever its kind, and waits until it is gone."""
        run(self._close())

    def __enter__(self) -> "PersistentNode":
        try:
            self.wait(30)
        except BaseException:
            self.free()
            raise
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()
