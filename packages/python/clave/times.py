"""Durations are numbers of seconds or timedeltas; None is no limit.

>>> import datetime
>>> milliseconds(1.5), milliseconds(datetime.timedelta(minutes=1)), milliseconds(0.0001)
(1500, 60000, 1)
"""
from __future__ import annotations

import datetime
import math
from typing import Optional, Union

from ._lib import NEVER, TRY, library

Duration = Union[int, float, datetime.timedelta]


def milliseconds(duration: Duration) -> int:
    """Rounded up, so that only 0 is 0."""
    seconds = duration.total_seconds() if isinstance(duration, datetime.timedelta) else duration
    if not 0 <= seconds < 1e12:
        raise ValueError(f"not a duration: {duration!r}")
    return math.ceil(seconds * 1000)


def deadline(timeout: Optional[Duration]) -> int:
    """By libclave's clock. 0 is a try."""
    if timeout is None:
        return NEVER
    ms = milliseconds(timeout)
    return int(library.clave_now()) + ms if ms else TRY
