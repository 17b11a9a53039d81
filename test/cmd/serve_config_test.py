"""clave serve --config: its own form and Apache's zoo.cfg, what changes while it serves, how it
ends, and its log."""
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import time
import unittest

from harness import (CLAVE, PATIENCE, ask, clave, environment, free_port, scratch, spawn)

DEBIANS = """\
# The number of milliseconds of each tick
tickTime=2000
# The number of ticks that the initial
# synchronization phase can take
initLimit=10
syncLimit=5
dataDir={data}
# the port at which the clients will connect
clientPort={port}
#maxClientCnxns=60
"""


class Server:
    """One from a configuration file, its standard error line by line."""

    def __init__(self, text, name="serve.conf", flags=(), prefix=()):
        self.port = free_port()
        self.data = scratch("data")
        self.path = scratch(name)
        self.write(text)
        self.p = spawn(list(prefix) + [CLAVE, "serve", "--config", self.path] + list(flags),
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       env=environment())
        self.buffer = b""

    def write(self, text):
        with open(self.path, "w") as f:
            f.write(text.replace("{data}", self.data).replace("{port}", str(self.port)))

    def ready(self):
        line = self.p.stdout.readline().decode()
        if "serving on" not in line:
            raise AssertionError((line, self.p.stderr.read()))
        return line

    def line(self):
        """The next one of standard error."""
        until = time.monotonic() + PATIENCE
        while b"\n" not in self.buffer:
            if not select.select([self.p.stderr], [], [], until - time.monotonic())[0]:
                raise AssertionError("nothing more is said")
            got = os.read(self.p.stderr.fileno(), 65536)
            if not got:
                return ""
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        return re.sub(r"^\S+Z (?=clave: )", "", line.decode())  # the time: serve_log_test

    def until(self, text):
        while True:
            line = self.line()
            if not line or text in line:
                return line

    def end(self, how=signal.SIGTERM):
        if self.p.poll() is None:
            self.p.send_signal(how)
        code = self.p.wait(PATIENCE)
        rest = self.buffer.decode() + self.p.stderr.read().decode()
        self.p.stdout.close()
        self.p.stderr.close()
        return code, rest

    def conf(self):
        return dict(l.split("=", 1) for l in ask(self.port, b"conf").decode().splitlines())


class Rig(unittest.TestCase):
    def started(self, *args, **named):
        s = Server(*args, **named)
        self.addCleanup(lambda: s.p.poll() is None and s.end(signal.SIGKILL))
        s.ready()
        return s

    def refused(self, text, expected, code=64, name="serve.conf"):
        s = Server(text, name)
        got, err = s.end(signal.SIGCONT)
        self.assertEqual(got, code, err)
        self.assertIn(expected.replace("{path}", s.path).replace("{data}", s.data), err)
        if code == 64:  # others are of the machine: a port in use
            r = clave("serve", "--config", s.path, "--check-config")
            self.assertEqual((r.code, r.out, r.err), (code, "", err), "not as the start")


class Form(Rig):
    def test_own_form_and_flags_over_it(self):
        s = self.started("# comment\n\n data = {data}\nlisten = 127.0.0.1:{port}\ntick=500ms\r\n"
                         "max-connections = 7\nmin-session-timeout = 3s\n"
                         "enforce-quota = true\nwords = conf,ruok", flags=["--tick", "1s"])
        conf = s.conf()
        self.assertEqual(conf["tickTime"], "1000")
        self.assertEqual(conf["minSessionTimeout"], "3000")
        self.assertEqual(conf["maxClientCnxns"], "7")
        self.assertEqual(s.end(), (0, ""))

    def test_values_in_quotes(self):
        """With a comment behind them, as other programs' files have it."""
        s = self.started("data = \"{data}\"\nlisten='127.0.0.1:{port}' # for this machine\n"
                         "tick = \"500ms\"#short\nwords = \"conf,ruok\"\t# two\n")
        self.assertEqual(s.conf()["tickTime"], "500")
        self.assertEqual(s.end(), (0, ""))

    def test_addresses_that_are_numbers(self):
        """The C library would take them for another address, 0.0.94.255 for the first."""
        port, number = "is a port without an address: write '*:24319'", "is not an address: write IPv4"
        form = "expected host"
        for flag, value, what in (
                ("listen", "24319", port), ("listen", "tls:24319", port), ("listen", "24319:80", number),
                ("listen", "127.1", number), ("listen", "127.1:2181", number), ("listen", "0x7f000001:2181", number),
                ("listen", "010.0.0.1:2181", number), ("listen", "4294967295", number), ("listen", "a:b", form),
                ("admin", "24319", form), ("admin", "24319:80", number), ("metrics", "127.1:80", number),
                ("http", "24319", form), ("http", "127.1:80", number), ("http", "tls:24319:80", number)):
            with self.subTest(flag=flag, value=value):
                r = clave("serve", "--data", "/nowhere", f"--{flag}", value, "--check-config")
                self.assertEqual((r.code, r.out), (64, ""), r)
                self.assertIn(f"--{flag} '{value}': ", r.err)
                self.assertIn(what, r.err)
        self.refused("data = {data}\nlisten = 24319\n", "{path}:2: listen '24319': '24319' is a port")
        self.refused("dataDir={data}\nclientPort=2181\nclientPortAddress=24319\n",
                     "{path}:2: clientPort '24319:2181': '24319' is not", name="zoo.cfg")

    def test_addresses_of_flags_in_place_of_the_files(self):
        other = free_port()
        s = self.started("data = {data}\nlisten = 127.0.0.1:{port}\n",
                         flags=["-l", f"127.0.0.1:{other}"])
        self.assertEqual(ask(s.port, b"ruok"), b"")
        self.assertEqual(ask(other, b"ruok"), b"imok")
        s.end()

    def test_faults_of_the_own_form(self):
        for text, fault in (("data = {data}\nnonsense = 1\n",
                             "{path}:2: nonsense: there is no such setting"),
                            ("data = {data}\ntick\n", "{path}:2: expected 'key = value'"),
                            ("data = {data}\n\ntick = 5x\n", "{path}:3: tick '5x': a duration"),
                            ("data = {data}\ntick = 2m\n", "not between 1ms and 1m"),
                            ("data = {data}\ntick = 2000\n", "1ms and 1m; a number without a unit is in seconds"),
                            ("data = {data}\nsnap-count = 1\n", "not a number from 2 to"),
                            ("data = {data}\nenforce-quota = yes\n", "it is false or true"),
                            ("data = {data}\nlog-format = xml\n", "it is text or json"),
                            ("data =\n", "{path}:1: 'data' has no value"),
                            ("data = ''\n", "{path}:1: 'data' has no value"),
                            ("data = {data} # here\n", "{path}:1: data: a comment needs a line of its own"),
                            ("data = {data}\ntick = # 2s\n", "{path}:2: tick: a comment needs"),
                            ("data = \"{data}\n", "{path}:1: data: the quote before the value is not closed"),
                            ("data = '{data}\"\n", "the quote before the value is not closed"),
                            ("data = \"{data}\"x\n", "only a comment may follow the closing quote"),
                            ("tick = 1s\n", "--data"),
                            ("data = {data}\nmax-session-timeout = 1s\n", "above"),
                            ("data = {data}\ntick = 1s\ntick = 3s\n",
                             "{path}:3: tick '3s': already set on line 2"),
                            ("data = {data}\ndata = /elsewhere\n", "already set on line 1"),
                            ("data = {data}\ntls-ca = x\n", "no address for TLS"),
                            ("data = {data}\nconfig = x\n",
                             "{path}:2: config: there is no such setting")):
            with self.subTest(text):
                self.refused(text, fault)
        self.refused("x" * 5000000, "more than the 4194304 bytes")
        self.refused("data = {data}\nlisten = 127.0.0.1:{port}\nlisten = 127.0.0.1:{port}\n",
                     "named twice", code=74)

    def test_zoo_cfg_of_debian(self):
        s = self.started(DEBIANS, name="zoo.cfg")
        self.assertEqual(s.conf()["tickTime"], "2000")
        self.assertEqual(s.conf()["dataDir"], s.data + "/version-2")
        code, err = s.end()
        self.assertEqual(code, 0)
        self.assertEqual(err, f"clave: serve: {s.path}:5: initLimit: no effect on a single server, "
                              f"ignored\nclave: serve: {s.path}:6: syncLimit: no effect on a single "
                              "server, ignored\n")

    def test_syntax_of_properties(self):
        s = self.started("! a comment \\\n  data\\\n     Dir : {data}\nclientPort {port}\r\n"
                         "clientPortAddress\t=\\u0031\\\n\t27.0.0.1  \n\n"
                         "4lw.commands.whitelist = ruok, \\\r\n\tconf, gtmk\n"
                         "tick\\u0054ime=700\nmaxClientCnxns : 9\nmaxClientCnxns=8\n"
                         "\\ key\\=with\\:signs = x\nempty\n", name="any.name")
        conf = s.conf()
        self.assertEqual(conf["tickTime"], "700")
        self.assertEqual(conf["maxClientCnxns"], "8")
        self.assertIn(b"not in the whitelist", ask(s.port, b"mntr"))
        _, err = s.end()
        self.assertIn(":8: 4lw.commands.whitelist: no such word 'gtmk', ignored", err)
        self.assertIn(":13:  key=with:signs: unknown key", err)
        self.assertIn(":14: empty: unknown key", err)

    def test_keys_of_zoo_cfg(self):
        s = self.started(DEBIANS + "clientPortAddress=127.0.0.1\nminSessionTimeout=-1\n"
                         "maxSessionTimeout=9000\nmaxClientCnxns=0\nmaxCnxns=100\nsnapCount=5000\n"
                         "jute.maxbuffer=0x1fffff\nglobalOutstandingLimit=2000\n"
                         "extendedTypesEnabled=TRUE\nenforceQuota=false\nstandaloneEnabled=true\n"
                         "autopurge.purgeInterval=1\nadmin.enableServer=false\n"
                         "server.1=localhost:2888:3888;127.0.0.1:{port}\ndataLogDir={data}\n"
                         "metricsProvider.httpPort=7000\nclient.portUnification=false\n"
                         "4lw.commands.whitelist=*\nssl.keyStore.location=/nowhere\n",
                         name="zoo.cfg")
        conf = s.conf()
        self.assertEqual(conf["minSessionTimeout"], "4000")
        self.assertEqual(conf["maxSessionTimeout"], "9000")
        self.assertEqual(conf["maxClientCnxns"], "0")
        self.assertIn(b"SessionTracker", ask(s.port, b"dump"))
        big = "x" * 1500000
        self.assertEqual(clave("create", "/ttl", "--ttl", "1h", connect=f"127.0.0.1:{s.port}").code, 0)
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.sendall(struct.pack(">iiqiqi", 44, 0, 0, 5000, 0, 16) + b"\0" * 16)
            self.assertTrue(c.recv(100))
            body = b"\0\0\0\x04/big" + struct.pack(">i", len(big)) + big.encode() + \
                struct.pack(">iii", 1, 31, 5) + b"world" + struct.pack(">i", 6) + b"anyone" + b"\0" * 4
            c.sendall(struct.pack(">iii", 8 + len(body), 1, 1) + body)
            self.assertEqual(struct.unpack(">iiqi", c.recv(20))[3], 0)
        _, err = s.end()
        for key in ("initLimit", "syncLimit", "standaloneEnabled", "autopurge.purgeInterval",
                    "metricsProvider"):
            self.assertRegex(err, rf"zoo.cfg:\d+: {re.escape(key)}: ")
        self.assertEqual(len(err.splitlines()), 5, err)

    def test_the_smallest_request(self):
        """With 64 bytes a client connects and creates; with less none could."""
        self.refused("data = {data}\nlisten = 127.0.0.1:{port}\nmax-request = 63\n", "from 64")
        s = self.started(DEBIANS + "jute.maxbuffer=64\n", name="zoo.cfg")
        at = f"127.0.0.1:{s.port}"
        self.assertEqual(clave("create", "/a", connect=at).code, 0)
        self.assertNotEqual(clave("create", "/b", "x" * 64, connect=at).code, 0)
        s.end()

    def test_what_is_longer_than_a_request_may_be_now(self):
        """It is in the log from a time when the limit was higher."""
        s = self.started("data = {data}\nlisten = 127.0.0.1:{port}\nmax-request = 4000000\n")
        with socket.create_connection(("127.0.0.1", s.port), PATIENCE) as c:
            c.sendall(struct.pack(">iiqiqi", 44, 0, 0, 5000, 0, 16) + b"\0" * 16)
            self.assertTrue(c.recv(100))
            body = b"\0\0\0\x04/big" + struct.pack(">i", 3000000) + bytes(3000000) + \
                struct.pack(">iii", 1, 31, 5) + b"world" + struct.pack(">i", 6) + b"anyone" + b"\0" * 4
            c.sendall(struct.pack(">iii", 8 + len(body), 1, 1) + body)
            self.assertEqual(struct.unpack(">iiqi", c.recv(20))[3], 0)
        s.end()
        for _ in range(2):  # from the log, and from the snapshot that the first start made
            again = Server(f"data = {s.data}\nlisten = 127.0.0.1:{{port}}\n")
            again.ready()
            self.assertIn("data-length 3000000", clave("stat", "/big", connect=f"127.0.0.1:{again.port}").out)
            self.assertEqual(again.end(), (0, ""))

    def test_containers_of_zoo_cfg(self):
        """One that was never used goes; by default it would stay."""
        s = self.started(DEBIANS + "znode.container.checkIntervalMs=50\n"
                         "znode.container.maxPerMinute=60000\n"
                         "znode.container.maxNeverUsedIntervalMs=1\n", name="zoo.cfg")
        at = f"127.0.0.1:{s.port}"
        self.assertEqual(clave("create", "--container", "/unused", connect=at).code, 0)
        until = time.monotonic() + PATIENCE
        while clave("stat", "/unused", connect=at).code == 0:
            self.assertLess(time.monotonic(), until, "it is still there")
        self.assertEqual(s.end()[1].count("\n"), 2)  # initLimit, syncLimit

    def test_words_of_zoo_cfg(self):
        """srvr is answered whatever the list says, and no other that it does not say."""
        for value in ("", "gtmk", "ruok"):
            with self.subTest(value):
                s = self.started(DEBIANS + f"4lw.commands.whitelist={value}\n", name="zoo.cfg")
                self.assertIn(b"Mode: standalone", ask(s.port, b"srvr"))
                self.assertIn(b"not in the whitelist", ask(s.port, b"mntr"))
                self.assertEqual(ask(s.port, b"ruok") == b"imok", value == "ruok")
                s.end()

    def test_defaults_that_are_said(self):
        s = self.started(DEBIANS + "enforce.auth.enabled=false\nssl.crl=false\n"
                         "DigestAuthenticationProvider.digestAlg=SHA1\nwatchManagerName=x\n"
                         "unheardOf=1\n", name="zoo.cfg")
        _, err = s.end()
        self.assertEqual([l.split(": ", 2)[2] for l in err.splitlines()[2:]],
                         [f"{s.path}:14: watchManagerName: tunes Apache's threads, buffers and "
                          "caches, ignored",
                          f"{s.path}:15: unheardOf: unknown key, ignored"])

    def test_a_directory_for_logs(self):
        """Apache's own image has one. It is harmless while no transaction is, or may be, in it."""
        logs, data = scratch("logs"), scratch("apaches")
        os.makedirs(data + "/version-2")
        lines = f"clientPort=1\ndataDir={data}\ndataLogDir={logs}\n"
        ignored = ":3: dataLogDir: it has no logs, and clave keeps its own in dataDir, ignored"
        self.told(lines, 0, ignored)
        os.makedirs(logs + "/version-2")
        self.told(lines, 0, ignored)
        self.told(lines + f"dataLogDir={data}/../apaches\n", 0, "")
        open(data + "/version-2/snapshot.0", "w").close()
        self.told(lines, 64, f":3: dataLogDir={logs}: {data}/version-2 has snapshots, but no logs")
        open(data + "/clave.lock", "w").close()
        self.told(lines, 0, ignored)
        open(logs + "/version-2/log.1", "w").close()
        self.told(lines, 64, "move version-2/log.* to " + data)

    def told(self, lines, code, line):
        """One message at most, and what follows from it is not another."""
        path = scratch("zoo.cfg")
        with open(path, "w") as f:
            f.write(lines)
        r = clave("serve", "--check-config", "--config", path)
        self.assertEqual((r.code, r.err.count("\n")), (code, 1 if line else 0), r)
        self.assertIn(line, r.err)

    def test_zoo_cfg_that_cannot_be_served(self):
        ensemble = "server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
        for text, fault in ((DEBIANS + ensemble, "{path}:13: an ensemble of 3 servers: clave is a "
                             "single server without replication"),
                            (DEBIANS + "dynamicConfigFile=x\n", "without replication"),
                            ("dataDir={data}\n", "no clientPort"),
                            ("dataDir={data}\nclientPort=0\n", "no clientPort"),
                            ("dataDir=\nclientPort=1\n", "dataDir has no value"),
                            (DEBIANS + "tickTime=fast\n", "{path}:11: tickTime 'fast': not a number"),
                            (DEBIANS + "maxSessionTimeout=1\n", "above"),
                            (DEBIANS + "skipACL=yes\n", "ACLs are always checked"),
                            (DEBIANS + "client.portUnification=true\n", "secureClientPort"),
                            (DEBIANS + "secureClientPort=2281\n", "needs ssl.keyStore.location"),
                            (DEBIANS + "ssl.keyStore.type=JKS\n", "PEM files only"),
                            (DEBIANS + "enforce.auth.enabled=true\n",
                             "{path}:11: enforce.auth.enabled needs enforce.auth.schemes"),
                            (DEBIANS + "enforce.auth.enabled=true\nenforce.auth.schemes=sasl\n",
                             "no such scheme 'sasl'"),
                            (DEBIANS + "sessionRequireClientSASLAuth=true\n", "authenticate"),
                            (DEBIANS + "requireClientAuthScheme=sasl\n", "authenticate"),
                            (DEBIANS + "ssl.crl=true\n", "revoked"),
                            (DEBIANS + "ssl.authProvider=mine\n", "no other verifier"),
                            (DEBIANS + "emulate353TTLNodes=true\n", "dead sessions"),
                            (DEBIANS + "DigestAuthenticationProvider.digestAlg=SHA-256\n", "SHA1"),
                            (DEBIANS + "X509AuthenticationProvider.clientCertIdType=SAN\n",
                             "subject"),
                            (DEBIANS.replace("{port}", "2181x"),
                             "{path}:9: clientPort '2181x': not a port"),
                            (DEBIANS.replace("{port}", "99999"), "clientPort '99999'"),
                            (DEBIANS + "x=\\u12\n", "malformed"),
                            (DEBIANS + "snapCount=1\n", "not a number from 2")):
            with self.subTest(text):
                self.refused(text, fault, name="zoo.cfg")


class Check(Rig):
    def check(self, text, *flags):
        path = scratch("checked")
        with open(path, "w") as f:
            f.write(text)
        return path, clave("serve", "--check-config", "--config", path, *flags)

    def test_nothing_is_touched(self):
        s = self.started("data = {data}\nlisten = 127.0.0.1:{port}\n")
        data = scratch("data")
        for d in (s.data, data):  # one that is in use, as is the port, and one that is not there
            text = f"data = {d}\nlisten = 127.0.0.1:{s.port}\nlisten = unix:{data}.sock?mode=0660\n"
            _, r = self.check(text)
            self.assertEqual((r.code, r.err), (0, ""), r)
            self.assertEqual(r.out, f"clave: the configuration is valid: listen 127.0.0.1:{s.port} "
                                    f"unix:{data}.sock?mode=0660, data {d}\n")
        self.assertFalse(os.path.exists(data))
        self.assertFalse(os.path.exists(f"{data}.sock"))
        _, r = self.check(f"data = {data}\n", "--json")
        self.assertEqual(json.loads(r.out), {"listen": ["127.0.0.1:2181"], "data": data})
        s.end()

    def test_what_would_be_ignored(self):
        path, r = self.check(DEBIANS.format(data="/nowhere", port=2181) + "nonsense=1\n",
                             "--log-level", "error")
        self.assertEqual(r.code, 0, r)
        lines = r.err.splitlines()
        self.assertEqual(len(lines), 3, r)
        self.assertIn(f"{path}:5: initLimit: no effect on a single server, ignored", lines[0])
        self.assertIn(f"{path}:11: nonsense: unknown key, ignored", lines[2])

    def test_what_only_a_start_would_find(self):
        for more, code, fault in (
                ("listen = tls:127.0.0.1\ntls-cert = /nowhere\ntls-clients = none\n", None,
                 "/nowhere"),
                ("listen = 127.0.0.1:99999\n", 64, "127.0.0.1:99999"),
                ("listen = unix:here\n", 64, "unix:here"),
                ("listen = unix:/s?group=no-such-group-here\n", 64, "no-such-group-here"),
                ("admin = 127.0.0.1:99999\n", 64, "127.0.0.1:99999")):
            with self.subTest(more):
                data = scratch("data")
                path, r = self.check(f"data = {data}\n{more}")
                self.assertNotEqual(r.code, 0)
                self.assertIn(fault, r.err)
                self.assertEqual(r.out, "")
                self.assertFalse(os.path.exists(data))
                start = clave("serve", "--config", path)
                self.assertEqual((r.code, r.err), (start.code, start.err))
                if code:
                    self.assertEqual(r.code, code)

    def test_all_that_is_wrong(self):
        """A line for each, of the file, the flags, and the files that they name."""
        text = ("data = /nowhere\ntick = abc\nnonsense = 1\nno value\nlisten = 127.0.0.1:99999\n"
                "listen = tls:127.0.0.1:1\nhttp = 127.0.0.1:99999\nhttp = 127.0.0.1:1\n"
                "http-tokens = /nowhere/tokens\naudit = /nowhere/audit\n")
        path, r = self.check(text, "--words", "", "--slow-ms", "x")
        self.assertEqual(r.code, 64, r)
        wanted = ("--words ''", "--slow-ms 'x'", f"{path}:2: tick 'abc'", f"{path}:3: nonsense",
                  f"{path}:4: expected 'key = value'", f"{path}:5: listen '127.0.0.1:99999'",
                  f"{path}:7: http '127.0.0.1:99999'", "needs --tls-cert", "/nowhere/audit", "/nowhere/tokens")
        lines = r.err.splitlines()
        self.assertEqual(len(lines), len(wanted), r)
        for line, part in zip(lines, wanted):
            self.assertIn(part, line)
        path, r = self.check("tickTime=x\ndataDir=/nowhere\nclientPort=99999\nsnapCount=1\n"
                             "admin.serverPort=y\n")
        self.assertEqual(r.code, 64, r)
        for part in (":1: tickTime 'x'", ":4: snapCount '1'", ":3: clientPort '99999'",
                     ":5: admin.serverPort 'y'"):
            self.assertIn(path + part, r.err)
        self.assertEqual(len(r.err.splitlines()), 4, r)

    def test_files_that_are_none(self):
        fifo = scratch("fifo")
        os.mkfifo(fifo, 0o600)
        for path, fault in ((fifo, "it is a pipe, and nobody has written to it"),
                            ("/tmp", "Is a directory"), ("/dev/zero", "more than the 4194304 bytes"),
                            ("/nowhere", "No such file")):
            r = clave("serve", "--check-config", "--config", path)
            self.assertEqual((r.code, r.err.count("\n")), (64, 1), r)
            self.assertIn(f"{path}: {fault}" if "more" not in fault else fault, r.err)
        r = clave("serve", "--check-config", "--data", "/nowhere", "--http", "127.0.0.1:0", "--http-tokens", fifo)
        self.assertIn(f"{fifo}: it is a pipe", r.err)
        for text, line in (("\ufeffdata = /nowhere\r\nlisten = 127.0.0.1:1", None),
                           ("\ufeffdataDir=/nowhere\r\nclientPort=1", None),
                           ("data = /nowhere\nlisten = a\0b\n", 2), ("\ufeffdata".encode("utf-16").decode("latin1"), 1)):
            path, r = self.check(text)
            self.assertEqual(r.code, 64 if line else 0, r)
            self.assertIn(f"{path}:{line}: a NUL byte" if line else "", r.err)

    def test_flags_and_usage(self):
        r = clave("serve", "--check-config", "--data", "/nowhere", "--tick", "0s")
        self.assertEqual(r.code, 64, r)
        r = clave("serve", "--check-config", "--local", "/nowhere")
        self.assertEqual(r.code, 64, r)
        self.assertIn("exclude each other", r.err)
        self.assertEqual(clave("serve", "--check-config").code, 64)
        self.assertEqual(clave("serve", "--check-config", "--config", "/nowhere").code, 64)


class Live(Rig):
    CONF = "data = {data}\nlisten = 127.0.0.1:{port}\nwords = conf,ruok\n"

    def reload(self, s, text, expected="reloaded"):
        s.write(text)
        s.p.send_signal(signal.SIGHUP)
        return s.until(expected)

    def test_limits_change(self):
        s = self.started(self.CONF)
        held = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(2)]
        self.reload(s, self.CONF.replace("ruok", "mntr") + "max-connections = 3\n"
                    "min-session-timeout = 6s\nmax-session-timeout = 8s\n")
        conf = s.conf()
        self.assertEqual((conf["minSessionTimeout"], conf["maxSessionTimeout"],
                          conf["maxClientCnxns"]), ("6000", "8000", "3"))
        self.assertIn(b"not in the whitelist", ask(s.port, b"ruok"))
        # Those from before the change count.
        held.append(socket.create_connection(("127.0.0.1", s.port)))
        self.assertEqual(ask(s.port, b"conf"), b"")
        for h in held:
            h.close()
        # What is left out is as at the beginning.
        self.reload(s, self.CONF)
        self.assertEqual(s.conf()["maxClientCnxns"], "60")
        self.assertEqual(ask(s.port, b"ruok"), b"imok")
        s.end()

    def test_bounds_change(self):
        s = self.started(self.CONF, flags=["-v"])
        at = f"127.0.0.1:{s.port}"
        for key, most, path in (("max-name", 255, "/" + 256 * "n"), ("max-path", 300, "/" + 300 * "n"),
                                ("max-depth", 8, 9 * "/d")):
            self.reload(s, f"{self.CONF}{key} = {most}\n")
            r = clave("create", "--parents", path, connect=at)
            self.assertIn("the server refused the arguments: a name of ", r.err)
            self.assertIn(f"--{key}", r.err)
            said = s.until("is refused")
            self.assertIn(f"{most + 1} ", said)
            self.assertIn(f"the limit is {most} (--{key}; 1 refused", said)
        self.reload(s, self.CONF + "max-sessions = 1\nmax-answer = 1024\nmax-watches = 1\n"
                    "max-connection-watches = 1\n")
        held = clave("lock", "/l", "--", CLAVE, "ls", "--timeout", "300ms", connect=at)
        s.until("(--max-sessions;")
        self.assertEqual(held.code, 69, held)
        self.reload(s, self.CONF)
        self.assertEqual(clave("create", "--parents", 9 * "/d", connect=at).code, 0)
        s.end()

    def test_sessions_without_a_connection_are_bounded(self):
        s = self.started(self.CONF + "max-disconnected = 1\nmax-session-timeout = 1m\n")

        def gets_a_session():
            request = struct.pack(">iqiqi", 0, 0, 60000, 0, 16) + bytes(16)
            with socket.create_connection(("127.0.0.1", s.port), PATIENCE) as c:
                c.sendall(struct.pack(">i", len(request)) + request)
                return bool(c.recv(4096))

        self.assertTrue(gets_a_session())
        until = time.monotonic() + PATIENCE
        while gets_a_session():  # the end of the one before may be seen after it
            self.assertLess(time.monotonic(), until)
        self.assertIn("sessions of its address without a connection, the limit is 1",
                      s.until("(--max-disconnected;"))
        r = clave("ls", "/", "--timeout", "300ms", connect=f"127.0.0.1:{s.port}")
        self.assertIn("--max-disconnected", r.err)
        self.reload(s, self.CONF)
        self.assertTrue(gets_a_session())
        s.end()

    def test_a_request_that_is_slow_without_the_disk(self):
        s = self.started(self.CONF, flags=["--slow-ms", "2"])
        session = struct.pack(">iqiqi", 0, 0, 10000, 0, 16) + bytes(16)
        part = struct.pack(">ibi", 8, 0, -1) + struct.pack(">i", 1) + b"/" + b"\0"
        read = struct.pack(">ii", 1, 22) + 60000 * part + struct.pack(">ibi", -1, 1, -1)
        with socket.create_connection(("127.0.0.1", s.port), PATIENCE) as c:
            for frame in session, read:  # the second waits for no disk once the first is answered
                c.sendall(struct.pack(">i", len(frame)) + frame)
                self.assertTrue(c.recv(4096))
            self.assertRegex(s.until("multiRead"),
                             r"slow request: multiRead - took \d+ ms \(\d+ unread, [1-9]\d* in its turn, "
                             rf"0 for the disk\), {len(read)} bytes, session 0x\w+ of 127\.0\.0\.1:")
        s.end()

    def test_the_super_user_and_quotas_change(self):
        s = self.started(self.CONF, flags=["-v"])
        at = f"127.0.0.1:{s.port}"
        self.assertEqual(clave("create", "/x", "1", "--acl", "digest:joe:oesAybBun9icKJjQSTRN8OBueSc=:r", connect=at).code, 0)
        self.assertEqual(clave("--auth", "digest:super:test", "get", "/x", connect=at).code, 77)
        self.reload(s, self.CONF + "super-digest = super:D/InIHSb7yEEbrWz8b9l71RjZJU=\n")
        self.assertEqual(clave("--auth", "digest:super:test", "get", "/x", connect=at).code, 0)
        s.end()

    def test_what_has_changed_is_said(self):
        s = self.started(self.CONF + "tick = 1s\n", flags=["--max-outstanding", "9"])
        secret = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

        def told(text):
            return self.reload(s, text).split(" reloaded: ")[1]

        self.assertEqual(told(self.CONF + "tick = 1s\n"), "no setting has changed")
        self.assertEqual(told(self.CONF.replace("conf,ruok", "conf") + "max-connections = 7\n"
                              f"tick = 1s\nsuper-digest = {secret}\nenforce-quota = true\n"
                              "max-outstanding = 8\n"),
                         "max-connections (default) -> 7, enforce-quota (default) -> true, "
                         "super-digest changed, words conf,ruok -> conf")
        self.assertEqual(told(self.CONF + "max-connections = 9\n"),  # beside what stays
                         "max-connections 7 -> 9, enforce-quota true -> (default), "
                         "super-digest removed, words conf -> conf,ruok; needs a restart: tick")
        code, err = s.end()
        self.assertEqual(code, 0)
        self.assertNotIn(secret, err)

    def test_what_stays_is_named(self):
        s = self.started(self.CONF + "tick = 1s\n", flags=["-v"])
        s.write(self.CONF.replace("{data}", "/elsewhere") + f"listen = 127.0.0.1:{free_port()}\n"
                "tick = 2s\n")
        s.p.send_signal(signal.SIGHUP)
        for name in ("data", "listen", "tick"):
            self.assertEqual(s.line(), f"clave: serve: {name} does not change until the next start")
        self.assertEqual(s.conf()["tickTime"], "1000")
        s.end()

    def test_a_broken_file_changes_nothing(self):
        s = self.started(self.CONF + "max-connections = 9\n")
        for text, fault in (("max-connections = 8\ntick = x\n", ":5: tick 'x': "),
                            ("max-connections = 8\nmax-session-timeout = 1ms\n", "is above")):
            self.assertIn(fault, self.reload(s, self.CONF + text, fault))
            self.assertIn("nothing is changed", s.line())
            self.assertEqual(s.conf()["maxClientCnxns"], "9")
        os.unlink(s.path)
        s.p.send_signal(signal.SIGHUP)
        self.assertIn("No such file", s.line())
        self.assertIn("nothing is changed", s.line())
        self.assertEqual(ask(s.port, b"ruok"), b"imok")
        s.end()

    def test_without_a_file_it_goes_on(self):
        port = free_port()
        p = spawn([CLAVE, "serve", "--data", scratch("data"), "-l", f"127.0.0.1:{port}"],
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                  env=environment())
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.assertIn(b"serving on", p.stdout.readline())
        p.send_signal(signal.SIGHUP)
        self.assertIn(b"nothing to reload", p.stderr.readline())
        self.assertEqual(ask(port, b"ruok"), b"imok")
        p.terminate()
        self.assertEqual(p.wait(PATIENCE), 0)

    def test_zoo_cfg_is_read_again(self):
        s = self.started(DEBIANS, name="zoo.cfg", flags=["-v"])
        self.reload(s, DEBIANS + "maxClientCnxns=5\n")
        self.assertEqual(s.conf()["maxClientCnxns"], "5")
        s.end()

    def test_flags_stay_over_the_file(self):
        s = self.started(self.CONF, flags=["-v", "--max-connections", "4"])
        self.reload(s, self.CONF + "max-connections = 5\n")
        self.assertEqual(s.conf()["maxClientCnxns"], "4")
        s.end()

    def test_the_log(self):
        s = self.started(self.CONF + "log-format = json\nlog-level = debug\n")
        self.assertEqual(clave("ls", connect=f"127.0.0.1:{s.port}").code, 0)
        line = json.loads(s.until("session 0x"))
        self.assertEqual(line["level"], "debug")
        self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertRegex(line["session"], "^0x[0-9a-f]+$")
        self.assertRegex(line["connection"], r"^127\.0\.0\.1:\d+$")
        self.assertIn(line["session"], line["message"])
        self.reload(s, self.CONF + "log-format = text\nlog-level = info\n")
        code, rest = s.end()
        self.assertEqual(code, 0)
        self.assertIn("clave: serve: stopping: SIGTERM\n", rest)


class End(Rig):
    """SIGTERM: what was read is answered, what was acknowledged stays."""
    CONF = "data = {data}\nlisten = 127.0.0.1:{port}\n"

    def session(self, s):
        c = socket.create_connection(("127.0.0.1", s.port))
        self.addCleanup(c.close)
        c.settimeout(PATIENCE)
        c.sendall(struct.pack(">iiqiqi", 44, 0, 0, 5000, 0, 16) + b"\0" * 16)
        self.assertTrue(c.recv(100))
        return c

    @staticmethod
    def create(path):
        body = struct.pack(">i", len(path)) + path + struct.pack(">i", 0) + \
            struct.pack(">iii", 1, 31, 5) + b"world" + struct.pack(">i", 6) + b"anyone" + b"\0" * 4
        return struct.pack(">iii", 8 + len(body), 1, 1) + body

    def test_requests_in_flight_are_answered_and_kept(self):
        s = self.started(self.CONF)
        clients = [self.session(s) for _ in range(20)]
        for round in range(50):
            for i, c in enumerate(clients):
                c.sendall(self.create(b"/n-%d-%d" % (i, round)))
        s.p.send_signal(signal.SIGTERM)
        answered = []
        for c in clients:
            got = b""
            try:
                while True:
                    part = c.recv(65536)
                    if not part:
                        break
                    got += part
            except ConnectionError:
                pass
            n = 0
            while len(got) >= 4 and len(got) >= 4 + struct.unpack(">i", got[:4])[0]:
                got = got[4 + struct.unpack(">i", got[:4])[0]:]
                n += 1
            self.assertEqual(got, b"")  # no half answer
            answered.append(n)
        self.assertEqual(s.end(0), (0, ""))  # it was told already
        again = self.started(self.CONF.replace("{data}", s.data))
        names = set(clave("ls", "/", connect=f"127.0.0.1:{again.port}").out.split())
        for i, n in enumerate(answered):
            for round in range(n):
                self.assertIn(f"n-{i}-{round}", names)
        again.end()

    def time_to_end(self, signals):
        """Of a server that has more to say than one client takes."""
        s = self.started(self.CONF + "log-level = info\n")
        with open(scratch("big"), "w") as f:
            f.write("x" * 900000)
        with open(f.name) as f:
            subprocess.run([CLAVE, "--connect", f"127.0.0.1:{s.port}", "create", "/big", "-"],
                           stdin=f, stdout=subprocess.DEVNULL, check=True, env=environment())
        c = self.session(s)
        c.sendall((struct.pack(">iiii", 17, 1, 4, 4) + b"/big\0") * 20)
        other = self.session(s)
        other.sendall(struct.pack(">iii", 8, -2, 11))
        self.assertTrue(other.recv(100))  # what the deaf one wants has been read before
        begin = time.monotonic()
        s.p.send_signal(signal.SIGTERM)
        self.assertTrue(s.until("stopping: SIGTERM"))
        if signals == 2:
            s.p.send_signal(signal.SIGTERM)
        self.assertEqual(s.p.wait(PATIENCE), 0)
        took = time.monotonic() - begin
        s.end()
        return took

    def test_who_does_not_read_is_waited_for_a_second_or_a_second_signal(self):
        self.assertTrue(0.9 < self.time_to_end(1) < 10)
        # At once, unless it is the machine that is late: it would never be before the second is over.
        self.assertTrue(any(self.time_to_end(2) < 0.9 for _ in range(10)))


if __name__ == "__main__":
    unittest.main()
