"""local: is this user's alone: who may see its socket, and what a server that was killed leaves
behind. What it refuses is in local_faults_test."""
import os
import signal
import stat
import unittest

from harness import clave, scratch
from lock_rig import alive, until


class Local(unittest.TestCase):
    def setUp(self):
        self.dir = scratch("state")
        self.env = {"CLAVE_LOCAL_DIR": self.dir}
        self.addCleanup(self.end)

    def pid(self):
        try:
            with open(self.dir + "/clave.lock") as f:
                return int(f.read().split()[0])
        except (OSError, ValueError, IndexError):
            return 0

    def end(self, how=signal.SIGTERM):
        pid = self.pid()
        if pid and pid != os.getpid():
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                return
            until(lambda: not alive(pid))

    def run_clave(self, *words):
        return clave("--timeout", "5s", *words, env=self.env)

    def socket(self):
        names = [n for n in os.listdir(self.dir) if stat.S_ISSOCK(os.lstat(f"{self.dir}/{n}").st_mode)]
        self.assertEqual(len(names), 1, os.listdir(self.dir))
        return f"{self.dir}/{names[0]}"

    def test_socket_and_directory_are_private(self):
        before = os.umask(0)
        try:
            self.assertEqual(self.run_clave("create", "/n").code, 0)
        finally:
            os.umask(before)
        self.assertEqual(stat.S_IMODE(os.lstat(self.dir).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.lstat(self.socket()).st_mode), 0o600)

    def test_a_killed_server_and_a_pid_used_again(self):
        self.assertEqual(self.run_clave("create", "/n").code, 0)
        self.end(signal.SIGKILL)
        self.assertTrue(self.socket())  # it could not remove it
        with open(self.dir + "/clave.lock", "w") as f:
            f.write(f"{os.getpid()}\n")  # somebody lives who has that number now
        self.assertEqual(self.run_clave("ls", "/").out, "n\nzookeeper\n")


if __name__ == "__main__":
    unittest.main()
