"""local: what the server has of the program that happened to start it: nothing, and every file the
machine allows it."""
import fcntl
import os
import resource
import signal
import unittest

from harness import CLAVE, PATIENCE, environment, scratch, spawn
from lock_rig import until


class Local(unittest.TestCase):
    def setUp(self):
        self.dir = scratch("state")
        self.addCleanup(self.end)

    def pid(self):
        with open(self.dir + "/clave.lock", encoding="ascii") as f:
            return int(f.read().split()[0])

    def is_served(self):
        with open(self.dir + "/clave.lock", "rb+") as f:
            try:
                fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def end(self):
        if self.is_served():
            os.kill(self.pid(), signal.SIGTERM)
            until(lambda: not self.is_served())

    def start(self, shell):
        """By a clave that the shell becomes when it has done this. The server's /proc/PID."""
        p = spawn(["sh", "-c", shell + '; exec "$0" create /n', CLAVE],
                  env=environment(CLAVE_LOCAL_DIR=self.dir))
        self.assertEqual(p.wait(PATIENCE), 0)
        return f"/proc/{self.pid()}"

    def status(self, proc, name):
        with open(proc + "/status", encoding="ascii") as f:
            return next(line.split()[1] for line in f if line.startswith(name + ":"))

    def test_as_many_files_as_it_may_have(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        proc = self.start("ulimit -Sn 64")
        with open(proc + "/limits", encoding="ascii") as f:
            line = next(line for line in f if line.startswith("Max open files"))
        self.assertEqual(line.split()[3:5], [str(hard), str(hard)])

    def test_no_file_of_its_client(self):
        proc = self.start(f"exec 7>'{self.dir}.mine' 9</dev/null")
        files = {os.readlink(f"{proc}/fd/{n}") for n in os.listdir(proc + "/fd")}
        self.assertNotIn(self.dir + ".mine", files)
        self.assertEqual(os.readlink(proc + "/fd/0"), "/dev/null")
        self.assertEqual(os.readlink(proc + "/cwd"), "/")

    def test_no_signal_is_ignored_or_blocked_for_its_client(self):
        proc = self.start("trap '' HUP QUIT USR1 USR2 ALRM CHLD")
        ignored = int(self.status(proc, "SigIgn"), 16)
        for sig in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
                    signal.SIGCHLD):
            self.assertFalse(ignored >> (sig - 1) & 1, sig)
        self.assertEqual(int(self.status(proc, "SigBlk"), 16), 0)

    def test_it_is_nobodys_child(self):
        proc = self.start("true")
        self.assertNotEqual(int(self.status(proc, "PPid")), os.getpid())
        with open(proc + "/stat", encoding="ascii") as f:
            session, terminal = f.read().rsplit(")", 1)[1].split()[3:5]
        self.assertNotEqual(int(session), os.getsid(0))
        self.assertEqual(terminal, "0")


if __name__ == "__main__":
    unittest.main()
