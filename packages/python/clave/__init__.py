"""Locks, elections and znodes across processes: libclave for Python.

>>> import clave
>>> with clave.Client() as c, c.lock("/doc/jobs", timeout=10) as hold:
...     token = hold.token      # grows with every grant: give it to what you write to
...     hold.check()            # raises clave.Lost when it is time to stop
"""
from __future__ import annotations

from . import metrics
from ._lib import Data
from ._lib import library as _library
from .cache import Cache, CacheEvent, CacheStatus, Watcher, WatchEvent
from .client import Client, Tls
from .counter import Change, Counter
from .election import Candidate, Election, LeaderWatch, Term
from .errors import (BadVersion, Busy, Closed, Deadlock, Done, Error, Forked, Lost, NoAuth, NodeExists, NoNode, NotEmpty,
                     NotHeld, NotSent, Unknown, Unreachable)
from .hold import Hold
from .instances import Instance, Instances, InstancesEvent, Pick, instance_data
from .lock import Lock, MultiHold, Multilock, RWLock
from .once import Ran, Record
from .persistent_node import Kept, NodeEvent, PersistentNode
from .queues import Deadlocked, Identity, Participant
from .semaphore import Semaphore
from .slots import Slot, Slots, SlotsView
from .times import Duration
from .znodes import Acl, Check, Create, Delete, Mode, Node, Perm, Set, Stat

__version__: str = _library.clave_version().decode()

__all__ = [
    "Acl", "BadVersion", "Busy", "Cache", "CacheEvent", "CacheStatus", "Candidate", "Change", "Check", "Client",
    "Closed", "Counter", "Create", "Data", "Deadlock", "Deadlocked", "Delete", "Done", "Duration", "Election",
    "Error", "Forked", "Hold", "Identity", "Instance", "Instances", "InstancesEvent", "Kept", "LeaderWatch", "Lock",
    "Lost", "Mode", "MultiHold", "Multilock", "NoAuth", "NoNode", "Node", "NodeEvent", "NodeExists", "NotEmpty",
    "NotHeld", "NotSent", "Participant", "Perm", "PersistentNode", "Pick", "RWLock", "Ran", "Record", "Semaphore",
    "Set", "Slot", "Slots", "SlotsView", "Stat", "Term", "Tls", "Unknown", "Unreachable", "WatchEvent", "Watcher",
    "instance_data", "metrics",
]
