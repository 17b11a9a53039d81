"""A server for tests: `clave serve` on a free port of 127.0.0.1, with data of its own, which ends with the test.

With pytest, in a conftest.py:

    from clave.testing import clave_client, clave_server     # clave_server.connect, clave_client.lock(...)

Each test then has a server of its own. Elsewhere:

>>> import clave, clave.testing
>>> with clave.testing.Server() as server, clave.Client(server.connect) as c:
...     c.create("/node", "text")
'/node'
"""
from __future__ import annotations

import importlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from types import TracebackType
from typing import Any, Iterator, Optional, Type

from ._program import path
from .client import Client


class Server:
    """A server, from `start` or the beginning of a block to `stop` or its end. Its sessions last a second or longer."""

    def __init__(self, program: Optional[str] = None) -> None:
        found = program or path()
        if not found:
            raise FileNotFoundError("the program clave is not installed: install the wheel of clave, or its package "
                                    "of the distribution, or name the program in CLAVE_BIN")
        self._program, self._folder = found, ""
        self._process: Optional["subprocess.Popen[str]"] = None
        self.connect = "127.0.0.1:0"
        """Its address, for `Client`; known when it has started."""

    def start(self) -> "Server":
        """Starts it, or starts it again: at the same address, with the same nodes and sessions."""
        self._folder = self._folder or tempfile.mkdtemp(prefix="clave-test-")
        process = subprocess.Popen([self._program, "serve", "--data", f"{self._folder}/data", "--listen", self.connect,
                                    "--tick", "500ms"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self._process = process
        serving = re.search(r"serving on (\S+),", process.stdout.readline() if process.stdout else "")
        if not serving:
            self.stop()
            raise RuntimeError("clave serve does not start: see what it has written to standard error")
        self.connect = serving[1]
        return self

    def kill(self) -> None:
        """Ends it as `kill -9` does. What it has confirmed is there when it is started again."""
        process, self._process = self._process, None
        if process:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()

    def pause(self) -> None:
        """Stops it, as a machine that stands still: connections stay, and nothing answers, until `resume`."""
        self._signal(signal.SIGSTOP)
        if self._process:  # the signal stops its threads after kill() has returned
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Ends a pause. Sessions that are over by then have expired."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends it for good, and removes its data."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = ""

    def _signal(self, number: int) -> None:
        if self._process:
            self._process.send_signal(number)

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()


def __getattr__(name: str) -> Any:
    """The fixtures of pytest, which need not be installed."""
    if name not in ("clave_server", "clave_client"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    pytest: Any = importlib.import_module("pytest")

    def clave_server() -> Iterator[Server]:
        """A server of this test."""
        with Server() as server:
            yield server

    def clave_client(clave_server: Server) -> Iterator[Client]:
        """A client of its server."""
        with Client(clave_server.connect) as client:
            yield client

    globals().update(clave_server=pytest.fixture(clave_server), clave_client=pytest.fixture(clave_client))
    return globals()[name]
