"""The program `clave`: what starts a server for `local:` and for tests, and the command that the wheel installs."""
from __future__ import annotations

import os
import shutil
import sys
from typing import Optional

_OWN = os.path.join(os.path.dirname(__file__), "bin", "clave")


def path() -> Optional[str]:
    """Where it is: what CLAVE_BIN names, or one that is installed, or the wheel's."""
    return os.environ.get("CLAVE_BIN") or shutil.which("clave") or (_OWN if os.path.exists(_OWN) else None)


def offer() -> None:
    """Has libclave start the wheel's for `local:`, when there is no other."""
    if "CLAVE_BIN" not in os.environ and os.path.exists(_OWN) and not shutil.which("clave"):
        os.environ["CLAVE_BIN"] = _OWN


def main() -> None:
    os.execv(_OWN, ["clave"] + sys.argv[1:])
