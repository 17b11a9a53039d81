"""Reads the notes of the bridge (bridge.h has their encoding)."""
from __future__ import annotations

import ctypes
import struct
from typing import Any, List, Tuple

from ._lib import library

_INT = struct.Struct("=q")
_COUNT = struct.Struct("=I")


def _value(data: bytes, at: int) -> Tuple[Any, int]:
    tag = data[at]
    at += 1
    if tag == 0x49:  # I
        return _INT.unpack_from(data, at)[0], at + 8
    if tag == 0x4E:  # N
        return None, at
    (count,) = _COUNT.unpack_from(data, at)
    at += 4
    if tag == 0x42:  # B
        return data[at:at + count], at + count
    if tag == 0x53:  # S
        return data[at:at + count].decode("utf-8", "replace"), at + count
    values = []
    for _ in range(count):
        value, at = _value(data, at)
        values.append(value)
    return values, at


def read(note: int) -> List[Any]:
    """The values of a note, which is freed. MemoryError: there was none for them."""
    try:
        return look(note)
    finally:
        library.bridge_note_free(note)


def look(note: int) -> List[Any]:
    """The same of a note that is kept."""
    start = ctypes.c_void_p()
    length = library.bridge_note_read(note, ctypes.byref(start))
    if start.value is None:
        raise MemoryError("no memory for an answer of libclave")
    data = ctypes.string_at(start.value, length)
    values, at = [], 0
    while at < length:
        value, at = _value(data, at)
        values.append(value)
    return values
