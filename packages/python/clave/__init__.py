"""Locks, elections and znodes across processes: libclave for Python.

>>> import clave
>>> with clave.Client() as c, c.lock("/doc/jobs", timeout=10) as hold:
...     token = hold.token      # grows with every grant: give it to what you write to
...     hold.check()            # raises clave.Lost when it is time to stop
"""
from __future__ import annotations

from ._lib import library as _library
from .client import Client, Tls
from .errors import (BadVersion, Busy, Closed, Deadlock, Done, Error, Forked, Lost, NoAuth, NodeExists, NoNode, NotEmpty,
                     NotHeld, Unknown, Unreachable)
from .hold import Hold
from .lock import Lock, MultiHold, Multilock, RWLock
from .times import Duration
from .znodes import Acl, Check, Create, Delete, Mode, Node, Perm, Set, Stat

__version__: str = _library.clave_version().decode()

__all__ = [
    "Acl", "BadVersion", "Busy", "Check", "Client", "Closed", "Create", "Deadlock", "Delete", "Done", "Duration", "Error",
    "Forked", "Hold", "Lock", "Lost", "Mode", "MultiHold", "Multilock", "NoAuth", "NoNode", "Node", "NodeExists",
    "NotEmpty", "NotHeld", "Perm", "RWLock", "Set", "Stat", "Tls", "Unknown", "Unreachable",
]
