"""Who is in a queue; asking a holder to release; deadlocks across processes."""
from __future__ import annotations

import ctypes
from typing import Any, List, NamedTuple, Optional, Sequence

from ._lib import array, encoded
from ._session import Session
from .times import Duration
from .znodes import Stat


class Identity(NamedTuple):
    """What a node says of its owner. Nodes of other clients have only `text`."""

    host: Optional[str]
    pid: int
    name: Optional[str]
    command: Optional[str]
    text: Optional[str]
    owner: Optional[str]
    task: Optional[str]
    limit: int
    yields: bool
    asked: bool
    revocable: int
    traceparent: Optional[str]


class Participant(NamedTuple):
    """One in a queue. `stat.czxid` is the token that it has, or will have. If it is left over, no session owns its
    node, as when a program copied the tree: it holds nothing, those behind it wait, and it never ends by itself."""

    node: str
    stat: Stat
    identity: Identity
    priority: int
    left_over: bool = False


class Member(NamedTuple):
    """An owner in a deadlock: what it waits for, its node there, and the node in its way."""

    path: Optional[str]
    node: Optional[str]
    blocker: Optional[str]
    stat: Stat
    identity: Identity


class Deadlocked(NamedTuple):
    """Owners that wait for each other, each for the next. `victim` is the index of the one that is to give up; -1: none
    of them looks for deadlocks."""

    text: str
    certain: bool
    victim: int
    members: List[Member]


def identity_of(fields: Sequence[Any]) -> Identity:
    values = list(fields)
    values[8:10] = bool(fields[8]), bool(fields[9])
    return Identity(*values)


def participants_of(rows: Sequence[Any]) -> List[Participant]:
    return [Participant(node, Stat(*stat), identity_of(who), priority, bool(left_over))
            for node, stat, who, priority, left_over in rows]


class QueuesCore:
    """The questions about queues, for both kinds of clients."""

    _session: Session

    async def _list(self, name: str, path: str, *args: Any) -> List[Participant]:
        (rows,) = await self._session.ask(f"cannot list {path}", name, "bridge_on_participants", self._session.pointer,
                                          encoded(path), *args)
        return participants_of(rows)

    async def _participants(self, path: str, kind: str) -> List[Participant]:
        if kind in ("read", "write", "both"):
            return await self._list("clave_async_rwlock_participants", path, ("read", "write", "both").index(kind) + 1)
        name = {"lock": "clave_async_participants", "semaphore": "clave_async_semaphore_participants",
                "election": "clave_async_latch_participants"}[kind]
        return await self._list(name, path)

    async def _revoke(self, node: str) -> None:
        await self._session.ask(f"cannot ask the holder of {node}", "clave_async_revoke", "bridge_on_result",
                                self._session.pointer, encoded(node))

    async def _deadlocks(self, roots: Sequence[str]) -> List[Deadlocked]:
        paths = array(ctypes.c_char_p, [encoded(root) for root in roots])
        (rows,) = await self._session.ask("cannot look for deadlocks", "clave_async_deadlocks_find",
                                          "bridge_on_deadlocks", self._session.pointer, paths, len(roots))
        return [Deadlocked(text, bool(certain), victim,
                           [Member(path, node, blocker, Stat(*stat), identity_of(who))
                            for path, node, blocker, stat, who in members])
                for text, certain, victim, members in rows]
