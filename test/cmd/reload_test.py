"""SIGHUP of clave serve and clave gate: every setting of the table that differs is named, as changed
or as one that needs a restart, and what an operator changed is what is read."""
import grp
import os
import re
import signal
import subprocess
import unittest

from certificates import Authority
from gate_rig import Gate
from harness import CLAVE, PATIENCE, SCRATCH, SOURCE, ClaveServer, clave, environment, free_port, scratch, spawn

KEPT, REVOKED = "kept-0123456789ab", "revoked-0123456789"
NOT_IN_FILES = {"config", "check-config", "local", "json", "verbose", "help"}
# What `clave help configuration` has for every verb, and a gate takes from flags alone.
OF_CLIENTS = {"session-timeout", "auth", "tls-ca", "tls-cert", "tls-key", "tls-name", "tls-any-name"}


def written(text, mode=0o600):
    path = scratch("file")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def flags_of(verb):
    return set(re.findall(r"^(?:  -\w,|     ) --([\w-]+)", clave(verb, "--help").out, re.M)) - NOT_IN_FILES


def let_in(path):
    """Others may read it where it is."""
    os.chmod(path, 0o644)
    for name in os.path.dirname(path), SCRATCH:
        os.chmod(name, 0o711)


class Reloaded:
    """A process with a configuration file: {setting: value}."""

    def __init__(self, verb, settings, env=None, who=None):
        self.path = written("")
        self.write(settings)
        if who:
            let_in(self.path)
        self.log = open(scratch("log"), "w+", encoding="utf-8")
        self.p = spawn([CLAVE, verb, "--config", self.path], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=self.log, text=True,
                       env=environment(**(env or {})),
                       before=who and (lambda: (os.setgroups([]), os.setgid(who), os.setuid(who))))
        self.ready = self.p.stdout.readline()

    def write(self, settings):
        with open(self.path, "w", encoding="utf-8") as f:
            f.writelines(f"{k} = {v}\n" for k, v in settings.items() if v is not None)

    def said(self):
        with open(self.log.name, encoding="utf-8") as f:
            return f.read()

    def reload(self, settings, ends=(" reloaded: ", "nothing is changed")):
        """What it says of that, as far as one of `ends`."""
        before = len(self.said())
        self.write(settings)
        self.p.send_signal(signal.SIGHUP)
        while True:
            new = self.said()[before:]
            if new.endswith("\n") and any(e in new for e in ends):
                return new
            if self.p.poll() is not None:
                raise AssertionError(self.said())

    def end(self):
        self.p.terminate()
        code = self.p.wait(PATIENCE)
        self.p.stdout.close()
        self.log.close()
        return code


class Table(unittest.TestCase):
    """A row of settings.c each: what it is changed to, in a file where nothing else changes."""

    def values(self):
        ca = Authority()
        one, two = ca.server(), ca.server()
        port = [f"127.0.0.1:{free_port()}" for _ in range(12)]
        tls = {"cert": (one.cert, two.cert), "key": (one.key, two.key), "ca": (ca.cert, one.cert),
               "clients": ("want", "need")}
        sha = "joe:oesAybBun9icKJjQSTRN8OBueSc="
        both = {
            "http": (port[0] + ",tls:" + port[1], port[2] + ",tls:" + port[1]),
            "http-tokens": tuple(written(f"{KEPT} admin\n") for _ in range(2)),
            "http-host": ("a.example", "b.example"), "http-public": ("https://a/x", "https://b/x"),
            "http-prefix": ("/x", None), "http-proxy": ("10.0.0.1", "10.0.0.2"),
            "fleetlock": ("/a", "/b"), "fleetlock-from": ("10.0.0.1", "10.0.0.2"),
            "http-key": tuple(written(d * 64) for d in "ab"),
            "http-audit": (scratch("audit"), scratch("audit")), "http-metric-paths": ("/a", "/b"),
            "http-max-connections": (100, 200), "http-max-waiting": (10, 20),
            "http-max-sender-sessions": (10, 20), "http-max-body": (2000, 3000),
            "log-format": ("text", "json"), "log-time": ("auto", "no"), "log-level": ("warn", "info"),
        }
        both.update({"http-tls-" + k: v for k, v in tls.items()})
        serve = {
            "data": (scratch("data"), scratch("data")),
            "listen": ("tls:" + port[3], "tls:" + port[4]), "admin": (port[5], port[6]),
            "admin-url": ("/a", "/b"), "metrics": (port[7], port[8]),
            "audit": (scratch("audit"), scratch("audit")), "tick": ("1s", "2s"),
            "min-session-timeout": ("3s", "4s"), "max-session-timeout": ("30s", "40s"),
            "sessionless-timeout": ("5s", "6s"), "idle-exit": ("1h", "2h"), "slow-ms": (7, 8),
            "super-digest": (sha, "jim" + sha[3:]), "super-uid": (1, 2), "require-auth": ("digest", "x509"),
            "words": ("ruok", "ruok, conf"), "x509-super": ("CN=a", "CN=b"), "snap-count": (1000, 2000),
            "container-check": ("1s", "2s"), "container-rate": (10, 20), "container-unused": ("1s", "2s"),
            "extended-types": ("false", "true"), "enforce-quota": ("false", "true"),
        }
        serve.update({"tls-" + k: v for k, v in tls.items()})
        serve.update({k: (3000, 4000) for k in flags_of("serve") if k.startswith("max-") and k not in serve})
        serve["max-undelivered"] = (2 << 20, 4 << 20)
        return both, serve

    def each_is_named(self, verb, values):
        """Returns the names of those that need a restart."""
        base = {k: v[0] for k, v in values.items()}
        r = Reloaded(verb, base)
        self.assertIn("serving on" if verb == "serve" else "gate on", r.ready, r.said())
        restart = set()
        for name, (before, after) in values.items():
            with self.subTest(verb=verb, setting=name):
                told = r.reload(dict(base, **{name: after}))
                self.assertNotIn("no setting has changed", told)
                at_once = re.search(rf" reloaded: {name} (changed|\S+ -> )", told)
                if not at_once:
                    self.assertRegex(told, rf" reloaded: needs a restart: {name}\b")
                    self.assertIn(f": {name} does not change until the next start\n", told)
                    restart.add(name)
                self.assertEqual(len(re.findall(" -> | changed", told)), bool(at_once), told)
            told = r.reload(base)
            self.assertNotIn("needs a restart", told)
        self.assertIn("no setting has changed", r.reload(base))
        self.assertEqual(r.end(), 0)
        return restart

    def test_each_setting_is_named(self):
        both, serve = self.values()
        self.assertEqual(set(both) | set(serve), flags_of("serve"), "a value for each setting")
        restart = self.each_is_named("serve", dict(both, **serve))
        server = ClaveServer().start()
        both["connect"] = (server.connect, "127.0.0.1:1")
        both["http"] = tuple(v.replace("tls:", f"127.0.0.1:{free_port()},tls:") for v in both["http"])
        self.assertEqual(set(both), flags_of("gate") - OF_CLIENTS, "a value for each setting")
        restart |= self.each_is_named("gate", both)
        self.assertEqual(server.stop(), 0)
        with open(os.path.join(SOURCE, "docs/operate/configuration.md"), encoding="utf-8") as f:
            rows = re.findall(r"^\| (.*) \| (.*) \|$", f.read(), re.M)
        page = set(re.findall(r"`([\w-]+)`", " ".join(row[1] for row in rows)))
        self.assertEqual(restart - {"tls-cert", "tls-key", "tls-ca", "http-tls-cert", "http-tls-key",
                                    "http-tls-ca"}, page & (restart | set(both) | set(serve)))


class Tokens(unittest.TestCase):
    """A token that is taken out of the file that the operator edits is out after a reload."""
    SERVICE = 47110  # a user and a group that nobody else has

    def setUp(self):
        self.server = ClaveServer().start()
        self.addCleanup(self.server.stop)
        self.port = free_port()

    def status(self, token):
        gate = Gate("", "")
        gate.port = self.port
        return gate.call("GET", "/v1/server", Authorization="Bearer " + token)[0]

    def settings(self, verb, tokens):
        own = {"connect": self.server.connect} if verb == "gate" else \
            {"data": self.data, "listen": f"127.0.0.1:{free_port()}"}
        return dict(own, http=f"127.0.0.1:{self.port}", **{"http-tokens": tokens})

    def opened(self):
        """A file where the service can reach it, beside a directory of its own."""
        path = written(f"{KEPT} read\n{REVOKED} admin\n")
        let_in(path)
        self.data = os.path.join(os.path.dirname(path), "data")
        os.mkdir(self.data)
        os.chown(self.data, self.SERVICE, self.SERVICE)
        return path

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_of_root_read_by_the_group_of_the_service(self):
        for verb in "gate", "serve":
            with self.subTest(verb):
                tokens = self.opened()
                os.chown(tokens, 0, self.SERVICE)
                os.chmod(tokens, 0o640)
                settings = self.settings(verb, tokens)
                r = Reloaded(verb, settings, who=self.SERVICE)
                self.assertIn(str(self.port), r.ready, r.said())
                self.assertEqual((self.status(KEPT), self.status(REVOKED)), (200, 200))
                with open(tokens, "w", encoding="utf-8") as f:
                    f.write(f"{KEPT} read\n")
                self.assertIn("read again: tokens of HTTP", r.reload(settings))
                self.assertEqual((self.status(KEPT), self.status(REVOKED)), (200, 401))
                self.assertEqual(r.end(), 0)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_both_refusals_say_the_same_commands(self):
        tokens = self.opened()
        group = grp.getgrgid(65534).gr_name
        self.SERVICE, told = 65534, []
        for gid, mode, refused in ((0, 0o600, "Permission denied"), (0, 0o644, "is open to others"),
                                   (65534, 0o660, "is open to others"), (65534, 0o640, None)):
            os.chown(tokens, 0, gid)
            os.chmod(tokens, mode)
            r = Reloaded("gate", self.settings("gate", tokens), who=self.SERVICE)
            if refused:
                self.assertEqual((r.ready, r.p.wait(PATIENCE)), ("", 64), r.said())
                self.assertIn(refused, r.said())
                told.append(re.search(": (chown .*)", r.said()).group(1))
            else:
                self.assertIn("gate on", r.ready, r.said())
            r.end()
        self.assertEqual(set(told), {f"chown root:{group} {tokens}; chmod 640 {tokens}"})

    def test_a_copy_of_systemd_is_not_said_to_be_read_again(self):
        tokens = written(f"{KEPT} read\n")
        there = os.path.dirname(tokens)
        for env, copied in ({"CREDENTIALS_DIRECTORY": there}, True), ({"CREDENTIALS_DIRECTORY": there[:-1]}, False):
            settings = self.settings("gate", tokens)
            r = Reloaded("gate", settings, env)
            self.assertIn("gate on", r.ready, r.said())
            told = r.reload(settings)
            self.assertEqual("changed tokens count after a restart" in told, copied, told)
            self.assertEqual("read again: tokens" in told, not copied, told)
            self.assertEqual(r.end(), 0)


class Journal(unittest.TestCase):
    """Lines begin with the priority that the journal takes off: sd-daemon(3)."""

    def lines(self, *command, stdout=False):
        ours, theirs = os.pipe()
        at = os.fstat(theirs)
        p = spawn([CLAVE, *command], stdin=subprocess.DEVNULL,
                  stdout=subprocess.PIPE if stdout else subprocess.DEVNULL, stderr=theirs,
                  env=environment(JOURNAL_STREAM=f"{at.st_dev}:{at.st_ino}"))
        os.close(theirs)
        return p, os.fdopen(ours, encoding="utf-8")

    def test_a_refused_reload(self):
        for form in "text", "json":
            with self.subTest(form):
                config = written(f"data = {scratch('data')}\nlisten = 127.0.0.1:{free_port()}\nlog-format = {form}\n")
                p, log = self.lines("serve", "--config", config, "--log-level", "info", stdout=True)
                self.assertIn(b"serving on", p.stdout.readline())
                with open(config, "ab") as f:
                    f.write(b"non\x9bsen\xe2\x80\xaese = 1\n")
                p.send_signal(signal.SIGHUP)
                told = [log.readline()]
                while "nothing is changed" not in told[-1]:
                    told.append(log.readline())
                self.assertEqual({line[:3] for line in told[-2:]}, {"<3>"}, told)
                self.assertIn(": non?sen?se: " if form == "text" else "non", told[-2])
                with open(config, "w", encoding="utf-8") as f:
                    f.write(f"data = elsewhere\nlog-format = {form}\n")
                p.send_signal(signal.SIGHUP)
                told = [log.readline()]
                while " reloaded: " not in told[-1]:
                    told.append(log.readline())
                self.assertIn(("<4>", True), [(t[:3], "data does not change" in t) for t in told])
                self.assertEqual(told[-1][:3], "<6>")
                p.terminate()
                self.assertEqual(p.wait(PATIENCE), 0)
                self.assertRegex(log.read(), "^<6>.*stopping: SIGTERM")
                p.stdout.close()
                log.close()

    def test_a_start_that_fails(self):
        for command in (("serve", "--config", "/nonexistent"), ("gate", "--http", "x"), ("ls", "nowhere")):
            p, log = self.lines(*command)
            told = log.readlines()
            self.assertIn(p.wait(PATIENCE), (64, 66))
            self.assertTrue(told and all(line.startswith("<3>clave: ") for line in told), told)
            log.close()


if __name__ == "__main__":
    unittest.main()
