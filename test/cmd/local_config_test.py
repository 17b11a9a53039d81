"""Whom a local server excludes, and that nobody gets one unawares: the machine's configuration,
"local = never", what is said when a lock is taken there, another user's HOME."""
import json
import os
import pty
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import unittest

from harness import CLAVE, PATIENCE, Served, clave, environment, free_port, scratch, server, spawn
from lock_rig import alive, until

NAMES = ("--connect", "CLAVE_CONNECT", "connect = HOSTS")


def write(text):
    path = scratch("config")
    with open(path, "w") as f:
        f.write(text)
    return path


def end_server(directory):
    try:
        with open(directory + "/clave.lock") as f:
            pid = int(f.read().split()[0])
        os.kill(pid, signal.SIGTERM)
    except (OSError, ValueError, IndexError):
        return
    until(lambda: not alive(pid))


def on_terminal(words, env):
    """What the program says where somebody looks at its standard error."""
    ours, theirs = pty.openpty()
    p = spawn([CLAVE] + words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
              env=environment(**env))
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 4096):
            said += piece
    except OSError:  # the last of them has closed it
        pass
    os.close(ours)
    return p.wait(PATIENCE), said.decode()


class Machine(Served):
    """The machine's configuration file, below the user's."""

    def setUp(self):
        self.dir = scratch("state")
        self.addCleanup(end_server, self.dir)

    def run_with(self, system, *words, **env):
        return clave(*words, env={"CLAVE_LOCAL_DIR": self.dir, "CLAVE_SYSTEM_CONFIG": write(system),
                                  **env})

    def test_it_comes_last(self):
        good, bad = f"connect = {self.server.connect}\n", f"connect = 127.0.0.1:{free_port()}\n"
        for system, user, code in ((good, None, 0), (bad, good, 0), (good, bad, 69)):
            more = {"CLAVE_CONFIG": write(user)} if user else {}
            r = self.run_with(system, "--timeout", "400ms" if code else "10s", "get", "/", **more)
            self.assertEqual(r.code, code, r)
        r = self.run_with(bad, "get", "/", CLAVE_CONNECT=self.server.connect)
        self.assertEqual(r.code, 0, r)
        r = self.run_with(bad, "-c", self.server.connect, "get", "/")
        self.assertEqual(r.code, 0, r)

    def test_each_key_by_itself(self):
        r = self.run_with(f"connect = {self.server.connect}\nsession-timeout = 7s\n", "-v", "get", "/",
                          CLAVE_CONFIG=write("session-timeout = 8s\n"))
        self.assertEqual(r.code, 0, r)
        self.assertIn("timeout 8000ms", r.err)

    def test_faults_are_told(self):
        r = self.run_with("# the machine's\nconnekt = x\n", "get", "/")
        self.assertEqual(r.code, 64, r)
        self.assertRegex(r.err, r"config:2: unknown key 'connekt'")
        two = f"connect = {self.server.connect}\n\nconnect = 127.0.0.1:{free_port()}\n"
        for words in ("get", "/"), ("lock", "/x", "true"), ("-c", self.server.connect, "get", "/"):
            r = self.run_with(two, *words)
            self.assertEqual(r.code, 64, r)
            self.assertRegex(r.err, r"config:3: connect: already set on line 1")
        r = self.run_with(f"connect = {self.server.connect}\rauth = digest:a:b\r", "get", "/")
        self.assertEqual(r.code, 64, r)
        self.assertRegex(r.err, r"config:1: a carriage return within the line")

    def refused(self, r, who):
        self.assertEqual((r.code, r.out), (64, ""), r)
        self.assertIn(who, r.err)
        for name in NAMES:
            self.assertIn(name, r.err)
        self.assertFalse(os.path.exists(self.dir), "a server was started")

    def test_never(self):
        for verb in ["lock", "/j", "--", "true"], ["elect", "/j", "--", "true"], ["get", "/"]:
            self.refused(self.run_with("local = never\n", *verb), "config:1: local = never")
            self.refused(self.run_with("", *verb, CLAVE_LOCAL="never"), "CLAVE_LOCAL=never")
            self.refused(self.run_with("", *verb, CLAVE_CONFIG=write("\nlocal = never\n")),
                         "config:2: local = never")
            self.refused(self.run_with("local = never\n", "-c", "local:", *verb), "local = never")

    def test_never_is_not_taken_back(self):
        self.refused(self.run_with("local = never\n", "get", "/", CLAVE_LOCAL="yes"), "local = never")
        self.refused(self.run_with("local = never\n", "get", "/", CLAVE_CONFIG=write("local = yes\n")),
                     "local = never")
        self.refused(self.run_with("local = yes\n", "get", "/", CLAVE_LOCAL="never"), "CLAVE_LOCAL")

    def test_never_leaves_named_servers_alone(self):
        r = self.run_with("local = never\n", "get", "/", CLAVE_CONNECT=self.server.connect)
        self.assertEqual((r.code, r.err), (0, ""), r)

    def test_what_else_it_might_be(self):
        r = self.run_with("local = no\n", "get", "/")
        self.assertEqual(r.code, 64, r)
        self.assertIn("config:1: 'no': expected yes, warn or never", r.err)
        r = self.run_with("", "get", "/", CLAVE_LOCAL="no")
        self.assertEqual(r.code, 64, r)
        self.assertIn("CLAVE_LOCAL: 'no': expected yes, warn or never", r.err)

    def test_programs_that_use_the_library_get_none_either(self):
        """Older ones read no configuration; the server they start does."""
        r = self.run_with("local = never\n", "serve", "--local", self.dir)
        self.assertEqual(r.code, 64, r)
        self.assertIn("config:1: local = never", r.err)
        self.assertFalse(os.path.exists(self.dir))

    def test_its_place(self):
        """/etc/clave/config, in a namespace in which it is there."""
        script = ("mount -t tmpfs none /etc && mkdir /etc/clave && "
                  "echo 'local = never' >/etc/clave/config && exec \"$0\" get /")
        env = environment(CLAVE_LOCAL_DIR=self.dir)
        del env["CLAVE_SYSTEM_CONFIG"]
        if shutil.which("unshare") is None or subprocess.call(["unshare", "-rm", "true"]) != 0:
            self.skipTest("no namespace of our own to be had")
        p = spawn(["unshare", "-rm", "sh", "-c", script, CLAVE], stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, env=env)
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual((p.returncode, out), (64, b""), err)
        self.assertIn(b"/etc/clave/config:1: local = never", err)


class Said(unittest.TestCase):
    """A lock that excludes this user alone is told of where nobody looks."""

    def setUp(self):
        self.dir = scratch("state")
        self.env = {"CLAVE_LOCAL_DIR": self.dir}
        self.addCleanup(end_server, self.dir)

    def test_where_nobody_looks(self):
        user = pwd.getpwuid(os.geteuid()).pw_name
        for words, what in ((["lock", "/j"], "acquired"), (["elect", "/e"], "elected"),
                            (["rwlock", "-r", "/rw"], "acquired"),
                            (["semaphore", "-n", "2", "/s"], "acquired")):
            r = clave(*words, "--", "sh", "-c", "echo $CLAVE_SESSION", env=self.env)
            self.assertEqual(r.code, 0, r)
            lines = r.err.splitlines()
            self.assertEqual(len(lines), 1, r)
            self.assertIn(f"{words[-1]}: {what} at local:, user {user}'s own server at "
                          f"{self.dir}/clave.sock, session {r.out.strip()}: ", lines[0])
            self.assertIn("--connect", lines[0])
            self.assertIn("local = yes", lines[0])
        self.assertEqual(clave("get", "/", env=self.env).err, "")  # which holds nothing

    def test_yes(self):
        r = clave("lock", "/j", "--", "true", env={**self.env, "CLAVE_LOCAL": "yes"})
        self.assertEqual((r.code, r.err), (0, ""), r)
        r = clave("lock", "/j", "--", "true",
                  env={**self.env, "CLAVE_SYSTEM_CONFIG": write("local = yes\n")})
        self.assertEqual((r.code, r.err), (0, ""), r)
        r = clave("-v", "lock", "/j", "--", "true", env={**self.env, "CLAVE_LOCAL": "yes"})
        self.assertIn(f"own server at {self.dir}/clave.sock, session 0x", r.err)

    def test_on_a_terminal(self):
        code, said = on_terminal(["lock", "/j", "--", "true"], self.env)
        self.assertEqual((code, said), (0, ""))
        code, said = on_terminal(["-v", "lock", "/j", "--", "true"], self.env)
        self.assertIn(f"own server at {self.dir}/clave.sock, session 0x", said)

    def test_json(self):
        r = clave("--json", "lock", "/j", "--", "true", env=self.env)
        event = json.loads(r.err.splitlines()[0])
        self.assertEqual(event["event"], "acquired", r)
        self.assertEqual(event["local"]["socket"], self.dir + "/clave.sock")
        self.assertEqual(event["local"]["user"], pwd.getpwuid(os.geteuid()).pw_name)

    def test_of_another_server_nothing(self):
        with_own = server()
        self.addCleanup(with_own.stop)
        r = clave("lock", "/j", "--", "true", connect=with_own.connect)
        self.assertEqual((r.code, r.err), (0, ""), r)
        r = clave("--json", "lock", "/j", "--", "true", connect=with_own.connect)
        self.assertNotIn("local", json.loads(r.err.splitlines()[0]))


@unittest.skipUnless(os.geteuid() == 0, "needs root: another user's HOME")
class Others(unittest.TestCase):
    """HOME is another user's: sudo keeps it, and so does su without a dash."""

    def setUp(self):
        self.base = tempfile.mkdtemp(prefix="clave-test-others-")  # which others may enter
        self.addCleanup(shutil.rmtree, self.base)
        os.chmod(self.base, 0o755)
        self.nobody = pwd.getpwnam("nobody")
        self.home = self.base + "/home"
        os.mkdir(self.home)
        os.chown(self.home, self.nobody.pw_uid, self.nobody.pw_gid)

    def left(self):
        return [os.path.join(d, n) for d, dirs, files in os.walk(self.home) for n in dirs + files
                if os.lstat(os.path.join(d, n)).st_uid == 0]

    def test_root_leaves_nothing_there(self):
        """In a namespace in which root's own home is a place of the test."""
        if shutil.which("unshare") is None or subprocess.call(["unshare", "-m", "true"]) != 0:
            self.skipTest("no namespace of our own to be had")
        roots = scratch("root")
        os.mkdir(roots)
        place = pwd.getpwuid(0).pw_dir
        until_ended = ('for pid in $(cat "$1"/.local/state/clave/clave.lock); do kill $pid; '
                       'while kill -0 $pid 2>/dev/null; do :; done; done')
        for name, value in (("HOME", self.home), ("XDG_STATE_HOME", self.home + "/.local/state")):
            script = (f'mount --bind "$2" {place} && shift 0 && "$0" -v create /x; code=$?; '
                      f'set -- {place}; {until_ended}; rm -r {place}/.local; exit $code')
            env = environment(**{"HOME": place, name: value})
            p = spawn(["unshare", "-m", "sh", "-c", script, CLAVE, place, roots],
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
            out, err = p.communicate(timeout=PATIENCE)
            self.assertEqual((p.returncode, out), (0, b"/x\n"), err)
            self.assertIn(f"{name} names another user's directory".encode(), err)
            self.assertIn(f"{place}/.local/state/clave/clave.sock".encode(), err)
            self.assertEqual(self.left(), [], err)

    def test_root_is_told_of_a_directory_it_named(self):
        r = clave("get", "/", env={"CLAVE_LOCAL_DIR": self.home + "/state"})
        self.assertEqual(r.code, 69, r)
        self.assertIn(f"{self.home}/state would belong to root in a directory of user", r.err)
        self.assertEqual(self.left(), [])

    def as_nobody(self, *words, **env):
        program = self.base + "/clave"
        shutil.copy(CLAVE, program)

        def become():
            os.setgroups([])
            os.setgid(self.nobody.pw_gid)
            os.setuid(self.nobody.pw_uid)
        p = subprocess.Popen([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             preexec_fn=become, env=environment(**env), cwd="/")
        out, err = p.communicate(timeout=PATIENCE)
        return p.returncode, out.decode(), err.decode()

    def test_a_configuration_that_is_not_ours_to_read(self):
        with_own = server()
        self.addCleanup(with_own.stop)
        closed = self.base + "/closed"
        os.makedirs(closed + "/.config/clave")
        os.chmod(closed, stat.S_IRWXU)
        path = f"{closed}/.config/clave/config: Permission denied"
        for words, env in ((["-c", with_own.connect], {}), ([], {"CLAVE_CONNECT": with_own.connect})):
            code, out, err = self.as_nobody(*words, "ls", "/", HOME=closed, **env)
            self.assertEqual((code, out), (0, "zookeeper\n"), err)
            self.assertEqual(err, f"clave: ls: configuration {path}: continuing without it\n")
        for words in ([], ["-c", "local:"]):  # it may say that there is none
            code, out, err = self.as_nobody(*words, "ls", "/", HOME=closed)
            self.assertEqual((code, out), (64, ""), err)
            self.assertIn(path, err)
            self.assertIn("CLAVE_CONNECT", err)

    def test_root_and_nobody_by_the_machines_configuration(self):
        """The same line, as root and as nobody: with a server that the machine names they exclude
        each other."""
        with_own = server()
        self.addCleanup(with_own.stop)
        config = self.base + "/config"
        with open(config, "w") as f:
            f.write(f"connect = {with_own.connect}\nlocal = never\n")
        env = {"CLAVE_SYSTEM_CONFIG": config, "HOME": self.home}
        fifo = self.base + "/go"
        os.mkfifo(fifo)
        held = spawn([CLAVE, "lock", "-n", "/jobs/nightly", "--", "sh", "-c", f"echo; read x <{fifo}"],
                     stdout=subprocess.PIPE, env=environment(**env))
        self.assertEqual(held.stdout.readline(), b"\n")
        code, out, err = self.as_nobody("lock", "-n", "/jobs/nightly", "--", "echo", "both ran", **env)
        self.assertEqual((code, out), (75, ""), err)
        with open(fifo, "w") as f:
            f.write("\n")
        self.assertEqual(held.wait(PATIENCE), 0)
        held.stdout.close()


if __name__ == "__main__":
    unittest.main()
