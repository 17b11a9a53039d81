"""Every setting of Apache's zoo.cfg has one outcome: docs/reference/zoo-cfg.md says it, the table in
settings.c and zoocfg_keys.c have it, and the program does it."""
import os
import re
import unittest

from harness import clave, scratch

SOURCE = os.environ["CLAVE_SOURCE"]
# Values that settings and values of `only` take; others are numbers.
VALUES = {"enforce.auth.enabled": "true", "enforce.auth.schemes": "digest, x509",
          "dataDir": "/nowhere", "dataLogDir": "/nowhere", "clientPort": "2181",
          "clientPortAddress": "127.0.0.1", "secureClientPort": "0",
          "secureClientPortAddress": "127.0.0.1", "4lw.commands.whitelist": "ruok",
          "audit.enable": "true", "extendedTypesEnabled": "true",
          "enforceQuota": "false", "ssl.clientAuth": "need",
          "DigestAuthenticationProvider.superDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
          "admin.enableServer": "true", "admin.serverAddress": "127.0.0.1", "admin.serverPort": "0",
          "admin.commandURL": "/commands", "metricsProvider.httpHost": "127.0.0.1",
          "metricsProvider.className":
              "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
          "minSessionTimeout": "4000", "maxSessionTimeout": "40000",
          "server.1": "localhost:2888:3888;127.0.0.1:2181"}

# What somebody may rely on to keep clients out, or from doing something.
NARROWING = """clientPortAddress secureClientPortAddress server.1 dynamicConfigFile maxClientCnxns maxCnxns
    maxSessionTimeout minSessionTimeout jute.maxbuffer globalOutstandingLimit nio.sessionlessCnxnTimeout
    4lw.commands.whitelist admin.enableServer admin.serverAddress admin.forceHttps admin.needClientAuth
    metricsProvider.httpHost metricsProvider.ssl.need.client.auth enforce.auth.enabled enforce.auth.schemes
    sessionRequireClientSASLAuth requireClientAuthScheme enforceQuota extendedTypesEnabled
    DigestAuthenticationProvider.enabled DigestAuthenticationProvider.digestAlg
    X509AuthenticationProvider.clientCertIdType authProvider.1 ssl.authProvider ssl.clientAuth ssl.crl ssl.ocsp
    ssl.trustStore.location ssl.clientHostnameVerification ssl.protocol ssl.enabledProtocols ssl.ciphersuites
    ssl.context.supplier.class ssl.someKeyOfTheFuture admin.someKeyOfTheFuture client.portUnification
    audit.enable""".split()


def text(*path):
    with open(os.path.join(SOURCE, *path)) as f:
        return f.read()


def documented():
    """Key (ending with '.': all that begin so) -> what clave does, and the reason."""
    rows = re.findall(r"^\| (`[^|]+`) \| (.*?) \| ?(.*?) ?\|$", text("docs", "reference", "zoo-cfg.md"), re.M)
    return {key.replace(".*", "."): (what, why) for keys, what, why in rows
            for key in re.findall(r"`([^`]+)`", keys)}


def of_the_code():
    """The keys that are settings of clave by themselves, and the others."""
    keys = re.findall(r"\.zoocfg = \"([^\"]+)\"", text("src", "cmd", "serve", "settings.c"))
    return " ".join(keys).split() + re.findall(r"\{\"([^\"]+)\",\s*ZOOCFG_", text("src", "cmd", "serve", "zoocfg_keys.c"))


def of_apache():
    lines = text("test", "cmd", "apache_settings.txt").splitlines()
    return [l for l in lines if l and not l.startswith("#")]


def row_of(name, table):
    if name in table:
        return table[name]
    prefixes = [k for k in table if k.endswith(".") and name.startswith(k)]
    return table[max(prefixes, key=len)] if prefixes else None


def check(lines, name="zoo.cfg"):
    """What `clave serve` says of a file with these lines: its code, and the message of each line."""
    path = scratch(name)
    with open(path, "w") as f:
        f.write("dataDir=/nowhere\nclientPort=2181\n" + "".join(l + "\n" for l in lines))
    r = clave("serve", "--check-config", "--config", path)
    said = {}
    for number, message in re.findall(re.escape(path) + r":(\d+): (.*)", r.err):
        said.setdefault(int(number) - 3, message)
    return r, said


class Table(unittest.TestCase):
    def setUp(self):
        self.table = documented()

    def test_the_page_has_the_keys_of_the_code(self):
        self.assertGreater(len(self.table), 100)
        self.assertEqual(sorted(self.table), sorted(of_the_code()))

    def names(self, wanted):
        """Apache's names, and the page's own, with this outcome."""
        names = dict.fromkeys(of_apache() + [k for k in self.table if not k.endswith(".")])
        rows = {n: row_of(n, self.table) for n in names}
        self.assertEqual([n for n, row in rows.items() if not row], [])
        return {n: row for n, row in rows.items() if wanted(row[0])}

    def test_security_has_a_line_for_each_key(self):
        """A line for `ssl.*` must not decide over a key that somebody relies on."""
        names = [n for n in of_apache() if n.startswith(("ssl.", "admin.", "enforce."))
                 and not n.startswith(("ssl.quorum.", "admin.snapshot.", "admin.restore."))]
        self.assertGreater(len(names), 30)
        self.assertEqual([n for n in names if n not in self.table], [])

    def test_what_narrows_is_never_ignored(self):
        for name in NARROWING:
            self.assertNotEqual(row_of(name, self.table)[0], "ignored", name)

    def test_what_is_ignored_is_said_with_the_reason(self):
        names = self.names(lambda what: what == "ignored")
        for prefix in ("", "zookeeper."):
            r, said = check([f"{prefix}{n}=1" for n in names])
            self.assertEqual(r.code, 0, r.err)
            for i, (name, (_, why)) in enumerate(names.items()):
                self.assertTrue(said.get(i, "").startswith(f"{prefix}{name}: "), (name, said.get(i)))
                self.assertIn("ignored", said[i])
                self.assertIn(why, said[i])

    def test_what_is_refused_is_said_with_the_reason(self):
        for name, (what, why) in self.names(lambda what: what.startswith("refused")).items():
            with self.subTest(name):
                r, said = check([f"{name}=1"])
                self.assertEqual(r.code, 64, r)
                self.assertTrue(said[0].startswith(name), said)
                self.assertIn(why, said[0])

    def test_what_is_not_asked_for_is_not_refused(self):
        names = self.names(lambda what: what.startswith("refused"))
        only = {n: what[len("refused unless "):] for n, (what, _) in names.items()
                if what.startswith("refused unless ")}
        r, said = check([f"{n}={only.get(n, 'false')}" for n in names])
        self.assertEqual((r.code, said), (0, {}), r)

    def test_settings(self):
        names = self.names(lambda what: what.startswith("`"))
        flags = clave("serve", "--help").out
        for what, _ in names.values():
            self.assertIn("--" + what.strip("`") + " ", flags)
        r, said = check([f"{n}={VALUES.get(n, '5000')}" for n in names])
        self.assertEqual((r.code, said), (0, {}), r)

    def test_others_are_reported(self):
        r, said = check(["noSuchKey=1", "zookeeper.noSuchKey=1", "=no key at all"])
        self.assertEqual(r.code, 0, r)
        self.assertEqual(said, {0: "noSuchKey: unknown key, ignored",
                                1: "zookeeper.noSuchKey: unknown key, ignored",
                                2: ": unknown key, ignored"})

    def test_providers(self):
        apaches = "org.apache.zookeeper.server.auth."
        for name in ("DigestAuthenticationProvider", "IPAuthenticationProvider", "X509AuthenticationProvider"):
            self.assertEqual(check([f"authProvider.1={apaches}{name}"])[1], {})
        r, said = check([f"authProvider.sasl={apaches}SASLAuthenticationProvider"])
        self.assertEqual((r.code, said), (0, {0: "authProvider.sasl: clave does not have this scheme, ignored"}))
        for name in ("com.acme.Strict", apaches + "znode.groupacl.X509ZNodeGroupAclProvider", ""):
            self.assertEqual(check([f"authProvider.1={name}"])[0].code, 64, name)

    def test_several_servers(self):
        r, said = check(["server.1=a:1:2", "server.2=b:1:2"])
        self.assertEqual(r.code, 64, r)
        self.assertIn("an ensemble of 2 servers", said[1])


class ServerLine(unittest.TestCase):
    """The client port in the server's own line: where it listens, or what is wrong."""
    FORM = "expected host:port:port"

    def run_case(self, lines, myid=None):
        data = scratch("data")
        os.mkdir(data)
        if myid is not None:
            with open(os.path.join(data, "myid"), "w") as f:
                f.write(myid)
        with open(os.path.join(data, "zoo.cfg"), "w") as f:
            f.write(f"dataDir={data}\n{lines}\n")
        r = clave("serve", "--check-config", "--config", f.name)
        return r, (re.search(r"listen (.*), data", r.out) or [None, None])[1]

    def test_where_it_listens(self):
        for lines, listen in (
                ("server.1=localhost:2888:3888;2181", "*:2181"),
                ("server.1=localhost:2888:3888:participant;127.0.0.1:2181", "127.0.0.1:2181"),
                ("server.1=localhost:2888:3888:PARTICIPANT;[::1]:2181", "[::1]:2181"),
                ("server.1=[::1]:2888:3888;2181", "*:2181"),
                ("server.1=[::1]:2888:3888|b:2889:3889;127.0.0.1:2181", "127.0.0.1:2181"),
                ("server.7=a:2888:3888\nclientPort=2181", "*:2181"),
                ("server.1=a:2888:3888;\nclientPort=2181", "*:2181"),
                ("clientPort=2181\nserver.1=a:2888:3888;127.0.0.1:2181", "127.0.0.1:2181"),
                ("server.1=a:2888:3888;127.0.0.1:2181\nclientPort=2181", "127.0.0.1:2181"),
                ("clientPort=2181\nclientPortAddress=0.0.0.0\nserver.1=a:2888:3888;127.0.0.1:2181",
                 "127.0.0.1:2181"),
                ("clientPort=2181\nclientPortAddress=127.0.0.1\nserver.1=a:1:2;127.0.0.1:2181",
                 "127.0.0.1:2181"),
                ("server.1=a:1:2;2180\nserver.1=a:1:2;2181", "*:2181"),  # as in any Java properties
                ("server.1=a:1:2;2181\ngroup.1=1\nweight.1=1\nstandaloneEnabled=false", "*:2181")):
            with self.subTest(lines):
                for myid in (None, "1\n", "1") if "server.1" in lines else (None,):
                    r, where = self.run_case(lines, myid)
                    self.assertEqual((r.code, where), (0, listen), r)

    def test_contradictions(self):
        for lines, line, what in (
                ("clientPort=2182\nserver.1=a:1:2;2181", 3, "its client port is 2181, but clientPort on line 2 is 2182"),
                ("clientPort=2181\nclientPortAddress=127.0.0.1\nserver.1=a:1:2;2181", 4,
                 "its client address is every address, but clientPortAddress on line 3 is 127.0.0.1"),
                ("clientPort=2181\nclientPortAddress=127.0.0.1\nserver.1=a:1:2;::2181", 4, self.FORM),
                ("clientPortAddress=127.0.0.1\nserver.1=a:1:2;127.0.0.1:2181", 2,
                 "clientPortAddress has no effect without clientPort"),
                ("clientPort=1\nsecureClientPortAddress=127.0.0.1", 3, "without secureClientPort"),
                ("secureClientPort=2282\nserver.1=a:1:2;2181;2281", 3, "but secureClientPort on line 2 is 2282"),
                ("server.1=a:1:2;2181;2281", 2, "secureClientPort needs ssl.keyStore.location"),
                ("server.1=a:1:2:observer;2181", 2, "an observer needs other servers"),
                ("server.1=a:1:2:leader;2181", 2, self.FORM), ("server.1=a:1;2181", 2, self.FORM),
                ("server.1=;2181", 2, self.FORM), ("server.1=", 2, self.FORM), ("server.1=|;2181", 2, self.FORM),
                ("server.1=a:1:2;2181;2281;1", 2, self.FORM), ("server.1=a:1:2;b:c:2181", 2, self.FORM),
                ("server.1=a:1:2;0", 2, self.FORM), ("server.1=a:1:2;[::1]2181", 2, self.FORM),
                ("server.1=a:1:2; 2181", 2, self.FORM), ("server.one=a:1:2;2181", 2, "the number of a server"),
                ("server.1=a:1:2;24319:2181", None, "'24319' is not an address")):
            with self.subTest(lines):
                r, _ = self.run_case(lines)
                self.assertEqual(r.code, 64, r)
                self.assertIn(what, r.err)
                if line:
                    self.assertIn(f"zoo.cfg:{line}: ", r.err)

    def test_myid(self):
        for myid, what in (("2\n", "is another server's"), ("one", "'one' is not a number")):
            r, _ = self.run_case("server.1=a:1:2;2181", myid)
            self.assertEqual(r.code, 64, r)
            self.assertIn(what, r.err)
            self.assertEqual(self.run_case("server.1=a:1:2\nclientPort=2181", myid)[0].code, 0)  # as Apache

    def test_two_servers(self):
        r, _ = self.run_case("server.1=a:1:2;2181\nserver.2=b:1:2;2181", "1")
        self.assertEqual(r.code, 64, r)
        self.assertIn("leave only this server's 'server.' line", r.err)


if __name__ == "__main__":
    unittest.main()
