"""Where settings come from: flags, then the environment, then the file."""
import os
import unittest

from harness import clave, free_port, scratch, server


class Config(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server()
        cls.nobody = f"127.0.0.1:{free_port()}"

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def file(self, text):
        path = scratch("config")
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        return path

    def run_with(self, text, *words, **env):
        return clave(*words, env={"CLAVE_CONFIG": self.file(text), **env})

    def test_file(self):
        r = self.run_with(f"# servers\n\n  connect = {self.server.connect}  \r\ntimeout=8s",
                          "get", "/")
        self.assertEqual((r.code, r.err), (0, ""), r)

    def test_quotes_and_comments(self):
        """By the same rule as in the file of `clave serve`."""
        for text in (f'connect = "{self.server.connect}"\n', f"connect='{self.server.connect}' # ours\n",
                     f'connect = "{self.server.connect}"# ours\ntimeout = "8s"\n'):
            r = self.run_with(text, "get", "/")
            self.assertEqual((r.code, r.err), (0, ""), r)
        for text, fault in ((f"connect = {self.server.connect} # ours\n", ":1: connect: a comment needs"),
                            ("\nauth = digest:joe:pass #word\n", ":2: auth: a comment needs"),
                            ("connect = # none\n", ":1: connect: a comment needs"),
                            ('connect = "a:1\n', ":1: connect: the quote before the value is not closed"),
                            ("connect = 'a:1' b:2\n", ":1: connect: only a comment may follow"),
                            ("connect = ''\n", ":1: 'connect' has no value")):
            r = self.run_with(text, "get", "/")
            self.assertEqual(r.code, 64, r)
            self.assertIn(fault, r.err)
            self.assertNotIn("#word", r.err)
        r = self.run_with(f"connect = {self.server.connect}\nauth = 'digest:joe:pass #word'\n", "get", "/")
        self.assertEqual((r.code, r.err), (0, ""), r)

    def test_default_places(self):
        home = scratch("home")
        os.makedirs(home + "/.config/clave")
        with open(home + "/.config/clave/config", "w") as f:
            f.write("bad line\n")
        r = clave("get", "/", env={"HOME": home})
        self.assertEqual(r.code, 64, r)
        self.assertIn(home + "/.config/clave/config:1:", r.err)
        xdg = scratch("xdg")
        os.makedirs(xdg + "/clave")
        with open(xdg + "/clave/config", "w") as f:
            f.write(f"connect = {self.server.connect}\n")
        r = clave("get", "/", env={"HOME": home, "XDG_CONFIG_HOME": xdg})
        self.assertEqual(r.code, 0, r)

    def test_precedence(self):
        good, bad = self.server.connect, self.nobody
        file = self.file(f"connect = {bad}\n")
        for flag, env, text, code in ((good, bad, bad, 0), (bad, good, good, 69),
                                      (None, good, bad, 0), (None, bad, good, 69),
                                      (None, None, good, 0), (None, None, bad, 69)):
            words = ["get", "/", "--timeout", "400ms"] if code else ["get", "/"]
            words += ["--connect", flag] if flag else []
            more = {"CLAVE_CONNECT": env} if env else {}
            r = self.run_with(f"connect = {text}\n", *words, **more)
            self.assertEqual(r.code, code, (flag, env, text, r))
        self.assertTrue(os.path.exists(file))

    def test_flags_before_and_after_the_verb(self):
        c = self.server.connect
        for words in (["--connect", c, "get", "/"], ["get", "--connect", c, "/"],
                      ["get", "/", "--connect", c], ["-c", c, "get", "/"], [f"-c{c}", "get", "/"],
                      [f"--connect={c}", "get", "/"]):
            self.assertEqual(clave(*words).code, 0, words)

    def test_timeouts_from_everywhere(self):
        c = self.server.connect
        r = self.run_with(f"connect={c}\nsession-timeout=7s\n", "-v", "get", "/")
        self.assertIn("timeout 7000ms", r.err)
        r = self.run_with(f"connect={c}\nsession-timeout=7s\n", "-v", "get", "/",
                          CLAVE_SESSION_TIMEOUT="8s")
        self.assertIn("timeout 8000ms", r.err)
        r = self.run_with(f"connect={c}\nsession-timeout=7s\n", "-v", "get", "/",
                          "--session-timeout", "9s", CLAVE_SESSION_TIMEOUT="8s")
        self.assertIn("timeout 9000ms", r.err)

    def test_durations(self):
        """A bare number is in seconds; fractions, compounds and names in words."""
        for text, ms in (("90", 90000), ("90s", 90000), ("1m30s", 90000), ("1m 30s", 90000), ("1.5min", 90000),
                         ("90 seconds", 90000), ("90sec", 90000), ("0.025hours", 90000), ("1.5m1msec", 90001),
                         ("1d2h3m4s5ms", 93784005), ("90.0004", 90001), ("0.0010416666d", 90000)):
            for r in (self.run_with(f"connect={self.server.connect}\nsession-timeout={text}\n", "-v", "get", "/"),
                      clave("-v", "get", "/", "--session-timeout", text, connect=self.server.connect)):
                self.assertIn(f"(requested {ms} ms)", r.err, text)

    def test_identities(self):
        c = self.server.connect
        self.assertEqual(clave("create", "/id", "x", "--acl", "creator", "--auth", "digest:a:b",
                               connect=c).code, 0)
        self.assertEqual(self.run_with(f"connect={c}\nauth = digest:c:d\nauth = digest:a:b\n",
                                       "get", "/id").code, 0)
        self.assertEqual(self.run_with(f"connect={c}\nauth = digest:c:d\n", "get", "/id",
                                       CLAVE_AUTH="digest:a:b").code, 0)
        # A flag replaces what the file says; it does not add to it.
        self.assertEqual(self.run_with(f"connect={c}\nauth = digest:a:b\n", "get", "/id",
                                       "--auth", "digest:c:d").code, 77)

    def test_faults_name_file_and_line(self):
        for text, line, what in (("connekt = x\n", 1, "unknown key 'connekt'"),
                                 ("# c\n\ntimeout = 5x\n", 3, "'5x': a duration is"),
                                 ("session-timeout = 0s\n", 1, "not between"),
                                 ("connect\n", 1, "key = value"), ("connect =\n", 1, "no value"),
                                 ("auth = joe\n", 1, "SCHEME:ID"), (" = x\n", 1, "unknown key ''")):
            path = self.file(text)
            r = clave("get", "/", env={"CLAVE_CONFIG": path})
            self.assertEqual((r.code, r.out), (64, ""), r)
            self.assertIn(f"clave: get: {path}:{line}: ", r.err)
            self.assertIn(what, r.err)

    def test_a_bad_host_list_names_its_text(self):
        r = self.run_with("connect = a:b:c\n", "get", "/")
        self.assertEqual(r.code, 64, r)
        self.assertIn("a:b:c", r.err)

    def test_files_that_cannot_be_read(self):
        r = clave("get", "/", env={"CLAVE_CONFIG": "/nonexistent"})
        self.assertEqual(r.code, 64, r)
        self.assertIn("/nonexistent: No such file", r.err)
        r = clave("get", "/", env={"CLAVE_CONFIG": "/"})
        self.assertEqual(r.code, 64, r)
        r = self.run_with("#" * 5000000, "get", "/")
        self.assertEqual(r.code, 64, r)
        self.assertIn("more than the 4194304 bytes", r.err)
        r = self.run_with("# a comment\nconnect = a\0b\n", "get", "/")
        self.assertEqual(r.code, 64, r)
        self.assertIn(":2: a NUL byte", r.err)

    def test_what_editors_leave(self):
        """The mark of UTF-8, line ends of Windows, no end of the last line."""
        r = self.run_with("\ufeffconnect = 127.0.0.1:1\r\ntimeout = 1ms", "get", "/")
        self.assertEqual(r.code, 69, r)
        self.assertIn("127.0.0.1:1", r.err)

    def test_faults_in_the_environment(self):
        for name, value in (("CLAVE_TIMEOUT", "5x"), ("CLAVE_SESSION_TIMEOUT", "x"),
                            ("CLAVE_AUTH", "joe")):
            r = clave("get", "/", env={name: value})
            self.assertEqual(r.code, 64, r)
            self.assertIn(name, r.err)

    def test_a_broken_file_does_not_stop_the_help(self):
        for words in (["help"], ["get", "--help"], ["version"], ["--help"]):
            r = self.run_with("nonsense\n", *words)
            self.assertEqual(r.code, 0, r)


if __name__ == "__main__":
    unittest.main()
