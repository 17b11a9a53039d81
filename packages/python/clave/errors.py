"""What can go wrong: an exception for each outcome that a program treats differently.

>>> import clave
>>> issubclass(clave.Busy, TimeoutError) and issubclass(clave.Lost, clave.Error)
True
"""
from __future__ import annotations

from typing import Dict, Optional, Tuple, Type

from ._lib import library

_KINDS = ("NONE", "RETRY", "UNKNOWN", "FINAL", "FATAL")


class Error(Exception):
    """An error of clave. ``name`` is the one in clave/err.h ("ENONODE"), ``code`` its number, and ``kind`` its class:
    "RETRY" (certainly not done), "UNKNOWN" (it may have been done), "FINAL", "FATAL"."""

    def __init__(self, what: str, code: int) -> None:
        self.code = code
        self.name: str = library.clave_err_name(code).decode()
        self.kind = _KINDS[library.clave_err_classify(code)]
        super().__init__(what)

    def __reduce__(self) -> Tuple[Type["Error"], Tuple[str, int]]:
        """Errors are pickled, as process pools do with what a worker raises."""
        return type(self), (str(self), self.code)


class Lost(Error):
    """What was held is lost, or its maximum time is over: stop. Nothing was written."""


class Busy(Error, TimeoutError):
    """Not acquired in time: another holds it."""


class Unreachable(Error, ConnectionError):
    """There was no connection in time: nobody knows who holds it."""


class NotSent(Error, ConnectionError):
    """The request never left: the session ended before there was a connection. Nothing was done."""


class Unknown(Error):
    """The answer was lost, or did not come in time: it may have been done. Call ``sync``, then read."""


class Closed(Error):
    """The client was closed."""


class Forked(Closed):
    """The client belongs to the parent of this process: open one of your own."""


class NotHeld(Error):
    """This thread or task does not hold it."""


class Deadlock(Error):
    """The owners of locks wait for each other, and this one was chosen to give up."""


class Done(Error):
    """Another process has done the job already."""


class NoNode(Error):
    """There is no such node."""


class NodeExists(Error):
    """The node exists already."""


class BadVersion(Error):
    """The node has another version."""


class NotEmpty(Error):
    """The node has children."""


class NoAuth(Error):
    """Not authorised."""


_CLASSES: Dict[str, Type[Error]] = {
    "ELOST": Lost, "EMAXHOLD": Lost, "ESILENT": Lost, "EBUSY": Busy, "EUNREACHABLE": Unreachable, "ENOTSENT": NotSent, "ECLOSED": Closed,
    "ENOTHELD": NotHeld, "EDEADLOCK": Deadlock, "EDONE": Done, "ENONODE": NoNode, "ENODEEXISTS": NodeExists,
    "EBADVERSION": BadVersion, "ENOTEMPTY": NotEmpty, "ENOAUTH": NoAuth, "EAUTHFAILED": NoAuth,
}

# The numbers that this package itself speaks of.
ENONODE, ECLOSED, ETIMEDOUT, EBUSY, ECANCELED = -101, -1003, -1006, -1007, -1008
ELOST, ENOTHELD, EUNREACHABLE, EDONE = -1010, -1011, -1014, -1024


def error(code: int, what: str, detail: Optional[str] = None) -> Error:
    """The exception of a code: ``what`` was tried, and why it failed."""
    name = library.clave_err_name(code).decode()
    kind = Unknown if _KINDS[library.clave_err_classify(code)] == "UNKNOWN" else Error
    return _CLASSES.get(name, kind)(f"{what}: {detail or library.clave_strerror(code).decode()} ({name})", code)


def check(code: int, what: str) -> None:
    if code != 0:
        raise error(code, what)
