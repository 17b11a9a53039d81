"""clave serve: starting, ending, what it refuses, and local:."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import unittest

from harness import (CLAVE, PATIENCE, UNSAFE, ClaveServer, ask, clave, environment, free_port, scratch,
                     spawn)
from lock_rig import until


def serve(*words, env=None):
    """Runs a server that should not start to its end."""
    return clave("serve", *words, env=env)


class Serving(unittest.TestCase):
    def started(self, *words, env=None):
        p = spawn([CLAVE, "serve"] + list(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True, env=environment(**(env or {})))
        line = p.stdout.readline()
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.addCleanup(lambda: p.poll() is None and (p.kill(), p.wait()))
        self.assertTrue(line, p.stderr.read() if not line else "")
        return p, line

    def refused(self, code, text, *words):
        r = serve(*words)
        self.assertEqual(r.code, code, r)
        self.assertEqual(r.out, "")
        self.assertRegex(r.err, r"^clave: serve: ")
        self.assertIn(text, r.err)
        return r

    def test_ready_line(self):
        data, port = scratch("data"), free_port()
        p, line = self.started("--data", data, "--listen", f"127.0.0.1:{port}")
        self.assertEqual(line, f"clave: serving on 127.0.0.1:{port}, data {data}, zxid 0x0, "
                               "0 sessions\n")
        self.assertEqual(clave("create", "/n", "v", connect=f"127.0.0.1:{port}").code, 0)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(PATIENCE), 0)
        p, line = self.started("--data", data, "--listen", f"127.0.0.1:{port}", "--json")
        ready = json.loads(line)
        self.assertEqual(ready["listen"], [f"127.0.0.1:{port}"])
        self.assertGreater(int(ready["zxid"], 16), 0)
        self.assertEqual(clave("get", "/n", connect=f"127.0.0.1:{port}").out, "v")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(PATIENCE), 0)

    def test_many_addresses_and_a_free_port(self):
        path = scratch("socket")
        p, line = self.started("--data", scratch("data"), "-l", "127.0.0.1:0", "-l",
                               f"unix:{path}")
        port = re.match(r"clave: serving on 127\.0\.0\.1:(\d+) unix:", line).group(1)
        self.assertEqual(clave("create", "/a", connect=f"127.0.0.1:{port}").code, 0)
        self.assertEqual(clave("ls", "/", connect=f"unix:{path}").out, "a\nzookeeper\n")
        self.pings(f"unix:{path}")
        self.pings(f"127.0.0.1:{port}")

    def pings(self, address, said=None):
        """The address that it prints is one that it takes."""
        for at in address, said or address:
            r = clave("ping", "-n1", connect=at)
            self.assertEqual((r.code, r.out.split()[:2]), (0, ["server", said or address]), r)

    def test_ping_of_an_ipv6_address(self):
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 here")
        _, line = self.started("--data", scratch("data"), "-l", "[::1]:0")
        self.pings(re.search(r"\[::1\]:\d+", line).group(0))

    def test_unix_socket_of_a_group(self):
        path, gid = scratch("socket"), os.getgid()
        _, line = self.started("--data", scratch("data"), "-l", "127.0.0.1:0", "-l",
                               f"unix:{path}?mode=0660&group={gid}")
        port = re.match(r"clave: serving on 127\.0\.0\.1:(\d+) (\S+),", line)
        self.assertEqual(port.group(2), f"unix:{path}")
        self.assertEqual(os.stat(path).st_mode & 0o7777, 0o660)
        self.assertEqual(os.stat(path).st_gid, gid)
        r = clave("create", "/mine", "x", "--acl", "creator", connect=f"unix:{path}")
        self.assertEqual(r.code, 0, r)
        self.assertEqual(clave("get", "/mine", connect=f"unix:{path}").out, "x")
        self.assertEqual(clave("get", "/mine", connect=f"127.0.0.1:{port.group(1)}").code, 77)
        self.refused(64, "there is no group 'no-such-group-here'", "--data", scratch("data"), "-l",
                     f"unix:{path}2?group=no-such-group-here")

    def test_killed_and_started_again(self):
        s = ClaveServer().start()
        for i in range(3):
            self.assertEqual(clave("create", f"/n{i}", connect=s.connect).code, 0)
            s.stop(signal.SIGKILL)
            s.start()
        r = clave("ls", connect=s.connect)
        self.assertEqual(r.code, 0, r)
        self.assertEqual(r.out, "n0\nn1\nn2\nzookeeper\n", f"{UNSAFE}: a lost write")
        s.stop()

    def test_usage(self):
        self.refused(64, "--data", )
        d = scratch("d")
        for words in (["x"], ["--listen", "nonsense"], ["--listen", "127.0.0.1:99999"],
                      ["--tick", "5x"], ["--tick", "0s"], ["--snap-count", "1"],
                      ["--min-session-timeout", "9s", "--max-session-timeout", "8s"],
                      ["--max-session-timeout", "1s"], ["--words", "ruok,nonsense"],
                      ["--words", ""], ["--words", " , "], ["--words", "k,co"], ["--super-digest", "joe:password"],
                      ["--data", ""], ["--local", d], ["--max-connections", "-1"], ["--idle-exit", "soon"]):
            self.refused(64, "", "--data", d, *words)

    def test_directory_in_use(self):
        s = ClaveServer().start()
        r = self.refused(74, s.data, "--data", s.data, "--listen", f"127.0.0.1:{free_port()}")
        self.assertIn("use", r.err)
        s.stop()

    def test_address_in_use(self):
        s = ClaveServer().start()
        self.refused(74, s.connect, "--data", scratch("data"), "--listen", s.connect)
        s.stop()
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = "127.0.0.1:%d" % other.getsockname()[1]
            self.refused(74, address, "--data", scratch("data"), "--listen", address)

    def test_directory_that_cannot_be(self):
        a = f"127.0.0.1:{free_port()}"
        file = scratch("file")
        open(file, "w").close()
        self.refused(74, file, "--data", file, "--listen", a)
        self.refused(74, "/proc", "--data", "/proc/clave", "--listen", a)

    def test_socket_that_cannot_be(self):
        file = scratch("file")
        open(file, "w").close()
        self.refused(74, "is not a socket", "--data", scratch("data"), "--listen", f"unix:{file}")
        self.assertTrue(os.path.exists(file))
        self.refused(64, "absolute", "--data", scratch("data"), "--listen", "unix:socket")

    def test_damaged_log(self):
        s = ClaveServer().start()
        for i in range(5):
            clave("create", f"/n{i}", "x" * 100, connect=s.connect)
        s.stop(signal.SIGKILL)
        log = max(glob.glob(s.data + "/version-2/log.*"))
        with open(log, "r+b") as f:
            f.seek(300)
            f.write(b"\xde\xad\xbe\xef")
        r = self.refused(74, log, "--data", s.data, "--listen", s.connect)
        self.assertRegex(r.err, "damage|corrupt|checksum")

    def test_torn_tail_is_cut_off(self):
        s = ClaveServer().start()
        clave("create", "/kept", connect=s.connect)
        s.stop(signal.SIGKILL)
        log = max(glob.glob(s.data + "/version-2/log.*"))
        with open(log, "rb") as f:
            used = len(f.read().rstrip(b"\0"))
        with open(log, "r+b") as f:
            f.seek(used)
            f.write(b"\0\0\0\0\x12\x34\x56\x78\0\0\0\x40half a record")
        s.start()
        self.assertEqual(clave("ls", connect=s.connect).out, "kept\nzookeeper\n")
        s.stop()

    def test_no_advice_costs_data(self):
        """What is refused names another directory to go on with, and leaves this one as it is."""
        s = ClaveServer(["--snap-count", "5"]).start()
        for i in range(12):
            clave("create", f"/n{i}", "x" * 100, connect=s.connect)
        s.stop(signal.SIGKILL)
        files = {n: open(f"{s.data}/version-2/{n}", "rb").read() for n in os.listdir(s.data + "/version-2")}
        oldest = min((n for n in files if n.startswith("snapshot.")), key=lambda n: int(n[9:], 16))
        logs = {n: b for n, b in files.items() if n.startswith("log.")}
        # The first that is read behind the snapshot: the end of the newest may be torn, and what is before is not read.
        log = min((n for n in logs if int(n[4:], 16) > int(oldest[9:], 16)), key=lambda n: int(n[4:], 16))
        flipped = bytearray(files[log])
        flipped[100] ^= 1
        first = min(logs, key=lambda n: int(n[4:], 16))
        for what, left, fault, until in (
                ("a damaged log", {oldest: files[oldest], **logs, log: bytes(flipped)}, "is damaged", True),
                ("a newest snapshot that leads nowhere", {oldest: files[oldest], first: logs[first], "snapshot.ffff": b""},
                 "cannot be read", True),
                ("no snapshot", logs, "but no snapshot", False),
                ("empty snapshots", {oldest: b"", **logs}, "no snapshot in", False)):
            with self.subTest(what):
                data = scratch("data")
                os.makedirs(data + "/version-2")
                for name, content in left.items():
                    with open(f"{data}/version-2/{name}", "wb") as f:
                        f.write(content)
                r = self.refused(74, fault, "--data", data, "--listen", s.connect)
                self.assertNotRegex(r.err, r"truncate|remove|delete|\brm\b")
                self.assertIn("clave data restore BACKUP NEW", r.err)
                for name, content in left.items():
                    with open(f"{data}/version-2/{name}", "rb") as f:
                        self.assertEqual(f.read(), content)
                way = re.search(r"clave data restore (--until 0x\w+) (\S+) NEW", r.err)
                self.assertEqual(bool(way), until, r)
                if way:
                    new = scratch("new")
                    r = clave("data", "restore", *way[1].split(), way[2], new)
                    self.assertEqual(r.code, 0, r)
                    self.assertEqual(clave("data", "check", new).code, 0)

    def test_data_that_is_gone_is_missed(self):
        s = ClaveServer().start()
        s.stop()
        os.rename(s.data + "/version-2", scratch("moved"))
        p = spawn([CLAVE, "serve", "--data", s.data, "--listen", s.connect], stdout=subprocess.DEVNULL,
                  stderr=subprocess.PIPE, text=True, env=environment())
        self.assertIn(f"{s.data} has been used by a server before, but its version-2 is missing", p.stderr.readline())
        p.terminate()
        p.wait(PATIENCE)
        p.stderr.close()

    def test_data_is_elsewhere(self):
        """An empty directory in place of the data would look like their loss."""
        s = ClaveServer().start()
        s.stop()
        above = scratch("above")
        os.makedirs(above)
        os.rename(s.data, above + "/zk")
        files, lost, inner = scratch("files"), scratch("lost"), scratch("inner")
        shutil.copytree(above + "/zk/version-2", files)
        os.symlink("/nowhere/at/all", lost)
        os.makedirs(inner)
        os.symlink("/nowhere/at/all", inner + "/version-2")
        for data, fault in ((above, f"name {above}/zk"),
                            (above + "/zk/version-2", "the version-2 of one: name the directory that contains it"),
                            (files, f"belongs in {files}/version-2"),
                            (lost, "leads nowhere"), (inner, "leads nowhere")):
            with self.subTest(data):
                self.refused(74, fault, "--data", data, "--listen", s.connect)

    def test_foreign_directory(self):
        data = scratch("data")
        os.makedirs(data + "/version-2")
        with open(data + "/version-2/log.1", "wb") as f:
            f.write(b"this is not a log of transactions" * 10)
        self.refused(74, "log.1", "--data", data, "--listen", f"127.0.0.1:{free_port()}")

    def test_session_limits(self):
        s = ClaveServer(["--tick", "100ms"]).start()
        for asked, got in (("1ms", 200), ("1s", 1000), ("1h", 2000)):
            r = clave("-v", "--session-timeout", asked, "ls", connect=s.connect)
            self.assertIn(f"timeout {got}ms", r.err, r)
        s.stop()
        s = ClaveServer(["--min-session-timeout", "3s", "--max-session-timeout", "4s"]).start()
        for asked, got in (("1ms", 3000), ("1h", 4000)):
            r = clave("-v", "--session-timeout", asked, "ls", connect=s.connect)
            self.assertIn(f"timeout {got}ms", r.err, r)
        s.stop()

    def test_connections_of_one_address(self):
        s = ClaveServer(["--max-connections", "2"]).start()
        held = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(2)]
        r = clave("ls", "--timeout", "300ms", connect=s.connect)
        self.assertEqual(r.code, 69, r)
        self.assertIn("its limit of connections may be reached (--max-connections; ", r.err)
        for h in held:
            h.close()
        self.assertEqual(clave("ls", connect=s.connect).code, 0)
        self.assertGreater(self.rejected(s), 0)
        s.stop()

    def mntr(self, s):
        return dict(line.split("\t") for line in ask(s.port, b"mntr").decode().splitlines())

    def rejected(self, s):
        return int(self.mntr(s)["zk_connection_rejected"])

    def session(self, s):
        """A connection with a session of its own, which lives for half a minute without a ping."""
        made = socket.create_connection(("127.0.0.1", s.port))
        made.sendall(struct.pack(">iiqiqi16x", 44, 0, 0, 30000, 0, 16))
        self.assertGreater(len(made.recv(64)), 4)
        return made

    def test_files_without_an_address_for_http(self):
        """Measured at the start, and again and again."""
        s = ClaveServer().start()
        files = f"/proc/{s.process.pid}/fd"
        # While it was measured two connections, or files that are soon closed, may have been open.
        first = int(self.mntr(s)["zk_open_file_descriptor_count"])
        self.assertAlmostEqual(first, len(os.listdir(files)), delta=2)
        held = [self.session(s) for _ in range(20)]  # the server closes what has none, perhaps before it measures
        until(lambda: int(self.mntr(s)["zk_open_file_descriptor_count"]) >= first + len(held) - 2)
        with open(f"/proc/{s.process.pid}/limits") as f:
            most = re.search(r"Max open files +(\d+)", f.read())[1]
        self.assertEqual(self.mntr(s)["zk_max_file_descriptor_count"], most)
        for h in held:
            h.close()
        s.stop()

    # A connection with a session does not count.
    def test_connections_without_a_session(self):
        s = ClaveServer(["--max-sessionless", "1"]).start()
        self.assertEqual(clave("lock", "/l", "--", CLAVE, "ls", connect=s.connect).code, 0)
        self.assertEqual(self.rejected(s), 0)
        with socket.create_connection(("127.0.0.1", s.port)):
            self.assertEqual(clave("ls", "--timeout", "300ms", connect=s.connect).code, 69)
        self.assertEqual(clave("ls", connect=s.connect).code, 0)
        self.assertGreater(self.rejected(s), 0)
        s.stop()

    def test_all_connections(self):
        s = ClaveServer(["--max-all-connections", "2"]).start()
        held = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(2)]
        for h in held:  # until the server has taken both
            h.sendall(b"\0\0")
        self.assertEqual(clave("ls", "--timeout", "300ms", connect=s.connect).code, 69)
        for h in held:
            h.close()
        self.assertEqual(clave("ls", connect=s.connect).code, 0)
        s.stop()

    def test_words(self):
        s = ClaveServer().start()
        self.assertEqual(ask(s.port, b"ruok"), b"imok")
        self.assertIn(b"not in the whitelist", ask(s.port, b"dump"))
        conf = ask(s.port, b"conf").decode()
        self.assertIn(f"clientPort={s.port}\n", conf)
        self.assertIn(f"dataDir={s.data}/version-2\n", conf)
        self.assertIn("maxClientCnxns=60\n", conf)
        size = os.path.getsize(s.data + "/version-2/snapshot.0")
        self.assertIn(f"datadir_size: {size}\n", ask(s.port, b"dirs").decode())
        s.stop()
        for words in "dump,wchp", "dump, wchp", " wchp dump ":
            s = ClaveServer(["--words", words]).start()
            self.assertIn(b"SessionTracker dump:", ask(s.port, b"dump"))
            self.assertNotIn(b"not in the whitelist", ask(s.port, b"wchp"))
            self.assertIn(b"not in the whitelist", ask(s.port, b"ruok"))
            s.stop()

    def test_the_super_user(self):
        s = ClaveServer(["--super-digest", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="]).start()
        self.assertEqual(clave("create", "/x", "1", "--acl", "digest:joe:oesAybBun9icKJjQSTRN8OBueSc=:r",
                               connect=s.connect).code, 0)
        self.assertEqual(clave("get", "/x", connect=s.connect).code, 77)
        result = clave("get", "/x", "--auth", "digest:super:test", connect=s.connect)
        self.assertEqual((result.code, result.out), (0, "1"), result)
        s.stop()

    def test_an_address_without_a_port(self):
        host = "127." + ".".join(str(1 + b % 254) for b in os.urandom(3))
        p, line = self.started("--data", scratch("data"), "-l", host)
        self.assertIn(f"serving on {host}:2181,", line)
        self.assertEqual(clave("ls", "/", connect=host).out, "zookeeper\n")
        p.terminate()

    def test_addresses_without_a_host_are_all_of_the_machine(self):
        p, line = self.started("--data", scratch("data"), "-l", ":0", "--metrics", ":0",
                               "--http", ":0")
        shown = re.match(r"clave: serving on (\S+):(\d+), data .*, zxid 0x0, 0 sessions, "
                         r"metrics (\S+):\d+, http (\S+):\d+$", line)
        self.assertTrue(shown, line)
        for n in (1, 3, 4):
            self.assertIn(shown.group(n), ("[::]", "0.0.0.0"), line)
        self.assertEqual(clave("ls", "/", connect=f"127.0.0.1:{shown.group(2)}").out,
                         "zookeeper\n")
        p.terminate()

    def test_frames_that_are_too_long(self):
        p, line = self.started("--data", scratch("data"), "-l", "127.0.0.1:0")
        port = int(re.match(r"clave: serving on 127\.0\.0\.1:(\d+),", line).group(1))
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s:
            hello = struct.pack(">iqiqi16s?", 0, 0, 10000, 0, 16, b"", False)
            s.sendall(struct.pack(">i", len(hello)) + hello)
            self.assertTrue(s.recv(4096))
            s.sendall(struct.pack(">i", 3000000) + b"x" * 1000)
            self.assertEqual(s.recv(4096), b"")
        self.assertRegex(p.stderr.readline(), r"^\S+Z clave: serve: 127\.0\.0\.1:\d+ is refused: "
                                              r"3000000 bytes of a request, the limit is 1048575 "
                                              r"\(--max-request; 1 refused since the last message\)$")

    def test_a_client_whose_request_is_too_long_is_told(self):
        p, line = self.started("--data", scratch("data"), "-l", "127.0.0.1:0", "--max-request", "100000")
        at = re.match(r"clave: serving on (127\.0\.0\.1:\d+),", line).group(1)
        r = clave("create", "/a", "-", connect=at, stdin=b"x" * 200000)
        self.assertEqual(r.code, 69, r)
        self.assertRegex(r.err, r"closed the connection while a request of 2000\d\d bytes was unanswered: "
                                r"the server's limit may be smaller \(clave serve --max-request; ")

    def test_a_limit_is_told_whatever_the_path(self):
        p, line = self.started("--data", scratch("data"), "-l", "127.0.0.1:0", "--max-answer", "1024")
        at = re.match(r"clave: serving on (127\.0\.0\.1:\d+),", line).group(1)
        r = clave("create", "/" + 487 * "n", "-", connect=at, stdin=b"x" * 1048560)
        self.assertEqual(r.code, 64, r)
        self.assertRegex(r.err, r"nnn\.\.\. is larger than the 1048575 bytes of one frame$")
        self.assertEqual(clave("create", "/a", "-", connect=at, stdin=b"x" * 2000).code, 0)
        r = clave("get", "/a", connect=at)
        self.assertEqual(r.code, 66, r)
        self.assertEqual(r.err.strip(),
                         "clave: get: /a: the server does not send an answer this long "
                         "(clave serve --max-answer), or could not read the request")

    def test_full_disk_is_told_once(self):
        data = scratch("data")
        p = spawn(["sh", "-c", 'ulimit -f 64; exec "$0" "$@"', CLAVE, "serve", "--data", data,
                   "-l", f"unix:{data}.sock"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True, env=environment())
        self.assertIn("serving on", p.stdout.readline())
        r = clave("create", "/n", "x" * 100000, "--timeout", "3s", connect=f"unix:{data}.sock")
        self.assertEqual(r.code, 69, r)
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual((p.returncode, out), (74, ""), err)
        self.assertRegex(err, rf"^\S+Z clave: serve: cannot write the log in {data}: .*\n$")

    def test_idle_exit(self):
        p, _ = self.started("--data", scratch("data"), "-l", "127.0.0.1:0", "--idle-exit", "200ms")
        self.assertEqual(p.wait(PATIENCE), 0)

    def test_many_snapshots(self):
        s = ClaveServer(["--snap-count", "10"]).start()
        for i in range(40):
            clave("set", "/n", str(i), "--create", connect=s.connect)
        until(lambda: len(glob.glob(s.data + "/version-2/snapshot.*")) > 1)  # they take their time
        s.stop(signal.SIGKILL)
        s.start()
        self.assertEqual(clave("get", "/n", connect=s.connect).out, "39")
        s.stop()


class Local(unittest.TestCase):
    """local: starts its server; it is told to end soon after the last client."""

    def setUp(self):
        self.dir = scratch("local")
        self.env = {"CLAVE_LOCAL_DIR": self.dir}

    def tearDown(self):
        # The server is nobody's child: its data directory names it.
        for entry in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(entry, "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if b"serve" in words and self.dir.encode() in words:
                os.kill(int(entry.split("/")[2]), signal.SIGKILL)

    def test_first_use(self):
        r = clave("create", "/x", "here", env=self.env)
        self.assertEqual((r.code, r.out, r.err), (0, "/x\n", ""), r)
        self.assertEqual(clave("get", "/x", env=self.env).out, "here")
        self.assertEqual(clave("get", "/x", "--connect", "local:", env=self.env).out, "here")

    def test_many_first_uses_at_once(self):
        runs = [spawn([CLAVE, "create", "-s", "/n-"], stdin=subprocess.DEVNULL,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                      env=environment(**self.env)) for _ in range(8)]
        made = set()
        for p in runs:
            out, err = p.communicate(timeout=PATIENCE)
            self.assertEqual(p.returncode, 0, err)
            made.add(out)
        self.assertEqual(len(made), 8, f"{UNSAFE}: two servers for one directory")

    def test_served_already(self):
        clave("ls", env=self.env)
        self.assertEqual(serve("--local", self.dir).code, 0)

    def test_no_directory(self):
        r = clave("ls", env={"CLAVE_LOCAL_DIR": "/proc/nothing"})
        self.assertEqual(r.code, 69, r)
        self.assertIn("/proc/nothing", r.err)


if __name__ == "__main__":
    unittest.main()
