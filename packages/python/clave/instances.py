"""The instances of services: where each can be reached."""
from __future__ import annotations

import ctypes
import enum
import json
import math
import threading
import time
from types import TracebackType
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Type

from ._lib import InstancesOptions, address, encoded, library, options
from ._session import ProcessBound, Session
from .errors import ENONODE, ETIMEDOUT, Error, check, error
from .times import Duration, milliseconds
from .znodes import Stat


class Instance(NamedTuple):
    """An instance as its node says. `fault`: why the node cannot be read as one; then only `path`, `service` and `stat`
    are set. `payload` and `uri_spec` are what their JSON says, `uri` what the spec makes of the instance, `registered`
    milliseconds since 1970."""

    path: str
    service: str
    fault: Optional[str]
    stat: Stat
    name: Optional[str] = None
    id: Optional[str] = None
    address: Optional[str] = None
    port: Optional[int] = None
    ssl_port: Optional[int] = None
    payload: Any = None
    registered: int = 0
    type: Optional[str] = None
    uri_spec: Any = None
    enabled: bool = False
    uri: Optional[str] = None

    @property
    def up(self) -> bool:
        """It can be read, and is to be used."""
        return self.fault is None and self.enabled


class InstancesEvent(enum.IntEnum):
    """What happened to instances. STALE: the connection is gone, until RESYNCED. ENDED is the last one."""

    UP = 0
    CHANGED = 1
    DOWN = 2
    INITIALIZED = 3
    STALE = 4
    RESYNCED = 5
    ENDED = 6


class Pick(enum.IntEnum):
    """Which instance is picked. STICKY: the one picked last, as long as it is up."""

    ROUND_ROBIN = 0
    RANDOM = 1
    STICKY = 2


_SLICE = 0.5  # seconds after which a wait looks whether the client was closed
InstancesCallback = Callable[[InstancesEvent, Optional[Instance], Optional[Instance]], None]


def _instance(fields: Optional[List[Any]]) -> Optional[Instance]:
    if not fields:
        return None
    path, service, fault, stat, *rest = fields
    if not rest:
        return Instance(path, service, fault, Stat(*stat))
    name, ident, where, port, ssl_port, payload, registered, kind, uri_spec, disabled, uri = rest
    return Instance(path, service, fault, Stat(*stat), name, ident, where, port or None, ssl_port or None,
                    json.loads(payload or "null"), registered, kind, json.loads(uri_spec or "null"), not disabled, uri)


def _uri_spec(text: str) -> Any:
    raw = encoded(text)
    fault: Optional[bytes] = library.clave_uri_spec_fault(raw)
    if fault:
        raise ValueError(f"the URI {text!r} {fault.decode()}")
    out = ctypes.create_string_buffer(library.clave_uri_spec_format(raw, None, 0) + 1)
    library.clave_uri_spec_format(raw, out, len(out))
    return json.loads(out.value)


def instance_data(name: str, id: str, address: str, port: Optional[int] = None, *, ssl_port: Optional[int] = None,
                  payload: Any = None, uri: Optional[str] = None, enabled: bool = True) -> bytes:
    """The data of the node /services/NAME/ID of an instance, for `persistent_node`. `uri` is a text such as
    "{scheme}://{address}:{port}/v1"."""
    fields = {"name": name, "id": id, "address": address, "port": port, "sslPort": ssl_port, "payload": payload,
              "registrationTimeUTC": int(time.time() * 1000), "serviceType": "DYNAMIC",
              "uriSpec": _uri_spec(uri) if uri else None}
    if not enabled:
        fields["enabled"] = False  # which Curators before 4.1 do not know
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


class InstancesCore(ProcessBound):
    """The instances of one service, or of all below `base`. Questions are answered from memory."""
    _current: Any  # an Event of threading or asyncio, made before this

    def __init__(self, session: Session, service: Optional[str] = None, callback: Optional[InstancesCallback] = None, *,
                 base: str = "/services", down_errors: int = 2, down: Duration = 30) -> None:
        self.service, self._session, self._callback = service, session, callback
        self._what = f"the instances at {base}{'/' + service if service else ''}"
        self._ended = 0
        self._source = session.source(self._event, 0x7F if callback else 0x78)  # those without an instance
        made = options(InstancesOptions, base=base, service=service, down_errors=down_errors, down_ms=milliseconds(down))
        self._pointer = session.make(f"cannot follow {self._what}", "clave_async_instances_new", "clave_async_instances_free",
                                     session.pointer, made, address("bridge_on_instances_event"), self._source)

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self.close()

    def close(self) -> None:
        """Stops following."""
        self._session.free_object(self._pointer, self._source)

    def _event(self, kind: int, now: Optional[List[Any]], was: Optional[List[Any]], err: int) -> None:
        if kind == InstancesEvent.ENDED:
            self._ended = err
        if kind == InstancesEvent.STALE:
            self._current.clear()
        elif kind in (InstancesEvent.INITIALIZED, InstancesEvent.RESYNCED, InstancesEvent.ENDED):
            self._current.set()
        if self._callback:
            self._callback(InstancesEvent(kind), _instance(now), _instance(was))

    @property
    def current(self) -> bool:
        """Changes are seen as they happen."""
        return bool(self._session.now("clave_async_instances_is_current", self._pointer) & 0xFF)

    def list(self) -> List[Instance]:
        """All of them, sorted by path, those included that are disabled or cannot be read."""
        found = map(_instance, self._session.query(self._what, "bridge_instances_walk", self._pointer))
        return [i for i in found if i]

    def __iter__(self) -> Iterator[Instance]:
        return iter(self.list())

    def pick(self, how: Pick = Pick.ROUND_ROBIN) -> Optional[Instance]:
        """One that is up, if there is one. Only of one service."""
        try:
            (fields,) = self._session.query(self._what, "bridge_instances_pick", self._pointer, int(how))
        except Error as failed:
            if failed.code == ENONODE:
                return None
            raise
        return _instance(fields)

    def note_error(self, instance: Instance) -> None:
        """It did not work: after `down_errors` of them it is not picked until `down` seconds after the first."""
        try:
            self._session.check(self._what, "clave_async_instances_note_error", self._pointer, encoded(instance.path))
        except Error as failed:
            if failed.code != ENONODE:
                raise


class Instances(InstancesCore):
    """Instances for threads: the callback runs on a thread of the session's events. A block waits at its beginning until
    they are current."""

    def __init__(self, session: Session, service: Optional[str] = None, callback: Optional[InstancesCallback] = None,
                 **more: Any) -> None:
        self._current = threading.Event()
        super().__init__(session, service, callback, **more)

    def wait(self, timeout: Optional[Duration] = None) -> None:
        """Waits until they are current. Unknown: not in time. NoAuth: the path may not be read."""
        until = math.inf if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        while not self._current.wait(min(_SLICE, max(0.0, until - time.monotonic()))):
            self._session.check_open()
            if time.monotonic() >= until:
                raise error(ETIMEDOUT, f"{self._what} are not current")
        check(self._ended, f"{self._what} are not followed any more")

    def __enter__(self) -> "Instances":
        self.wait(30)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()
