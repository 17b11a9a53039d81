"""local: when it cannot be: what somebody has to mend is said at once, what passes is waited for; a
disk that is full, at the start and later; and an upgrade under clients that hold locks."""
import contextlib
import fcntl
import json
import os
import resource
import signal
import stat
import subprocess
import time
import unittest

from harness import CLAVE, PATIENCE, Running, clave, environment, scratch, spawn

OTHER = 54321  # the id of a user who owns nothing here
IS_ROOT = os.geteuid() == 0
BLOCK = 4096


def await_(condition, what):
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"not in time: {what}")
        time.sleep(0.01)


def read(path):
    with open(path, "rb") as f:
        return f.read()


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = scratch("state")
        self.env = {"CLAVE_LOCAL_DIR": self.dir}
        self.addCleanup(self.end_server)

    def pid(self):
        try:
            with open(self.dir + "/clave.lock") as f:
                return int(f.read())
        except (OSError, ValueError):
            return 0

    def is_served(self):
        try:
            fd = os.open(self.dir + "/clave.lock", os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        finally:
            os.close(fd)

    def end_server(self, how=signal.SIGTERM):
        """And of one that a client has started meanwhile: it may come late, and outlives it."""
        told = set()

        def is_gone():
            pid = self.pid() if self.is_served() else 0
            if pid > 1 and pid not in told:
                told.add(pid)
                with contextlib.suppress(ProcessLookupError):  # of the one before, not replaced yet
                    os.kill(pid, how)
            return not self.is_served()

        await_(is_gone, "the end of the server")

    def run_clave(self, *words, program=CLAVE, **keywords):
        """It may try for an hour: what ends in time has not."""
        p = spawn([program, "--timeout", "1h", *words], stdin=subprocess.DEVNULL, text=True,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**self.env),
                  **keywords)
        out, err = p.communicate(timeout=PATIENCE)
        return p.returncode, out, err

    def fine(self, *words, **keywords):
        code, out, err = self.run_clave(*words, **keywords)
        self.assertEqual(code, 0, err)
        return out

    def holder(self, program):
        """Of the lock /l, until it is given a line."""
        p = spawn([program, "--session-timeout", "60s", "lock", "/l", "--", "sh", "-c",
                   "echo held; read x; exit 3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                  text=True, env=environment(**self.env))
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stdin.close)
        self.assertEqual(p.stdout.readline(), "held\n")
        return p

    def refused(self, *texts, **keywords):
        for words in (["ls", "/"], ["lock", "/l", "true"], ["elect", "--forever", "/e", "true"]):
            code, out, err = self.run_clave(*words, **keywords)
            self.assertEqual((code, out), (69, ""), err)
            self.assertEqual(err.count("\n"), 1, err)
            for text in texts:
                self.assertIn(text, err)


class Mended(Case):
    """What stays until somebody does something."""

    def test_the_path_is_a_file(self):
        with open(self.dir, "w"):
            pass
        self.refused(self.dir, "it is no directory", "CLAVE_LOCAL_DIR")
        self.env["CLAVE_LOCAL_DIR"] = self.dir + "/below"
        self.refused(self.dir + "/below", "Not a directory")

    def test_a_link(self):
        os.mkdir(self.dir + ".real", 0o700)
        os.symlink(self.dir + ".real", self.dir)
        self.refused(self.dir, "it is a symbolic link")

    def test_others_may_write_to_it(self):
        os.mkdir(self.dir)
        os.chmod(self.dir, 0o777)
        self.refused(self.dir, "only this user can write to", "chmod go-w")
        os.chmod(self.dir, 0o700)
        self.fine("create", "/n")

    def test_something_else_is_in_there(self):
        os.mkdir(self.dir, 0o700)
        with open(self.dir + "/photo.jpg", "w"):
            pass
        self.refused(self.dir + " is not a data directory", "'photo.jpg'")

    def test_the_data_is_damaged(self):
        self.fine("create", "/n")
        self.end_server()
        [log] = [f for f in os.listdir(self.dir + "/version-2") if f.startswith("log.")]
        log = f"{self.dir}/version-2/{log}"
        with open(log, "r+b") as f:
            f.seek(60)
            f.write(b"XXXX")
        before = read(log)
        self.refused(log + " is damaged", "clave data restore BACKUP NEW")
        self.assertEqual(read(log), before)

    def test_the_socket_s_place_is_taken(self):
        os.mkdir(self.dir, 0o700)
        with open(self.dir + "/clave.sock", "w"):
            pass
        self.refused(self.dir + "/clave.sock")

    def test_no_room_for_a_byte(self):
        """As on a full disk, for those who cannot mount one."""
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            code, _, err = self.run_clave("ls", "/")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.assertEqual(code, 69, err)
        self.assertIn(f"cannot write the first snapshot in {self.dir}: File too large", err)
        self.assertEqual(self.fine("ls", "/"), "zookeeper\n")

    @unittest.skipUnless(IS_ROOT, "only root can be another user")
    def test_the_directory_belongs_to_another(self):
        os.mkdir(self.dir, 0o700)
        os.chown(self.dir, OTHER, OTHER)
        self.refused(self.dir, f"it belongs to user {OTHER}, and this process to user 0",
                     "CLAVE_LOCAL_DIR")

    def as_other(self):
        part = os.path.dirname(self.dir)
        while part != "/":
            if os.stat(part).st_uid == os.geteuid() and stat.S_IMODE(os.stat(part).st_mode) == 0o700:
                self.addCleanup(os.chmod, part, 0o700)
                os.chmod(part, 0o755)
            part = os.path.dirname(part)
        other = {"user": OTHER, "group": OTHER, "extra_groups": []}
        try:
            subprocess.run([CLAVE, "version"], check=True, stdout=subprocess.DEVNULL, **other)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("the program is not there for others")
        return other

    @unittest.skipUnless(IS_ROOT, "only root can be another user")
    def test_no_right_to_write(self):
        other = self.as_other()
        self.env["CLAVE_LOCAL_DIR"] = os.path.dirname(self.dir) + "/new"
        self.refused("cannot create " + self.env["CLAVE_LOCAL_DIR"], "Permission denied", **other)

    @unittest.skipUnless(IS_ROOT, "only root can be another user")
    def test_two_users(self):
        other = self.as_other()
        self.fine("create", "/n")
        self.refused(self.dir, f"it belongs to user 0, and this process to user {OTHER}", **other)
        self.assertEqual(self.fine("ls", "/"), "n\nzookeeper\n")

    @unittest.skipUnless(IS_ROOT, "only root can be another user")
    def test_another_s_server_in_our_place(self):
        other = self.as_other()
        os.mkdir(self.dir)
        os.chmod(self.dir, 0o777)
        theirs = spawn([CLAVE, "serve", "--data", self.dir + "/theirs", "--listen",
                        f"unix:{self.dir}/clave.sock"], stdout=subprocess.PIPE, text=True,
                       env=environment(), **other)
        self.addCleanup(theirs.stdout.close)
        self.assertIn("serving on", theirs.stdout.readline())
        os.chmod(self.dir, 0o700)
        self.refused(self.dir + "/clave.sock", f"belongs to user {OTHER}, and this process to user 0")
        theirs.kill()
        theirs.wait()


class Passing(Case):
    """What passes by itself."""

    def test_another_process_holds_the_directory_for_a_moment(self):
        os.mkdir(self.dir, 0o700)
        with open(self.dir + "/clave.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            client = Running("-v", "--timeout", "1h", "create", "/n", env=self.env)
            # A server has been started, and has found it locked.
            await_(self.servers, "the start of a server")
            await_(lambda: not self.servers(), "its end")
            self.assertIsNone(client.process.poll())
        r = client.end()
        self.assertEqual((r.code, r.out), (0, "/n\n"), r)

    def servers(self):
        """Servers of our directory."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if f.read().split(b"\0")[1:4] == [b"serve", b"--local", self.dir.encode()]:
                        found.append(pid)
            except OSError:
                pass
        return found

    def test_killed_and_stopped_servers(self):
        for how in (signal.SIGKILL, signal.SIGTERM):
            self.fine("set", "--create", "/n", "data")
            os.kill(self.pid(), how)  # and not a moment's waiting
            self.assertEqual(self.fine("get", "/n"), "data")


class FullDisk(Case):
    """A file system of its own, that is filled up."""

    SIZE = 256 * 1024

    def setUp(self):
        super().setUp()
        if not IS_ROOT:
            self.skipTest("only root can mount a file system to fill up")
        os.mkdir(self.dir, 0o700)
        r = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.SIZE},mode=700", "none",
                            self.dir], capture_output=True, text=True)
        if r.returncode != 0:
            self.skipTest("no file system can be mounted here: " + r.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", self.dir], check=True)
        self.addCleanup(self.end_server)
        self.ballast = self.dir + "/version-2/ballast"

    def fill_up(self, path):
        with open(path, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(BLOCK))
            except OSError:
                pass

    def test_at_the_first_start(self):
        ballast = self.dir + "/serve.log"
        self.fill_up(ballast)
        self.refused(self.dir, "No space left on device", "free some space")
        os.truncate(ballast, 0)
        self.assertEqual(self.fine("ls", "/"), "zookeeper\n")

    def test_while_it_runs_and_at_the_next_start(self):
        self.fine("create", "/before", "kept")
        holder = self.holder(CLAVE)
        self.fill_up(self.ballast)
        code, err, n = 0, "", 0
        while code == 0:  # the log had some room ahead of its records
            code, _, err = self.run_clave("create", f"/n{n}", "x" * 30000)
            n += code == 0
            self.assertLess(n, 20)
        # Its outcome is not known, and where it is told why is.
        self.assertEqual(code, 69)
        self.assertIn("it may have taken effect", err)
        self.assertIn(self.dir + "/serve.log", err)
        await_(lambda: "No space left on device (free some space" in self.log(), "the reason")
        os.unlink(self.ballast)
        self.assertEqual(self.fine("get", "/before"), "kept")
        for i in range(n):
            self.assertEqual(self.fine("get", f"/n{i}"), "x" * 30000)
        self.assertEqual(len(self.fine("locks", "/l").splitlines()), 1)
        holder.communicate("\n", timeout=PATIENCE)
        self.assertEqual(holder.returncode, 3)

    def log(self):
        with open(self.dir + "/serve.log", errors="replace") as f:
            return f.read()


class Upgrade(Case):
    def setUp(self):
        super().setUp()
        version = subprocess.run([CLAVE, "version"], capture_output=True, text=True,
                                 check=True).stdout.split()[1]
        with open(CLAVE, "rb") as f:
            image = f.read()
        self.new = version
        self.old = "0" * (len(version) - 4) + ".0.9"
        self.program = scratch("clave")
        with open(self.program, "wb") as f:
            for end in b"\0", b",":  # as a text of its own, and in what the server says
                image = image.replace(version.encode() + end, self.old.encode() + end)
            f.write(image)
        os.chmod(self.program, 0o755)
        self.assertEqual(subprocess.run([self.program, "version"], capture_output=True, text=True,
                                        check=True).stdout, f"clave {self.old}\n")

    def served_by(self, **keywords):
        server = self.fine("ping", "-n", "1", **keywords).splitlines()[0]
        return server.rsplit("-clave-", 1)[1]

    def grant(self):
        [line] = self.fine("--json", "locks", "/l").splitlines()
        g = json.loads(line)
        return g["token"], g["session"], g["node"]

    def test_a_lock_outlasts_the_server_s_version(self):
        holder = self.holder(self.program)
        # The new version comes, and works with the server that is there.
        self.assertEqual(self.served_by(), self.old)
        before = self.grant()
        # Of those who miss the server, the first starts it: let it be the new version.
        holder.send_signal(signal.SIGSTOP)
        self.end_server()
        self.assertEqual(self.served_by(), self.new)
        self.assertEqual(self.grant(), before)
        holder.send_signal(signal.SIGCONT)
        # The old version works with the new server.
        self.assertEqual(self.served_by(program=self.program), self.new)
        code, _, _ = self.run_clave("lock", "-n", "/l", "true")
        self.assertEqual(code, 75)
        holder.communicate("\n", timeout=PATIENCE)
        self.assertEqual(holder.returncode, 3)
        self.assertEqual(self.fine("locks", "/l"), "")
        # And back: the old version reads what the new one has written.
        self.fine("create", "/by-new", "data")
        self.end_server()
        self.assertEqual(self.fine("get", "/by-new", program=self.program), "data")
        self.assertEqual(self.served_by(), self.old)


if __name__ == "__main__":
    unittest.main()
