"""One session: calls on libclave's loop, waiting for their answers, events.

The nouns are written once, as coroutines that await a Call. In asyncio a Call is awaited through a future; a thread
drives the coroutine itself with `run` and waits in the bridge, without the interpreter lock; a greenlet of gevent or
eventlet does so, too, and waits in its hub."""
from __future__ import annotations

import _thread
import atexit
import collections
import ctypes
import functools
import itertools
import math
import os
import select
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Deque, Dict, Generator, List, Optional, Tuple, TypeVar

from . import _hubs, _note
from ._lib import ClientOptions, Words, address, encoded, library, options, word
from .errors import EBUSY, ECANCELED, ECLOSED, ETIMEDOUT, EUNREACHABLE, Error, Forked, check, error
from .times import Duration, milliseconds

if TYPE_CHECKING:  # threads need none of it, and it takes megabytes
    import asyncio

T = TypeVar("T")
Cancel = Tuple[str, int, Optional[int]]  # a function of libclave, an object, a number; None: the call
AS_CLIENT = -1  # a timeout: that of the client
_native_lock: Callable[[], Any] = getattr(_thread, "RLock")
_SLICE_MS = 500  # a signal that comes just before a wait begins is seen after this time
_LEVELS = {1: "ERROR", 2: "WARNING"}  # CLAVE_LOG_ERROR, ..
_UP = ("CONNECTED", "RECONNECTED", "READ_ONLY")
_numbers = itertools.count(1)  # of owners, requests and sources: never used again
_sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()
_loop: Dict[int, ctypes.c_void_p] = {}  # the one of this process: a child has none
_loop_lock = threading.Lock()


def number() -> int:
    return next(_numbers)


class ProcessBound:
    """What belongs to a session is of one process, and there is one of it: it is neither pickled nor copied."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a clave.{type(self).__name__} belongs to its process and can be neither pickled nor copied: "
                        "pass the host list and the path, and open a Client there")


class Pointer(int):
    """An object of libclave that is to be freed. The address of a freed one is used again: two pointers are never the
    same."""

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


def run(work: Coroutine[Any, Any, T]) -> T:
    """Drives a coroutine of a noun, in a thread."""
    try:
        call = work.send(None)
        while True:
            try:
                call.wait()
            except BaseException as reason:
                call = work.throw(reason)
            else:
                call = work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result


def _events(reference: "weakref.ReferenceType[Session]", fd: int) -> None:
    """The thread of a session's callbacks, which ends with the session."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while True:
        poll.poll()
        session = reference()
        if session is None or session.closed:
            return
        session.drain()
        del session
        if reference() is None:  # that was the last use of it, and the descriptor is closed
            return


def _forked() -> None:
    """In a child process nobody releases the locks that other threads of the parent held."""
    global _loop_lock
    _loop_lock = threading.Lock()


os.register_at_fork(after_in_child=_forked)


def _process_loop() -> ctypes.c_void_p:
    with _loop_lock:
        pid = os.getpid()
        if pid not in _loop:
            made = ctypes.c_void_p()
            check(library.clave_loop_new(ctypes.byref(made)), "cannot start the thread of libclave")
            _loop.clear()  # in a child, the parent's
            _loop[pid] = made
        return _loop[pid]


def log(level: str, text: str, *args: Any) -> None:
    """To the logger "clave". `level` is a name of logging, which takes memory and is loaded when it is needed."""
    import logging
    logging.getLogger("clave").log(getattr(logging, level), text, *args)


class Patience:
    """Says in the log that something has been waited for for long: without a server after seconds, behind others after a
    minute, and less and less often."""

    FIRST, SECOND = 5.0, 60.0  # seconds

    def __init__(self, session: "Session", what: str) -> None:
        self._session, self._what, self._began, self._next = session, what, time.monotonic(), self.FIRST

    def left(self) -> float:
        """Seconds until it should look."""
        return max(0.0, self._began + self._next - time.monotonic())

    def look(self) -> None:
        waited = time.monotonic() - self._began
        if waited < self._next:
            return
        self._next = self.SECOND if waited < self.SECOND else 2 * waited
        if not self._session.is_connected():
            log("WARNING", "%s yet: no server for %.0f s: %s", self._what, waited, self._session.current_fault())
        elif waited >= self.SECOND:
            log("INFO", "%s yet, after %.0f s", self._what, waited)


class Call:
    """A call whose answer is to come. It can be abandoned as long as it lives."""

    arrived = over = abandoned = False
    args: Tuple[Any, ...] = ()  # kept alive until libclave has read them

    def __init__(self, session: "Session", what: str, until: Optional[float], cancel: Optional[Cancel]) -> None:
        self.session, self.what, self.until, self.cancel = session, what, until, cancel
        self.pointer, self.number = ctypes.c_void_p(), number()
        self.patience = Patience(session, what)
        self.future: Optional["asyncio.Future[None]"] = session.loop.create_future() if session.loop else None
        self.flag: Any = session.hub.flag() if session.hub and session.hub.is_here() else None  # set when it has arrived

    def __await__(self) -> Generator[Any, None, None]:
        if self.future is None:
            yield self
            return
        timers = [self.session.loop.call_later(self.patience.left(), self._look)] if self.session.loop else []
        if self.until is not None and self.session.loop:
            timers.append(self.session.loop.call_later(max(0.0, self.until - time.monotonic()), self._time_out))
        try:
            yield from self.future
        finally:
            for timer in timers:
                timer.cancel()

    def _look(self) -> None:
        self.patience.look()
        if self.session.loop and self.future and not self.future.done():
            self.session.loop.call_later(self.patience.left(), self._look)

    def _time_out(self) -> None:
        if self.future and not self.future.done():
            self.future.set_exception(error(ETIMEDOUT, self.what))

    @property
    def by_channel(self) -> bool:
        return self.future is not None or self.flag is not None

    def wait(self) -> None:
        while self.flag is not None:
            left = math.inf if self.until is None else max(0.0, self.until - time.monotonic())
            if self.flag.wait(min(left, self.patience.left())):
                return
            if self.until is not None and time.monotonic() >= self.until:
                raise error(ETIMEDOUT, self.what)
            self.patience.look()
        while True:
            ms = _SLICE_MS
            if self.until is not None:
                ms = min(ms, max(0, int((self.until - time.monotonic()) * 1000) + 1))
            if library.bridge_wait(self.pointer, ms):
                self.arrived = True
                self.session.forget(self.number)
                return
            if self.until is not None and time.monotonic() >= self.until:
                raise error(ETIMEDOUT, self.what)
            self.patience.look()

    def __del__(self) -> None:
        if self.arrived and not self.over:
            library.bridge_note_free(self.pointer)

    def abandon(self) -> None:
        """Nobody waits any more, and nothing stays held, whatever the answer is or was."""
        if self.over or not self.pointer.value:
            return
        self.over = True
        if self.arrived:
            self.session.undo(self.pointer)
            return
        name, target, num = self.cancel or (None, None, 0)
        given_up = self.session.abandon(self.pointer, address(name) if name else None, target,
                                        (self.pointer.value or 0) if num is None else num)
        if not given_up and not self.by_channel:
            while not library.bridge_wait(self.pointer, _SLICE_MS):
                pass  # the session is ending, which ends every call
            self.session.undo(self.pointer)
        self.abandoned = not given_up and self.by_channel  # the note is on its way through the channel
        if not self.abandoned:
            self.session.forget(self.number)

    def answer(self) -> List[Any]:
        return _note.look(self.pointer.value or 0)


Take = Callable[[Optional[Duration], List[Call]], Coroutine[Any, Any, Any]]


def take(work: Take, timeout: Optional[Duration], held: List[T]) -> T:
    """What `work` acquires, in a thread, as the last of `held`. Ctrl-C may strike at any point: what was granted and has
    not been returned is given back. So a caller does nothing but return it."""
    calls: List[Call] = []
    depth = len(held)
    try:
        held.append(run(work(timeout, calls)))
        return held[-1]
    except BaseException:
        del held[depth:]
        for call in calls:
            call.abandon()
        raise


async def take_async(work: Take, timeout: Optional[Duration]) -> Any:
    """The same in asyncio."""
    calls: List[Call] = []
    try:
        return await work(timeout, calls)
    except BaseException:
        for call in calls:
            call.abandon()
        raise


def _nothing() -> None:
    """What ends the watch of a session that has none."""


class Leaving:
    """How far the release of something has come. It is begun once, whenever the exception of a signal handler strikes."""

    UNSET = -2 ** 63

    def __init__(self) -> None:
        self.result = ctypes.c_ssize_t(self.UNSET)  # of a function of libclave that returns at once
        self.calls: List[Call] = []  # or the call that is waited for

    @property
    def begun(self) -> bool:
        return self.result.value != self.UNSET or any(call.pointer for call in self.calls)


def finish(leave: Callable[[], Coroutine[Any, Any, None]], is_over: Callable[[], bool]) -> None:
    """Ends a block, in a thread. The exception of a signal handler does not keep it from ending, and is raised then."""
    raised: Optional[BaseException] = None
    for _ in range(10):
        try:
            run(leave())
            break
        except Error as failed:
            raised = raised or failed
            break
        except BaseException as struck:
            raised = struck
            if is_over():
                break
    if raised:
        raise raised


def _drain(reference: "weakref.ReferenceType[Session]") -> None:
    """A hub says that the descriptor of a session is readable."""
    session = reference()
    if session and session.pid == os.getpid():
        session.drain()
    elif session:
        session.unwatch()  # a child, where it is the parent's


class Session(ProcessBound):
    def __init__(self, connect: Optional[str], opts: Dict[str, Any], loop: Optional[asyncio.AbstractEventLoop],
                 on_state: Optional[Callable[[str, int], None]], timeout: Optional[Duration]) -> None:
        self.loop, self.pid, self.timeout = loop, os.getpid(), timeout
        self.hub = None if loop else _hubs.hub()
        self.unwatch: Callable[[], Any] = _nothing
        self._undelivered: Deque[Tuple[int, int]] = collections.deque()  # events, for a greenlet
        self._delivering = self._was_suspended = False
        self.holds: "weakref.WeakSet[Any]" = weakref.WeakSet()  # each HoldCore
        # Of the system's threads, whatever has replaced those of threading; also entered by __del__, wherever it runs.
        self._lock = _native_lock()
        self._handing = _native_lock()  # the client is not freed while it is handed over
        self._handlers: Dict[int, Tuple["weakref.ReferenceType[Any]", Callable[..., None]]] = {}
        self._calls: Dict[int, Call] = {}
        self._objects: Dict[int, str] = {}  # those that are not freed, and the function that frees them
        self._sources: Dict[int, int] = {}
        self._client = ctypes.c_void_p()
        self._thread: Optional[threading.Thread] = None
        self._on_state = on_state
        self.closed = False
        self._channel = library.bridge_channel_new()
        if not self._channel:
            raise MemoryError("no memory or no descriptor for the events of libclave")
        self._fd: int = library.bridge_channel_fd(self._channel)
        try:
            opts.update(state_cb=address("bridge_on_state"), state_arg=self.source(self._state_changed, 0xFF),
                        log=address("bridge_on_log"), log_arg=self.source(self._logged, sum(1 << n for n in _LEVELS)))
            code = library.clave_client_open(ctypes.byref(self._client), _process_loop(),
                                             encoded(connect) if connect is not None else None,
                                             ctypes.byref(options(ClientOptions, **opts)))
            if code:
                raise error(code, "cannot open a session", self.fault(None))
        except BaseException:
            self._free_channel()
            raise
        pointer = ctypes.c_void_p()
        library.bridge_session(self._client, ctypes.byref(pointer))
        self.pointer: int = pointer.value or 0  # the asynchronous client
        _sessions.add(self)
        if loop:
            loop.add_reader(self._fd, self.drain)
        elif self.hub:
            self.unwatch = self.hub.watch(self._fd, functools.partial(_drain, weakref.ref(self)))
        else:
            self._start_events()

    # -- calls -----------------------------------------------------------------------------------

    def check_open(self) -> None:
        if self.pid != os.getpid():
            raise Forked("this client belongs to the parent process: open another one here", ECLOSED)
        if self.closed:
            raise error(ECLOSED, "the client")

    def _check_alive(self, what: str, args: Tuple[Any, ...]) -> None:
        """With the lock: what the call is about cannot be freed before it begins."""
        self.check_open()
        for arg in args:
            if type(arg) is Pointer and arg not in self._objects:
                raise error(ECLOSED, what, "it was closed")

    def now(self, name: str, *args: Any, result: Optional[ctypes.c_ssize_t] = None) -> int:
        """Calls a function of libclave on the loop's thread, and returns what it returns; `result` tells the same when
        a signal's exception has struck before the return."""
        result = ctypes.c_ssize_t() if result is None else result
        with self._lock:
            self._check_alive(name, args)
            code = library.bridge_now(self._client, address(name), Words(*map(word, args)), ctypes.byref(result))
        check(code, name)
        return result.value

    def check(self, what: str, name: str, *args: Any, result: Optional[ctypes.c_ssize_t] = None) -> None:
        check(ctypes.c_int(self.now(name, *args, result=result)).value, what)

    def make(self, what: str, name: str, free: str, *args: Any) -> Pointer:
        """Makes an object, which `free_object` frees, or the end of the session."""
        made = ctypes.c_void_p()
        with self._lock:
            self.check(what, name, made, *args)
            return self.adopt(made.value or 0, free)

    def text(self, name: str, *args: Any) -> Optional[str]:
        """A text that a function of libclave returns, which is valid until the next call: nobody else calls."""
        self.check_open()
        with self._lock:
            start = self.now(name, *args)
            return ctypes.string_at(start).decode("utf-8", "replace") if start else None

    def query(self, what: str, name: str, *args: Any) -> List[Any]:
        """Asks a function of the bridge that answers at once into a note."""
        note = library.bridge_note_new()
        if not note:
            raise MemoryError("no memory for an answer of libclave")
        try:
            self.check(what, name, *args, note)
        except BaseException:
            library.bridge_note_free(note)
            raise
        return _note.read(note)

    async def ask_all(self, what: str, name: str, callback: str, *args: Any, cancel: Optional[Cancel] = None,
                      timeout: Optional[Duration] = AS_CLIENT, calls: Optional[List[Call]] = None) -> List[Any]:
        """Calls a function of libclave, and waits for its answer: the error first. The call is added to `calls`. A call
        that can be cancelled has a deadline of its own; all others end after the client's timeout, or `timeout`."""
        if timeout == AS_CLIENT:
            timeout = None if cancel else self.timeout
        until = None if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        call = Call(self, what, until, cancel)
        if calls is not None:
            calls.append(call)
        try:
            self._start(call, name, callback, args)
            await call
            values = call.answer()
        except BaseException:
            call.abandon()
            raise
        if values[0] == ECANCELED and self.closed:  # what was waited in was freed
            values[0] = ECLOSED
        return values

    def _start(self, call: Call, name: str, callback: str, args: Tuple[Any, ...]) -> None:
        call.args = args
        with self._lock:
            self._check_alive(call.what, args)
            self._calls[call.number] = call
            code = library.bridge_start(ctypes.byref(call.pointer), self._client, self._channel if call.by_channel else None,
                                        call.number, address(name), Words(*map(word, args)), len(args), address(callback))
            if code:
                self.forget(call.number)
        check(code, call.what)

    async def ask(self, what: str, name: str, callback: str, *args: Any, cancel: Optional[Cancel] = None,
                  timeout: Optional[Duration] = AS_CLIENT, calls: Optional[List[Call]] = None) -> List[Any]:
        values = await self.ask_all(what, name, callback, *args, cancel=cancel, timeout=timeout, calls=calls)
        if values[0]:
            raise error(values[0], what, self._in_the_way(what) if values[0] == EBUSY else None)
        del values[0]
        return values

    def _in_the_way(self, what: str) -> Optional[str]:
        """Who was before a try, if the client's latest text says it of this one."""
        path, said, who = self.current_fault().partition(" was not acquired: ")
        return f"another holds it: {who}" if said and what.endswith(f" {path}") else None

    def forget(self, num: int) -> None:
        self._calls.pop(num, None)

    def abandon(self, call: ctypes.c_void_p, cancel: Optional[int], target: Optional[int], num: int) -> bool:
        if self.pid != os.getpid():
            return False
        with self._lock:
            return not self.closed and bool(library.bridge_abandon(self._client, call, cancel, target, num))

    def undo(self, call: ctypes.c_void_p) -> None:
        if self.pid != os.getpid():
            return
        with self._lock:
            if self.closed:
                library.bridge_note_free(call)
            else:
                library.bridge_undo(self._client, call)

    def adopt(self, address: int, free: str) -> Pointer:
        """An object that libclave has made for us: as `make`."""
        pointer = Pointer(address)
        with self._lock:
            self._objects[pointer] = free
        return pointer

    def free_object(self, pointer: int, source: int = 0) -> None:
        """Frees an object, and the source of its events, unless it is freed. For __del__ too: at any moment, in any
        thread."""
        if self.pid != os.getpid():
            return
        with self._lock:
            free = self._objects.get(pointer)
            if self.closed or free is None:
                return
            if library.bridge_free(self._client, address(free), pointer, source or None) == 0:
                del self._objects[pointer]  # otherwise the end of the session frees it
                if source:
                    self._handlers.pop(self._sources.pop(source), None)

    # -- events ----------------------------------------------------------------------------------

    def source(self, handler: Callable[..., None], kinds: int) -> int:
        """The argument of an event callback of the bridge: its events go to a method, which is not kept alive."""
        num = number()
        pointer = library.bridge_source_new(self._channel, num, kinds)
        if not pointer:
            raise MemoryError("no memory for a source of events")
        self._handlers[num] = weakref.ref(handler.__self__), handler.__func__  # type: ignore[attr-defined]
        self._sources[pointer] = num
        return int(pointer)

    def _start_events(self) -> None:
        """A thread of Python that logs, and runs callbacks."""
        self._thread = threading.Thread(target=_events, args=(weakref.ref(self), self._fd), name="clave-events",
                                        daemon=True)
        self._thread.start()

    def drain(self) -> None:
        library.bridge_channel_clear(self._channel)
        num = ctypes.c_uint64()
        while self._channel:
            note = library.bridge_channel_take(self._channel, ctypes.byref(num))
            if not note:
                return
            call = self._calls.pop(num.value, None)
            if call is None:
                self._deliver_here_or_later(num.value, note)
            elif call.abandoned:
                self.undo(call.pointer)
            else:
                call.arrived = True
                if call.flag is not None:
                    call.flag.set()
                if call.future and not call.future.done() and self.loop and not self.loop.is_closed():
                    call.future.set_result(None)

    def _deliver_here_or_later(self, num: int, note: int) -> None:
        """A callback may wait, which a hub must not."""
        if not self.hub:
            self._deliver(num, note)
            return
        self._undelivered.append((num, note))
        if not self._delivering:
            self._delivering = True
            self.hub.spawn(self._deliver_all)

    def _deliver_all(self) -> None:
        while self._undelivered:
            self._deliver(*self._undelivered.popleft())
        self._delivering = False

    def _deliver(self, num: int, note: int) -> None:
        values = _note.read(note)
        found = self._handlers.get(num)
        target = found[0]() if found else None
        if found and target is not None:
            handler = found[1]
            try:
                handler(target, *values)
            except BaseException as failed:  # SystemExit would end the thread, and nobody would be told any more
                if self.loop and not isinstance(failed, Exception):
                    raise
                import logging
                logging.getLogger("clave").exception("a callback failed")

    def _state_changed(self, state: int, why: int) -> None:
        name: str = library.clave_state_name(state).decode()
        if not self.closed:
            if name == "SUSPENDED":
                log("WARNING", "the connection is lost: %s", self.current_fault() or library.clave_strerror(why).decode())
            elif name == "LOST":
                log("WARNING", "the session is lost, and with it all that it held")
            elif self._was_suspended and name in _UP:
                log("INFO", "connected again")
            self._was_suspended = name in ("SUSPENDED", "LOST") or (self._was_suspended and name not in _UP)
        if self._on_state:
            self._on_state(name, why)

    def _logged(self, level: int, text: str) -> None:
        log(_LEVELS[level], "%s", text)

    # -- life ------------------------------------------------------------------------------------

    def fault(self, client: Optional[ctypes.c_void_p]) -> str:
        text = ctypes.create_string_buffer(1024)
        library.clave_client_errmsg(client, text, len(text))
        return text.value.decode("utf-8", "replace")

    def current_fault(self) -> str:
        with self._lock:
            return "" if self.closed else self.fault(self._client)

    def is_connected(self) -> bool:
        with self._lock:
            return not self.closed and library.clave_state_name(library.clave_client_state(self._client)).decode() in _UP

    def connected(self, ms: int) -> bool:
        """Waits for the connection for a while. An error that lasts is raised at once."""
        self.check_open()
        with self._lock:
            self.check_open()
            code = library.clave_client_wait(self._client, ms)
            if code == 0:
                return True
            failure = error(code, "cannot connect", self.fault(self._client))
        if failure.name == "EUNREACHABLE":
            return False
        raise failure

    def unreachable(self) -> Exception:
        self.check_open()
        with self._lock:
            self.check_open()
            return error(EUNREACHABLE, "cannot connect", self.fault(self._client))

    def direct(self, name: str, *args: Any) -> Any:
        """A function for any thread, with the session as its first argument."""
        self.check_open()
        with self._lock:
            self.check_open()
            return getattr(library, name)(self._client, *args)

    def hand_over(self, file: bytes, ms: int) -> int:
        """Waits for long, so without the lock that other calls take."""
        with self._handing:
            self.check_open()
            return int(library.clave_client_hand_over(self._client, file, ms))

    def begin_close(self, tell: bool = True) -> bool:
        """False: it is closed already, or the parent's. Then nothing is held any more, which `tell` tells."""
        if self.pid != os.getpid():
            return False
        with self._lock:
            if self.closed:
                return False
            self.closed = True  # before: a call that this ends is told why
            held = list(self.holds) if tell else []
        for hold in held:
            try:
                hold._lose(ECLOSED)
            except Exception:
                import logging
                logging.getLogger("clave").exception("a callback failed")
        with self._lock:
            for pointer, free in list(self._objects.items()):
                library.bridge_now(self._client, address(free), Words(pointer), ctypes.byref(ctypes.c_ssize_t()))
            self._objects.clear()
        return True

    def end(self, timeout: Duration) -> None:
        """Between begin_close and finish_close, in any thread."""
        with self._handing:
            library.clave_client_close(self._client, milliseconds(timeout))

    def finish_close(self) -> None:
        if self._thread and self._thread is not threading.current_thread():
            os.write(self._fd, (1).to_bytes(8, "little"))
            self._thread.join()
        if self.loop and not self.loop.is_closed():
            self.loop.remove_reader(self._fd)
        self.unwatch()
        self.drain()
        self._free_channel()

    def close(self, timeout: Duration = 5, at_once: bool = False) -> None:
        """`at_once`: where no greenlet may go on meanwhile."""
        if self.begin_close(tell=not at_once):
            if self.hub and not at_once and self.hub.is_here():
                self.hub.in_thread(self.end, timeout)
            else:
                self.end(timeout)
            self.finish_close()

    def __del__(self) -> None:
        if hasattr(self, "pointer"):
            self.close(1, at_once=True)

    def _free_channel(self) -> None:
        for source in self._sources:
            library.bridge_source_free(source)
        self._sources.clear()
        channel, self._channel = self._channel, None
        library.bridge_channel_free(channel)


@atexit.register
def _close_all() -> None:
    for session in list(_sessions):
        session.close(1, at_once=True)
