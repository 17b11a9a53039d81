"""Every setting of Apache's zoo.cfg has one outcome: docs/zoo-cfg.md says it, the table in
zoocfg_keys.c has it, and the program does it."""
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
          "minSessionTimeout": "4000", "maxSessionTimeout": "40000"}


def text(*path):
    with open(os.path.join(SOURCE, *path)) as f:
        return f.read()


def documented():
    """Key (ending with '.': all that begin so) -> what clave does, and the reason."""
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| ?(.*?) ?\|$", text("docs", "zoo-cfg.md"), re.M)
    return {key.replace(".*", "."): (what, why) for key, what, why in rows}


def of_the_code():
    source = text("src", "cmd", "serve", "zoocfg_keys.c")
    return re.findall(r"\{\"([^\"]+)\",\s*ZOOCFG_", source)


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
        self.assertEqual(list(self.table), of_the_code())

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

    def test_what_is_ignored_is_said_with_the_reason(self):
        names = self.names(lambda what: what == "ignored")
        for prefix in ("", "zookeeper."):
            r, said = check([f"{prefix}{n}=1" for n in names])
            self.assertEqual(r.code, 0, r.err)
            for i, (name, (_, why)) in enumerate(names.items()):
                if name != "server.1":  # said once all are known
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
        r, said = check(["noSuchKey=1", "zookeeper.noSuchKey=1"])
        self.assertEqual(r.code, 0, r)
        self.assertEqual(said, {0: "noSuchKey: unknown key, ignored",
                                1: "zookeeper.noSuchKey: unknown key, ignored"})

    def test_several_servers(self):
        r, said = check(["server.1=a:1:2", "server.2=b:1:2"])
        self.assertEqual(r.code, 64, r)
        self.assertIn("an ensemble of 2 servers", said[1])


if __name__ == "__main__":
    unittest.main()
