"""What a preloaded failing disk is to do (failing_disk.c): a page that this process shares with all
that have it loaded."""
import mmap
import struct

CALLS, FAILS_AT, NUMBER, LASTS, IS_SHORT, STRUCK = range(6)
CALL_AT, SIZE = 48, 48 + 4096


class Plan:
    def __init__(self, path):
        with open(path, "wb") as f:
            f.truncate(SIZE)
        with open(path, "r+b") as f:
            self.page = mmap.mmap(f.fileno(), SIZE)
        self.path = path

    def environment(self, library, directory):
        """For a process whose calls below a directory are to fail."""
        return {"LD_PRELOAD": library, "FAILING_DISK_PLAN": self.path,
                "FAILING_DISK_DIR": directory.rstrip("/") + "/"}

    def _get(self, field):
        return struct.unpack_from("q", self.page, field * 8)[0]

    def _set(self, field, value):
        struct.pack_into("q", self.page, field * 8, value)

    def fail(self, at, number, lasts=False, is_short=False):
        """The at-th call from now on."""
        self.work()
        self.page[CALL_AT:CALL_AT + 1] = b"\0"
        for field, value in ((CALLS, 0), (STRUCK, 0), (NUMBER, number), (LASTS, lasts),
                             (IS_SHORT, is_short), (FAILS_AT, at)):
            self._set(field, int(value))

    def work(self):
        """The disk does, from now on."""
        self._set(FAILS_AT, 0)

    @property
    def number(self):
        return self._get(NUMBER)

    @property
    def calls(self):
        return self._get(CALLS)

    @property
    def lasts(self):
        return self._get(LASTS) != 0

    @property
    def struck(self):
        return self._get(STRUCK)

    @property
    def call(self):
        """The first one that failed: its name, and the path below the directory."""
        return self.page[CALL_AT:].split(b"\0", 1)[0].decode()
