"""TLS with the others: clave's client on Apache ZooKeeper's secureClientPort, kazoo's and Apache's
clients on clave's server, one queue for them, and the same identity for the same certificate."""
import logging
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "cmd"), os.path.join(HERE, "..", "conform")]
import wire  # noqa: E402
from certificates import Authority  # noqa: E402
from harness import (APACHE, JARS, PATIENCE, ApacheServer, ClaveServer, Running, ask,  # noqa: E402
                     clave, free_port, has_apache, scratch, spawn)

try:
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock
except ImportError:
    print("kazoo is not installed: nothing was tested")
    sys.exit(77)
if not has_apache() or not os.path.exists(JARS + "netty-handler.jar"):
    print("ZooKeeper with Netty is not installed: nothing was tested")
    sys.exit(77)

logging.disable()
warnings.simplefilter("ignore")  # kazoo names the versions of TLS in an old way
CLASSES = ":".join([APACHE] + [JARS + name + ".jar" for name in (
    "netty-codec", "netty-resolver", "netty-transport-native-unix-common")])
CA = Authority("ca")
SERVER, CLIENT = CA.server(), CA.client()
FLAGS = ["--tls-ca", CA.cert, "--tls-cert", CLIENT.both]
KAZOO = {"use_ssl": True, "verify_certs": True, "ca": CA.cert, "certfile": CLIENT.cert,
         "keyfile": CLIENT.key}


def pem(kind, at, key=""):
    """As properties of the server, or of a Java client."""
    return {f"{key}ssl.{kind}Store.location": at, f"{key}ssl.{kind}Store.type": "PEM"}


class SecureClave(ClaveServer):
    def __init__(self):
        super().__init__()
        self.tls_port = free_port()
        self.flags = ["--listen", f"tls:127.0.0.1:{self.tls_port}", "--tls-cert", SERVER.both,
                      "--tls-ca", CA.cert]


class SecureApache(ApacheServer):
    def __init__(self):
        super().__init__()
        self.tls_port = free_port()

    def start(self):
        config = {
            "tickTime": 2000, "dataDir": self.data, "clientPort": self.port,
            "clientPortAddress": "127.0.0.1", "secureClientPort": self.tls_port,
            "secureClientPortAddress": "127.0.0.1", "admin.enableServer": "false",
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
            # Of 3.9 it would be TLSv1.3 alone, and Java clients of 3.8 have TLSv1.2 alone.
            "ssl.enabledProtocols": "TLSv1.2,TLSv1.3",
            "4lw.commands.whitelist": "*", **pem("key", SERVER.both), **pem("trust", CA.cert)}
        path = scratch("zoo.cfg")
        with open(path, "w") as f:
            f.writelines(f"{k}={v}\n" for k, v in config.items())
        self.process = spawn(["java", "-Xmx256m", "-cp", CLASSES,
                              "org.apache.zookeeper.server.ZooKeeperServerMain", path],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL)
        until = time.monotonic() + 2 * PATIENCE
        while b"Mode: standalone" not in ask(self.port, b"srvr") or not self.answers():
            if time.monotonic() > until or self.process.poll() is not None:
                raise AssertionError("Apache ZooKeeper did not start")
            time.sleep(0.05)
        return self

    def answers(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.tls_port)) == 0


def who_am_i(port, certificate):
    """What the server takes the certificate for: {(scheme, id)}."""
    context = ssl.create_default_context(cafile=CA.cert)
    context.load_cert_chain(certificate.both)
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as raw:
        with context.wrap_socket(raw, server_hostname="localhost") as s:
            f = s.makefile("rwb")

            def call(payload):
                f.write(wire.text(payload))
                f.flush()
                return f.read(struct.unpack(">i", f.read(4))[0])

            call(struct.pack(">iqiq", 0, 0, 10000, 0) + wire.text(bytes(16)) + b"\0")
            answer = call(struct.pack(">ii", 1, wire.WHO))
    at, texts = 20, []  # behind the header and the count
    while at < len(answer):
        n = struct.unpack_from(">i", answer, at)[0]
        texts.append(answer[at + 4:at + 4 + n].decode())
        at += 4 + n
    return set(zip(texts[::2], texts[1::2]))


class Tls:
    """Of either server."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.kind().start()
        cls.connect = f"tls:localhost:{cls.server.tls_port}"

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def kazoo(self):
        zk = KazooClient(f"localhost:{self.server.tls_port}", timeout=8, **KAZOO)
        zk.start(timeout=PATIENCE)
        self.addCleanup(zk.close)
        self.addCleanup(zk.stop)
        return zk

    @staticmethod
    def java(classes, *words):
        properties = {"zookeeper.client.secure": "true",
                      "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
                      **pem("key", CLIENT.both, "zookeeper."),
                      **pem("trust", CA.cert, "zookeeper.")}
        return spawn(["java", "-Xmx128m"] + [f"-D{k}={v}" for k, v in properties.items()]
                     + ["-cp", classes, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     stderr=subprocess.STDOUT, text=True)

    def zkcli(self, *words):
        p = self.java(CLASSES, "org.apache.zookeeper.ZooKeeperMain", "-server",
                      f"localhost:{self.server.tls_port}", *words)
        return p.communicate(timeout=2 * PATIENCE)[0]

    def await_children(self, zk, path, n):
        until, pause = time.monotonic() + PATIENCE, threading.Event()
        while len(zk.get_children(path)) != n:
            self.assertLess(time.monotonic(), until)
            pause.wait(0.05)

    def clave(self, *words, **keywords):
        r = clave(*words, *FLAGS, connect=self.connect, **keywords)
        self.assertEqual(r.code, 0, r)
        return r

    def test_all_three_read_what_each_has_written(self):
        zk = self.kazoo()
        big = os.urandom(600 * 1000)
        self.clave("create", "/clave", "-", stdin=big)
        self.assertEqual(zk.get("/clave")[0], big)
        zk.create("/kazoo", b"of kazoo")
        self.assertEqual(self.clave("get", "/kazoo").out, "of kazoo")
        self.zkcli("create", "/java", "of-java")
        self.assertEqual(self.clave("get", "/java").out, "of-java")
        self.assertIn("of kazoo", self.zkcli("get", "/kazoo"))

    def test_one_queue(self):
        zk = self.kazoo()
        lock = Lock(zk, "/queue")
        lock.acquire(timeout=PATIENCE)
        runner = Running("lock", *FLAGS, "/queue", "--", "echo", "mine", connect=self.connect)
        self.addCleanup(runner.process.kill)
        self.await_children(zk, "/queue", 2)
        lock.release()
        self.assertEqual(runner.line(), "mine")

    @unittest.skipUnless(shutil.which("javac") and os.path.exists(JARS + "curator-recipes.jar"),
                         "Curator or javac is not installed")
    def test_one_queue_with_curator(self):
        out = scratch("classes")
        curator = ":".join(JARS + f"curator-{part}.jar" for part in ("recipes", "framework", "client"))
        subprocess.run(["javac", "-nowarn", "-cp", f"{curator}:{JARS}zookeeper.jar", "-d", out,
                        os.path.join(HERE, "java", "Keeper.java")], check=True)
        keeper = self.java(f"{out}:{curator}:{CLASSES}", "Keeper",
                           f"localhost:{self.server.tls_port}", "/curator", "20000")
        self.addCleanup(keeper.stdout.close)
        lines = iter(keeper.stdout.readline, "")  # where Java may have its say, too
        self.assertTrue(any(line.startswith("held ") for line in lines))
        runner = Running("lock", *FLAGS, "/curator", "--", "echo", "mine", connect=self.connect)
        self.addCleanup(runner.process.kill)
        self.await_children(self.kazoo(), "/curator", 2)
        keeper.communicate("release\n", timeout=PATIENCE)
        self.assertEqual(runner.line(), "mine")

    def test_an_access_list_for_a_certificate(self):
        self.clave("create", "--acl", "x509:CN=client,O=Acme,C=DE:cdrwa", "/shut", "v")
        self.assertEqual(self.kazoo().get("/shut")[0], b"v")
        other = CA.client("/CN=other")
        r = clave("get", "/shut", "--tls-ca", CA.cert, "--tls-cert", other.both,
                  connect=self.connect)
        self.assertEqual(r.code, 77, r)
        self.assertEqual(clave("get", "/shut", connect=self.server.connect).code, 77)

    def test_no_certificate(self):
        until, why = time.monotonic() + PATIENCE, "it requires a certificate, but none was presented"
        while True:  # a first handshake may take longer than that
            r = clave("ls", "/", "--timeout", "2s", "--tls-ca", CA.cert, connect=self.connect)
            self.assertEqual(r.code, 69, r)
            if why in r.err or time.monotonic() > until:
                break
        self.assertIn(why, r.err)


class OnClave(Tls, unittest.TestCase):
    kind = SecureClave


class OnApache(Tls, unittest.TestCase):
    kind = SecureApache

    def test_one_certificate_is_one_identity(self):
        """However odd its subject is; wire_x509_name_test.c has more of them."""
        if self.server.version < (3, 7):
            self.skipTest("whoAmI came with 3.7")
        ours = SecureClave().start()
        self.addCleanup(ours.stop)
        for subject in ("/CN=plain", "/C=DE/ST=Hesse/L=a, b/O=Acme \"Ltd\"/CN=x", "/CN= spaces  ",
                        "/CN=#hash=1<2>3;4", "/CN=J\u00f6rg/emailAddress=j@acme.example",
                        "/DC=example/DC=acme/CN=a+OU=b", "/CN=back\\\\slash"):
            certificate = CA.client(subject, ca=("-days", "30", "-preserveDN", "-utf8"))
            theirs = who_am_i(self.server.tls_port, certificate)
            self.assertEqual(who_am_i(ours.tls_port, certificate), theirs)
            self.assertIn("x509", [scheme for scheme, _ in theirs])


if __name__ == "__main__":
    unittest.main(warnings="ignore")
