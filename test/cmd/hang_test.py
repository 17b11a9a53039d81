"""What holds hangs, under `clave lock --health`: rounds of hang_rounds.py, and the disk that stalls while the network lives.
CLAVE_HANG_ROUNDS is the number of rounds, CLAVE_HANG_SEED their seed."""
import os
import random
import subprocess
import sys
import unittest

import hang_rounds
from frozen_disk import FrozenDisk, can_mount
from harness import scratch, server
from lock_rig import MAX_HOLD, TICK, Holder, until

ROUNDS = int(os.environ.get("CLAVE_HANG_ROUNDS", "8"))
SEED = int(os.environ.get("CLAVE_HANG_SEED", "40"))
ANSWERS_S = 9
WAYS = ("deaf", "brood", "threads", "exec")
# Execs once its standard input is closed; that closes the file.
EXECS = """
import os, sys
disk = os.open(sys.argv[1], os.O_WRONLY)
print("open", flush=True)
sys.stdin.read()
os.execv("/bin/true", ["true"])
"""


class Stall(hang_rounds.Round):
    """The disk stalls, and answers after a while."""

    def strike(self):
        self.disk.frozen = True
        self.do_later(ANSWERS_S, self.disk.thaw)
        return True, ANSWERS_S + hang_rounds.HAND_OVER_S


class Hang(unittest.TestCase):
    def play(self, rounds, kind=hang_rounds.Round):
        played = hang_rounds.play(rounds, lanes=3, kind=kind)
        print(hang_rounds.table(played), file=sys.stderr)
        self.assertEqual(len(played), len(rounds))
        for r in played:
            self.assertEqual(r.found, [], r.line())
        return played

    def test_rounds(self):
        self.play([(n, hang_rounds.draw(SEED, n)) for n in range(ROUNDS)])

    @unittest.skipUnless(can_mount(), "no file system can be mounted here")
    def test_the_disk_stalls_and_the_network_lives(self):
        """What waits in the kernel cannot be ended by SIGKILL: the lock is kept until the disk answers, since nobody may
        write beside it; then the next one takes over. It is the command itself; it too, and a child that has been killed,
        whose files cannot be closed; a thread of the command, of which the others have ended; a child within execve(2)."""
        for r in self.play([(w, ("disk", "stall, answer", False, w, random.Random(1))) for w in WAYS], Stall):
            self.assertGreater(r.took, ANSWERS_S, r.line())
            self.assertEqual(r.first.holder.run.process.returncode, 80)
            self.assertIn('"event": "stuck"', "".join(r.first.said_lines()), r.line())

    @unittest.skipUnless(can_mount(), "no file system can be mounted here")
    def test_the_disk_stalls_for_good_and_the_machine_is_reset(self):
        """With --watchdog the next one does not wait for the disk: the check fails, the command cannot be killed, the
        device is not fed any more, and the reset makes room."""
        for r in self.play([(w, ("disk", "stall", True, w, random.Random(1))) for w in WAYS]):
            self.assertIsNotNone(r.first.fired_at, r.line())

    @unittest.skipUnless(can_mount(), "no file system can be mounted here")
    def test_a_stranger_waits_for_its_disk(self):
        """In execve(2), where the kernel has whoever reads its /proc/PID/stat wait as well."""
        disk = FrozenDisk(scratch("disk"))
        p = subprocess.Popen([sys.executable, "-c", EXECS, f"{disk.where}/disk"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(disk.close)
        self.assertEqual(p.stdout.readline(), b"open\n")
        s = server(flags=TICK)
        self.addCleanup(s.stop)
        holder = Holder(s, "/lock", *MAX_HOLD).started()
        disk.frozen = True
        p.stdin.close()
        until(lambda: disk.held, what="execve closes the file")
        self.assertEqual(holder.code(), 76)
        self.assertTrue(disk.held)


if __name__ == "__main__":
    unittest.main()
