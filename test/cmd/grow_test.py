"""`clave grow`: the files for an ensemble, what it says of the data, and what it refuses. That the
ensemble goes on with the locks is in test/interop/takeover_test.py."""
import json
import os
import signal
import unittest

from harness import ClaveServer, Running, clave, scratch

HOSTS = ["zk1", "zk2:2888:3888:2182", "[fd00::3]:1:2:3"]


class Grow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = ClaveServer().start()
        assert clave("create", "/a", "1", connect=server.connect).code == 0
        server.stop(signal.SIGKILL)
        cls.data = server.data

    def grow(self, *words, data=None):
        self.out = scratch("out")
        return clave("grow", data or self.data, *words, "--out", self.out)

    def read(self, *names):
        with open(os.path.join(self.out, *names)) as f:
            return f.read()

    def test_files_and_steps(self):
        result = self.grow(*HOSTS, "--data-dir", "/srv/zk", "--tick", "1s")
        self.assertEqual((result.code, result.err), (0, ""), result)
        for number, port in enumerate((2181, 2182, 3), 1):
            self.assertEqual(self.read(str(number), "myid"), f"{number}\n")
            lines = self.read(str(number), "zoo.cfg").splitlines()
            for line in ("tickTime=1000", "dataDir=/srv/zk", f"clientPort={port}",
                         "server.1=zk1:2888:3888", "server.2=zk2:2888:3888",
                         "server.3=[fd00::3]:1:2"):
                self.assertIn(line, lines)
            self.assertNotIn("extendedTypesEnabled=true", lines)
        self.assertIn("zk1:2181,zk2:2182,[fd00::3]:3\n", result.out)
        self.assertIn("is whole: zxid 0x", result.out)
        self.assertIn("into /srv/zk of EVERY server", result.out)

    def test_json(self):
        result = self.grow("a", "b:1:2:3", "c", "--json", "--data-dir", "/srv/zk")
        told = json.loads(result.out)
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertEqual(result.out.count("\n"), 1)
        self.assertEqual(told["connect"], "a:2181,b:3,c:2181")
        self.assertEqual((told["out"], told["data_dir"]), (self.out, "/srv/zk"))
        self.assertEqual((told["sessions"], told["ttl_nodes"], told["gap_zxid"]), (0, 0, None))
        digest = json.loads(clave("data", "digest", "--json", self.data).out)
        self.assertEqual({k: told[k] for k in digest}, digest)
        self.assertEqual(self.read("2", "myid"), "2\n")

    def test_one_of_each(self):
        server = ClaveServer(["--extended-types"]).start()
        self.assertIn(", 0 sessions", server.ready)
        clave("create", "/ttl", "--ttl", "1h", connect=server.connect)
        holder = Running("lock", "/l", "--", "sh", "-c", "echo; exec sleep 60", connect=server.connect)
        holder.line()
        server.stop(signal.SIGKILL)
        for told in (self.grow("a", "b", "c", data=server.data), clave("data", "check", server.data),
                     clave("data", "digest", server.data), clave("data", "backup", server.data, scratch("b"))):
            self.assertRegex(told.out, r", 1 session\b", told)
        self.assertIn("1 node has a time to live: ", self.grow("a", "b", "c", data=server.data).out)
        self.assertRegex(server.start().ready, r", 1 session\b")
        server.stop()
        holder.end()

    def restored(self, longest="70s"):
        backup, to = scratch("b"), scratch("r")
        for words in (("backup", self.data, backup), ("restore", backup, to, "--longest-session", longest)):
            self.assertEqual(clave("data", *words).code, 0)
        return to

    def test_a_restored_one(self):
        data = self.restored()
        wait = "until 70s after the old server, the one that was\nbacked up, has stopped"
        for _ in range(2):  # and after a start of clave, whose own wait is not over
            result = self.grow("a", "b", "c", data=data)
            self.assertIn(wait, result.out)
            self.assertIn(", 0 sessions\n", result.out)
            self.assertNotIn("shortest session", result.out)
            told = json.loads(self.grow("a", "b", "c", "--json", data=data).out)
            self.assertEqual((told["sessions"], told["shortest_session_ms"], told["restore_quiet_ms"]),
                             (0, 0, 70000))
            server = ClaveServer()
            server.data = data
            server.start().stop()
        self.assertNotIn("restore", self.grow("a", "b", "c").out)

    def test_sessions_may_be_as_long_as_the_old_server_allowed(self):
        server = ClaveServer(["--max-session-timeout", "90s"]).start()
        server.stop()
        for words, lines in (((), 1), (("--tick", "5s"), 0)):
            self.assertEqual(self.grow("a", "b", "c", *words, data=server.data).code, 0)
            self.assertEqual(self.read("3", "zoo.cfg").count("maxSessionTimeout=90000\n"), lines)
        with open(os.path.join(server.data, "version-2", "maxSessionTimeout"), "w") as f:
            f.write("90000")
        result = self.grow("a", "b", "c", data=server.data)
        self.assertEqual((result.code, result.out), (74, ""), result)
        self.assertIn("maxSessionTimeout is damaged", result.err)
        self.assertFalse(os.path.exists(self.out))

    def test_what_is_no_ensemble(self):
        for words in ([], ["a"], ["a", "b"], ["a", "b", "c", "d"], ["a", "b", "c:1"],
                      ["a", "b", "c:1:2:70000"], ["a", "b", "c:1:2:3:4"], ["a", "b", ":1:2"],
                      ["a", "b", "c d"], ["a", "b", "[::1"], ["a"] * 11, ["a", "b", "A"],
                      ["a", "b:1:2:3", "b:4:5:2"],
                      ["a", "b", "c:5:5:6"], ["a", "b", "c:5:2181"]):
            result = self.grow(*words)
            self.assertEqual((result.code, result.out), (64, ""), (words, result))
            self.assertFalse(os.path.exists(self.out))

    def test_what_is_no_server_is_told_why(self):
        for word, why in (("c,d", "one server per argument"), ("c/app", "a host's name has only letters"),
                          ("2181", "a port without its host"), ("10.0.0", "an IPv4 address has four numbers"),
                          ("c:1", "give both ports"), ("c:5:5:6", "its ports must differ"),
                          ("[c:1]:2:3", "only an IPv6 address")):
            result = self.grow("a", "b", word)
            self.assertEqual((result.code, result.out), (64, ""), (word, result))
            self.assertIn(f"'{word}' is not a server: {why}", result.err)

    def test_three_on_one_host(self):
        result = self.grow("a:1:2:3", "a:4:5:6", "a:7:8:9")
        self.assertEqual(result.code, 0, result)

    def test_damaged_data(self):
        log = os.path.join(self.data, "version-2", "log.1")
        with open(log, "rb") as f:
            raw = f.read()
        with open(log, "wb") as f:
            f.write(raw[:50] + b"\xff" + raw[51:])
        try:
            result = self.grow("a", "b", "c")
        finally:
            with open(log, "wb") as f:
                f.write(raw)
        self.assertEqual((result.code, result.out), (74, ""), result)
        self.assertIn("log.1 is damaged", result.err)
        self.assertFalse(os.path.exists(self.out))
        self.assertEqual(self.grow("a", "b", "c", data=scratch("none")).code, 74)


if __name__ == "__main__":
    unittest.main()
