"""Access lists: the entry of a password, and nodes that take the list of their parent."""
import os
import pty
import unittest

from harness import CLAVE, Served, clave, environment, spawn

HASH = "digest:joe:oesAybBun9icKJjQSTRN8OBueSc="  # printf joe:secret | openssl sha1 -binary | base64


class Hash(unittest.TestCase):
    def test_of_a_pipe(self):
        for given in (b"secret\n", b"secret", b"secret\nmore\n"):
            self.assertEqual(clave("acl", "hash", "joe", stdin=given).out, HASH + "\n")
        self.assertEqual(clave("--json", "acl", "hash", "joe", stdin=b"secret").out, f'{{"id": "{HASH}"}}\n')

    def test_usage(self):
        for words, given in ((["hash", "joe"], b""), (["hash", "joe"], b"\n"), (["hash", "a:b"], b"x\n"),
                             (["hash", "joe"], b"x" * 5000), (["hash"], b"x\n"), (["mash", "joe"], b"x\n")):
            r = clave("acl", *words, stdin=given)
            self.assertEqual((r.code, r.out), (64, ""), r)

    def test_of_a_terminal(self):
        us, theirs = pty.openpty()
        p = spawn([CLAVE, "acl", "hash", "joe"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment())
        os.close(theirs)
        shown = b""
        while not shown.endswith(b"Password: "):
            shown += os.read(us, 100)
        os.write(us, b"secret\n")
        while HASH.encode() not in shown:
            shown += os.read(us, 100)
        self.assertNotIn(b"secret", shown)
        self.assertEqual(p.wait(), 0)
        os.close(us)


class Parent(Served):
    def joe(self, *words):
        return clave("--auth", "digest:joe:secret", *words, connect=self.server.connect)

    def test_a_node_has_the_list_of_its_parent(self):
        self.assertEqual(self.joe("create", "--acl", HASH + ":cdrwa", "/own").code, 0)
        show = ["--", "sh", "-c", f"{CLAVE} --auth digest:joe:secret getacl $CLAVE_NODE"]
        for verb in (["lock"], ["rwlock", "--read"], ["rwlock"], ["semaphore", "-n", "2"], ["elect"]):
            with self.subTest(verb):
                r = self.joe(*verb, "--acl", "parent", "/own", *show)
                self.assertEqual((r.code, r.out), (0, HASH + ":cdrwa\n"), r)
                self.assertIn("only a participant that may read the node", r.err)
        for inner in "leases", "locks":
            self.assertEqual(self.joe("getacl", f"/own/{inner}").out, HASH + ":cdrwa\n", "who deletes there ends a lease")
            self.assertEqual(clave("ls", f"/own/{inner}", connect=self.server.connect).code, 77)
        self.assertEqual(self.joe("semaphore", "-n", "2", "--acl", "parent", "/own", "true").code, 0, "they are there")
        self.assertEqual(self.joe("create", "--acl", "parent", "/own/node").code, 0)
        self.assertEqual(self.joe("getacl", "/own/node").out, HASH + ":cdrwa\n")
        self.assertEqual(clave("get", "/own/node", connect=self.server.connect).code, 77)

    def test_what_cannot_be_taken(self):
        self.joe("create", "--acl", HASH + ":cdrwa,world:anyone:cr", "/shown")
        for words in (["lock", "--acl", "parent", "/shown", "--", "true"],
                      ["create", "--acl", "parent", "/shown/x"]):
            r = clave(*words, connect=self.server.connect)
            self.assertEqual(r.code, 77, r)
            self.assertIn("hidden", r.err)
        r = self.joe("create", "--acl", HASH, "/entry")
        self.assertEqual(r.code, 64, r)
        self.assertIn("ends with its permissions, letters of cdrwa: SCHEME:ID:cdrwa", r.err)
        self.assertEqual(self.joe("lock", "--acl", "parent", "/none", "--", "true").code, 66)
        self.assertEqual(self.joe("create", "--acl", "parent", "/none/x").code, 66)
        self.assertEqual(self.joe("create", "-p", "--acl", "parent", "/none/x").code, 64)
        self.assertEqual(self.joe("setacl", "/shown", "parent").code, 64)


if __name__ == "__main__":
    unittest.main()
