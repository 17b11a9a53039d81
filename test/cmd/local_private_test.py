"""local: is this user's alone: who may see its socket, which directories it refuses, and what a
server that was killed leaves behind."""
import os
import signal
import stat
import subprocess
import time
import unittest

from harness import CLAVE, PATIENCE, clave, environment, scratch

OTHER = 54321  # the id of a user who owns nothing here


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
            until = time.monotonic() + PATIENCE
            while os.path.exists(f"/proc/{pid}/fd") and time.monotonic() < until:
                with open(f"/proc/{pid}/stat") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return
                time.sleep(0.01)

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

    def test_a_directory_of_others_is_refused(self):
        os.mkdir(self.dir)
        os.chmod(self.dir, 0o777)
        r = self.run_clave("ls", "/")
        self.assertEqual(r.code, 69, r)
        self.assertIn("only this user can write to", r.err)
        self.assertEqual(os.listdir(self.dir), [])

    def test_a_killed_server_and_a_pid_used_again(self):
        self.assertEqual(self.run_clave("create", "/n").code, 0)
        self.end(signal.SIGKILL)
        self.assertTrue(self.socket())  # it could not remove it
        with open(self.dir + "/clave.lock", "w") as f:
            f.write(f"{os.getpid()}\n")  # somebody lives who has that number now
        self.assertEqual(self.run_clave("ls", "/").out, "n\nzookeeper\n")

    @unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
    def test_two_users(self):
        self.assertEqual(self.run_clave("create", "/n").code, 0)

        def as_other(directory):
            return subprocess.run([CLAVE, "--timeout", "300ms", "ls", "/"], capture_output=True,
                                  text=True, user=OTHER, group=OTHER, extra_groups=[],
                                  env=environment(CLAVE_LOCAL_DIR=directory))

        for part in (self.dir, os.path.dirname(self.dir), os.path.dirname(os.path.dirname(self.dir))):
            if part != self.dir:
                self.addCleanup(os.chmod, part, stat.S_IMODE(os.stat(part).st_mode))
                os.chmod(part, 0o755)
        if subprocess.run([CLAVE, "version"], capture_output=True, user=OTHER, group=OTHER,
                          extra_groups=[], check=False).returncode != 0:
            self.skipTest("the program is not there for others")
        r = as_other(self.dir)
        self.assertNotEqual(r.returncode, 0)
        self.assertEqual(r.stdout, "")
        self.assertEqual(self.run_clave("ls", "/").out, "n\nzookeeper\n")


if __name__ == "__main__":
    unittest.main()
