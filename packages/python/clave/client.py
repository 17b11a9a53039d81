"""The client for threads: a session, and what is made on it."""
from __future__ import annotations

import ctypes
import time
from types import TracebackType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Type

from . import _program
from ._lib import Auth, Data, TlsOptions, array, counted, encoded, library, options
from ._session import Patience, ProcessBound, Session, run
from .errors import error
from .hold import Hold
from .cache import Cache, CacheCallback, WatchEvent, Watcher
from .counter import Counter
from .election import Election, Term
from .instances import Instances, InstancesCallback
from .lock import Lock, LockOptions, Multilock, Part, RWLock
from .once import Once, Ran, record_path
from .persistent_node import Kept, NodeCallback, PersistentNode
from .queues import Deadlocked, Participant, QueuesCore
from .semaphore import Semaphore
from .slots import Slots
from .times import Duration, milliseconds
from .znodes import Acl, Mode, Node, Op, Stat, TreeCore


class Tls(NamedTuple):
    """Which servers are trusted, and what is presented to them: files in PEM. With hosts that begin with "tls:"."""

    ca_file: Optional[str] = None
    cert_file: Optional[str] = None
    key_file: Optional[str] = None
    server_name: Optional[str] = None
    any_name: bool = False

    def read(self) -> ctypes.c_void_p:
        made, fault = ctypes.c_void_p(), ctypes.create_string_buffer(512)
        code = library.clave_tls_new(ctypes.byref(made), ctypes.byref(options(TlsOptions, **self._asdict())), fault,
                                     len(fault))
        if code:
            raise error(code, "TLS", fault.value.decode("utf-8", "replace"))
        return made


class ClientCore(ProcessBound, TreeCore, QueuesCore):
    """What both kinds of clients are. The arguments:

    connect          a host list with a chroot at its end, "tls:..." or "unix:..."; None: as the program `clave`
    session_timeout  asked of the server; None: 10 s, or what the configuration says
    timeout          how long a call may take until it is Unknown, but for those that wait for a turn, which have a
                     timeout of their own; None: for ever
    connect_timeout  how long the beginning of a block waits for the connection
    auths            identities, pairs of a scheme and its bytes, as ("digest", b"user:password")
    on_state         is called with the name of each state ("SUSPENDED") and the error that caused it
    resume           the file of another process's `hand_over`, whose session and holds this client goes on with
    """

    def __init__(self, connect: Optional[str] = None, *, session_timeout: Optional[Duration] = None,
                 timeout: Optional[Duration] = 30, connect_timeout: Duration = 30,
                 auths: Sequence[Tuple[str, Data]] = (), tls: Optional[Tls] = None, read_only: bool = False,
                 on_state: Optional[Callable[[str, int], None]] = None, resume: Optional[str] = None) -> None:
        self._connect_timeout = connect_timeout
        fields: Dict[str, Any] = dict(
            session_timeout_ms=session_timeout and milliseconds(session_timeout), read_only=read_only,
            auths=array(Auth, [Auth(encoded(scheme), *counted(data)) for scheme, data in auths]), nauths=len(auths),
            resume_file=resume)
        files = tls.read() if tls else None
        _program.offer()
        try:
            self._session = self._open(connect, dict(fields, tls=files and files.value), on_state, timeout)
        finally:
            library.clave_tls_free(files)

    def _open(self, connect: Optional[str], fields: Dict[str, Any],
              on_state: Optional[Callable[[str, int], None]], timeout: Optional[Duration]) -> Session:
        return Session(connect, fields, None, on_state, timeout)

    @property
    def state(self) -> str:
        """The state of the connection: "CONNECTED", "SUSPENDED", "RECONNECTED", "LOST", ..."""
        state: bytes = library.clave_state_name(self._session.direct("clave_client_state"))
        return state.decode()

    @property
    def session_id(self) -> int:
        """The session's id; 0: there is none yet."""
        return int(self._session.direct("clave_client_id"))

    def set_hosts(self, connect: str) -> None:
        """Replaces the host list by another of the same ensemble; the session continues."""
        code = self._session.direct("clave_client_set_hosts", encoded(connect))
        if code:
            raise error(code, "cannot use these hosts", self._session.fault(self._session._client))

    def _hand_over(self, file: str, timeout: Duration) -> None:
        session, hub = self._session, self._session.hub
        args = (encoded(file), milliseconds(timeout))
        code = hub.in_thread(session.hand_over, *args) if hub and hub.is_here() else session.hand_over(*args)
        if code:
            raise error(code, "cannot hand the session over", session.current_fault())


class Client(ClientCore):
    """A session for threads; any thread may use it. As a context manager it waits for the connection at the beginning,
    and ends the session at the end, with all that is held."""

    def __enter__(self) -> "Client":
        self.wait(self._connect_timeout)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def wait(self, timeout: Optional[Duration] = None) -> None:
        """Waits for the connection. Unreachable: there is none in time."""
        until = None if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        hub, patience = self._session.hub, Patience(self._session, "cannot connect")
        while not self._session.connected(0 if hub else 50):
            if until is not None and time.monotonic() >= until:
                raise self._session.unreachable()
            patience.look()
            if hub:
                hub.sleep(0.02)

    def hand_over(self, file: str, timeout: Duration = 30) -> None:
        """Hands the session and what is held over to another process, which opens its client with `resume=file`.
        Nothing here counts on it any more; what waits for a turn ends. Held leases and leaderships of an unfair
        election cannot be handed over."""
        self._hand_over(file, timeout)

    def close(self, timeout: Duration = 5) -> None:
        """Ends the session at the server, and waits for that at most so long."""
        self._session.close(timeout)

    # -- what can be held ------------------------------------------------------------------------

    def lock(self, path: str, timeout: Optional[Duration] = None, *,
             max_hold: Optional[Duration] = None,
             min_valid: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None, strict: bool = False,
             detect_deadlocks: Optional[Duration] = None, on_lost: Optional[Callable[[Hold], Any]] = None,
             on_asked: Optional[Callable[[Hold], Any]] = None,
             on_queued: Optional[Callable[[int], Any]] = None) -> Lock:
        """A fair lock across processes, reentrant for a thread; in one queue with Curator's InterProcessMutex.

        timeout           how long an acquire waits: Busy; None: for ever; 0: only if it is free now
        max_hold          a hold ends by itself after this time: Lost
        min_valid         a grant with less time left is confirmed first
        on_lost           is called with the Hold when it is lost, before another can have it
        on_asked          is called with the Hold when somebody asks for it
        on_queued         is called while it waits, with how many are ahead
        detect_deadlocks  an acquire that waits this long looks for deadlocks: Deadlock
        acls, strict      as in clave_mutex_options
        """
        return Lock(self._session, path, LockOptions(
            timeout, max_hold=max_hold, min_valid=min_valid, acls=acls, strict=strict, detect_deadlocks=detect_deadlocks,
            on_lost=on_lost, on_asked=on_asked, on_queued=on_queued))

    def rwlock(self, path: str, timeout: Optional[Duration] = None, *,
               max_hold: Optional[Duration] = None,
               min_valid: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None, strict: bool = False,
               detect_deadlocks: Optional[Duration] = None, on_lost: Optional[Callable[[Hold], Any]] = None,
               on_asked: Optional[Callable[[Hold], Any]] = None,
               on_queued: Optional[Callable[[int], Any]] = None) -> RWLock:
        """A fair read-write lock across processes; arguments as of `lock`."""
        return RWLock(self._session, path, LockOptions(
            timeout, max_hold=max_hold, min_valid=min_valid, acls=acls, strict=strict, detect_deadlocks=detect_deadlocks,
            on_lost=on_lost, on_asked=on_asked, on_queued=on_queued))

    def multilock(self, *parts: Part, timeout: Optional[Duration] = None,
                  max_hold: Optional[Duration] = None,
                  min_valid: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None, strict: bool = False,
                  detect_deadlocks: Optional[Duration] = None, on_lost: Optional[Callable[[Hold], Any]] = None,
                  on_asked: Optional[Callable[[Hold], Any]] = None,
                  on_queued: Optional[Callable[[int], Any]] = None) -> Multilock:
        """Several locks as one: paths, or pairs of a path and "mutex", "read" or "write"."""
        return Multilock(self._session, parts, LockOptions(
            timeout, max_hold=max_hold, min_valid=min_valid, acls=acls, strict=strict, detect_deadlocks=detect_deadlocks,
            on_lost=on_lost, on_asked=on_asked, on_queued=on_queued))

    def semaphore(self, path: str, limit: int = 0, timeout: Optional[Duration] = None, *,
                  limit_path: Optional[str] = None,
                  max_hold: Optional[Duration] = None,
                  min_valid: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None,
                  detect_deadlocks: Optional[Duration] = None, on_lost: Optional[Callable[[Hold], Any]] = None,
                  on_asked: Optional[Callable[[Hold], Any]] = None,
                  on_queued: Optional[Callable[[int], Any]] = None) -> Semaphore:
        """A limited number of leases; in one queue with Curator's InterProcessSemaphoreV2. All give the same limit, or
        share one in the node `limit_path`. Other arguments as of `lock`."""
        return Semaphore(self._session, path, limit, limit_path, LockOptions(
            timeout, max_hold=max_hold, min_valid=min_valid, acls=acls, detect_deadlocks=detect_deadlocks,
            on_lost=on_lost, on_asked=on_asked, on_queued=on_queued))

    def slots(self, path: str, limit: int = 0, acls: Optional[Sequence[Acl]] = None,
              on_queued: Optional[Callable[[int], Any]] = None) -> Slots:
        """Places that belong to an id, not to a session; a missing limit is created with `limit`."""
        return Slots(self._session, path, limit, acls, on_queued)

    def election(self, path: str, timeout: Optional[Duration] = None, *, id: str = "", standard_policy: bool = False,
                 max_term: Optional[Duration] = None, min_valid: Optional[Duration] = None, priority: int = 0,
                 spread: bool = False, preempt: bool = False, strict: bool = False,
                 acls: Optional[Sequence[Acl]] = None, on_lost: Optional[Callable[[Term], Any]] = None,
                 on_asked: Optional[Callable[[Term], Any]] = None) -> Election:
        """An election; in one queue with Curator's LeaderLatch.

        id                what others see of this candidate
        timeout           how long the beginning of a block waits for leadership
        standard_policy   a lost connection ends the term, not only a lost session
        max_term          a term ends by itself after this time
        priority, spread, preempt   who leads next: clave/async/latch.h
        on_lost, on_asked           are called with the Term, as of `lock`
        """
        return Election(self._session, path, timeout, id=id, standard_policy=standard_policy, max_term=max_term,
                        min_valid=min_valid, priority=priority, spread=spread, preempt=preempt, strict=strict, acls=acls,
                        on_lost=on_lost, on_asked=on_asked)

    def once(self, path: str, key: str, work: Callable[[Hold], Any], *, period: Optional[Duration] = None,
             at_most_once: bool = False, timeout: Optional[Duration] = None) -> Ran:
        """Runs `work(hold)` under the lock on `path` unless a run of this key has succeeded, here or elsewhere, in the
        period; None: ever. The same as `clave lock --once`. An exception of `work` is recorded as a failure."""
        with self.lock(path, timeout) as hold:
            run_of = Once(hold, record_path(path, key), period, at_most_once)
            if not run(run_of.begin()):
                return Ran(False, None, run_of.former)
            try:
                value = work(hold)
            except BaseException:
                run(run_of.end(False))
                raise
            run(run_of.end(True))
            return Ran(True, value, run_of.former)

    # -- seen from outside -----------------------------------------------------------------------

    def participants(self, path: str, kind: str = "lock") -> List[Participant]:
        """Who is in a queue, the holder first; `kind`: "lock", "read", "write", "both", "semaphore", "election"."""
        return run(self._participants(path, kind))

    def revoke(self, node: str) -> None:
        """Asks the holder of a lock node to release it: Curator's Revoker."""
        run(self._revoke(node))

    def deadlocks(self, *roots: str) -> List[Deadlocked]:
        """Owners that wait for each other, in the queues below these paths."""
        return run(self._deadlocks(roots))

    def cache(self, path: str, callback: Optional[CacheCallback] = None, *, single_node: bool = False,
              without_data: bool = False, max_data: int = 0, max_nodes: int = 0, max_bytes: int = 0,
              refresh: Duration = 0) -> Cache:
        """A copy of a tree in memory, as a mapping from paths to data; `callback(event, path, now, was)`."""
        return Cache(self._session, path, callback, single_node=single_node, without_data=without_data, max_data=max_data,
                     max_nodes=max_nodes, max_bytes=max_bytes, refresh=refresh)

    def instances(self, service: Optional[str] = None, callback: Optional[InstancesCallback] = None, *,
                  base: str = "/services", down_errors: int = 2, down: Duration = 30) -> Instances:
        """The instances of a service, or of all below `base`; `callback(event, now, was)`."""
        return Instances(self._session, service, callback, base=base, down_errors=down_errors, down=down)

    def counter(self, path: str) -> Counter:
        """A number that several processes change, each time exactly once."""
        return Counter(self._session, path)

    def persistent_node(self, path: str, data: Data = b"", callback: Optional[NodeCallback] = None, *,
                        kind: Kept = Kept.EPHEMERAL, ttl: Duration = 0, replace: bool = False,
                        acls: Optional[Sequence[Acl]] = None) -> PersistentNode:
        """A node that is there until it is closed, over every loss of the session; `callback(event, path, number)`."""
        return PersistentNode(self._session, path, data, callback, kind=kind, ttl=ttl, replace=replace, acls=acls)

    def watch(self, path: str, callback: Callable[[WatchEvent, str], None], single_node: bool = False) -> Watcher:
        """Calls back at each change of a node and all below it."""
        return Watcher(self._session, path, callback, single_node)

    # -- the tree --------------------------------------------------------------------------------

    def create(self, path: str, data: Data = b"", mode: Mode = Mode.PERSISTENT, *, parents: bool = False,
               ttl: Optional[Duration] = None, acls: Optional[Sequence[Acl]] = None) -> str:
        """Creates a node, with `parents` its missing ancestors too; returns its final path."""
        return run(self._create(path, data, mode, parents, ttl, acls))

    def get(self, path: str) -> Node:
        """Reads a node."""
        return run(self._get(path))

    def exists(self, path: str) -> Optional[Stat]:
        """Reads a node's stat; None: there is no such node."""
        return run(self._exists(path))

    def set(self, path: str, data: Data, version: int = -1) -> Stat:
        """Writes a node's data. BadVersion: it has another one."""
        return run(self._set(path, data, version))

    def delete(self, path: str, version: int = -1) -> None:
        """Deletes a node."""
        run(self._delete(path, version))

    def children(self, path: str) -> List[str]:
        """The names of a node's children, sorted."""
        return run(self._children(path))

    def get_acl(self, path: str) -> Tuple[List[Acl], Stat]:
        """Reads a node's access list."""
        return run(self._get_acl(path))

    def set_acl(self, path: str, acls: Sequence[Acl], version: int = -1) -> Stat:
        """Sets a node's access list; `version` is the stat's `aversion`."""
        return run(self._set_acl(path, acls, version))

    def multi(self, ops: Sequence[Op]) -> List[str]:
        """Does all operations in one transaction, or none; returns their final paths."""
        return run(self._multi(ops))

    def sync(self, path: str = "/") -> None:
        """Returns when the server has caught up with all that was committed before."""
        run(self._sync(path))

    def add_auth(self, scheme: str, auth: Data) -> None:
        """Adds an identity, now and after each reconnect."""
        run(self._add_auth(scheme, auth))
