"""`clave data backup` and `clave data restore`: a copy at one zxid while clients write, and a server
that goes on from it without handing out a fencing token twice, nor granting a lock while a holder
of before may still believe that it has it."""
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

try:
    from kazoo.client import KazooClient
    from kazoo.exceptions import OperationTimeoutError
except ImportError:
    KazooClient = None

from harness import (CLAVE, SOURCE, UNSAFE, ApacheServer, ClaveServer, Running, clave, environment,
                     has_apache, scratch, spawn)

QUICK = ["--tick", "100ms", "--max-session-timeout", "1s"]
CREATE, SET = 1, 5


def text(s):
    s = s.encode()
    return struct.pack(">i", len(s)) + s


class Raw:
    """As much of a client as it takes to write without waiting for each answer."""

    def __init__(self, server, seen=0, timeout=1000):
        self.socket = socket.create_connection(("127.0.0.1", server.port), 10)
        self.send(struct.pack(">iqiq", 0, seen, timeout, 0) + struct.pack(">i", 16) + bytes(16))
        self.alive = self.frame() is not None

    def send(self, body):
        self.socket.sendall(struct.pack(">i", len(body)) + body)

    def take(self, n):
        got = b""
        while len(got) < n:
            more = self.socket.recv(n - len(got))
            if not more:
                return None
            got += more
        return got

    def frame(self):
        head = self.take(4)
        return self.take(struct.unpack(">i", head)[0]) if head else None

    def write(self, ops, n):
        """n sets of /n, or creates below it, in one flight."""
        for i in range(n):
            if ops == SET:
                body = text("/n") + text("x" * 50) + struct.pack(">i", -1)
            else:
                acl = struct.pack(">ii", 1, 31) + text("world") + text("anyone")
                body = text("/n/c-") + text("") + acl + struct.pack(">i", 2)
            self.send(struct.pack(">ii", i + 1, ops) + body)
        for i in range(n):
            self.frame()


class Writer:
    """Writes until it is told to stop."""

    def __init__(self, server):
        self.over = False
        self.raw = Raw(server)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.over:
            self.raw.write(SET, 100)
            self.raw.write(CREATE, 3)

    def end(self):
        self.over = True
        self.thread.join()
        self.raw.socket.close()


def on(data, flags=(), port=None):
    """A server on this directory."""
    server = ClaveServer(QUICK + list(flags))
    server.data, server.port = data, port or server.port
    return server.start()


def token(server):
    """Of a lock that is taken and given back."""
    result = clave("lock", "--wait", "20s", "/lock", "--", "sh", "-c", "echo $CLAVE_TOKEN",
                   connect=server.connect)
    if result.code != 0:
        raise AssertionError(result)
    return int(result.out)


def data(*words):
    result = clave("data", *words, "--json")
    if result.code != 0:
        raise AssertionError(result)
    return json.loads(result.out)


def restore(*words):
    return data("restore", *words, "--longest-session", "1s")


class Backup(unittest.TestCase):
    def setUp(self):
        self.top = scratch("backup")
        os.makedirs(self.top, exist_ok=True)

    def at(self, name):
        return os.path.join(self.top, name)

    def test_a_server_goes_on_writing(self):
        server = ClaveServer(["--snap-count", "150"] + QUICK).start()
        clave("create", "/n", connect=server.connect)
        writer, newest = Writer(server), 0
        try:
            for i in range(7):
                told = data("backup", server.data, self.at(str(i)))
                checked = data("check", self.at(str(i)))
                self.assertTrue(checked["ok"], checked)
                self.assertEqual((told["zxid"], told["digest"]), (checked["zxid"], checked["digest"]))
                self.assertGreaterEqual(int(told["zxid"], 16), newest, f"{UNSAFE}: an older state")
                newest = int(told["zxid"], 16)
        finally:
            writer.end()
        server.stop()
        self.assertGreater(newest, 150)
        last = data("backup", server.data, self.at("last"))  # and of one that is stopped
        self.assertEqual(last["digest"], data("digest", server.data)["digest"])

    def test_tokens_are_never_repeated(self):
        server = ClaveServer(QUICK).start()
        clave("create", "--container", "/box", connect=server.connect)
        clave("create", "/n", "kept", connect=server.connect)
        clave("create", "--sequential", "/n/c-", connect=server.connect)
        tokens = [token(server)]
        data("backup", server.data, self.at("b"))
        tokens += [token(server), token(server)]
        server.stop(signal.SIGKILL)
        for i in range(2):
            told = restore(self.at("b"), self.at(f"r{i}"))
            self.assertEqual(os.listdir(self.at(f"r{i}/version-2")),
                             ["snapshot." + told["zxid"][2:]])
            self.assertTrue(data("check", self.at(f"r{i}"))["ok"])
            server = on(self.at(f"r{i}"))
            self.assertEqual(clave("get", "/n", connect=server.connect).out.strip(), "kept")
            made = clave("create", "--sequential", "/n/c-", connect=server.connect)
            self.assertEqual(made.out.strip(), "/n/c-0000000001")
            tokens += [token(server), token(server)]
            server.stop(signal.SIGKILL)
        data("backup", self.at("r1"), self.at("b1"))  # a backup of what was restored
        restore(self.at("b1"), self.at("r2"))
        server = on(self.at("r2"))
        tokens.append(token(server))
        server.stop()
        self.assertEqual(tokens, sorted(set(tokens)), f"{UNSAFE}: tokens are repeated")
        self.assertLess(tokens[-1], 2 ** 53)

    def test_a_holder_of_before_has_ended_when_the_next_begins(self):
        server = ClaveServer(QUICK).start()
        data("backup", server.data, self.at("b"))
        holder = Running("lock", "/lock", "--", "sh", "-c", "echo $$; exec sleep 60",
                         connect=server.connect)
        pid = int(holder.line())
        server.stop(signal.SIGKILL)
        restore(self.at("b"), self.at("r"))
        server = on(self.at("r"), port=server.port)
        after = clave("lock", "--wait", "20s", "/lock", "--", "sh", "-c",
                      f"! kill -0 {pid} 2> /dev/null", connect=server.connect)
        self.assertEqual(after.code, 0, f"{UNSAFE}: two hold: {after}")
        self.assertNotEqual(holder.end().code, 0)
        server.stop()

    def test_a_restart_does_not_end_the_wait(self):
        data("restore", self.backup_of_nothing(), self.at("r"))
        flags = ["--max-session-timeout", "60s"]
        for _ in range(2):
            server = on(self.at("r"), flags)
            self.assertEqual(clave("create", "/n" + str(server.port), connect=server.connect).code, 0)
            busy = clave("lock", "--wait", "300ms", "/lock", "--", "true", connect=server.connect)
            self.assertEqual(busy.code, 75, busy)
            server.stop(signal.SIGKILL)

    def waits(self, *words):
        """How long a server on a directory that is restored so waits, and whether it is certain."""
        told = data("restore", *words, scratch("restored"))
        return told["quiet_ms"] // 1000, told["knows_longest_session"]

    def test_a_session_that_begins_after_the_backup_may_be_longer(self):
        config = self.at("conf")

        def may_last(longest):
            with open(config, "w", encoding="ascii") as f:
                f.write(f"max-session-timeout = {longest}\n")

        may_last("50s")
        server = ClaveServer(["--config", config, "--log-level", "info"]).start()
        clave("create", "/n", connect=server.connect)
        data("backup", server.data, self.at("50"))
        self.assertEqual(self.waits(self.at("50")), (50, True))
        self.assertEqual(self.waits(self.at("50"), "--longest-session", "1s"), (40, True))
        may_last("70s")
        server.process.send_signal(signal.SIGHUP)
        note = os.path.join(server.data, "version-2", "maxSessionTimeout")
        until = time.monotonic() + 30
        while self.waits(server.data) != (70, True):
            self.assertLess(time.monotonic(), until)
        raw = Raw(server, timeout=60000)  # it goes on under a server that allows 20 s
        may_last("20s")
        server.stop(signal.SIGKILL)
        server.start()
        data("backup", server.data, self.at("20"))
        self.assertEqual(self.waits(self.at("20"), "--until", "0x1"), (60, True))
        raw.socket.close()
        server.stop()
        os.unlink(note)  # as from a version without it, and Apache
        self.assertEqual(self.waits(server.data, "--until", "0x1"), (40, False))
        told = clave("data", "restore", server.data, self.at("r"), "--until", "0x1")
        self.assertIn("restore again with --longest-session", told.out)

    def test_a_damaged_note_of_the_longest_session(self):
        log = scratch("log")
        server = ClaveServer(["--max-session-timeout", "90s"]).start()
        server.stop()
        note = os.path.join(server.data, "version-2", "maxSessionTimeout")

        def damage(content):
            with open(note, "w", encoding="ascii") as f:
                f.write(content)

        for content in ("", "\n", "0\n", "-5\n", "nonsense", "900", "90000 s\n", "9" * 20 + "\n"):
            damage(content)
            refused = clave("data", "restore", server.data, self.at("r"))
            self.assertEqual((refused.code, refused.out), (74, ""), content)
            self.assertIn(note + " is damaged", refused.err)
            self.assertIn("give --longest-session", refused.err)
            self.assertFalse(os.path.exists(self.at("r")))
            checked = clave("data", "check", server.data)
            self.assertEqual(checked.code, 74, content)
            self.assertIn(f"DAMAGED: {note} is damaged", checked.out)
            self.assertNotIn("ok:", checked.out)
        checked = clave("data", "check", "--json", server.data)
        told = json.loads(checked.out)
        self.assertEqual((checked.code, told["ok"], told["files"][-1]["name"]),
                         (74, False, "maxSessionTimeout"))
        self.assertIn(note, told["files"][-1]["fault"])
        forced = clave("data", "restore", "--json", "--longest-session", "90s", server.data, self.at("r"))
        self.assertEqual(forced.code, 0, forced)
        self.assertIn(note + " is damaged", forced.err)
        told = json.loads(forced.out)
        self.assertEqual((told["quiet_ms"], told["knows_longest_session"]), (90000, True))
        data("backup", server.data, self.at("b"))  # the damage is not lost on the way
        self.assertEqual(clave("data", "restore", self.at("b"), self.at("rb")).code, 74)
        with open(log, "w", encoding="utf-8") as out:
            again = spawn([CLAVE, "serve", "--data", server.data, "--listen", "127.0.0.1:0",
                           "--max-session-timeout", "90s"], stdout=subprocess.PIPE, stderr=out, text=True,
                          env=environment())
            self.assertIn("serving on", again.stdout.readline())
            again.terminate()
            again.communicate(timeout=30)
        with open(log, encoding="utf-8") as f:
            self.assertRegex(f.read(), re.escape(note) + " is damaged.* it is 90000 again")
        with open(note, encoding="ascii") as f:
            self.assertEqual(f.read(), "90000\n")
        self.assertTrue(data("check", server.data)["ok"])

    def test_sighup_mends_the_note_for_the_next_backup(self):
        server = ClaveServer(["--max-session-timeout", "90s"]).start()
        note = os.path.join(server.data, "version-2", "maxSessionTimeout")
        with open(note, "w", encoding="ascii") as f:
            f.write("900")
        data("backup", server.data, self.at("damaged"))
        checked = clave("data", "check", self.at("damaged"))
        self.assertEqual(checked.code, 74)
        self.assertIn("when it starts or gets SIGHUP", checked.out)
        server.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 30
        while clave("data", "check", server.data).code != 0:
            self.assertLess(time.monotonic(), until)
        with open(note, encoding="ascii") as f:
            self.assertEqual(f.read(), "90000\n")
        data("backup", server.data, self.at("whole"))
        self.assertTrue(data("check", self.at("whole"))["ok"])
        server.stop()

    def test_the_wait_is_told(self):
        data("restore", self.backup_of_nothing(), self.at("r"))
        root = f"unix:{self.at('sock')}"
        server = on(self.at("r"), ["--max-session-timeout", "60s", "--listen", root, "--super-uid",
                                   str(os.getuid())])
        busy = Running("lock", "--wait", "60s", "/lock", "--", "true", connect=server.connect)
        self.assertIn("restored from a backup", busy.process.stderr.readline())
        quiet = next(s for s in json.loads(clave("sessions", "--json", connect=root).out)["sessions"]
                     if s["session"] == "0x1")
        self.assertEqual((quiet["restore"], quiet["ending"]), (True, False))
        self.assertRegex(clave("sessions", connect=root).out, "0x1 .*the wait after a restore\n")
        self.assertEqual(clave("sessions", "--kill", "--now", "0x1", connect=root).code, 0)
        self.assertEqual(busy.end().code, 0)
        server.stop()

    def test_who_does_not_wait_for_the_end_is_told_why(self):
        data("restore", self.backup_of_nothing(), self.at("r"))
        server = on(self.at("r"), ["--max-session-timeout", "60s"])
        why = "the server gives nobody a place yet: it was restored from a backup"
        limits = ("--wait=0s", "--wait=300ms", "--wait=1200ms", "--no-wait")
        tries = [("lock", w) for w in limits] + [("rwlock", "--read", "--no-wait"),
                                                 ("rwlock", "--write", "--no-wait"),
                                                 ("semaphore", "-n", "2", "--no-wait"),
                                                 ("semaphore", "-n", "2", "--limit-node", "/n", "--no-wait"),
                                                 ("lock", "--once", "k", "--for", "1h", "--no-wait"),
                                                 ("elect", "--wait", "300ms")]
        for words in tries:
            started = time.monotonic()
            ended = clave(*words, "/lock", "--", "true", connect=server.connect)
            self.assertEqual(ended.code, 75, (words, ended))
            self.assertLess(time.monotonic() - started, 20)
            self.assertRegex(ended.err, r"/lock: not (acquired|elected) within [\d.]+m?s: " + why)
            told = json.loads(clave(*words, "--json", "/lock", "--", "true",
                                    connect=server.connect).err.splitlines()[-1])
            self.assertIn(why, told["why"], words)
            self.assertEqual(clave(*words, "--quiet", "/lock", "--", "true", connect=server.connect).err, "")
        server.stop()

    def test_the_wait_is_as_long_as_the_restore_said(self):
        backup, root = self.backup_of_nothing(), f"unix:{self.at('sock')}"
        said = clave("data", "restore", backup, self.at("text"), "--longest-session", "1s").out
        self.assertIn("no lock granted, for 40s after a start,\nor for as long as", said)
        self.assertIn("If it is shorter, the wait is as short, but at least 1s.\n", said)
        for longest, flags in (("1s", []), ("50s", []), ("1s", ["--max-session-timeout", "60s"]),
                               ("10s", ["--max-session-timeout", "5s"])):
            to = self.at("to" + longest + "".join(flags[1:]))
            told = data("restore", backup, to, "--longest-session", longest)
            self.assertEqual(told["least_quiet_ms"], 1000 * int(longest[:-1]))
            said = max(told["least_quiet_ms"], 1000 * int(flags[1][:-1])) if flags else told["quiet_ms"]
            server = ClaveServer(["--listen", root, "--super-uid", str(os.getuid())] + flags)
            server.data = to
            server.start()
            sessions = json.loads(clave("sessions", "--json", connect=root).out)["sessions"]
            self.assertEqual([s["timeout_ms"] for s in sessions if s["session"] == "0x1"], [said])
            server.stop()

    def backup_of_nothing(self):
        server = ClaveServer(QUICK).start()
        server.stop()
        data("backup", server.data, self.at("b"))
        return self.at("b")

    def test_a_point_in_time(self):
        server = ClaveServer(["--snap-count", "60"] + QUICK).start()
        clave("create", "/n", "0", connect=server.connect)
        zxids, times = [], []
        for i in range(1, 20):
            clave("set", "/n", str(i), connect=server.connect)
            stat = json.loads(clave("stat", "/n", "--json", connect=server.connect).out)["stat"]
            zxids.append(stat["mzxid"])
            times.append(stat["mtime_ms"])
        data("backup", server.data, self.at("b"), "--history")
        server.stop()
        for i in (9, 18):
            data("restore", self.at("b"), self.at(f"z{i}"), "--until", zxids[i])
            moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(times[i] / 1000))
            moment += f".{times[i] % 1000:03}Z"
            data("restore", server.data, self.at(f"t{i}"), "--until", moment)
            for name in (f"z{i}", f"t{i}"):
                again = on(self.at(name))
                got = clave("get", "/n", connect=again.connect).out.strip()
                self.assertEqual(got, str(i + 1), name)
                again.stop()
        for until, why in (("0x7fffffff", "ends with zxid"), ("2020-01-01T00:00:00Z", "before the logs"),
                           ("yesterday", "neither a zxid"),
                           ("2026-02-31T00:00:00Z", "neither a zxid"),
                           ("2026-02-28T00:00:00-1-1", "neither a zxid"),
                           ("2026-02-28T00:00:00.Z", "neither a zxid")):
            refused = clave("data", "restore", server.data, self.at("no"), "--until", until)
            self.assertIn(why, refused.err)
            self.assertNotEqual(refused.code, 0)

    def test_what_is_refused(self):
        server = ClaveServer(QUICK).start()
        data("backup", server.data, self.at("b"))
        for words, why in (
                (("restore", self.at("b"), server.data), f"in use by process {server.process.pid}"),
                (("backup", server.data, self.at("b")), "contains data already"),
                (("backup", self.at("none"), self.at("c")), "No such file"),
                (("backup", server.data, server.data + "/sub"), "outside it"),
                (("backup", server.data, server.data + "/version-2/a/b"), "outside it"),
                (("restore", self.at("b"), self.at("b/c")), "outside it"),
                (("backup", server.data), "takes two directories"),
                (("backup", server.data, self.at("c"), "--epoch", "7"), "only restore has"),
                (("backup", server.data, "/proc/none"), "cannot create")):
            refused = clave("data", *words)
            self.assertNotEqual(refused.code, 0, words)
            self.assertIn(why, refused.err)
        server.stop()
        refused = clave("data", "restore", self.at("b"), server.data)
        self.assertIn("contains data already", refused.err)
        self.assertFalse(os.path.exists(self.at("c")))

    def test_damage_is_named_and_not_copied(self):
        server = ClaveServer(QUICK).start()
        for i in range(5):
            clave("create", f"/n{i}", connect=server.connect)
        server.stop()
        log = os.path.join(server.data, "version-2", "log.1")
        with open(log, "r+b") as f:
            f.seek(200)
            f.write(b"\xff" * 20)
        for verb in ("backup", "restore"):
            refused = clave("data", verb, server.data, self.at("c"))
            self.assertEqual(refused.code, 74)
            self.assertRegex(refused.err, re.escape(log) + ".* offset [0-9]+")
            self.assertFalse(os.path.exists(self.at("c/version-2")))

    def test_a_full_disk_leaves_nothing_that_looks_whole(self):
        server = ClaveServer(QUICK).start()
        clave("create", "/n", "x" * 20000, connect=server.connect)

        def no_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))

        for verb in ("backup", "restore"):
            p = subprocess.run([CLAVE, "data", verb, server.data, self.at("c")], env=environment(),
                               preexec_fn=no_room, capture_output=True, text=True, check=False)
            self.assertEqual(p.returncode, 74, p.stderr)
            self.assertIn(self.at("c/unfinished.copy/"), p.stderr)
            self.assertEqual(os.listdir(self.at("c")), ["clave.lock"])
        os.mkdir(self.at("c/unfinished.copy"))  # of one that was killed
        with open(self.at("c/unfinished.copy/snapshot.0"), "w", encoding="ascii") as f:
            f.write("half")
        half = spawn([CLAVE, "serve", "--data", self.at("c"), "--listen", "127.0.0.1:0"],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        self.assertIn("unfinished.copy", half.communicate(timeout=30)[1])
        self.assertNotEqual(half.returncode, 0)
        data("backup", server.data, self.at("c"))  # starts anew
        self.assertTrue(data("check", self.at("c"))["ok"])
        self.assertEqual(sorted(os.listdir(self.at("c"))), ["clave.lock", "version-2"])
        server.stop()

    def test_files_copied_back_by_hand(self):
        server = ClaveServer(QUICK).start()
        seen = token(server)
        server.stop()
        shutil.copytree(server.data, self.at("copy"))
        server.start()
        seen = token(server) + 1
        server.stop()
        log = scratch("log")
        with open(log, "w", encoding="utf-8") as out:
            copy = ClaveServer(QUICK)
            copy.process = spawn([CLAVE, "serve", "--data", self.at("copy"), "--listen", copy.connect]
                                 + QUICK, stdout=subprocess.PIPE, stderr=out, text=True,
                                 env=environment())
            self.assertIn("serving on", copy.process.stdout.readline())
            self.assertFalse(Raw(copy, seen + 1000).alive)
            self.assertTrue(Raw(copy).alive)
            copy.stop()
        with open(log, encoding="utf-8") as f:
            self.assertIn("clave data restore", f.read())

    def test_the_epochs_of_an_ensemble(self):
        backup = self.backup_of_nothing()
        for name, epoch in (("currentEpoch", 5), ("acceptedEpoch", 0x7000000)):
            with open(os.path.join(backup, "version-2", name), "w", encoding="ascii") as f:
                f.write(f"{epoch}\n")
        data("backup", backup, self.at("bb"))
        self.assertEqual(len(os.listdir(self.at("bb/version-2"))), 4)
        told = data("restore", self.at("bb"), self.at("r"))
        self.assertEqual(told["epoch"], 0x7000001)
        self.assertEqual(int(told["zxid"], 16) >> 32, 0x7000001)
        for name in ("currentEpoch", "acceptedEpoch"):
            with open(self.at("r/version-2/" + name), encoding="ascii") as f:
                self.assertEqual(int(f.read()), 0x7000001)
        refused = clave("data", "restore", self.at("bb"), self.at("n"), "--epoch", 0x7000000)
        self.assertEqual(refused.code, 64)
        told = data("restore", self.at("bb"), self.at("n"), "--epoch", 0x7000009)
        self.assertEqual(int(told["zxid"], 16), 0x7000009 << 32)
        for last in 0x7ffffffe, 10 ** 30:
            with open(self.at("bb/version-2/acceptedEpoch"), "w", encoding="ascii") as f:
                f.write(f"{last}\n")
            for words in (), ("--epoch", 0x7ffffffe):
                refused = clave("data", "restore", self.at("bb"), self.at("last"), *words)
                self.assertEqual(refused.code, 73, refused)
                self.assertIn(", after which there is none", refused.err)

    @unittest.skipUnless(KazooClient, "kazoo is not installed")
    def test_others_wait_too(self):
        restore(self.backup_of_nothing(), self.at("r"))
        server = on(self.at("r"))
        zk = KazooClient(server.connect, timeout=1)
        zk.start(timeout=30)
        with self.assertRaises(OperationTimeoutError):
            zk.create("/e", ephemeral=True)
        self.assertTrue(zk.Lock("/lock").acquire(timeout=30))
        zk.stop()
        zk.close()
        server.stop()

    def test_the_script_for_a_timer(self):
        """Three backups, of which two are kept, encrypted by whatever the user has."""
        server = ClaveServer(QUICK).start()
        clave("create", "/n", "kept", connect=server.connect)
        script = [os.path.join(SOURCE, "examples/systemd/clave-backup"), server.data, self.at("kept"),
                  "2"]
        os.makedirs(self.at("kept/2025-keep-forever"))
        for encrypt in ("", "gzip", "gzip"):
            subprocess.run(script, env=environment(CLAVE=CLAVE, CLAVE_ENCRYPT=encrypt), check=True,
                           stdout=subprocess.DEVNULL, timeout=30)
        os.rmdir(self.at("kept/2025-keep-forever"))
        names = sorted(os.listdir(self.at("kept")))
        self.assertEqual(len(names), 2)
        for keep in ("0", "x", ""):
            refused = subprocess.run(script[:-1] + [keep], env=environment(CLAVE=CLAVE), check=False,
                                     capture_output=True, timeout=30)
            self.assertEqual(refused.returncode, 64)
        self.assertEqual(sorted(os.listdir(self.at("kept"))), names)
        subprocess.run(f"gzip -d < {names[-1]} | tar -x", shell=True, cwd=self.at("kept"), check=True)
        whole = self.at("kept/" + names[-1].removesuffix(".tar.encrypted"))
        self.assertEqual(data("check", whole)["digest"], data("digest", server.data)["digest"])
        failed = subprocess.run(script, env=environment(CLAVE=CLAVE, CLAVE_ENCRYPT="false"),
                                check=False, capture_output=True, timeout=30)
        self.assertNotEqual(failed.returncode, 0)
        self.assertEqual(len([n for n in os.listdir(self.at("kept")) if n.endswith("encrypted")]), 2)
        server.stop()

    def test_the_script_names_the_step_that_failed(self):
        server = ClaveServer(QUICK).start()
        kept, prom, tools = self.at("kept"), self.at("prom"), self.at("tools")
        os.makedirs(tools)

        def run(**more):
            env = environment(CLAVE=CLAVE, CLAVE_BACKUP_PROM=prom, CLAVE_ENCRYPT="gzip", CLAVE_DECRYPT="gzip -d")
            env.update(more)
            return subprocess.run([os.path.join(SOURCE, "examples/systemd/clave-backup"),
                                   more.pop("DATA", server.data), kept, "1"], env=env, check=False,
                                  capture_output=True, text=True, timeout=30)

        def tool(name, text):
            with open(os.path.join(tools, name), "w", encoding="ascii") as f:
                f.write(f"#!/bin/sh\n{text}\n")
                os.fchmod(f.fileno(), 0o755)
            return {"PATH": tools + ":" + os.environ["PATH"]}

        self.assertEqual(run().returncode, 0)
        new = re.escape(kept) + r"/\.unfinished\.\w+/[-\w.]+"
        for name, told in (("date", "tell the time"), ("mkdir", f"create {kept}"), ("find", f"from {kept}"),
                           ("mktemp", f"create a directory in {kept}"), ("tar", f"pack {new} into {new}"),
                           ("sync", f"sync {new}.tar.encrypted"), ("mv", f"rename {new} to {kept}/[-\\w.]+"),
                           ("ls", f"list {kept}"), ("grep", f"find the backups among the names in {kept}"),
                           ("sort", f"sort the names of the backups in {kept}"),
                           ("du", f"measure {kept}/[-\\w.]+"), ("chmod", f"let others read {prom}")):
            failed = run(**tool(name, "exit 3"))
            os.unlink(os.path.join(tools, name))
            self.assertEqual(failed.returncode, 3, (name, failed))
            self.assertRegex(failed.stderr, rf"clave-backup: cannot .*{told}.*\(exit code 3\)\n\Z")
        real = subprocess.check_output(["sh", "-c", "command -v rm"], text=True).strip()
        failed = run(**tool("rm", f'case $2 in */.unf*) exec {real} "$@";; esac; exit 3'))
        self.assertRegex(failed.stderr, f"cannot remove the old backup {kept}/")
        self.assertEqual(failed.returncode, 3)
        os.unlink(os.path.join(tools, "rm"))
        for more, code, told in (({"CLAVE_ENCRYPT": "exit 5"}, 5, f"encrypt {new} with CLAVE_ENCRYPT"),
                                 ({"CLAVE_DECRYPT": "exit 6"}, 6, f"decrypt {new} with CLAVE_DECRYPT"),
                                 ({"CLAVE_DECRYPT": "echo no tar"}, 2, f"unpack what was decrypted from {new}"),
                                 ({"DATA": "/none"}, 74, f"back up /none to {new}"),
                                 ({"CLAVE_BACKUP_PROM": "/none/x"}, None, "write /none/x"),
                                 ({"CLAVE": "/none/clave"}, 127, f"back up {server.data} to {new}")):
            failed = run(**more)
            self.assertEqual(failed.returncode, code or failed.returncode, (more, failed))
            self.assertNotEqual(failed.returncode, 0)
            self.assertRegex(failed.stderr, "clave-backup: cannot " + told)
        tool("clave", f'test "$2" = backup && exec {CLAVE} "$@"; exit 74')
        failed = run(CLAVE=os.path.join(tools, "clave"))
        self.assertRegex(failed.stderr, f"cannot verify {new}, the backup of {re.escape(server.data)}")
        self.assertEqual(run().returncode, 0)
        self.assertEqual(len(os.listdir(kept)), 1)  # nothing unfinished is left, and what is old is gone
        server.stop()

    def test_the_script_verifies_what_it_encrypted_and_tells_prometheus(self):
        server = ClaveServer(QUICK).start()
        prom, kept = self.at("clave_backup.prom"), self.at("kept")

        def script(encrypt, decrypt):
            run = subprocess.run([os.path.join(SOURCE, "examples/systemd/clave-backup"), server.data, kept],
                                 env=environment(CLAVE=CLAVE, CLAVE_ENCRYPT=encrypt, CLAVE_DECRYPT=decrypt,
                                                 CLAVE_BACKUP_PROM=prom),
                                 check=False, capture_output=True, text=True, timeout=30)
            return run.returncode, run.stdout.count("ok: zxid")

        def told():
            with open(prom, encoding="utf-8") as f:
                return f.read()
        began = int(time.time())
        self.assertEqual(script("gzip", "gzip -d"), (0, 2))
        name, = os.listdir(kept)
        form = (r'clave_backup_last_success_timestamp_seconds\{data="' + re.escape(server.data) + r'"\} (\d+)\n'
                r'# HELP .*\n# TYPE .*\nclave_backup_size_bytes\{.*\} (\d+)\n')
        at, size = map(int, re.search(form, told()).groups())
        self.assertTrue(began <= at <= time.time(), at)
        self.assertEqual(size, os.stat(os.path.join(kept, name)).st_size)
        self.assertEqual(os.stat(prom).st_mode & 0o777, 0o644)
        first = told()
        for encrypt, decrypt in (("", "gzip -d"), ("gzip", "false"), ("head -c 3000 | gzip", "gzip -d")):
            self.assertNotEqual(script(encrypt, decrypt)[0], 0, encrypt)
            self.assertEqual((os.listdir(kept), told()), ([name], first))
        self.assertEqual(sorted(os.listdir(self.top)), ["clave_backup.prom", "kept"])
        server.stop()

    @unittest.skipUnless(has_apache(), "Apache ZooKeeper is not installed")
    def test_apache_goes_on_from_it(self):
        server = ClaveServer(QUICK).start()
        clave("create", "/n", "kept", connect=server.connect)
        tokens = [token(server)]
        data("backup", server.data, self.at("b"))
        tokens.append(token(server))
        server.stop()
        restore(self.at("b"), self.at("r"))
        apache = ApacheServer()
        apache.data = self.at("r")
        apache.start()
        self.assertEqual(clave("get", "/n", connect=apache.connect).out.strip(), "kept")
        tokens += [token(apache), token(apache)]
        self.assertEqual(tokens, sorted(set(tokens)), f"{UNSAFE}: tokens are repeated")
        data("backup", apache.data, self.at("b2"))  # of Apache, while it runs
        self.assertTrue(data("check", self.at("b2"))["ok"])
        apache.stop(signal.SIGKILL)
        restore(self.at("b2"), self.at("r2"))
        server = on(self.at("r2"))
        self.assertGreater(token(server), tokens[-1], UNSAFE)
        server.stop()


if __name__ == "__main__":
    unittest.main()
