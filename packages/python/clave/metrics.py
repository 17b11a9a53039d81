"""What the clients of this process have done, as metrics for Prometheus: docs/operate/monitoring.md has their names.

>>> content_type()
'text/plain; version=0.0.4; charset=utf-8'
>>> "clave_client_" in page()
True
"""
from __future__ import annotations

import ctypes
from typing import Optional

from ._lib import library
from .errors import check

_ETOOBIG = -1012


def content_type(accept: Optional[str] = None) -> str:
    """The Content-Type of the page for a request with this Accept header."""
    found: bytes = library.clave_metrics_content_type(library.clave_metrics_accepted(accept.encode() if accept else None))
    return found.decode()


def page(accept: Optional[str] = None) -> str:
    """The page for a request with this Accept header."""
    room, length = 16384, ctypes.c_size_t()
    kind = library.clave_metrics_accepted(accept.encode() if accept else None)
    while True:
        text = ctypes.create_string_buffer(room)
        code = library.clave_metrics_copy(kind, text, room, ctypes.byref(length))
        if code != _ETOOBIG:
            check(code, "cannot write the metrics")
            return text.raw[:length.value].decode()
        room = length.value + 4096
