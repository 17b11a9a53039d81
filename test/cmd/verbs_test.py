"""Every verb that reads and writes nodes, on a running server."""
import base64
import json
import re
import signal
import unittest

from harness import Running, Served, clave, server

try:
    from kazoo.client import KazooClient
except ImportError:
    KazooClient = None

HASH = "oesAybBun9icKJjQSTRN8OBueSc="  # of joe:secret


class Verbs(Served):
    def run_ok(self, *words, **keywords):
        r = clave(*words, connect=self.server.connect, **keywords)
        self.assertEqual(r.code, 0, r)
        return r

    def run_code(self, code, *words, **keywords):
        r = clave(*words, connect=self.server.connect, **keywords)
        self.assertEqual(r.code, code, r)
        self.assertEqual(r.out, "")
        self.assertTrue(r.err.startswith("clave: "), r)
        return r

    def json_lines(self, *words, **keywords):
        out = self.run_ok(*words, "--json", **keywords).out
        return [json.loads(line) for line in out.splitlines()]

    def test_create_prints_the_path(self):
        self.assertEqual(self.run_ok("create", "/c1", "x").out, "/c1\n")
        self.assertEqual(self.run_ok("get", "/c1").out, "x")
        self.assertEqual(self.run_ok("create", "/c2").out, "/c2\n")
        self.assertEqual(self.run_ok("get", "/c2").out, "")
        self.assertEqual(self.json_lines("create", "/c3"), [{"path": "/c3"}])

    def test_create_sequential(self):
        self.run_ok("create", "/seq")
        self.assertEqual(self.run_ok("create", "-s", "/seq/n-").out, "/seq/n-0000000000\n")
        self.assertEqual(self.run_ok("create", "/seq/", "--sequential").out, "/seq/0000000001\n")

    def test_create_container_and_parents(self):
        self.run_ok("create", "--parents", "/deep/er/est", "v")
        self.assertEqual(self.run_ok("get", "/deep/er/est").out, "v")
        self.assertEqual(self.run_ok("create", "/box", "--container").out, "/box\n")
        self.run_code(66, "create", "/none/here")

    def test_create_with_a_time_to_live(self):
        r = self.run_code(64, "create", "/ttl", "--ttl", "1h")  # the server has no such nodes
        self.assertIn("/ttl: the server does not support nodes with a time to live: start it with", r.err)
        for flags in (["--container"], ["--guard"]):
            self.run_code(64, "create", "/ttl", "--ttl", "1h", *flags)
        self.run_code(64, "create", "/ttl", "--ttl", "0")
        s = server(flags=["--extended-types"])
        for words in (["/ttl"], ["-s", "/ttl-"]):
            self.assertEqual(clave("create", "--ttl", "1h", *words, connect=s.connect).code, 0)
        s.stop()
        records = clave("data", "dump", "--json", s.data).out.splitlines()
        made = [c["ttl_ms"] for r in records for c in json.loads(r).get("changes", ())]
        self.assertEqual(made, [3600 * 1000] * 2)

    def test_create_again(self):
        self.run_ok("create", "/twice")
        r = self.run_code(66, "create", "/twice")
        self.assertIn("/twice: the node exists already", r.err)

    def test_create_ephemeral_is_refused(self):
        r = self.run_code(64, "create", "--ephemeral", "/e")
        self.assertIn("clave lock", r.err)

    def test_create_acl(self):
        self.run_ok("create", "/readonly", "x", "--acl", "read")
        self.assertEqual(self.run_ok("get", "/readonly").out, "x")
        r = self.run_code(77, "set", "/readonly", "y")
        self.assertIn("not authorised", r.err)
        self.assertIn("--auth", r.err)
        self.run_ok("create", "/mine", "x", "--acl", "creator", "--auth", "digest:joe:secret")
        self.run_code(77, "get", "/mine")
        self.assertEqual(self.run_ok("get", "/mine", "--auth", "digest:joe:secret").out, "x")
        self.run_code(77, "get", "/mine", "--auth", "digest:joe:wrong")
        r = self.run_ok("get", "/mine", "--auth", "digest:a:b", "--auth", "digest:joe:secret")
        self.assertEqual(r.out, "x")
        self.run_ok("create", "/both", "--acl", f"world:anyone:r,digest:joe:{HASH}:cdrwa")
        for bad in ("world", "world:anyone", "world:anyone:x", "world:anyone:", ":a:r"):
            self.run_code(64, "create", "/bad", "--acl", bad)

    def test_access_lists(self):
        self.run_ok("create", "/acl", "x")
        self.assertEqual(self.run_ok("getacl", "/acl").out, "world:anyone:cdrwa\n")
        j = self.json_lines("getacl", "/acl")[0]
        self.assertEqual(j, {"path": "/acl",
                             "acl": [{"scheme": "world", "id": "anyone", "perms": "cdrwa"}]})
        r = self.run_ok("setacl", "/acl", "world:anyone:ra,uid:1000:cdw", "ip:10.0.0.0/8:w")
        self.assertEqual(r.out, "")
        text = self.run_ok("getacl", "/acl").out
        self.assertEqual(text, "world:anyone:ra\nuid:1000:cdw\nip:10.0.0.0/8:w\n")
        self.run_code(77, "set", "/acl", "y")
        self.assertEqual(self.json_lines("getacl", "/acl", "--stat")[0]["stat"]["aversion"], 1)
        self.assertIn("aversion 1\n", self.run_ok("getacl", "--stat", "/acl").err)
        self.run_code(66, "setacl", "/acl", "open", "--version", "0")
        self.run_ok("create", "/acl2")
        self.run_ok("setacl", "/acl2", *text.split(), "--version", "0")  # as it was printed
        self.assertEqual(self.run_ok("getacl", "/acl2").out, text)
        self.run_ok("setacl", "/acl", "open")
        self.assertEqual(self.run_ok("getacl", "/acl").out, "world:anyone:cdrwa\n")

    def test_access_lists_of_users(self):
        joe = ["--auth", "digest:joe:secret"]
        self.run_ok("create", "/joes")
        self.run_ok("setacl", "/joes", "creator", *joe)
        self.run_code(77, "getacl", "/joes")
        self.run_code(77, "setacl", "/joes", "open")
        self.assertRegex(self.run_ok("getacl", "/joes", *joe).out, r"^digest:joe:[\w+/]{27}=:cdrwa$")
        self.run_ok("setacl", "/joes", "auth::cdrwa", "world:anyone:r", *joe)
        self.assertEqual(self.run_ok("getacl", "/joes").out,
                         "digest:joe:x:cdrwa\nworld:anyone:r\n")

    def test_the_hash_is_made_as_the_help_says(self):
        self.assertIn("'clave acl hash USER'", self.run_ok("setacl", "--help").out)
        self.assertEqual(clave("acl", "hash", "joe", stdin=b"secret\n").out, f"digest:joe:{HASH}\n")
        self.run_ok("create", "/hashed", "x", "--acl", f"digest:joe:{HASH}:cdrwa")
        self.run_code(77, "get", "/hashed")
        self.assertEqual(self.run_ok("get", "/hashed", "--auth", "digest:joe:secret").out, "x")
        for size in (32, 48, 64):  # Apache with another algorithm
            other = base64.b64encode(bytes(range(size))).decode()
            self.run_ok("create", f"/hashed{size}", "--acl", f"digest:joe:{other}:cdrwa")

    def test_access_lists_that_are_none(self):
        self.run_ok("create", "/shut")
        for bad in ("world", "world:anyone:x", "open,", "a:b:r,,c:d:r"):
            r = self.run_code(64, "setacl", "/shut", bad)
            self.assertIn(bad, r.err)
        self.assertIn("invalid ACL", self.run_code(66, "setacl", "/shut", "nobody:x:r").err)
        for bad in ("pw", "", "x", HASH[:-1], HASH[:-4], HASH + ":", "0" * 28, HASH * 4):
            entry = f"world:anyone:r,digest:bob:{bad}:cdrwa"
            for words in (["setacl", "/shut", entry], ["create", "/new", "--acl", entry],
                          ["lock", "--acl", entry, "/l", "--", "true"]):
                r = self.run_code(64, *words)
                self.assertIn("a hash in place of the password: 'clave acl hash USER' prints", r.err)
        self.run_code(64, "setacl", "/shut", "digest:bob:cdrwa")
        self.run_code(66, "stat", "/new")
        self.assertIn("identity", self.run_code(66, "setacl", "/shut", "creator").err)
        self.run_code(66, "getacl", "/no-such-node")
        self.run_code(66, "setacl", "/no-such-node", "open")
        self.run_code(64, "setacl", "/shut")
        self.assertEqual(self.run_ok("getacl", "/shut").out, "world:anyone:cdrwa\n")

    def test_creator_without_an_identity(self):
        self.run_code(66, "create", "/orphan", "--acl", "creator")

    def test_bytes_are_untouched(self):
        data = bytes(range(256)) * 100
        self.run_ok("create", "/bytes", "-", stdin=data)
        self.assertEqual(self.run_ok("get", "/bytes").bytes, data)
        self.run_ok("set", "/bytes", "-", stdin=b"\0\r\n")
        self.assertEqual(self.run_ok("get", "/bytes").bytes, b"\0\r\n")
        self.assertEqual(self.json_lines("get", "/bytes")[0]["data"], "\0\r\n")
        self.run_ok("set", "/bytes", "-", stdin=b"\xff\xfe")
        self.assertEqual(self.json_lines("get", "/bytes")[0]["data_base64"], "//4=")

    def test_data_that_looks_like_a_flag(self):
        self.run_ok("create", "/dash")
        self.run_ok("set", "/dash", "--", "--create")
        self.assertEqual(self.run_ok("get", "/dash").out, "--create")

    def test_set(self):
        self.run_ok("create", "/s", "0")
        self.run_ok("set", "/s", "1")
        self.run_ok("set", "/s", "2", "--version", "1")
        r = self.run_code(66, "set", "--version=1", "/s", "3")
        self.assertIn("another version", r.err)
        self.assertEqual(self.run_ok("get", "/s").out, "2")

    def test_set_creates(self):
        r = self.run_code(66, "set", "/sc/a/b", "1")
        self.assertIn("/sc/a/b: no such node", r.err)
        self.run_ok("set", "/sc/a/b", "1", "--create")
        self.run_ok("set", "/sc/a/b", "2", "--create")
        self.assertEqual(self.run_ok("get", "/sc/a/b").out, "2")
        self.run_code(64, "set", "/sc/a/b", "3", "--create", "--version", "0")

    def test_get_stat(self):
        self.run_ok("create", "/gs", "abc")
        r = self.run_ok("get", "/gs", "--stat")
        self.assertEqual(r.out, "abc")
        self.assertIn("data-length 3\n", r.err)
        j = self.json_lines("get", "/gs", "--stat")[0]
        self.assertEqual((j["path"], j["data"], j["stat"]["data_length"]), ("/gs", "abc", 3))

    def test_stat(self):
        self.run_ok("create", "/st", "abc")
        lines = dict(l.split(" ", 1) for l in self.run_ok("stat", "/st").out.splitlines())
        self.assertEqual(lines["path"], "/st")
        self.assertEqual(lines["kind"], "persistent")
        self.assertEqual(lines["version"], "0")
        self.assertEqual(lines["czxid"], lines["mzxid"])
        self.assertRegex(lines["ctime"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        j = self.json_lines("stat", "/st")[0]
        self.assertEqual(j["stat"]["czxid"], lines["czxid"])
        self.run_code(66, "stat", "/nothing")

    def test_ls(self):
        for name in ("", "/b", "/a", "/c"):
            self.run_ok("create", "/ls" + name, "12345")
        self.assertEqual(self.run_ok("ls", "/ls").out, "a\nb\nc\n")
        long = self.run_ok("ls", "-l", "/ls").out.splitlines()
        self.assertEqual([l.split()[0] for l in long], ["persistent"] * 3)
        self.assertEqual([l.split()[1] for l in long], ["5"] * 3)
        self.assertEqual([l.split()[-1] for l in long], ["a", "b", "c"])
        self.assertEqual(self.json_lines("ls", "/ls"), [{"name": n} for n in "abc"])
        self.assertEqual([j["stat"]["num_children"] for j in self.json_lines("ls", "/ls", "-l")],
                         [0, 0, 0])
        self.assertEqual(self.run_ok("ls", "/ls/a").out, "")
        self.assertIn("zookeeper\n", self.run_ok("ls").out)
        self.assertIn("zookeeper\n", self.run_ok("ls", "/").out)
        self.run_code(66, "ls", "/nothing")

    @unittest.skipUnless(KazooClient, "needs kazoo")
    def test_more_nodes_than_fit_into_one_flight(self):
        zk = KazooClient(self.server.connect)
        zk.start()
        for i in range(0, 1000, 100):
            t = zk.transaction()
            if i == 0:
                t.create("/many")
            for n in range(i, i + 100):
                t.create(f"/many/n{n:04}", b"x")
            self.assertEqual([r for r in t.commit() if isinstance(r, Exception)], [])
        zk.stop()
        zk.close()
        names = [f"n{n:04}" for n in range(1000)]
        long = self.run_ok("ls", "-l", "/many").out.splitlines()
        self.assertEqual([line.split()[-1] for line in long], names)
        tree = self.json_lines("tree", "/many", "--data")
        self.assertEqual([(j["path"], j["data"]) for j in tree[1:]],
                         [("/many/" + n, "x") for n in names])
        self.run_ok("rm", "-r", "/many")
        self.run_code(66, "stat", "/many")

    def test_tree(self):
        for path in ("/t", "/t/b", "/t/a", "/t/a/x"):
            self.run_ok("create", path, "d\n\\")
        self.assertEqual(self.run_ok("tree", "/t").out, "/t\n  a\n    x\n  b\n")
        self.assertEqual(self.run_ok("tree", "/t", "--depth", "1").out, "/t\n  a\n  b\n")
        self.assertEqual(self.run_ok("tree", "/t", "--depth=0").out, "/t\n")
        self.assertEqual(self.run_ok("tree", "/t/b", "--data").out, "/t/b = d\\n\\\\\n")
        self.assertEqual([(j["path"], j["depth"], j["data"])
                          for j in self.json_lines("tree", "/t", "--data")],
                         [("/t", 0, "d\n\\"), ("/t/a", 1, "d\n\\"), ("/t/a/x", 2, "d\n\\"),
                          ("/t/b", 1, "d\n\\")])
        self.assertIn("\n  zookeeper\n", self.run_ok("tree", "--depth", "1").out)
        self.run_code(66, "tree", "/nothing")

    def test_tree_tells_of_what_it_may_not_see(self):
        self.run_ok("create", "/half")
        self.run_ok("create", "/half/open")
        self.run_ok("create", "/half/shut", "--acl", "creator", "--auth", "digest:a:b")
        r = clave("tree", "/half", connect=self.server.connect)
        self.assertEqual(r.code, 77, r)
        self.assertIn("/half/shut: not authorised", r.err)
        self.assertEqual(r.out, "/half\n  open\n  shut\n")

    def test_rm(self):
        for path in ("/r", "/r/a", "/r/a/b"):
            self.run_ok("create", path)
        r = self.run_code(66, "rm", "/r")
        self.assertIn("/r: the node has children", r.err)
        self.assertIn("rm -r", r.err)
        self.run_code(66, "rm", "/r/a/b", "--version", "7")
        self.run_ok("rm", "/r/a/b", "--version", "0")
        self.run_ok("create", "/r/a/c")
        self.run_ok("rm", "-r", "/r")
        self.run_code(66, "rm", "/r")
        self.run_code(66, "rm", "-r", "/r")
        self.run_ok("rm", "-f", "/r")
        self.run_ok("rm", "-rf", "/r")
        self.run_code(66, "rm", "-r", "/")
        self.run_code(64, "rm", "-r", "/x", "--version", "1")

    def test_sync_and_ping(self):
        self.assertEqual(self.run_ok("sync").out, "")
        self.assertEqual(self.run_ok("sync", "/").out, "")
        self.assertEqual(self.json_lines("sync", "/"), [{"path": "/"}])
        lines = self.run_ok("ping", "-n", "2", "--interval", "1ms").out.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], rf"^server 127\.0\.0\.1:{self.server.port}\b")
        self.assertRegex(lines[1], r"^answer in \d+\.\d{3} ms$")
        objects = self.json_lines("ping", "--count=1")
        self.assertEqual(objects[0]["port"], self.server.port)
        self.assertGreater(objects[1]["round_trip_us"], 0)

    def test_version_and_help(self):
        self.assertRegex(self.run_ok("version").out, r"^clave \d+\.\d+\.\d+\n$")
        self.assertRegex(self.run_ok("--version").out, r"^clave \d+\.\d+\.\d+\n$")
        self.assertIn("version", self.json_lines("version")[0])
        self.assertIn("Verbs:", self.run_ok("help").out)
        self.assertIn("Verbs:", self.run_ok("--help").out)
        self.assertIn("usage: clave get", self.run_ok("help", "get").out)
        self.run_code(64, "help", "nonsense")

    def test_chroot(self):
        self.run_ok("create", "/root", "")
        inside = self.server.connect + "/root"
        r = clave("create", "/in", "v", connect=inside)
        self.assertEqual((r.code, r.out), (0, "/in\n"), r)
        self.assertEqual(self.run_ok("get", "/root/in").out, "v")
        self.assertEqual(clave("ls", "/", connect=inside).out, "in\n")
        self.assertEqual(clave("rm", "-r", "/in", connect=inside).code, 0)
        r = clave("ping", connect=self.server.connect + "/not/there")
        self.assertEqual(r.code, 0, r)

    def test_guard_needs_a_lock(self):
        self.run_ok("create", "/guarded", "0")
        self.run_code(64, "set", "/guarded", "1", "--guard")
        self.run_code(64, "set", "/guarded", "1", "--guard", env={"CLAVE_NODE": "nonsense"})

    def test_guard(self):
        self.run_ok("create", "--parents", "/g/lock-1", "")
        env = {"CLAVE_NODE": "/g/lock-1", "CLAVE_TOKEN": "1"}
        self.run_ok("create", "--guard", "/g/a", "0", env=env)
        self.run_ok("create", "--guard", "--parents", "/g/x/y/z", "deep", env=env)
        self.run_ok("set", "/g/a", "1", "--guard", env=env)
        self.run_ok("set", "/g/n/e/w", "1", "--guard", "--create", env=env)
        self.run_ok("set", "/g/n/e/w", "2", "--guard", "--create", env=env)
        self.assertEqual(self.run_ok("get", "/g/n/e/w").out, "2")
        self.assertEqual(self.run_ok("get", "/g/x/y/z").out, "deep")
        self.run_code(66, "set", "/g/missing", "1", "--guard", env=env)
        self.run_code(66, "set", "/g/a", "1", "--guard", "--version", "9", env=env)
        self.run_code(66, "create", "/g/a", "--guard", env=env)
        self.run_ok("rm", "/g/lock-1")
        for words in (("set", "/g/a", "2"), ("create", "/g/b"), ("set", "/g/c", "1", "--create"),
                      ("create", "/g/d/e", "--parents")):
            r = self.run_code(76, *words, "--guard", env=env)
            self.assertIn("the lock was lost", r.err)
        self.assertEqual(self.run_ok("get", "/g/a").out, "1")
        self.assertEqual(self.run_ok("ls", "/g").out, "a\nn\nx\n")

    def test_watch_a_node(self):
        w = Running("watch", "/w", connect=self.server.connect)
        self.assertEqual(w.line(), "watching-missing /w")
        self.run_ok("create", "/w", "0")
        self.assertRegex(w.line(), r"^created /w version 0 zxid 0x[0-9a-f]+$")
        self.run_ok("set", "/w", "1")
        self.assertRegex(w.line(), r"^changed /w version 1 ")
        self.run_ok("rm", "/w")
        self.assertEqual(w.line(), "deleted /w")
        r = w.end(signal.SIGINT)
        self.assertEqual((r.code, r.err), (130, ""), r)

    def test_watch_children(self):
        self.run_ok("create", "--parents", "/wc/old")
        w = Running("watch", "--children", "--json", "/wc", connect=self.server.connect)
        event = lambda: (lambda j: (j["event"], j["path"]))(json.loads(w.line()))
        self.assertEqual(event(), ("watching", "/wc"))
        self.assertEqual(event(), ("child", "/wc/old"))
        self.run_ok("create", "/wc/new")
        self.assertEqual(event(), ("child-created", "/wc/new"))
        self.run_ok("rm", "/wc/old")
        self.assertEqual(event(), ("child-deleted", "/wc/old"))
        self.run_ok("rm", "/wc/new")
        self.assertEqual(event(), ("child-deleted", "/wc/new"))
        self.run_ok("rm", "/wc")
        self.assertEqual(event(), ("deleted", "/wc"))
        self.run_ok("create", "/wc")
        self.assertEqual(event(), ("created", "/wc"))
        self.run_ok("create", "/wc/again")
        self.assertEqual(event(), ("child-created", "/wc/again"))
        self.assertEqual(w.end(signal.SIGTERM).code, 143)

    def test_watch_a_tree(self):
        self.run_ok("create", "--parents", "/wt/a/b")
        w = Running("watch", "--recursive", "--json", "/wt", connect=self.server.connect)
        event = lambda: (lambda j: (j["event"], j["path"]))(json.loads(w.line()))
        self.assertEqual(event(), ("watching", "/wt"))
        self.run_ok("set", "/wt/a/b", "1")
        self.assertEqual(event(), ("changed", "/wt/a/b"))
        self.run_ok("create", "/wt/a/b/c")
        self.assertEqual(event(), ("created", "/wt/a/b/c"))
        self.run_ok("rm", "-r", "/wt")
        self.assertEqual([event() for _ in range(4)],
                         [("deleted", path) for path in ("/wt/a/b/c", "/wt/a/b", "/wt/a", "/wt")])
        self.run_ok("create", "/wt")
        self.assertEqual(event(), ("created", "/wt"))
        self.assertEqual(w.end(signal.SIGTERM).code, 143)
        w = Running("watch", "--recursive", "--once", "/wt", connect=self.server.connect)
        self.assertRegex(w.line(), "^watching /wt version 0 zxid 0x[0-9a-f]+$")
        self.run_ok("create", "/wt/x")
        self.assertRegex(w.line(), "^created /wt/x version 0 zxid 0x[0-9a-f]+$")
        self.assertEqual(w.end().code, 0)
        w = Running("watch", "--recursive", "--once", "/", connect=self.server.connect)
        self.assertRegex(w.line(), "^watching / version 0 zxid 0x[0-9a-f]+$")
        self.run_ok("create", "/wt/y")
        self.assertEqual(w.end().code, 0)
        r = self.run_code(64, "watch", "--recursive", "--children", "/wt")
        self.assertIn("--recursive", r.err)

    def test_watch_once(self):
        w = Running("watch", "--once", "/once", connect=self.server.connect)
        self.assertEqual(w.line(), "watching-missing /once")
        self.run_ok("create", "/once")
        self.assertTrue(w.line().startswith("created /once"))
        self.assertEqual(w.end().code, 0)

    def test_verbose_tells_of_the_session(self):
        r = self.run_ok("-v", "--session-timeout", "1h", "get", "/")
        self.assertRegex(r.err, r"session 0x[0-9a-f]+, timeout \d+ms")
        self.assertRegex(r.err, r"limited the session timeout to \d+ ms \(requested 3600000 ms\)")
        r = self.run_ok("get", "-v", "--session-timeout=10ms", "/")
        self.assertRegex(r.err, r"requested 10 ms")


if __name__ == "__main__":
    unittest.main(verbosity=1)
