"""Znodes: their data, their versions, their access lists; transactions."""
from __future__ import annotations

import enum
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._lib import Acl as AclStruct, encoded
from ._lib import CreateOptions, Data, array, counted, data_of, options
from ._lib import Op as OpStruct
from ._session import Session
from .errors import ENONODE, check, error
from .times import Duration, milliseconds


class Stat(NamedTuple):
    """ZooKeeper's Stat. Times are milliseconds since 1970, by the servers' clock."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class Node(NamedTuple):
    """A znode as it was read. ``data`` of a node without data is b""."""

    path: str
    data: bytes
    stat: Stat


class Mode(enum.IntEnum):
    """How a node is created."""

    PERSISTENT = 0
    EPHEMERAL = 1
    PERSISTENT_SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3
    CONTAINER = 4
    PERSISTENT_TTL = 5
    PERSISTENT_SEQUENTIAL_TTL = 6


class Perm(enum.IntFlag):
    """What an entry of an access list permits."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16
    ALL = 31


class Acl(NamedTuple):
    """An entry of an access list.

    >>> Acl(Perm.ALL, "world", "anyone").scheme
    'world'
    """

    perms: int
    scheme: str
    id: str


class Create(NamedTuple):
    """An operation of a transaction: creates a node."""

    path: str
    data: Data = b""
    mode: Mode = Mode.PERSISTENT
    ttl: Optional[Duration] = None


class Set(NamedTuple):
    """An operation of a transaction: sets a node's data; version -1: any."""

    path: str
    data: Data
    version: int = -1


class Delete(NamedTuple):
    """An operation of a transaction: deletes a node; version -1: any."""

    path: str
    version: int = -1


class Check(NamedTuple):
    """An operation of a transaction: the node must be there, and of this version; -1: any."""

    path: str
    version: int = -1


Op = Union[Create, Set, Delete, Check]
_KINDS = (Create, Delete, Set, Check)


def ops_array(ops: Sequence[Op]) -> Any:
    made = []
    for op in ops:
        struct = OpStruct(kind=_KINDS.index(type(op)), path=encoded(op.path))
        if isinstance(op, Create):
            struct.mode = int(op.mode)
            struct.ttl_ms = 0 if op.ttl is None else milliseconds(op.ttl)
        else:
            struct.version = op.version
        if isinstance(op, (Create, Set)):
            data = data_of(op.data)
            struct.data, struct.len = data, len(data)
        made.append(struct)
    return array(OpStruct, made)


def acls_array(acls: Optional[Sequence[Acl]]) -> Any:
    if acls is None:
        return None
    return array(AclStruct, [AclStruct(int(a.perms), encoded(a.scheme), encoded(a.id)) for a in acls])


def acl_fields(acls: Optional[Sequence[Acl]]) -> Dict[str, Any]:
    return {"acls": acls_array(acls), "nacls": len(acls)} if acls else {}


def paths_of(answer: Sequence[Any], ops: Sequence[Op]) -> List[str]:
    """What a transaction gives back for each of its operations: the final path."""
    return [done[1] or op.path for done, op in zip(answer[5], ops)]


def explain(values: Sequence[Any], ops: Sequence[Op], what: str) -> None:
    """Raises the error of a transaction, with the operation that it is of."""
    if values[0] == 0:
        return
    for i, done in enumerate(values[6] if len(values) > 6 else ()):
        if done[0] == values[0] and i < len(ops):
            raise error(values[0], f"{what}: operation {i} on {ops[i].path}")
    raise error(values[0], what)


class TreeCore:
    """The operations on the tree, for both kinds of clients."""

    _session: Session

    async def _request(self, what: str, name: str, path: str, *args: Any) -> List[Any]:
        return await self._session.ask(f"cannot {what} {path}", name, "bridge_on_result", self._session.pointer,
                                       encoded(path), *args)

    async def _create(self, path: str, data: Data, mode: Mode, parents: bool, ttl: Optional[Duration],
                      acls: Optional[Sequence[Acl]]) -> str:
        opts = options(CreateOptions, mode=int(mode), flags=1 if parents else 0,
                       ttl_ms=None if ttl is None else milliseconds(ttl), **acl_fields(acls))
        return str((await self._request("create", "clave_async_create", path, *counted(data), opts))[0])

    async def _get(self, path: str) -> Node:
        _, data, stat, *_ = await self._request("get", "clave_async_get", path, None)
        return Node(path, data or b"", Stat(*stat))

    async def _exists(self, path: str) -> Optional[Stat]:
        values = await self._session.ask_all(f"cannot look at {path}", "clave_async_exists", "bridge_on_result",
                                             self._session.pointer, encoded(path), None)
        if values[0] == ENONODE:
            return None
        check(values[0], f"cannot look at {path}")
        return Stat(*values[3])

    async def _set(self, path: str, data: Data, version: int) -> Stat:
        return Stat(*(await self._request("set", "clave_async_set", path, *counted(data), version))[2])

    async def _delete(self, path: str, version: int) -> None:
        await self._request("delete", "clave_async_delete", path, version)

    async def _children(self, path: str) -> List[str]:
        return sorted((await self._request("list", "clave_async_children", path, None))[3])

    async def _get_acl(self, path: str) -> Tuple[List[Acl], Stat]:
        _, _, stat, _, acls, *_ = await self._request("read the access list of", "clave_async_get_acl", path)
        return [Acl(*a) for a in acls], Stat(*stat)

    async def _set_acl(self, path: str, acls: Sequence[Acl], version: int) -> Stat:
        values = await self._request("set the access list of", "clave_async_set_acl", path, acls_array(acls), len(acls),
                                     version)
        return Stat(*values[2])

    async def _sync(self, path: str) -> None:
        await self._request("sync", "clave_async_sync", path)

    async def _add_auth(self, scheme: str, auth: Data) -> None:
        await self._session.ask(f"cannot add an identity of {scheme}", "clave_async_add_auth", "bridge_on_result",
                                self._session.pointer, encoded(scheme), *counted(auth))

    async def _multi(self, ops: Sequence[Op]) -> List[str]:
        values = await self._session.ask_all("transaction", "clave_async_multi", "bridge_on_result",
                                             self._session.pointer, ops_array(ops), len(ops))
        explain(values, ops, "transaction")
        return paths_of(values[1:], ops)
