"""A real file system that is full, dies or becomes read-only under a server that writes.

  loop_disk_test.py [--rounds N] CLAVE

ext4 on a loop device. At a moment drawn at random it is

  full      the rest of it is filled by somebody else
  dead      shut down (EXT4_IOC_SHUTDOWN): what is not on the disk then is lost, as in a power cut;
            once with the journal flushed before, once without
  aborted   the journal ends after an error, and the file system is read-only (remount,abort)

The server has to end and say why. The file system is emptied or mounted again, and everything that
was acknowledged has to be there; of one that died, what was acknowledged before. An fdatasync that is
under way at that moment may report success although its bytes are lost (seen in one of eight, in a
loop of pwrite and fdatasync without clave, Linux 6.18). Exits with 77 where no file system can be
mounted."""
import argparse
import collections
import concurrent.futures
import errno
import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cmd"))
from harness import PATIENCE, UNSAFE, environment, scratch, spawn  # noqa: E402
from failed import Failed, require, require_told  # noqa: E402
from work import Work  # noqa: E402

MEGABYTES = 256
SHUTDOWN = 0x8004587d  # EXT4_IOC_SHUTDOWN
LOG_FLUSHED, LOG_NOT_FLUSHED = 1, 2
SNAP_COUNT, TIMES = "400", 200  # snapshots and new logs come often; nodes of about 1 KB
AT_MOST_S = 0.7
SKIPPED = 77


class Disk:
    def __init__(self):
        self.image, self.top = scratch("image"), scratch("disk")
        os.mkdir(self.top)
        with open(self.image, "wb") as f:
            f.truncate(MEGABYTES << 20)
        self.run("mkfs.ext4", "-q", "-F", self.image)

    def run(self, *command):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def mount(self):
        self.run("mount", "-o", "loop", self.image, self.top)

    def unmount(self):
        self.run("umount", self.top)

    def fill(self):
        with open(self.top + "/ballast", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(65536))
            except OSError as e:
                require(e.errno == errno.ENOSPC, str(e))

    def shut_down(self, how):
        fd = os.open(self.top, os.O_RDONLY)
        fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", how))
        os.close(fd)

    def abort(self):
        self.run("mount", "-o", "remount,abort", self.top)

    def mend(self):
        """Frees what was filled, or mounts it again."""
        if os.path.exists(self.top + "/ballast"):
            os.unlink(self.top + "/ballast")
        else:
            self.unmount()
            self.mount()


class Server:
    def __init__(self, clave, disk):
        self.clave, self.top, self.data = clave, disk.top, disk.top + "/data"
        self.socket = scratch("socket")

    def start(self):
        self.process = spawn([self.clave, "serve", "--data", self.data, "--listen",
                              f"unix:{self.socket}", "--snap-count", SNAP_COUNT],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, text=True, env=environment())
        return "serving on" in self.process.stdout.readline()

    def ended(self):
        """What it said."""
        _, told = self.process.communicate(timeout=PATIENCE)
        return told

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        told = self.ended()
        require(self.process.returncode == 0, told)


Fault = collections.namedtuple("Fault", "strike is_death errors")
FAULTS = {
    "full": Fault(Disk.fill, False, [errno.ENOSPC]),
    "dead": Fault(lambda d: d.shut_down(LOG_NOT_FLUSHED), True, [errno.EIO]),
    "dead, journal flushed": Fault(lambda d: d.shut_down(LOG_FLUSHED), True, [errno.EIO]),
    "aborted": Fault(Disk.abort, True, [errno.EROFS, errno.EIO]),
}


def require_one_told(told, top, numbers):
    for i, number in enumerate(numbers):
        try:
            require_told(told, top, number)
            return
        except Failed:
            if i + 1 == len(numbers):
                raise


def play(clave, disk, fault, wait_s):
    """How many rounds were acknowledged, of a dead one before it died."""
    server, work = Server(clave, disk), Work(10 ** 9, TIMES)
    require(server.start(), "it does not start")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        written = pool.submit(work.go_on, server.socket)
        try:
            time.sleep(wait_s)
            before = work.acknowledged()
            fault.strike(disk)
            told = server.ended()
        finally:
            server.process.kill()  # or the writer would not end
        require(not written.result(PATIENCE), "all of it was written")
    require(server.process.returncode > 0, f"it ended with {server.process.returncode}")
    require_one_told(told, disk.top, fault.errors)
    disk.mend()
    require(server.start(), f"{UNSAFE}: it does not start again")
    work.check(server.socket, before if fault.is_death else None)
    if fault.is_death:  # the others may be there or not
        work.created, work.counter = before
    acknowledged = max(work.counter, 0)
    work.rounds = work.round + 10
    require(work.go_on(server.socket), "it does not serve")
    server.stop()
    checked = subprocess.run([clave, "data", "check", server.data], capture_output=True, text=True)
    require(checked.returncode == 0, f"{UNSAFE}: clave data check: {checked}")
    shutil.rmtree(server.data)
    return acknowledged


def mounted_disk():
    """None where that is impossible."""
    try:
        disk = Disk()
        disk.mount()
        return disk
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"no file system can be mounted here: {getattr(e, 'stderr', None) or e}")
        return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("clave")
    a = p.parse_args()
    disk = mounted_disk()
    if not disk:
        sys.exit(SKIPPED)
    try:
        for name, fault in FAULTS.items():
            for _ in range(a.rounds):
                wait_s = random.uniform(0, AT_MOST_S)
                print(f"{name} after {wait_s:.3f} s: ", end="", flush=True)
                print(f"{play(a.clave, disk, fault, wait_s)} rounds acknowledged, all there", flush=True)
    finally:
        subprocess.run(["umount", "-l", disk.top], check=False)


if __name__ == "__main__":
    main()
