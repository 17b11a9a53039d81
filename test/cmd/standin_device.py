"""The stand-in for a watchdog (standin_watchdog.c): what was done to it, and when it would have reset the machine."""
import os
import time

from harness import scratch

STANDIN = os.environ["CLAVE_STANDIN_WATCHDOG"]
DEVICE_MS = 1000  # of a session of 8 s, the shortest that fits


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class Device:
    """The stand-in, of one machine."""

    def __init__(self, **settings):
        self.path = scratch("watchdog")
        with open(self.path, "w", encoding="utf-8"):
            pass
        os.chmod(self.path, 0o666)
        os.chmod(os.path.dirname(self.path), 0o777)
        self.env = {"LD_PRELOAD": STANDIN, "STANDIN_WATCHDOG": self.path,
                    **{f"STANDIN_WATCHDOG_{name.upper()}": str(value) for name, value in settings.items()}}

    def log(self):
        """[(time, process, what)]"""
        try:
            with open(self.path + ".log", encoding="utf-8") as f:
                return [(int(at), int(pid), what) for at, pid, what in (line.rstrip("\n").split(" ", 2) for line in f)]
        except FileNotFoundError:
            return []

    def done(self):
        return [what for _, _, what in self.log()]

    def fires_at(self):
        """When it resets the machine, or did; None: it is stopped, or was never started. A device that was left running
        counts on from its latest feed."""
        at, magic, timeout = None, False, 60_000
        for when, _, what in self.log():
            if at is not None and when > at:
                return at
            if what.startswith("set"):
                timeout = 1000 * int(what.split()[1])
            if what.startswith("set") or what == "feed" or (what == "open" and at is None):
                at = when + timeout
            if what == "close" and magic:
                at = None
            magic = what == "magic"
        return at

    def never_fires(self, test):
        test.assertIsNone(self.fires_at(), self.log())
        test.assertEqual(self.done()[-2:], ["magic", "close"])
