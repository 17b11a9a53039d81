"""The other end of NOTIFY_SOCKET, for the tests of what clave tells the service manager."""
import os
import socket

from harness import scratch
from lock_rig import until


class Manager:
    """The other end of NOTIFY_SOCKET. What comes while ten lines wait for us is lost: a watchdog is
    not to be fed so often that a moment's absence fills it up."""

    def __init__(self, abstract=False):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.name = f"@clave-test-{os.getpid()}-{id(self)}" if abstract else scratch("notify")
        self.socket.bind("\0" + self.name[1:] if abstract else self.name)
        self.said = []

    def env(self, **more):
        return {"NOTIFY_SOCKET": self.name, **more}

    def listen(self):
        """All that has come."""
        self.socket.settimeout(0)
        try:
            while True:
                self.said += self.socket.recv(4096).decode().splitlines()
        except BlockingIOError:
            return self.said

    def hears(self, line):
        until(lambda: line in self.listen(), what=f"{line}: {self.said}")

    def count(self, line):
        return self.listen().count(line)
