"""gevent and eventlet, whose greenlets share one thread: a call waits in their hub, so that the others go on.

A process that has them replace Python's threads (``monkey.patch_all``, ``monkey_patch``) has each session that is opened
afterwards use them. Its answers then come through its descriptor, as in asyncio, and its callbacks run in a greenlet."""
from __future__ import annotations

import importlib
import sys
from typing import Any, Callable, Optional, Type

Function = Callable[[], Any]


class Hub:
    """The hub of the thread that opened a session."""

    def is_here(self) -> bool:
        """Whether the caller runs in a greenlet of this hub, and not in another thread of the system."""
        raise NotImplementedError

    def current(self) -> Any:
        """The running greenlet."""
        raise NotImplementedError

    def flag(self) -> Any:
        """An object with `set()`, and with `wait(timeout)`, which says whether it is set."""
        raise NotImplementedError

    def watch(self, fd: int, readable: Function) -> Function:
        """Has `readable` called, in the hub, while the descriptor has something to read. Returns what ends that."""
        raise NotImplementedError

    def spawn(self, work: Function) -> None:
        raise NotImplementedError

    def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        """What `work` returns, which blocks: other greenlets go on."""
        raise NotImplementedError


class Gevent(Hub):
    def __init__(self) -> None:
        self._gevent, self._flag = importlib.import_module("gevent"), importlib.import_module("gevent.event").Event
        self._hub = self._gevent.get_hub()

    def is_here(self) -> bool:
        return bool(self._gevent.get_hub() is self._hub)

    def current(self) -> Any:
        return self._gevent.getcurrent()

    def flag(self) -> Any:
        return self._flag()

    def watch(self, fd: int, readable: Function) -> Function:
        watcher = self._hub.loop.io(fd, 1)
        watcher.start(readable)

        def end() -> None:
            watcher.stop()
            watcher.close()
        return end

    def spawn(self, work: Function) -> None:
        self._gevent.spawn(work)

    def sleep(self, seconds: float) -> None:
        self._gevent.sleep(seconds)

    def in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        return self._hub.threadpool.apply(work, args)


class _EventletFlag:
    """Greenlets that wait until it is set."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def set(self) -> None:
        if not self._event.ready():
            self._event.send(True)

    def wait(self, timeout: Optional[float] = None) -> bool:
        return bool(self._event.wait(timeout))


class Eventlet(Hub):
    def __init__(self) -> None:
        self._eventlet, self._event = importlib.import_module("eventlet"), importlib.import_module("eventlet.event").Event
        self._hubs, self._tpool = importlib.import_module("eventlet.hubs"), importlib.import_module("eventlet.tpool")
        self._hub = self._hubs.get_hub()

    def is_here(self) -> bool:
        return bool(self._hubs.get_hub() is self._hub)

    def current(self) -> Any:
        return self._eventlet.getcurrent()

    def flag(self) -> Any:
        return _EventletFlag(self._event())

    def watch(self, fd: int, readable: Function) -> Function:
        listener = self._hub.add(self._hub.READ, fd, lambda _: readable(), lambda *_: None, lambda: None)
        return lambda: self._hub.remove(listener)

    def spawn(self, work: Function) -> None:
        self._eventlet.spawn_n(work)

    def sleep(self, seconds: float) -> None:
        self._eventlet.sleep(seconds)

    def in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        return self._tpool.execute(work, *args)


def kind() -> Optional[Type[Hub]]:
    """What has replaced the threads of this process by greenlets."""
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if gevent and gevent.is_module_patched("threading"):
        return Gevent
    if eventlet and eventlet.is_monkey_patched("thread"):
        return Eventlet
    return None


def hub() -> Optional[Hub]:
    """The hub of this thread, if threads are greenlets in this process."""
    found = kind()
    return found() if found else None
