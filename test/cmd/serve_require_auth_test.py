"""clave serve --require-auth: a client that authenticates is served, another is told why not."""
import unittest

from harness import ClaveServer, clave, scratch


class RequireAuth(unittest.TestCase):
    def test_clients(self):
        path = scratch("sock")
        server = ClaveServer(["--require-auth", "digest,uid", "--listen", f"unix:{path}"])
        server.start()
        self.addCleanup(server.stop)
        r = clave("create", "/a", connect=server.connect)
        self.assertNotEqual(r.code, 0)
        self.assertIn("the server requires clients to authenticate", r.err)
        self.assertEqual(clave("--auth", "digest:joe:pw", "create", "/a", connect=server.connect).code, 0)
        self.assertEqual(clave("get", "/a", connect=f"unix:{path}").code, 0)
        r = clave("--auth", "digest:joe:pw", "lock", "/l", "--", "true", connect=server.connect)
        self.assertEqual((r.code, r.err), (0, ""))
        # Nothing comes before the identities, so no connection is refused.
        r = clave("-v", "--auth", "digest:joe:pw", "lock", "/l", "--", "true", connect=server.connect)
        self.assertIn("-> CONNECTED", r.err)
        self.assertNotIn("SUSPENDED", r.err)

    def test_schemes(self):
        r = clave("serve", "--check-config", "--data", "/nowhere", "--require-auth", "digest,sasl")
        self.assertEqual(r.code, 64)
        self.assertIn("no such scheme 'sasl'", r.err)
        for empty in ("", ",", "digest,"):
            r = clave("serve", "--check-config", "--data", "/nowhere", "--require-auth", empty)
            self.assertEqual(r.code, 64, empty)

    def test_nobody_is_locked_out(self):
        def check(*flags):
            return clave("serve", "--check-config", "--data", "/nowhere", *flags)
        tls = ["--listen", "tls:*:2281", "--tls-cert", "/nowhere/cert", "--tls-clients", "none"]
        for flags in (["x509"], ["uid"], ["uid,x509"], ["x509"] + tls, ["uid"] + tls):
            r = check("--require-auth", *flags)
            self.assertEqual(r.code, 64, r)
            self.assertIn("locks everybody out", r.err)
        for flags in (["x509,digest"], ["ip"], ["uid", "--listen", "unix:/nowhere/sock"]):
            self.assertNotIn("locks everybody out", check("--require-auth", *flags).err)

    def test_a_super_user_that_nobody_is(self):
        r = clave("serve", "--check-config", "--data", "/nowhere", "--super-uid", "0")
        self.assertEqual(r.code, 0, r)
        self.assertIn("--super-uid 0 applies to nobody", r.err)


if __name__ == "__main__":
    unittest.main()
