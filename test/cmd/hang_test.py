"""What holds hangs: one process of the tree of `clave lock` is stopped, and perhaps killed a moment later, or the file
system that the command works on stops answering while the network lives. With --health the next holder takes over, and
nothing of the last one acts after that.

Each command appends its token and the time to one log. CLAVE_HANG_ROUNDS is the number of rounds with stopped processes;
the time from the hang to the next holder is printed."""
import os
import random
import signal
import statistics
import sys
import time
import unittest

from frozen_disk import FrozenDisk
from harness import UNSAFE, scratch, server
from lock_rig import TICK, Holder, alive, children, stat, until
from watchdog_test import DEVICE_MS, Device, now_ms

ROUNDS = int(os.environ.get("CLAVE_HANG_ROUNDS", "8"))
EVERY_S, FAILS, STALE_S, SESSION_S = 1.0, 2, 1.0, 3.0
FLAGS = ["--session-timeout", f"{SESSION_S}s", "--grace", "100ms", "--health-every", f"{EVERY_S}s",
         "--health-fails", str(FAILS), "--health-grace", "5s"]
# The check notices after STALE_S; fails x every + timeout; the grace; a hand-over: for one that is stopped, the session.
PROMISED_S = STALE_S + FAILS * EVERY_S + EVERY_S + 0.1 + SESSION_S
BUSY_S = 4.0  # any process may not be scheduled for that long
WORK = """
import os, sys, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
beat = os.open(sys.argv[2], os.O_WRONLY)
disk = os.open(sys.argv[3], os.O_WRONLY)
while True:
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    os.write(log, b"%s %d\\n" % (os.environb[b"CLAVE_TOKEN"], now))
    os.pwrite(beat, b"%020d" % now, 0)
    os.pwrite(disk, b"work", 0)
    time.sleep(0.01)
"""
CHECK = f"""
import os, sys, time
if os.environ["CLAVE_EVENT"] == "holding":
    with open(sys.argv[1], "rb") as f:
        sys.exit(time.clock_gettime(time.CLOCK_BOOTTIME) - int(f.read()) / 1e9 > {STALE_S})
"""


class Hang(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=TICK)
        cls.took = {}

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        for what, times in sorted(cls.took.items()):
            print(f"{what}: {len(times)} take-overs, {statistics.median(times):.2f} s after the hang "
                  f"({min(times):.2f} to {max(times):.2f}; promised {PROMISED_S:.2f})", file=sys.stderr)

    def setUp(self):
        self.log = scratch("log")

    def hold(self, path, disk="/dev/null", *flags, env=None):
        beat = scratch("beat")
        with open(beat, "w", encoding="utf-8") as f:
            f.write("0" * 20)
        check = f"exec {sys.executable} -SE -c \"$CHECK\" {beat}"
        script = f"exec {sys.executable} -SE -c \"$WORK\" {self.log} {beat} {disk}"
        return Holder(self.server, path, "--health", check, *FLAGS, *flags, script=script,
                      env={"WORK": WORK, "CHECK": CHECK, **(env or {})})

    def entries(self):
        with open(self.log, encoding="utf-8") as f:
            return [tuple(map(int, line.split())) for line in f if line.endswith("\n")]

    def judge(self):
        """Tokens never go back: nobody acts after the next may."""
        seen = 0
        for token, at in sorted(self.entries(), key=lambda entry: entry[1]):
            self.assertGreaterEqual(token, seen, f"{UNSAFE}: token {token} acts at {at}, after {seen}")
            seen = token

    def taken_over(self, what, after, hung, longer=0):
        """Waits for the next holder's first entry. `longer`: than the promise of a session of SESSION_S."""
        first = until(lambda: [at for token, at in self.entries() if token > after], what="the next holder acts")[0]
        took = first / 1e9 - hung
        self.took.setdefault(what, []).append(took)
        self.assertLess(took, PROMISED_S + longer + BUSY_S)

    @staticmethod
    def end(*holders):
        for h in holders:
            for pid in {h.wrapper, *(p for p in (h.command and h.guardian, h.command) if p)}:
                if alive(pid):
                    os.kill(pid, signal.SIGCONT)
            if alive(h.wrapper):
                h.run.process.send_signal(signal.SIGTERM)
            h.run.end()

    def round(self, n, rng):
        path = f"/round-{n}"
        self.log = scratch("log")
        first = self.hold(path).started()
        second = self.hold(path).waiting(self.server, path, 2)
        until(lambda: os.path.exists(self.log) and len(self.entries()) > 20)
        token = self.entries()[0][0]
        what = rng.choice(["clave", "guardian", "command", "check"])
        victim = {"clave": first.wrapper, "guardian": first.guardian, "command": first.command}.get(what)
        if what == "check":
            victim = until(lambda: [p for p in children(first.wrapper) if p != first.guardian])[0]
        hung = time.clock_gettime(time.CLOCK_BOOTTIME)
        try:
            os.kill(victim, signal.SIGSTOP)
        except ProcessLookupError:
            what = "check"  # it has just ended
        kills = rng.random() < 0.5
        if kills:
            time.sleep(rng.random() * 1.5)  # any moment of what follows
            if alive(victim):
                os.kill(victim, signal.SIGKILL)
        if what == "clave" or what == "command" or (what == "guardian" and kills):
            self.taken_over(f"{what} stopped{', then killed' if kills else ''}", token, hung)
            second.started()
        else:  # nothing hangs: the hold goes on
            until(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) > hung + SESSION_S)
            self.assertTrue(alive(first.command))
        self.judge()
        self.end(first)
        if second.command is None:
            second.started()
        self.end(second)
        self.judge()

    def test_one_process_is_stopped(self):
        rng = random.Random(int(os.environ.get("CLAVE_HANG_SEED", "40")))
        for n in range(ROUNDS):
            with self.subTest(n):
                self.round(n, rng)

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/fuse"), "no file system can be mounted here")
    def test_the_disk_stalls_and_the_network_lives(self):
        """The work waits in the kernel for a write, in state D, and SIGKILL does not end it: the lock is kept until the
        disk answers, since nobody may write beside it; then the next one takes over."""
        try:
            disk = FrozenDisk(scratch("disk"))
        except OSError as error:
            self.skipTest(f"no file system can be mounted here: {error}")
        self.addCleanup(disk.close)
        first = self.hold("/stalls", os.path.join(disk.where, "disk")).started()
        second = self.hold("/stalls").waiting(self.server, "/stalls", 2)
        until(lambda: os.path.exists(self.log) and len(self.entries()) > 20)
        token = self.entries()[0][0]
        disk.frozen = True
        until(lambda: stat(first.command)[0] == "D", what="the command sleeps in the kernel")
        until(lambda: "(state D)" in first.run.process.stderr.readline())
        self.assertEqual({t for t, _ in self.entries()}, {token})
        hung = time.clock_gettime(time.CLOCK_BOOTTIME)
        disk.thaw()
        self.taken_over("disk stalled, from its answer", token, hung)
        second.started()
        self.assertEqual(first.run.end().code, 80)
        self.judge()
        self.end(second)

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/fuse"), "no file system can be mounted here")
    def test_the_disk_stalls_for_good_and_the_machine_is_reset(self):
        """With --watchdog the next one does not wait for the disk: the check fails, the command cannot be killed, the
        device is not fed any more, and the reset, after which nothing of this machine acts, makes room."""
        try:
            disk = FrozenDisk(scratch("disk"))
        except OSError as error:
            self.skipTest(f"no file system can be mounted here: {error}")
        self.addCleanup(disk.close)
        device, path = Device(), "/stalls-for-good"
        first = self.hold(path, os.path.join(disk.where, "disk"), "--watchdog", device.path, "--session-timeout", "8s",
                          env=device.env).started()
        second = self.hold(path).waiting(self.server, path, 2)
        until(lambda: os.path.exists(self.log) and len(self.entries()) > 20)
        token = self.entries()[0][0]
        hung = time.clock_gettime(time.CLOCK_BOOTTIME)
        disk.frozen = True
        until(lambda: stat(first.command)[0] == "D", what="the command sleeps in the kernel")
        until(lambda: now_ms() > device.fires_at(), what="the watchdog fires")
        self.assertNotIn("magic", device.done())
        self.assertEqual({t for t, _ in self.entries()}, {token}, UNSAFE)
        # What a reset does: clave and its guardian are gone without a word; the command writes no more.
        for pid in (first.wrapper, first.guardian):
            os.kill(pid, signal.SIGKILL)
        self.taken_over("disk stalled for good, with --watchdog", token, hung, 8 + DEVICE_MS / 1000)
        second.started()
        self.end(second)
        disk.thaw()
        first.run.end()


if __name__ == "__main__":
    unittest.main()
