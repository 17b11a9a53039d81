"""Slots: places that belong to an id, not to a session."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, Type, cast

from ._lib import SlotsOptions, SlotStruct, address, encoded, options
from ._session import ProcessBound, Session, number, run
from .hold import Hold, HoldCore
from .times import Duration, deadline
from .znodes import Acl, acl_fields


class Slot(NamedTuple):
    """A slot. `since` is milliseconds since 1970, by the servers' clock."""

    id: Optional[str]
    host: Optional[str]
    by: Optional[str]
    reason: Optional[str]
    node: Optional[str]
    token: int
    since: int


class SlotsView(NamedTuple):
    """The slots of a path, the oldest first; `limit` None: none is set. `broken`: the one broken last, where `by`,
    `reason` and `since` are the operator's."""

    limit: Optional[int]
    slots: List[Slot]
    broken: Optional[Slot]


def _struct(id: str, by: Optional[str], reason: Optional[str], node: Optional[str] = None, token: int = 0) -> Any:
    return SlotStruct(id=encoded(id), host=encoded(os.uname().nodename), by=encoded(by) if by else None,
                      reason=encoded(reason) if reason else None, node=encoded(node) if node else None, token=token)


class SlotsCore(ProcessBound):
    hold_class: Type[HoldCore] = HoldCore

    def __init__(self, session: Session, path: str, limit: int = 0, acls: Optional[Sequence[Acl]] = None,
                 on_queued: Optional[Callable[[int], None]] = None) -> None:
        self.path, self._session, self._on_queued = path, session, on_queued
        self._source = session.source(self._event, 1 if on_queued else 0)
        made = options(SlotsOptions, limit=limit, event_cb=address("bridge_on_slots_event"), event_arg=self._source,
                       **acl_fields(acls))
        self._pointer = session.make(f"cannot make slots on {path}", "clave_async_slots_new", "clave_async_slots_free",
                                     session.pointer, encoded(path), made)

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self._session.free_object(self._pointer, self._source)

    def _event(self, kind: int, request: int, ahead: int) -> None:
        if self._on_queued:
            self._on_queued(ahead)

    async def _take(self, id: str, by: Optional[str], reason: Optional[str],
                    timeout: Optional[Duration]) -> Tuple[Slot, bool]:
        request = number()
        taken, slot = await self._session.ask(f"cannot take a slot of {self.path}", "clave_async_slots_take",
                                              "bridge_on_slot_taken", self._pointer, request, _struct(id, by, reason),
                                              deadline(timeout),
                                              cancel=("clave_async_slots_cancel", self._pointer, request))
        return Slot(*slot), bool(taken)

    async def _give(self, id: str, token: int) -> int:
        (given,) = await self._session.ask(f"cannot give a slot of {self.path}", "clave_async_slots_give",
                                           "bridge_on_slot_given", self._pointer, encoded(id), token,
                                           deadline(self._session.timeout))
        return int(given)

    async def _break(self, id: str, reason: str, by: Optional[str], token: int) -> int:
        (broken,) = await self._session.ask(f"cannot break a slot of {self.path}", "clave_async_slots_break",
                                            "bridge_on_slot_given", self._pointer,
                                            _struct(id, by, reason, token=token),
                                            deadline(self._session.timeout))
        return int(broken)

    async def _set_limit(self, limit: int) -> None:
        await self._session.ask(f"cannot set the limit of {self.path}", "clave_async_slots_set_limit",
                                "bridge_on_slots_limit", self._pointer, limit)

    async def _list(self) -> SlotsView:
        limit, slots, broken = await self._session.ask(f"cannot list {self.path}", "clave_async_slots_list",
                                                       "bridge_on_slots_list", self._session.pointer, encoded(self.path))
        last = Slot(*broken)
        return SlotsView(None if limit < 0 else limit, [Slot(*s) for s in slots], last if last.id else None)

    def _grant(self, slot: Slot) -> HoldCore:
        made, session = ctypes.c_void_p(), self._session
        session.check(f"{slot.node}", "clave_async_slots_grant", self._pointer,
                      SlotStruct(node=encoded(slot.node or ""), token=slot.token), made)

        async def give_back(hold: HoldCore, confirm: bool) -> None:
            await self._give(slot.id or "", slot.token)

        return self.hold_class(session, self.path, [made.value, slot.token, 0, slot.node], give_back)


class Slots(SlotsCore):
    """Slots, for threads. A slot outlives this process: nothing but `give` or `break_` ends it."""

    hold_class = Hold

    def take(self, id: str, *, by: Optional[str] = None, reason: Optional[str] = None,
             timeout: Optional[Duration] = None) -> Slot:
        """Takes a slot for an id, or returns the one that it owns. Busy: there is no room in time."""
        return run(self._take(id, by, reason, timeout))[0]

    def give(self, id: str, token: int = 0) -> int:
        """Gives back the slot of an id; with a token, only that one. Returns the token it had; 0: it owned none."""
        return run(self._give(id, token))

    def break_(self, id: str, reason: str, *, by: Optional[str] = None, token: int = 0) -> int:
        """Takes the slot away from an id, and records why."""
        return run(self._break(id, reason, by, token))

    def set_limit(self, limit: int) -> None:
        """Sets how many ids can own a slot."""
        run(self._set_limit(limit))

    def list(self) -> SlotsView:
        """Who owns a slot."""
        return run(self._list())

    def hold(self, slot: Slot) -> Hold:
        """A slot as a hold, for guarded writes; its release gives the slot back."""
        return cast(Hold, self._grant(slot))
