"""Elections: candidates, terms, who leads, what the leader publishes."""
from __future__ import annotations

import functools
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Type, TypeVar, cast

from ._lib import Data, LatchOptions, address, counted, encoded, library, options
from ._session import ProcessBound, Session, run
from .errors import ELOST, ENOTHELD, Error, check, error
from .hold import Hold, HoldCore, Holds
from .lock import owner
from .queues import Participant, participants_of
from .times import Duration, deadline, milliseconds
from .znodes import Acl, acl_fields

_NOT_LEADER, _ASKED = 3, 4  # clave_latch_event_kind
T = TypeVar("T")
CLOSE_TIMEOUT = 5  # seconds that leaving an election waits for the server


class CandidateCore(ProcessBound):
    """One candidate, from its start to its close."""

    def __init__(self, session: Session, path: str, term_class: Type["TermCore"], fields: Dict[str, Any],
                 on_lost: Optional[Callable[[Any], None]], on_asked: Optional[Callable[[Any], None]]) -> None:
        self.path, self._session, self._term_class = path, session, term_class
        self._on_lost, self._on_asked = on_lost, on_asked
        self._terms = Holds(session)
        self._source = session.source(self._event, 1 << _NOT_LEADER | (1 << _ASKED if on_asked else 0))
        made = options(LatchOptions, event_cb=address("bridge_on_latch_event"), event_arg=self._source, **fields)
        self._pointer = session.make(f"cannot make a candidate for {path}", "clave_async_latch_new",
                                     "clave_async_latch_free", session.pointer, encoded(path), made)
        session.check(f"cannot enter {path}", "clave_async_latch_start", self._pointer)

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self._session.free_object(self._pointer, self._source)

    def _event(self, kind: int, ahead: int, predecessor: Optional[str], why: int) -> None:
        if kind == _NOT_LEADER:
            for term in self._terms.lose(0):
                term._lose(why)
        elif kind == _ASKED and self._on_asked:
            for term in self._terms.of(0):
                if not term.released:
                    self._on_asked(term)

    async def _lead(self, timeout: Optional[Duration]) -> "TermCore":
        until = deadline(timeout)
        what = f"cannot lead {self.path}"
        self._terms.expect(0)
        while True:
            values = await self._session.ask_all(what, "clave_async_latch_await", "bridge_on_leader", self._pointer, until,
                                                 cancel=("bridge_cancel_await", self._pointer, None))
            if values[0] != ENOTHELD:  # the term was over in the same moment
                break
        check(values[0], what)
        term = self._term_class(self._session, self.path, values[1:], self._resign, self._on_lost)
        term._candidate = self
        if not self._terms.add(term):
            term._lose(ELOST)
        return term

    @property
    def is_leader(self) -> bool:
        """True while it certainly leads. From memory."""
        return bool(self._session.now("clave_async_latch_has_leadership", self._pointer, int(library.clave_now())) & 0xFF)

    @property
    def node(self) -> Optional[str]:
        """The full path of its node; None while none is known to exist."""
        return self._session.text("clave_async_latch_own_path", self._pointer)

    async def _resign(self, hold: HoldCore, confirm: bool) -> None:
        self._session.check(f"cannot resign from {self.path}", "clave_async_latch_resign", self._pointer,
                            result=hold._leaving.result)

    async def _close(self) -> None:
        await self._session.ask(f"cannot leave {self.path}", "clave_async_latch_close", "bridge_on_latch_closed",
                                self._pointer, 0, timeout=CLOSE_TIMEOUT)


class TermCore(HoldCore):
    """A leadership. Its token is the term, which grows with every leader; `release` resigns."""

    _candidate: CandidateCore

    async def _release(self, confirm: bool) -> None:
        if not self.released and not self.valid_for():  # the candidate has a new place by itself
            self._over = True
            if self._depends:  # or none: its work was silent
                await self._give_back(self, False)
            raise error(ELOST, self._path)
        await super()._release(confirm)

    async def _publish(self, data: Data) -> None:
        self._check_not_released()
        await self._session.ask(f"cannot publish for {self._path}", "clave_async_latch_publish", "bridge_on_result",
                                self._candidate._pointer, *counted(data))

    async def _transfer(self, node: str) -> None:
        self._check_not_released()
        await self._session.ask(f"cannot hand over {self._path}", "clave_async_latch_transfer", "bridge_on_transfer",
                                self._candidate._pointer, encoded(node))


class ElectionCore(ProcessBound):
    """An election on a path. The arguments are those of `Client.election`."""

    candidate_class: Type[CandidateCore] = CandidateCore
    term_class: Type[TermCore] = TermCore

    def __init__(self, session: Session, path: str, timeout: Optional[Duration] = None, *, id: str = "",
                 standard_policy: bool = False, max_term: Optional[Duration] = None, min_valid: Optional[Duration] = None,
                 priority: int = 0, spread: bool = False, preempt: bool = False, strict: bool = False,
                 acls: Optional[Sequence[Acl]] = None, on_lost: Optional[Callable[[Any], None]] = None,
                 on_asked: Optional[Callable[[Any], None]] = None) -> None:
        self.path, self._session, self._timeout = path, session, timeout
        self._on_lost, self._on_asked = on_lost, on_asked
        self._fields: Dict[str, Any] = dict(
            id=id, policy=int(standard_policy), max_term_ms=max_term and milliseconds(max_term),
            min_valid_ms=min_valid and milliseconds(min_valid), priority=priority, spread=spread, preempt=preempt,
            strict=strict, revocable=on_asked is not None, **acl_fields(acls))

    def _enter(self) -> CandidateCore:
        return self.candidate_class(self._session, self.path, self.term_class, self._fields, self._on_lost,
                                    self._on_asked)

    async def _leave(self, candidate: CandidateCore, term: HoldCore, failed: bool) -> None:
        """The end of a block: it leaves the election, and raises a loss unless the block failed by itself."""
        lost = not term.released and not term.valid_for()
        term._over = True
        try:
            await candidate._close()
        except Error:
            if not failed:
                raise
        if lost and not failed:
            check(ELOST, self.path)

    async def _leader(self) -> Optional[Participant]:
        (rows,) = await self._session.ask(f"cannot ask who leads {self.path}", "clave_async_latch_leader",
                                          "bridge_on_participants", self._session.pointer, encoded(self.path))
        return participants_of(rows)[0] if rows else None

    async def _participants(self) -> List[Participant]:
        (rows,) = await self._session.ask(f"cannot list {self.path}", "clave_async_latch_participants",
                                          "bridge_on_participants", self._session.pointer, encoded(self.path))
        return participants_of(rows)

    async def _transfer(self, node: Optional[str]) -> None:
        await self._session.ask(f"cannot transfer {self.path}", "clave_async_leader_transfer", "bridge_on_transfer",
                                self._session.pointer, encoded(self.path), encoded(node) if node else None)

    def follow(self, callback: Callable[[Optional[Participant], Optional[bytes]], None]) -> "LeaderWatch":
        """Calls back with the leader and the value it has published, now and at each change, until the watch is
        closed or forgotten."""
        return LeaderWatch(self._session, self.path, callback)


class LeaderWatch(ProcessBound):
    """Follows the leader of an election."""

    def __init__(self, session: Session, path: str,
                 callback: Callable[[Optional[Participant], Optional[bytes]], None]) -> None:
        self._session, self._callback = session, callback
        self._source = session.source(self._news, 1)
        self._pointer = session.make(f"cannot follow {path}", "clave_async_leader_watch_new",
                                     "clave_async_leader_watch_free", session.pointer, encoded(path),
                                     address("bridge_on_leader_news"), self._source)

    def _news(self, kind: int, err: int, rows: List[Any], value: Optional[bytes]) -> None:
        if err == 0:
            self._callback(participants_of(rows)[0] if rows else None, value)

    def close(self) -> None:
        self._session.free_object(self._pointer, self._source)

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self.close()


class Term(Hold, TermCore):
    """A leadership, for threads."""

    def publish(self, data: Data) -> None:
        """Publishes a value for those that follow the leader, in place of the previous one."""
        run(self._publish(data))

    def transfer(self, node: str) -> None:
        """Hands leadership over to the candidate whose node has this name."""
        run(self._transfer(node))


class Candidate(CandidateCore):
    """A candidate, for threads: it is in the election until `close`, or until it is forgotten."""

    def lead(self, timeout: Optional[Duration] = None) -> Term:
        """Waits until it leads. Busy: it does not lead in time; it keeps its place."""
        return cast(Term, run(self._lead(timeout)))

    def close(self) -> None:
        """Leaves the election for good."""
        run(self._close())


class Election(ElectionCore):
    """An election for threads. A block waits until this process leads, and leaves the election at its end. As a
    decorator it has each call of a function wait for leadership and passes the `Term` first."""

    candidate_class = Candidate
    term_class = Term

    def enter(self) -> Candidate:
        """Enters the election; does not wait."""
        return cast(Candidate, self._enter())

    def terms(self) -> Iterator[Term]:
        """Term after term: the body of the loop runs while this process leads, and then it queues again."""
        candidate = self.enter()
        try:
            while True:
                term = candidate.lead()
                yield term
                if not term.released:
                    try:
                        term.release()
                    except Error as failed:
                        if failed.code != ELOST:
                            raise
        finally:
            candidate.close()

    def __enter__(self) -> Term:
        led = self.__dict__.setdefault("_led", {}).setdefault(owner(self._session), [])
        depth = len(led)
        candidate = self.enter()
        try:
            term = candidate.lead(self._timeout)
            led.append((candidate, term))
            return term
        except BaseException:
            del led[depth:]
            candidate.close()
            raise

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        led = self.__dict__["_led"].get(owner(self._session))
        if led:
            candidate, term = led.pop()
            run(self._leave(candidate, term, kind is not None))

    def __call__(self, function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def led(*args: Any, **keywords: Any) -> T:
            with self as term:
                return function(term, *args, **keywords)
        return led

    def leader(self) -> Optional[Participant]:
        """Who leads; None: nobody. `identity.text` is the candidate's id."""
        return run(self._leader())

    def participants(self) -> List[Participant]:
        """All candidates, the leader first."""
        return run(self._participants())

    def transfer(self, node: Optional[str] = None) -> None:
        """Asks the leader to resign, in favour of the candidate whose node has this name if there is one."""
        run(self._transfer(node))
