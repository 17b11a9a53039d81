"""A file system whose server stops answering, for tests of what hangs."""
import os
import struct
import threading

from lock_rig import LIBC


def can_mount():
    return os.geteuid() == 0 and os.path.exists("/dev/fuse")


class FrozenDisk:
    """A file system (FUSE) of one file, `disk`. Once it is frozen, every write to it and every close waits until it is
    thawed: in the kernel, where no signal ends a process."""

    INIT, GETATTR, LOOKUP, OPEN, WRITE, FLUSH, RELEASE, FORGET, INTERRUPT, DESTROY = 26, 3, 1, 14, 16, 25, 18, 2, 36, 38
    TRUNCATE = SETATTR = 4

    def __init__(self, where):
        self.where, self.frozen, self.held = where, False, []
        os.mkdir(where)
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0"
        if LIBC.mount(b"hang", where.encode(), b"fuse.hang", 0, options.encode()) != 0:
            os.close(self.fd)
            raise OSError("cannot mount")
        threading.Thread(target=self.serve, daemon=True).start()

    def attributes(self, node):
        mode, size = (0o040755, 0) if node == 1 else (0o100666, 0)
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, unique, body=b"", error=0):
        os.write(self.fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)

    def serve(self):
        while True:
            try:
                data = os.read(self.fd, 1 << 20)
            except OSError:
                return  # it was unmounted
            _, op, unique, node = struct.unpack_from("<IIQQ", data)
            if op == self.INIT:
                self.answer(unique, struct.pack("<IIIIHHIIHHI", 7, 26, 65536, 0, 16, 12, 65536, 1, 0, 0, 0) + bytes(24))
            elif op == self.LOOKUP:
                self.answer(unique, struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + self.attributes(2))
            elif op in (self.GETATTR, self.SETATTR):
                self.answer(unique, struct.pack("<QII", 0, 0, 0) + self.attributes(node))
            elif op == self.OPEN:
                self.answer(unique, struct.pack("<QII", 0, 1, 0))  # direct: each write comes here
            elif op in (self.WRITE, self.FLUSH):
                body = struct.pack("<II", struct.unpack_from("<QQI", data, 40)[2], 0) if op == self.WRITE else b""
                if self.frozen:
                    self.held.append((unique, body))
                else:
                    self.answer(unique, body)
            elif op in (self.FORGET, self.INTERRUPT):
                pass
            elif op in (self.RELEASE, self.DESTROY):
                self.answer(unique)
            else:
                self.answer(unique, error=-38)

    def thaw(self):
        self.frozen = False
        for unique, body in self.held:
            self.answer(unique, body)
        self.held = []

    def close(self):
        self.thaw()
        LIBC.umount2(self.where.encode(), 2)
