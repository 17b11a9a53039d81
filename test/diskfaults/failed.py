"""What a case of the disk faults requires, and what a program that ended because of one has to say."""
import errno
import os

ADVICE = {errno.ENOSPC: "free some space", errno.EROFS: "file system that can be written to",
          errno.EIO: "has failed"}


class Failed(Exception):
    pass


def require(condition, text):
    if not condition:
        raise Failed(text)


def require_told(said, path, number, advice=True):
    """Where, why, and what to do."""
    for needed in (path, os.strerror(number), ADVICE[number] if advice else ""):
        require(needed in said, f"'{needed}' is not in what it said: {said}")
