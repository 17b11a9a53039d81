"""The same for asyncio: `async with`, and `await` where a thread would wait.

The session lives on libclave's own thread, so it survives an event loop that is blocked for a while; answers and events
reach the event loop through one descriptor, whatever the number of locks. Open a client inside a running event loop, and
use it there.

A hold that is lost cancels the task that entered its block, and the block raises `clave.Lost`: so the work stops before
another can have the lock. `cancel=False` leaves the task alone; `hold.lost` is an asyncio.Event in either case.

>>> import asyncio, clave.aio
>>> async def main():
...     async with clave.aio.Client() as c, c.lock("/doc/aio", timeout=10) as hold:
...         return type(hold.token)
>>> asyncio.run(main())
<class 'int'>
"""
from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from types import TracebackType
from typing import (Any, AsyncIterator, Awaitable, Callable, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union,
                    cast)

from ._lib import Data
from ._session import Patience, ProcessBound, Session, take_async
from .cache import CacheCallback, CacheCore, Watcher, WatchEvent
from .client import ClientCore
from .counter import Change, CounterCore
from .election import CandidateCore, ElectionCore, TermCore
from .errors import ELOST, ETIMEDOUT, Error, check, error
from .hold import HoldCore
from .instances import InstancesCallback, InstancesCore
from .lock import LockCore, LockOptions, MultiHold, MultilockCore, Part, sides
from .once import Delay, Once, Ran, record_path
from .persistent_node import Kept, NodeCallback, PersistentNodeCore
from .queues import Deadlocked, Participant
from .semaphore import SemaphoreCore
from .slots import Slot, SlotsCore, SlotsView
from .times import Duration, milliseconds
from .znodes import Acl, Mode, Node, Op, Stat

Function = TypeVar("Function", bound=Callable[..., Awaitable[Any]])
Raised = Optional[Type[BaseException]]


def _current_task() -> Optional["asyncio.Task[Any]"]:
    """The one that closes the client, if it is one: it knows."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs here
        return None


class Hold(HoldCore):
    """One hold, in asyncio; as `clave.Hold`."""

    _event: Optional[asyncio.Event] = None
    _task: Optional["asyncio.Task[Any]"] = None
    _cancelled = False
    _cancelling = 0  # by others, when the block began

    @property
    def lost(self) -> asyncio.Event:
        """Set when the hold is lost, before another can have it."""
        if self._event is None:
            self._event = asyncio.Event()
            if self._why:
                self._event.set()
        return self._event

    def _become_lost(self) -> None:
        if self._event:
            self._event.set()
        if self._task and not self._cancelled and self._task is not _current_task():
            self._cancelled = True
            self._task.cancel()

    def _enter(self, cancel: bool) -> None:
        if cancel and self._why:  # a cancellation would come with the next await, which may be behind the block
            raise error(self._why, self._path)
        self._task = asyncio.current_task() if cancel else None
        if sys.version_info >= (3, 11) and self._task:
            self._cancelling = self._task.cancelling()

    def _exit(self, kind: Raised) -> bool:
        """The end of the block of `_enter`: whether the block failed by itself."""
        task, self._task = self._task, None
        if not self._cancelled:
            return kind is not None
        if sys.version_info >= (3, 11):
            if task and task.uncancel() > self._cancelling:  # others have cancelled it, too
                return kind is not None
        return kind is not None and not issubclass(kind, asyncio.CancelledError)

    async def release(self, confirm: bool = False) -> None:
        """Releases it; `confirm` waits for the server."""
        await self._release(confirm)

    async def create(self, path: str, data: Data = b"", mode: Mode = Mode.PERSISTENT) -> str:
        """Creates a node, only while this is held; returns its final path."""
        return await self._create(path, data, mode)

    async def set(self, path: str, data: Data, version: int = -1) -> None:
        """Sets a node's data, only while this is held."""
        await self._set(path, data, version)

    async def delete(self, path: str, version: int = -1) -> None:
        """Deletes a node, only while this is held."""
        await self._delete(path, version)

    async def multi(self, ops: Sequence[Op], others: Sequence[HoldCore] = ()) -> List[str]:
        """Does all operations, only while this and the others are held, or none."""
        return await self._multi(ops, others)

    @contextlib.asynccontextmanager
    async def delayed(self, path: str, pause: Duration) -> AsyncIterator[None]:
        """As `clave.Hold.delayed`."""
        delay = Delay(self, path, pause)
        await delay.begin()
        try:
            yield
        except BaseException:
            with contextlib.suppress(Error):
                await delay.end()
            raise
        await delay.end()


class _Block:
    """What gives a `Hold` for a block, and is a decorator of functions."""

    _cancel: bool
    _held: Dict["asyncio.Task[Any]", List[Hold]]

    async def acquire(self, timeout: Optional[Duration] = None) -> Hold:
        raise NotImplementedError

    async def __aenter__(self) -> Hold:
        hold = await self.acquire()
        try:
            hold._enter(self._cancel)
        except BaseException:
            await hold._leave(True)
            raise
        task = asyncio.current_task()
        assert task
        self._held.setdefault(task, []).append(hold)
        return hold

    async def __aexit__(self, kind: Raised, value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        task = asyncio.current_task()
        assert task
        hold = self._held[task].pop()
        if not self._held[task]:
            del self._held[task]
        await hold._leave(hold._exit(kind))

    def __call__(self, function: Function) -> Function:
        @functools.wraps(function)
        async def held(*args: Any, **keywords: Any) -> Any:
            async with self:
                return await function(*args, **keywords)
        return cast(Function, held)


class Lock(_Block, LockCore):
    """A lock, in asyncio. It is reentrant for a task, and excludes all others."""

    hold_class = Hold

    def __init__(self, session: Session, path: str, opts: LockOptions, mutex: Any = None, pointer: int = 0,
                 cancel: bool = True) -> None:
        super().__init__(session, path, opts, mutex, pointer)
        self._cancel, self._held = cancel, {}

    async def acquire(self, timeout: Optional[Duration] = None) -> Hold:
        """As `clave.Lock.acquire`. A task that is cancelled while it waits leaves nothing in the queue."""
        return cast(Hold, await take_async(self._take, self._opts.timeout if timeout is None else timeout))


class RWLock(ProcessBound):
    """A read-write lock, in asyncio: `read` and `write` are its sides, each a `Lock`."""

    def __init__(self, session: Session, path: str, opts: LockOptions) -> None:
        read, write = sides(session, path, opts, Lock)
        self.read, self.write = cast(Lock, read), cast(Lock, write)


class Multilock(MultilockCore):
    """Several locks as one, in asyncio. The loss of one of them is told by its `Hold`, and cancels nothing."""

    async def acquire(self, timeout: Optional[Duration] = None) -> MultiHold:
        """Acquires all within one timeout, or none."""
        return cast(MultiHold, await take_async(self._take, self._opts.timeout if timeout is None else timeout))

    @contextlib.asynccontextmanager
    async def hold(self, timeout: Optional[Duration] = None) -> AsyncIterator[MultiHold]:
        """The same for a block."""
        held = await self.acquire(timeout)
        try:
            yield held
        except BaseException:
            await held._leave(True)
            raise
        await held._leave(False)


class Semaphore(_Block, SemaphoreCore):
    """A semaphore, in asyncio."""

    hold_class = Hold

    def __init__(self, session: Session, path: str, limit: int, limit_path: Optional[str], opts: LockOptions,
                 cancel: bool = True) -> None:
        super().__init__(session, path, limit, limit_path, opts)
        self._cancel, self._held = cancel, {}

    async def acquire(self, timeout: Optional[Duration] = None) -> Hold:
        """Waits for a lease."""
        return cast(Hold, await take_async(self._take, self._opts.timeout if timeout is None else timeout))

    async def acquire_many(self, n: int, timeout: Optional[Duration] = None) -> List[Hold]:
        """Waits for n leases: all, or none."""
        return cast(List[Hold], await take_async(functools.partial(self._take_many, n),
                                                 self._opts.timeout if timeout is None else timeout))

    async def set_limit(self, limit: int, shared: bool = False) -> None:
        """Changes the limit; `shared`: in its node, for all."""
        await self._set_limit(limit, shared)


class Slots(SlotsCore):
    """Slots, in asyncio."""

    hold_class = Hold

    async def take(self, id: str, *, by: Optional[str] = None, reason: Optional[str] = None,
                   timeout: Optional[Duration] = None) -> Slot:
        """Takes a slot for an id, or returns the one that it owns."""
        return (await self._take(id, by, reason, timeout))[0]

    async def give(self, id: str, token: int = 0) -> int:
        """Gives back the slot of an id."""
        return await self._give(id, token)

    async def break_(self, id: str, reason: str, *, by: Optional[str] = None, token: int = 0) -> int:
        """Takes the slot away from an id, and records why."""
        return await self._break(id, reason, by, token)

    async def set_limit(self, limit: int) -> None:
        """Sets how many ids can own a slot."""
        await self._set_limit(limit)

    async def list(self) -> SlotsView:
        """Who owns a slot."""
        return await self._list()

    def hold(self, slot: Slot) -> Hold:
        """A slot as a hold, for guarded writes."""
        return cast(Hold, self._grant(slot))


class Term(Hold, TermCore):
    """A leadership, in asyncio."""

    async def publish(self, data: Data) -> None:
        """Publishes a value for those that follow the leader."""
        await self._publish(data)

    async def transfer(self, node: str) -> None:
        """Hands leadership over to the candidate whose node has this name."""
        await self._transfer(node)


class Candidate(CandidateCore):
    """A candidate, in asyncio."""

    async def lead(self, timeout: Optional[Duration] = None) -> Term:
        """Waits until it leads."""
        return cast(Term, await self._lead(timeout))

    async def close(self) -> None:
        """Leaves the election for good."""
        await self._close()


class Election(ElectionCore):
    """An election, in asyncio."""

    candidate_class = Candidate
    term_class = Term

    def enter(self) -> Candidate:
        """Enters the election; does not wait."""
        return cast(Candidate, self._enter())

    @contextlib.asynccontextmanager
    async def lead(self, cancel: bool = True) -> AsyncIterator[Term]:
        """A block that waits until this process leads, and leaves the election at its end."""
        candidate = self.enter()
        try:
            term = await candidate.lead(self._timeout)
            term._enter(cancel)
        except BaseException:
            self._session.free_object(candidate._pointer, candidate._source)
            raise
        try:
            yield term
        except BaseException as failed:
            if term._exit(type(failed)):
                await self._leave(candidate, term, True)
                raise
        else:
            term._exit(None)
        await self._leave(candidate, term, False)

    async def terms(self) -> AsyncIterator[Term]:
        """Term after term, as `clave.Election.terms`. Close the iterator, with contextlib.aclosing, to leave."""
        candidate = self.enter()
        try:
            while True:
                term = await candidate.lead()
                yield term
                if not term.released:
                    try:
                        await term.release()
                    except Error as failed:
                        if failed.code != ELOST:
                            raise
        finally:
            self._session.free_object(candidate._pointer, candidate._source)

    def __call__(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(function)
        async def led(*args: Any, **keywords: Any) -> Any:
            async with self.lead() as term:
                return await function(term, *args, **keywords)
        return led

    async def leader(self) -> Optional[Participant]:
        """Who leads; None: nobody."""
        return await self._leader()

    async def participants(self) -> List[Participant]:
        """All candidates, the leader first."""
        return await self._participants()

    async def transfer(self, node: Optional[str] = None) -> None:
        """Asks the leader to resign."""
        await self._transfer(node)


class Cache(CacheCore):
    """A cache, in asyncio."""

    def __init__(self, session: Session, path: str, callback: Optional[CacheCallback] = None, **more: Any) -> None:
        self._current = asyncio.Event()
        super().__init__(session, path, callback, **more)

    async def wait(self, timeout: Optional[Duration] = None) -> None:
        """Waits until it is current."""
        try:
            await asyncio.wait_for(self._current.wait(), None if timeout is None else milliseconds(timeout) / 1000)
        except asyncio.TimeoutError:
            raise error(ETIMEDOUT, f"the cache of {self.path} is not current") from None
        check(self._ended, f"the cache of {self.path} has ended")

    async def __aenter__(self) -> "Cache":
        await self.wait(30)
        return self

    async def __aexit__(self, kind: Raised, value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class Instances(InstancesCore):
    """Instances of services, in asyncio."""

    def __init__(self, session: Session, service: Optional[str] = None, callback: Optional[InstancesCallback] = None,
                 **more: Any) -> None:
        self._current = asyncio.Event()
        super().__init__(session, service, callback, **more)

    async def wait(self, timeout: Optional[Duration] = None) -> None:
        """Waits until they are current."""
        try:
            await asyncio.wait_for(self._current.wait(), None if timeout is None else milliseconds(timeout) / 1000)
        except asyncio.TimeoutError:
            raise error(ETIMEDOUT, f"{self._what} are not current") from None
        check(self._ended, f"{self._what} are not followed any more")

    async def __aenter__(self) -> "Instances":
        await self.wait(30)
        return self

    async def __aexit__(self, kind: Raised, value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class Counter(CounterCore):
    """A counter, in asyncio."""

    async def get(self) -> int:
        """The value; 0 if there is no node."""
        return (await self._ask("get")).after

    async def add(self, delta: int = 1) -> Change:
        """Adds, and creates the node if it is missing."""
        return await self._ask("add", delta)

    async def set(self, value: int) -> Change:
        """Sets it, whatever it is."""
        return await self._ask("set", value)

    async def compare_and_set(self, expected: int, value: int) -> Change:
        """Sets it if it is `expected`."""
        return await self._ask("compare and set", expected, value)


class PersistentNode(PersistentNodeCore):
    """A node that stays, in asyncio."""

    def __init__(self, session: Session, path: str, data: Data = b"", callback: Optional[NodeCallback] = None,
                 **more: Any) -> None:
        self._known = asyncio.Event()
        super().__init__(session, path, data, callback, **more)

    async def wait(self, timeout: Optional[Duration] = None) -> None:
        """Waits until the node is there."""
        try:
            await asyncio.wait_for(self._known.wait(), None if timeout is None else milliseconds(timeout) / 1000)
        except asyncio.TimeoutError:
            raise error(self._late(), self._what) from None
        check(self._failed, self._what)

    async def set(self, data: Data) -> None:
        """Changes the data, and waits until the node has them."""
        await self._set(data)

    async def close(self) -> None:
        """Deletes the node, and waits until it is gone."""
        await self._close()

    async def __aenter__(self) -> "PersistentNode":
        try:
            await self.wait(30)
        except BaseException:
            self.free()
            raise
        return self

    async def __aexit__(self, kind: Raised, value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()


class Client(ClientCore):
    """A session for the running event loop; its arguments, and those of what is made on it, are those of
    `clave.Client`."""

    def _open(self, connect: Optional[str], fields: Dict[str, Any],
              on_state: Optional[Callable[[str, int], None]], timeout: Optional[Duration]) -> Session:
        return Session(connect, fields, asyncio.get_running_loop(), on_state, timeout)

    async def __aenter__(self) -> "Client":
        await self.wait(self._connect_timeout)
        return self

    async def __aexit__(self, kind: Raised, value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()

    async def wait(self, timeout: Optional[Duration] = None) -> None:
        """Waits for the connection. Unreachable: there is none in time."""
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + milliseconds(timeout) / 1000
        patience = Patience(self._session, "cannot connect")
        while not await loop.run_in_executor(None, self._session.connected, 50):
            if until is not None and loop.time() >= until:
                raise self._session.unreachable()
            patience.look()

    async def hand_over(self, file: str, timeout: Duration = 30) -> None:
        """As that of `clave.Client`."""
        await asyncio.get_running_loop().run_in_executor(None, self._hand_over, file, timeout)

    async def close(self, timeout: Duration = 5) -> None:
        """Ends the session at the server, and waits for that at most so long."""
        if self._session.begin_close():
            ended = asyncio.get_running_loop().run_in_executor(None, self._session.end, timeout)
            ended.add_done_callback(lambda _: self._session.finish_close())
            await asyncio.shield(ended)  # it goes on when this is cancelled

    def lock(self, path: str, timeout: Optional[Duration] = None, *, cancel: bool = True,
             max_hold: Optional[Duration] = None,
             min_valid: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None, strict: bool = False,
             detect_deadlocks: Optional[Duration] = None, on_lost: Optional[Callable[[Hold], Any]] = None,
             on_asked: Optional[Callable[[Hold], Any]] = None,
             on_queued: Optional[Callable[[int], Any]] = None) -> Lock:
        """As `clave.Client.lock`; `cancel`: a loss cancels the task of the block."""
        return Lock(self._session, path, LockOptions(
            timeout, max_hold=max_hold, min_valid=min_valid, acls=acls, strict=strict, detect_deadlocks=detect_deadlocks,
            on_lost=on_lost, on_asked=on_asked, on_queued=on_queued), cancel=cancel)

    def rwlock(self, path: str, timeout: Optional[Duration] = None, *,
               max_hold: Optional[Duration] = None,
               min_valid: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None, strict: bool = False,
               detect_deadlocks: Optional[Duration] = None, on_lost: Optional[Callable[[Hold], Any]] = None,
               on_asked: Optional[Callable[[Hold], Any]] = None,
               on_queued: Optional[Callable[[int], Any]] = None) -> RWLock:
        """As `clave.Client.rwlock`."""
        return RWLock(self._session, path, LockOptions(
            timeout, max_hold=max_hold, min_valid=min_valid, acls=acls, strict=strict, detect_deadlocks=detect_deadlocks,
            on_lost=on_lost, on_asked=on_asked, on_queued=on_queued))

    def multilock(self, *parts: Part, timeout: Optional[Duration] = None,
                  max_hold: Optional[Duration] = None,
                  min_valid: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None, strict: bool = False,
                  detect_deadlocks: Optional[Duration] = None, on_lost: Optional[Callable[[Hold], Any]] = None,
                  on_asked: Optional[Callable[[Hold], Any]] = None,
                  on_queued: Optional[Callable[[int], Any]] = None) -> Multilock:
        """As `clave.Client.multilock`."""
        return Multilock(self._session, parts, LockOptions(
            timeout, max_hold=max_hold, min_valid=min_valid, acls=acls, strict=strict, detect_deadlocks=detect_deadlocks,
            on_lost=on_lost, on_asked=on_asked, on_queued=on_queued))

    def semaphore(self, path: str, limit: int = 0, timeout: Optional[Duration] = None, *,
                  limit_path: Optional[str] = None, cancel: bool = True,
                  max_hold: Optional[Duration] = None,
                  min_valid: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None,
                  detect_deadlocks: Optional[Duration] = None, on_lost: Optional[Callable[[Hold], Any]] = None,
                  on_asked: Optional[Callable[[Hold], Any]] = None,
                  on_queued: Optional[Callable[[int], Any]] = None) -> Semaphore:
        """As `clave.Client.semaphore`."""
        return Semaphore(self._session, path, limit, limit_path, LockOptions(
            timeout, max_hold=max_hold, min_valid=min_valid, acls=acls, detect_deadlocks=detect_deadlocks,
            on_lost=on_lost, on_asked=on_asked, on_queued=on_queued), cancel)

    def slots(self, path: str, limit: int = 0, acls: Optional[Sequence[Acl]] = None,
              on_queued: Optional[Callable[[int], Any]] = None) -> Slots:
        """As `clave.Client.slots`."""
        return Slots(self._session, path, limit, acls, on_queued)

    def election(self, path: str, timeout: Optional[Duration] = None, *, id: str = "", standard_policy: bool = False,
                 max_term: Optional[Duration] = None, min_valid: Optional[Duration] = None, priority: int = 0,
                 spread: bool = False, preempt: bool = False, strict: bool = False,
                 acls: Optional[Sequence[Acl]] = None, on_lost: Optional[Callable[[Term], Any]] = None,
                 on_asked: Optional[Callable[[Term], Any]] = None) -> Election:
        """As `clave.Client.election`."""
        return Election(self._session, path, timeout, id=id, standard_policy=standard_policy, max_term=max_term,
                        min_valid=min_valid, priority=priority, spread=spread, preempt=preempt, strict=strict, acls=acls,
                        on_lost=on_lost, on_asked=on_asked)

    async def once(self, path: str, key: str, work: Callable[[Hold], Union[Awaitable[Any], Any]], *,
                   period: Optional[Duration] = None, at_most_once: bool = False,
                   timeout: Optional[Duration] = None) -> Ran:
        """As `clave.Client.once`; `work` may be a coroutine function."""
        async with self.lock(path, timeout) as hold:
            run_of = Once(hold, record_path(path, key), period, at_most_once)
            if not await run_of.begin():
                return Ran(False, None, run_of.former)
            try:
                value = work(hold)
                if asyncio.iscoroutine(value) or isinstance(value, asyncio.Future):
                    value = await value
            except Exception:
                await run_of.end(False)
                raise
            await run_of.end(True)
            return Ran(True, value, run_of.former)

    async def participants(self, path: str, kind: str = "lock") -> List[Participant]:
        """As `clave.Client.participants`."""
        return await self._participants(path, kind)

    async def revoke(self, node: str) -> None:
        """As `clave.Client.revoke`."""
        await self._revoke(node)

    async def deadlocks(self, *roots: str) -> List[Deadlocked]:
        """As `clave.Client.deadlocks`."""
        return await self._deadlocks(roots)

    def cache(self, path: str, callback: Optional[CacheCallback] = None, *, single_node: bool = False,
              without_data: bool = False, max_data: int = 0, max_nodes: int = 0, max_bytes: int = 0,
              refresh: Duration = 0) -> Cache:
        """As `clave.Client.cache`."""
        return Cache(self._session, path, callback, single_node=single_node, without_data=without_data, max_data=max_data,
                     max_nodes=max_nodes, max_bytes=max_bytes, refresh=refresh)

    def instances(self, service: Optional[str] = None, callback: Optional[InstancesCallback] = None, *,
                  base: str = "/services", down_errors: int = 2, down: Duration = 30) -> Instances:
        """As `clave.Client.instances`."""
        return Instances(self._session, service, callback, base=base, down_errors=down_errors, down=down)

    def counter(self, path: str) -> Counter:
        """As `clave.Client.counter`."""
        return Counter(self._session, path)

    def persistent_node(self, path: str, data: Data = b"", callback: Optional[NodeCallback] = None, *,
                        kind: Kept = Kept.EPHEMERAL, ttl: Duration = 0, replace: bool = False,
                        acls: Optional[Sequence[Acl]] = None) -> PersistentNode:
        """As `clave.Client.persistent_node`."""
        return PersistentNode(self._session, path, data, callback, kind=kind, ttl=ttl, replace=replace, acls=acls)

    def watch(self, path: str, callback: Callable[[WatchEvent, str], None], single_node: bool = False) -> Watcher:
        """As `clave.Client.watch`."""
        return Watcher(self._session, path, callback, single_node)

    async def create(self, path: str, data: Data = b"", mode: Mode = Mode.PERSISTENT, *, parents: bool = False,
                     ttl: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None) -> str:
        """Creates a node; returns its final path."""
        return await self._create(path, data, mode, parents, ttl, acls)

    async def get(self, path: str) -> Node:
        """Reads a node."""
        return await self._get(path)

    async def exists(self, path: str) -> Optional[Stat]:
        """Reads a node's stat; None: there is no such node."""
        return await self._exists(path)

    async def set(self, path: str, data: Data, version: int = -1) -> Stat:
        """Writes a node's data."""
        return await self._set(path, data, version)

    async def delete(self, path: str, version: int = -1) -> None:
        """Deletes a node."""
        await self._delete(path, version)

    async def children(self, path: str) -> List[str]:
        """The names of a node's children, sorted."""
        return await self._children(path)

    async def get_acl(self, path: str) -> Tuple[List[Acl], Stat]:
        """Reads a node's access list."""
        return await self._get_acl(path)

    async def set_acl(self, path: str, acls: Sequence[Acl], version: int = -1) -> Stat:
        """Sets a node's access list."""
        return await self._set_acl(path, acls, version)

    async def multi(self, ops: Sequence[Op]) -> List[str]:
        """Does all operations in one transaction, or none."""
        return await self._multi(ops)

    async def sync(self, path: str = "/") -> None:
        """Returns when the server has caught up with all that was committed before."""
        await self._sync(path)

    async def add_auth(self, scheme: str, auth: Data) -> None:
        """Adds an identity, now and after each reconnect."""
        await self._add_auth(scheme, auth)
