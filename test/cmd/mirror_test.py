"""`clave mirror`: a directory kept equal to a tree."""
import os
import random
import signal
import stat
import threading
import unittest

from harness import PATIENCE, Running, Served, clave, scratch, server, spawn
from lock_rig import until


def listing(folder):
    """{name: content}; of a directory None, of a symlink what it says. What is renamed or deleted meanwhile is not there."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(at, name)
            key = os.path.relpath(path, folder)
            try:
                if os.path.islink(path):
                    found[key] = "-> " + os.readlink(path)
                elif os.path.isdir(path):
                    found[key] = None
                else:
                    with open(path, "rb") as f:
                        found[key] = f.read()
            except (FileNotFoundError, IsADirectoryError):
                pass
    del found["%mirror"]
    return found


class Mirror(Served):
    def setUp(self):
        self.path = "/" + self.id().rsplit(".", 1)[1]
        self.dir = scratch("mirror")

    def verb(self, *words, code=0, **more):
        r = clave(*words, connect=self.server.connect, **more)
        self.assertEqual(r.code, code, (words, r))
        return r

    def put(self, name, data=""):
        self.verb("create", "--parents", f"{self.path}{name}", data)

    def mirror(self, *flags, code=0):
        return self.verb("mirror", "--once", *flags, self.path, self.dir, code=code)

    def follow(self, *flags):
        running = Running("mirror", *flags, self.path, self.dir, connect=self.server.connect)
        self.addCleanup(lambda: (running.process.kill(), running.process.wait()))
        return running

    def becomes(self, **files):
        wanted = {k.replace("__", "/"): v for k, v in files.items()}
        until(lambda: listing(self.dir) == wanted, what=f"the directory has {wanted}: {listing(self.dir)}")

    def test_a_path_without_a_node(self):
        """A misspelt path makes nothing, and what was mirrored stays."""
        r = self.mirror(code=66)
        self.assertIn(f"{self.path}: ", r.err)
        self.assertFalse(os.path.exists(f"{self.dir}/%mirror"))
        self.put("/a", "1")
        self.mirror()
        self.verb("rm", "-r", self.path)
        self.mirror(code=66)
        self.assertEqual(listing(self.dir), {"a": b"1"})
        running = self.follow()
        self.becomes()
        running.process.terminate()
        self.assertIn(f"{self.path}: there is no such node yet", running.process.communicate()[1])

    def test_nodes_are_files_and_directories(self):
        self.put("")
        self.mirror()
        self.assertEqual(listing(self.dir), {})
        self.put("/a", "1")
        self.put("/d/e", "2")
        self.put("/empty")
        self.put("/100%", "3")
        self.put("/%data", "4")
        self.mirror()
        self.assertEqual(listing(self.dir), {"a": b"1", "d": None, "d/e": b"2", "empty": b"", "100%25": b"3", "%25data": b"4"})
        self.verb("set", f"{self.path}/d", "own")
        self.verb("set", self.path, "top")
        self.mirror()
        self.assertEqual(listing(self.dir), {"%data": b"top", "a": b"1", "d": None, "d/%data": b"own", "d/e": b"2", "empty": b"",
                                             "100%25": b"3", "%25data": b"4"})

    def test_a_file_becomes_a_directory_and_back(self):
        self.put("/n", "1")
        self.follow()
        until(lambda: os.path.exists(f"{self.dir}/n"), what="it is there")
        self.becomes(n=b"1")
        self.put("/n/below", "2")
        self.becomes(**{"n": None, "n__%data": b"1", "n__below": b"2"})
        self.verb("rm", f"{self.path}/n/below")
        self.becomes(n=b"1")
        self.verb("rm", "-r", self.path)
        self.becomes()
        self.put("/again", "3")
        self.becomes(again=b"3")

    def test_a_command_is_told_once_a_burst(self):
        told = scratch("told")
        self.put("/a", "1")
        self.follow("--exec", f"cat {self.dir}/a >> {told}; echo >> {told}")

        def lines():
            if not os.path.exists(told):
                return []
            with open(told, encoding="utf-8") as f:
                return f.read().splitlines()
        until(lambda: lines() == ["1"], what="the command has run")
        for i in range(20):
            self.verb("set", f"{self.path}/a", f"v{i}")
        until(lambda: lines()[-1] == "v19", what="it has run after the last change")
        self.assertLessEqual(len(lines()), 21)
        self.assertEqual(lines(), sorted(set(lines()), key=lines().index))  # none twice

    def test_links_in_the_directory_lead_nowhere(self):
        outside = scratch("outside")
        os.mkdir(outside)
        with open(f"{outside}/f", "w", encoding="utf-8") as f:
            f.write("untouched")
        self.put("/d/f", "1")
        self.mirror()
        os.unlink(f"{self.dir}/d/f")
        os.rmdir(f"{self.dir}/d")
        os.symlink(outside, f"{self.dir}/d")
        os.symlink(f"{outside}/f", f"{self.dir}/stray")
        self.mirror()
        self.assertEqual(listing(self.dir), {"d": None, "d/f": b"1"})
        os.unlink(f"{self.dir}/d/f")
        os.symlink(f"{outside}/f", f"{self.dir}/d/f")
        self.mirror()
        self.assertEqual(listing(self.dir), {"d": None, "d/f": b"1"})
        self.assertEqual(os.listdir(outside), ["f"])
        with open(f"{outside}/f", encoding="utf-8") as f:
            self.assertEqual(f.read(), "untouched")

    def test_nobody_elses_directory_is_changed(self):
        self.put("/a", "1")
        os.mkdir(self.dir)
        with open(f"{self.dir}/precious", "w", encoding="utf-8"):
            pass
        self.assertIn("is not empty", self.mirror(code=73).err)
        self.assertEqual(os.listdir(self.dir), ["precious"])
        os.unlink(f"{self.dir}/precious")
        self.mirror()
        self.assertIn("mirror of another path", self.verb("mirror", "--once", "/", self.dir, code=73).err)
        with open(f"{self.dir}/stray", "w", encoding="utf-8"):
            pass
        self.mirror()
        self.assertEqual(listing(self.dir), {"a": b"1"})

    def test_mode(self):
        self.put("/d/f", "1")
        self.mirror("--mode", "640", "--fsync", "--owner", f"{os.getuid()}:{os.getgid()}")
        self.assertEqual(stat.S_IMODE(os.stat(f"{self.dir}/d/f").st_mode), 0o640)
        self.assertEqual(stat.S_IMODE(os.stat(f"{self.dir}/d").st_mode), 0o750)
        before = os.stat(f"{self.dir}/d/f")
        self.mirror("--mode", "640")
        self.assertEqual(os.stat(f"{self.dir}/d/f").st_ino, before.st_ino)  # what is right stays
        self.mirror("--mode", "600")
        self.assertEqual(stat.S_IMODE(os.stat(f"{self.dir}/d/f").st_mode), 0o600)
        for flag, value in ("--mode", "999"), ("--mode", "u+x"), ("--owner", "no-such-user"), ("--owner", ":"):
            self.mirror(flag, value, code=64)

    def test_what_does_not_fit_is_told(self):
        self.put("/" + "x" * 256 + "/y", "1")
        self.put("/" + "%" * 90, "1")
        self.put("/a", "1")
        r = self.mirror()
        self.assertEqual(r.err.count("has a name of more than 255 bytes: it is left out"), 3, r)
        self.assertEqual(listing(self.dir), {"a": b"1"})

    def test_it_follows_through_restarts_of_the_server(self):
        own = server()
        self.addCleanup(own.stop)
        clave("create", "--parents", "/t/a", "1", connect=own.connect)
        running = Running("mirror", "/t", self.dir, connect=own.connect)
        self.addCleanup(lambda: (running.process.kill(), running.process.wait()))
        until(lambda: os.path.exists(f"{self.dir}/a"), what="it is there")
        own.stop(signal.SIGKILL)
        own.start()
        until(lambda: clave("set", "/t/a", "2", connect=own.connect).code == 0, what="the server is back")
        clave("create", "/t/b", "3", connect=own.connect)
        self.becomes(a=b"2", b=b"3")

    def test_a_storm(self):
        """10 000 nodes; a reader never sees half a file; a change costs less than a millisecond of the processor."""
        many, size = 10000, 2000
        zk = spawn(["/usr/bin/python3", "-B", "-c", STORM, self.server.connect, self.path, str(many), str(size)])
        running = self.follow()
        torn, stop = [], threading.Event()

        def read():
            chosen = random.Random(1)
            while not stop.is_set():
                try:
                    with open(f"{self.dir}/n{chosen.randrange(many):05}", "rb") as f:
                        data = f.read()
                except FileNotFoundError:
                    continue
                if data != data[:1] * size:
                    torn.append(data)
        reader = threading.Thread(target=read)
        reader.start()
        try:
            self.assertEqual(zk.wait(4 * PATIENCE), 0)
            wanted = {f"n{i:05}": b"z" * size for i in range(many) if i % 10}
            until(lambda: len(os.listdir(self.dir)) == len(wanted) + 1, what="as many files as nodes are there")
            until(lambda: listing(self.dir) == wanted, what="the directory equals the tree")
            with open(f"/proc/{running.process.pid}/stat", encoding="utf-8") as f:
                ticks = sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
            changes = 3 * many + many // 10
            self.assertLess(ticks / os.sysconf("SC_CLK_TCK"), changes * 0.001)
        finally:
            stop.set()
            reader.join()
        self.assertEqual(torn, [])


STORM = """
import sys
from kazoo.client import KazooClient
connect, path, many, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
c = KazooClient(connect, timeout=30)
c.start()
c.ensure_path(path)
for word in "a", "b", "z":
    for first in range(0, many, 500):
        asked = [(c.create_async if word == "a" else c.set_async)(f"{path}/n{i:05}", word.encode() * size)
                 for i in range(first, first + 500)]
        for a in asked:
            a.get(60)
for a in [c.delete_async(f"{path}/n{i:05}") for i in range(0, many, 10)]:
    a.get(60)
c.stop()
"""

if __name__ == "__main__":
    unittest.main(verbosity=2)
