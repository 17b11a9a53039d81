"""kazoo's recipes, on kazoo's client, in one queue with Curator and clave.

kazoo's own Lock is granted while Curator or clave holds the lock: it looks only at names like its own. These take
Curator's names, and change nothing else of kazoo's calls. So one import changes:

    from clave.kazoo import KazooClient             # instead of kazoo.client
    from clave.kazoo import Lock, Semaphore         # instead of kazoo.recipe.lock

Every other public name of these two modules and of kazoo.recipe.election is kazoo's own.

A fleet changes all its processes at once, or gives the path another name: old and new ones exclude each other no more
than kazoo and Curator did. kazoo must be installed. What clave adds to a lock, tokens and losses that are told in time,
is with `clave.Client`.

>>> Lock._NODE_NAME, ReadLock._NODE_NAME, WriteLock._NODE_NAME
('-lock-', '-__READ__', '-__WRIT__')
"""
from __future__ import annotations

import functools
from typing import Any, Optional

from kazoo import client as _client  # type: ignore[import]
from kazoo.exceptions import NoNodeError  # type: ignore[import]
from kazoo.recipe import election as _election  # type: ignore[import]
from kazoo.recipe import lock as _lock


def __getattr__(name: str) -> Any:
    for module in _client, _lock, _election:
        if not name.startswith("_") and hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Lock(_lock.Lock):  # type: ignore[misc]
    """kazoo's Lock, in one queue with Curator's InterProcessMutex and `clave.Lock`."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]

    def _get_predecessor(self, node: str) -> Optional[str]:
        """The last of those before it. kazoo's own has a read wait for a write that is queued behind it, which waits for
        the read in turn."""
        children = self.client.get_children(self.path)
        if node not in children:
            raise _lock.ForceRetryError()
        before = [(int(child[-10:]), child) for child in children
                  if self._contenders_re.search(child) and int(child[-10:]) < int(node[-10:])]
        return max(before)[1] if before else None

    def _find_node(self) -> Optional[str]:
        """Its node after a lost answer, unless it is of an earlier session: that one goes with it."""
        node: Optional[str] = super()._find_node()
        if node is None:
            return None
        try:
            stat = self.client.get(f"{self.path}/{node}")[1]
            if stat.ephemeralOwner in (0, self.client.client_id[0]):
                return node
            self.client.delete(f"{self.path}/{node}")
        except NoNodeError:
            pass
        return None


class WriteLock(Lock, _lock.WriteLock):  # type: ignore[misc]
    """kazoo's WriteLock, in one queue with Curator's InterProcessReadWriteLock and `clave.RWLock`."""

    _NODE_NAME = "-__WRIT__"
    _EXCLUDE_NAMES = ["-__WRIT__", "-__READ__"]


class ReadLock(Lock, _lock.ReadLock):  # type: ignore[misc]
    """kazoo's ReadLock, in one queue with Curator's InterProcessReadWriteLock and `clave.RWLock`."""

    _NODE_NAME = "-__READ__"
    _EXCLUDE_NAMES = ["-__WRIT__"]


class _Locks:
    """kazoo's client, where its Lock is the one above: what kazoo's Semaphore takes its lock from."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def Lock(self, path: str, identifier: Any = None) -> Lock:  # noqa: N802  (kazoo's name)
        return Lock(self._client, path, identifier)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class Semaphore(_lock.Semaphore):  # type: ignore[misc]
    """kazoo's Semaphore, with the layout of Curator's InterProcessSemaphoreV2: its leases are below PATH/leases."""

    path: str

    def __init__(self, client: Any, path: str, identifier: Any = None, max_leases: int = 1) -> None:
        super().__init__(_Locks(client), f"{path}/leases", identifier, max_leases)
        self.lock_path = f"{path}/locks"

    def _ensure_path(self) -> None:
        """The limit that they compare is in the data of PATH, as with kazoo's own, and not of PATH/leases."""
        leases = self.path
        self.path = leases[:-len("/leases")]
        try:
            super()._ensure_path()
        finally:
            self.path = leases
        self.client.ensure_path(leases)


class Election(_election.Election):  # type: ignore[misc]
    """kazoo's Election, in one queue with Curator's LeaderSelector and `clave_selector`."""

    def __init__(self, client: Any, path: str, identifier: Any = None) -> None:
        super().__init__(_Locks(client), path, identifier)


class KazooClient(_client.KazooClient):  # type: ignore[misc]
    """kazoo's client, whose Lock, ReadLock, WriteLock, Semaphore and Election are those of this module."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        for recipe in Lock, ReadLock, WriteLock, Semaphore, Election:
            setattr(self, recipe.__name__, functools.partial(recipe, self))
