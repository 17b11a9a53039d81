"""TLS on both sides: whose certificate is taken and whose is not, what is said about it, and what
the server bears."""
import os
import random
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
import unittest

from certificates import EXPIRED, NOT_YET, Authority
from harness import (CLAVE, PATIENCE, ClaveServer, Running, ask, clave, environment, free_port,
                     scratch, spawn)
from peers import Peer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conform"))
import wire  # noqa: E402

CA, OTHER = Authority("ca"), Authority("other")
SERVER, CLIENT = CA.server(), CA.client()
CLIENT_DN = "CN=client,O=Acme,C=DE"


class TlsServer(ClaveServer):
    """With an address in the clear, one with TLS, and a log."""

    def __init__(self, certificate=SERVER, ca=CA, flags=()):
        super().__init__(flags)
        self.tls_port = free_port()
        self.cert, self.key = scratch("server.pem"), scratch("server.key")
        self.renew(certificate)
        self.flags = ["--listen", f"tls:127.0.0.1:{self.tls_port}", "--tls-cert", self.cert,
                      "--tls-key", self.key, "-v"] + self.flags
        if ca:
            self.flags += ["--tls-ca", ca.cert]
        self.log_path = scratch("log")

    def renew(self, certificate):
        shutil.copy(certificate.cert, self.cert)
        shutil.copy(certificate.key, self.key)

    def start(self):
        with open(self.log_path, "wb") as log:
            self.process = spawn([CLAVE, "serve", "--data", self.data, "--listen", self.connect]
                                 + self.flags, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                 stderr=log, text=True, env=environment())
        self.ready = self.process.stdout.readline()
        if "serving on" not in self.ready:
            with open(self.log_path) as log:
                raise AssertionError(f"clave serve did not start: {log.read()}")
        return self

    @property
    def tls(self):
        return f"tls:localhost:{self.tls_port}"

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def await_log(self, text):
        until = time.monotonic() + PATIENCE
        while text not in self.log():
            if time.monotonic() > until:
                raise AssertionError(f"not in the log: {text}\n{self.log()}")
            time.sleep(0.01)

    def connections(self):
        return int(re.search(rb"zk_num_alive_connections\t(\d+)", ask(self.port, b"mntr")).group(1))

    def await_alone(self):
        """Until the only connection is the one that asks."""
        until = time.monotonic() + PATIENCE
        while self.connections() != 1:
            if time.monotonic() > until:
                raise AssertionError(f"{self.connections()} connections stay")
            time.sleep(0.01)


def flags(ca=CA, cert=CLIENT):
    return ["--tls-ca", ca.cert] + (["--tls-cert", cert.both] if cert else [])


def context(ca=CA, cert=CLIENT):
    c = ssl.create_default_context(cafile=ca.cert)
    if cert:
        c.load_cert_chain(cert.both)
    return c


class Case(unittest.TestCase):
    def server(self, *args, **keywords):
        s = TlsServer(*args, **keywords).start()
        self.addCleanup(s.process.stdout.close)
        self.addCleanup(lambda: s.process.poll() is None and (s.process.kill(), s.process.wait()))
        return s

    def fine(self, s, *more, connect=None):
        r = clave("ls", "/", *more, connect=connect or s.tls)
        self.assertEqual(r.code, 0, r)

    def refused(self, connect, text, *more, timeout="3s"):
        r = clave("ls", "/", "--timeout", timeout, *more, connect=connect)
        self.assertEqual(r.code, 69, r)
        self.assertIn(text, r.err)

    def refused_for_good(self, connect, text, *more):
        """It would try for an hour: what ends in time has not."""
        self.refused(connect, text, *more, timeout="1h")

    def secure(self, s, ctx=None):
        raw = socket.create_connection(("127.0.0.1", s.tls_port), PATIENCE)
        self.addCleanup(raw.close)
        c = (ctx or context()).wrap_socket(raw, server_hostname="localhost")
        self.addCleanup(c.close)
        return c


class Documented(Case):
    """docs/operate/tls.md: its commands make certificates that both sides accept."""

    def test_an_authority_of_your_own(self):
        with open(os.path.join(os.environ["CLAVE_SOURCE"], "docs", "operate", "tls.md")) as f:
            section = f.read().split("## An authority of your own\n")[1].split("\n## ")[0]
        commands = re.search(r"```sh\n(.*?)```", section, re.S)[1].splitlines()
        directory = scratch("authority")
        os.mkdir(directory)
        said = ""
        for command in commands:
            r = subprocess.run(["sh", "-c", command], cwd=directory, capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(r.returncode, 0, f"{command}: {r.stderr}")
            said += r.stdout
        self.assertIn("DNS:zk1, DNS:localhost, IP Address:127.0.0.1", said)

        class Made:
            """As the classes of certificates.py."""
            def __init__(self, name):
                self.cert, self.key = (os.path.join(directory, f"{name}.{kind}") for kind in ("pem", "key"))
        ca, worker = Made("ca"), Made("worker")
        s = self.server(Made("zk1"), ca)
        for host in ("localhost", "127.0.0.1"):
            self.fine(s, "--tls-ca", ca.cert, "--tls-cert", worker.cert, "--tls-key", worker.key,
                      connect=f"tls:{host}:{s.tls_port}")
        self.fine(s, "--tls-ca", ca.cert, "--tls-cert", worker.cert, "--tls-key", worker.key, "--tls-name", "zk1")
        self.refused(s.tls, "is for another server: DNS:zk1, DNS:localhost", "--tls-ca", ca.cert, "--tls-cert",
                     worker.cert, "--tls-key", worker.key, "--tls-name", "zk2")


class Certificates(Case):
    @classmethod
    def setUpClass(cls):
        cls.s = TlsServer().start()

    @classmethod
    def tearDownClass(cls):
        cls.s.stop()

    def test_ready_line_and_ports(self):
        self.assertIn(f"serving on 127.0.0.1:{self.s.port} tls:127.0.0.1:{self.s.tls_port}, data",
                      self.s.ready)
        self.assertIn(b"secureClientPort=%d\n" % self.s.tls_port, ask(self.s.port, b"conf"))

    def test_an_address_without_a_port(self):
        host = "127." + ".".join(str(1 + b % 254) for b in os.urandom(3))
        s = self.server(flags=["--listen", "tls:" + host])
        self.assertIn(f" tls:{host}:2281,", s.ready)
        self.fine(s, "--tls-any-name", *flags(), connect="tls:" + host)

    def test_both_sides_are_known(self):
        self.fine(self.s, *flags())
        self.s.await_log(f" is {CLIENT_DN}\n")
        self.fine(self.s, *flags(), connect=f"tls:127.0.0.1:{self.s.tls_port}/")

    def test_what_the_environment_names(self):
        r = clave("ls", "/", connect=self.s.tls,
                  env={"CLAVE_TLS_CA": CA.cert, "CLAVE_TLS_CERT": CLIENT.cert,
                       "CLAVE_TLS_KEY": CLIENT.key})
        self.assertEqual(r.code, 0, r)
        config = scratch("config")
        with open(config, "w") as f:
            f.write(f"connect = {self.s.tls}\ntls-ca = {CA.cert}\ntls-cert = {CLIENT.both}\n")
        self.assertEqual(clave("ls", "/", env={"CLAVE_CONFIG": config}).code, 0)

    def test_a_command_under_a_lock_reaches_the_same_server(self):
        r = clave("lock", *flags(), "/lock", "--", "sh", "-c", 'exec "$0" check', CLAVE,
                  connect=self.s.tls)
        self.assertEqual(r.code, 0, r)

    def test_the_server_is_of_another_authority(self):
        self.refused_for_good(self.s.tls, "its certificate (/CN=server) is signed by no authority in "
                     + OTHER.cert, *flags(ca=OTHER))
        self.refused_for_good(self.s.tls, "is signed by no authority in the system's list", "--tls-cert",
                     CLIENT.both)

    def test_the_server_has_another_name(self):
        s = self.server(CA.server("DNS:zk1.example,DNS:zk2.example"))
        self.refused_for_good(s.tls, "its certificate (/CN=server) is for another server: "
                     "DNS:zk1.example, DNS:zk2.example", *flags())
        self.refused_for_good(f"tls:127.0.0.1:{s.tls_port}", "is for another server", *flags())
        self.fine(s, "--tls-name", "zk2.example", *flags())
        self.fine(s, "--tls-any-name", *flags())
        self.refused_for_good(s.tls, "is signed by no authority", "--tls-any-name", *flags(ca=OTHER))

    def test_an_address_is_no_name(self):
        s = self.server(CA.server("DNS:127.0.0.1,DNS:*.zk.example,DNS:l*calhost"))
        self.refused_for_good(f"tls:127.0.0.1:{s.tls_port}", "is for another server", *flags())
        self.refused_for_good(s.tls, "is for another server", *flags())
        self.fine(s, "--tls-name", "a.zk.example", *flags())
        self.refused_for_good(s.tls, "is for another server", "--tls-name", "a.b.zk.example", *flags())

    def test_the_server_is_out_of_date(self):
        for when, text, refused in (
                (EXPIRED, "certificate has expired", self.refused_for_good),
                (NOT_YET, "certificate is not yet valid", self.refused)):  # it will be
            s = self.server(CA.server(ca=when))
            refused(s.tls, f"its certificate (/CN=server) is not valid: {text}", *flags())

    def test_other_hosts_may_do_better(self):
        good, bad = self.server(), self.server(CA.server(ca=EXPIRED))
        self.fine(good, *flags(), connect=f"{bad.tls},localhost:{good.tls_port}")
        self.fine(good, *flags(), connect=f"{good.tls},localhost:{bad.tls_port}")
        gone = free_port()
        self.refused_for_good(f"tls:localhost:{bad.tls_port},127.0.0.1:{bad.tls_port}",
                              "is not valid: certificate has expired", *flags())
        self.refused(f"tls:127.0.0.1:{bad.tls_port},127.0.0.1:{gone}", "127.0.0.1:", *flags())
        r = clave("lock", "--timeout", "1h", *flags(), "/lock", "true", connect=bad.tls)
        self.assertEqual(r.code, 69, r)
        self.assertIn("is not valid: certificate has expired", r.err)

    def test_a_client_s_certificate_is_none_of_a_server(self):
        s = self.server(CA.server(extensions=["extendedKeyUsage=clientAuth"]))
        self.refused_for_good(s.tls, "is not valid: unsuitable certificate purpose", *flags())

    def test_no_certificate_of_the_client(self):
        self.refused_for_good(self.s.tls, "it requires a certificate, but none was presented", *flags(cert=None))
        self.s.await_log("is turned away: it presents no certificate")

    def test_clients_of_another_authority(self):
        self.refused_for_good(self.s.tls, "it does not know the authority that signed our certificate",
                     *flags(cert=OTHER.client("/CN=alien")))
        self.s.await_log("is turned away: its certificate (/CN=alien) is signed by no authority in")

    def test_clients_with_their_authoritys_subject(self):
        """OpenSSL takes such a certificate for one that is signed by itself, unless it names its authority's key."""
        same = CA.sign_plainly("/CN=ca")
        why = " certificate (/CN=ca) has the subject of the authority that signed it"
        self.refused_for_good(self.s.tls, "our certificate has the subject of the authority that signed it",
                     *flags(cert=same))
        self.s.await_log("is turned away: its" + why)
        self.refused_for_good(self.server(same).tls, "its" + why, *flags())
        own = Authority("own")  # but one that is
        self.refused_for_good(self.s.tls, "it does not know the authority that signed our certificate", *flags(cert=own.join()))

    def test_clients_out_of_date(self):
        self.refused_for_good(self.s.tls, "it says that our certificate has expired or is not valid yet",
                     *flags(cert=CA.client("/CN=late", ca=EXPIRED)))
        self.s.await_log("its certificate (/CN=late) is not valid: certificate has expired")

    def test_wanted_is_not_needed(self):
        s = self.server(flags=["--tls-clients", "want"])
        self.fine(s, *flags(cert=None))
        self.fine(s, *flags())
        s.await_log(f" is {CLIENT_DN}\n")
        self.refused(s.tls, "it does not know the authority",
                     *flags(cert=OTHER.client("/CN=alien")))

    def test_none_is_asked_for(self):
        s = self.server(ca=None, flags=["--tls-clients", "none"])
        self.fine(s, *flags(cert=None))
        self.fine(s, *flags(cert=OTHER.client("/CN=alien")))
        self.assertNotIn("CN=alien", s.log())

    def test_files_that_are_none(self):
        for words, text in (
                (["--tls-ca", "/nowhere"], "cannot read /nowhere: No such file"),
                (["--tls-ca", "/"], "cannot read /: Is a directory"),
                (["--tls-ca", CA.key], f"no certificate of an authority can be read from {CA.key}"),
                (["--tls-cert", CLIENT.cert], "no key file is named, and no key for the certificate "
                                              f"can be read from {CLIENT.cert}"),
                (["--tls-cert", CLIENT.cert, "--tls-key", SERVER.key], "key values mismatch"),
                (["--tls-key", CLIENT.key], "but no certificate for it: name one as well (--tls-cert")):
            r = clave("ls", "/", *words, connect=self.s.tls)
            self.assertEqual(r.code, 64, r)
            self.assertIn(text, r.err)
            self.assertEqual(r.err.count("\n"), 1)

    def test_a_key_with_a_password(self):
        key = scratch("locked.key")
        subprocess.run(["openssl", "pkey", "-in", CLIENT.key, "-aes256", "-passout", "pass:x",
                        "-out", key], check=True, stderr=subprocess.DEVNULL)
        r = clave("ls", "/", "--tls-cert", CLIENT.cert, "--tls-key", key, connect=self.s.tls)
        self.assertEqual(r.code, 64, r)
        self.assertIn(f"no key for the certificate can be read from {key}: it has a password", r.err)

    def test_in_the_clear_to_tls(self):
        self.refused(f"localhost:{self.s.tls_port}",
                     f"localhost:{self.s.tls_port} speaks TLS: connect to tls:localhost")
        self.s.await_log("is turned away: it does not speak TLS")
        self.assertEqual(ask(self.s.tls_port, b"ruok"), b"\x15\x03\x03\x00\x02\x02\x46")

    def test_tls_to_in_the_clear(self):
        self.refused(f"tls:localhost:{self.s.port}", "it closed the connection in the TLS "
                     "handshake: is this the TLS port?", *flags())
        self.s.await_log("it speaks TLS, but this address does not")

    def test_old_versions(self):
        old = context()
        old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with self.assertRaises(ssl.SSLError):
            self.secure(self.s, old)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            only = context()
            only.minimum_version = only.maximum_version = version
            self.assertEqual(wire_ruok(self.secure(self.s, only)), b"imok")

    def test_ping_tells_which_server_it_is(self):
        r = clave("ping", "-n", "1", *flags(), connect=self.s.tls)
        self.assertRegex(r.out, rf"^server {self.s.tls} version 3\.\S*-clave-\S+\n")
        mute = self.server(flags=["--words", "ruok"])
        r = clave("ping", "-n", "1", *flags(), connect=mute.tls)
        self.assertEqual(r.out.splitlines()[0], f"server {mute.tls}", r)

    def test_words_through_tls(self):
        self.assertEqual(wire_ruok(self.secure(self.s)), b"imok")


def wire_ruok(sock):
    sock.sendall(b"ruok")
    return sock.recv(100)


class Identities(Case):
    def test_a_certificate_is_an_identity(self):
        s = self.server()
        acl = f"x509:{CLIENT_DN}:cdrwa,x509:CN=reader:r,ip:10.0.0.1:r"
        other = CA.client("/C=DE/O=Acme/CN=other")
        self.assertEqual(clave("create", "--acl", acl, "/mine", "v", *flags(),
                               connect=s.tls).code, 0)
        self.assertEqual(clave("get", "/mine", *flags(), connect=s.tls).out, "v")
        self.assertEqual(clave("get", "/mine", *flags(cert=other), connect=s.tls).code, 77)
        self.assertEqual(clave("get", "/mine", connect=s.connect).code, 77)
        reader = flags(cert=CA.client("/CN=reader"))
        self.assertEqual(clave("get", "/mine", *reader, connect=s.tls).out, "v")
        self.assertEqual(clave("set", "/mine", "w", *reader, connect=s.tls).code, 77)
        self.assertEqual(clave("create", "--acl", "creator", "/own", *reader, connect=s.tls).code, 0)
        self.assertEqual(clave("get", "/own", *flags(), connect=s.tls).code, 77)

    def test_the_super_user(self):
        s = self.server(flags=["--x509-super", CLIENT_DN])
        self.assertEqual(clave("create", "--acl", "digest:nobody:oesAybBun9icKJjQSTRN8OBueSc=:cdrwa", "/shut", "v",
                               connect=s.connect).code, 0)
        self.assertEqual(clave("get", "/shut", connect=s.connect).code, 77)
        self.assertEqual(clave("get", "/shut", *flags(), connect=s.tls).out, "v")


class Renewal(Case):
    def test_a_certificate_out_of_date_is_told(self):
        text = "the server's certificate is not valid now"
        for words in EXPIRED, NOT_YET:
            s = self.server(certificate=CA.server(ca=words))
            s.await_log(text)
            s.renew(CA.server())
            s.process.send_signal(signal.SIGHUP)
            s.await_log("SIGHUP: read again: TLS files")
            s.renew(CA.server(ca=words))
            s.process.send_signal(signal.SIGHUP)
            s.stop()
            self.assertEqual(s.log().count(text), 2, s.log())

    def test_the_server_reads_its_files_again(self):
        s, renewed = self.server(), CA.sign("/CN=renewed", "DNS:localhost")
        stays = self.secure(s)  # which has ten seconds
        self.assertEqual(self.secure(s).getpeercert()["subject"], ((("commonName", "server"),),))
        s.renew(renewed)
        s.process.send_signal(signal.SIGHUP)
        s.await_log("SIGHUP: read again: TLS files")
        self.assertEqual(self.secure(s).getpeercert()["subject"], ((("commonName", "renewed"),),))
        with open(s.cert, "w") as f:
            f.write("no certificate\n")
        s.process.send_signal(signal.SIGHUP)
        s.await_log(f"no certificate can be read from {s.cert}")
        s.await_log("the previous files stay in use")
        self.assertEqual(self.secure(s).getpeercert()["subject"], ((("commonName", "renewed"),),))
        os.unlink(s.cert)
        s.process.send_signal(signal.SIGHUP)
        s.await_log(f"cannot read {s.cert}: No such file")
        self.assertEqual(wire_ruok(stays), b"imok")
        self.assertEqual(s.stop(), 0)

    def test_a_client_takes_up_its_renewed_certificate(self):
        s = self.server()
        both = scratch("client")
        shutil.copy(CA.client("/CN=before").both, both)
        watcher = Running("watch", "--tls-ca", CA.cert, "--tls-cert", both, "/", connect=s.tls)
        self.addCleanup(watcher.process.kill)
        s.await_log(" is CN=before\n")
        shutil.copy(CA.client("/CN=after").both, both)
        s.stop(signal.SIGKILL)
        s.start()
        s.await_log(" is CN=after\n")


class Hostile(Case):
    @classmethod
    def setUpClass(cls):
        cls.s = TlsServer(flags=["--max-connections", "0"]).start()

    @classmethod
    def tearDownClass(cls):
        cls.s.stop()

    def tearDown(self):
        self.assertIsNone(self.s.process.poll(), self.s.log()[-4000:])
        self.fine(self.s, *flags())
        self.s.await_alone()

    def flights(self):
        """What a client says in a whole handshake, and the ruok after it."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        c = context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        flights = []
        with socket.create_connection(("127.0.0.1", self.s.tls_port), PATIENCE) as s:
            while True:
                try:
                    c.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    flights.append(outgoing.read())
                    s.sendall(flights[-1])
                    incoming.write(s.recv(65536))
            c.write(b"ruok")
            flights.append(outgoing.read())
        return flights

    def raw(self):
        s = socket.create_connection(("127.0.0.1", self.s.tls_port), PATIENCE)
        self.addCleanup(s.close)
        return s

    def test_cut_at_every_byte(self):
        hello, rest = self.flights()
        for n in range(len(hello) + 1):
            with self.raw() as s:
                s.sendall(hello[:n])
        # Behind the server's answer: another handshake has other keys, so these bytes are noise
        # of the right shape.
        for n in range(0, len(rest) + 1, 3):
            with self.raw() as s:
                s.sendall(hello)
                s.recv(65536)
                s.sendall(rest[:n])

    def test_a_byte_at_a_time(self):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        c = context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        s = self.raw()
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def send():
            for b in outgoing.read():
                s.sendall(bytes([b]))
        while True:
            try:
                c.do_handshake()
                break
            except ssl.SSLWantReadError:
                send()
                incoming.write(s.recv(65536))
        c.write(b"ruok")
        send()
        incoming.write(s.recv(65536))
        self.assertEqual(c.read(100), b"imok")

    def test_slow_handshakes_block_nobody(self):
        hello = self.flights()[0]
        slow = [self.raw() for _ in range(200)]
        for i, s in enumerate(slow):
            s.sendall(hello[:i % len(hello)])
        begin = time.monotonic()
        self.fine(self.s, *flags())
        self.assertLess(time.monotonic() - begin, 8)
        for s in slow:  # each is closed by the server: it has 10 s for a session
            s.settimeout(PATIENCE)
            while s.recv(65536):
                pass

    def test_random_bytes(self):
        rand = random.Random(7)
        hello = self.flights()[0]
        for i in range(600):
            noise = rand.randbytes(rand.randrange(1, 2000))
            if i % 3 == 1:
                noise = b"\x16\x03\x01" + struct.pack(">H", len(noise)) + noise
            elif i % 3 == 2:  # a hello with some bytes turned
                turned = bytearray(hello)
                for _ in range(rand.randrange(1, 20)):
                    turned[rand.randrange(5, len(turned))] = rand.randrange(256)
                noise = bytes(turned) + noise
            with self.raw() as s:
                try:
                    s.sendall(noise)
                    s.shutdown(socket.SHUT_WR)
                    s.recv(65536)
                except OSError:
                    pass

    def test_noise_behind_the_handshake(self):
        for noise in (b"\x17\x03\x03\x00\x20" + bytes(32), b"\x15\x03\x03\x00\x02\x02\x28",
                      b"ruok", b"\x16\x03\x03\x00\x04\x00\x00\x00\x00"):
            raw = self.raw()
            c = context().wrap_socket(raw, server_hostname="localhost")
            descriptor = os.dup(c.fileno())
            os.write(descriptor, noise)
            os.close(descriptor)
            with self.assertRaises(OSError):
                while c.recv(100):
                    pass
                raise OSError("closed")
            c.close()

    def test_half_open(self):
        c = self.secure(self.s)
        c.sendall(b"ruo")
        socket.socket.shutdown(c, socket.SHUT_WR)  # an end without a word of TLS
        self.assertEqual(c.recv(100), b"")

    def test_renegotiation_is_refused(self):
        p = spawn(["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{self.s.tls_port}",
                   "-CAfile", CA.cert, "-cert", CLIENT.cert, "-key", CLIENT.key],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        p.stdin.write(b"R\n")
        p.stdin.flush()
        out = p.stdout.read()  # until it ends
        p.stdin.close()
        p.stdout.close()
        p.wait(PATIENCE)
        self.assertIn(b"RENEGOTIATING", out)
        self.assertRegex(out, rb"no renegotiation|handshake failure|:error:")

    def test_large_frames(self):
        big = random.Random(3).randbytes(1000 * 1000)
        self.assertEqual(clave("create", "/big", "-", *flags(), connect=self.s.tls,
                               stdin=big).code, 0)
        for _ in range(3):
            self.assertEqual(clave("get", "/big", *flags(), connect=self.s.tls).bytes, big)
        self.assertEqual(clave("rm", "/big", *flags(), connect=self.s.tls).code, 0)

    def test_a_client_that_never_reads(self):
        big = bytes(900 * 1000)
        self.assertEqual(clave("create", "/wide", "-", *flags(), connect=self.s.tls,
                               stdin=big).code, 0)
        c = self.secure(self.s)
        connect = struct.pack(">iqiq", 0, 0, 30000, 0) + wire.text(bytes(16))
        c.sendall(wire.text(connect))
        c.recv(1000)
        read = wire.read("/wide")
        for i in range(100):
            c.sendall(wire.text(struct.pack(">ii", i, wire.GET) + read))
        self.fine(self.s, *flags())
        with open(f"/proc/{self.s.process.pid}/status") as f:
            rss = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
        self.assertLess(rss, 120 * 1024)
        c.close()


class Cutting(Peer):
    """Between a client and the server: lets through of each connection's answer so many bytes, a
    few more with each connection, and then hangs up."""

    def __init__(self, port, step):
        self.to, self.step, self.connections = port, step, 0
        super().__init__(None, backlog=300)

    def serve(self):
        while True:
            client = self.listener.accept()[0]
            self.sockets.append(client)
            server = socket.create_connection(("127.0.0.1", self.to))
            self.sockets.append(server)
            left = self.step * self.connections
            self.connections += 1
            self.run(self.carry, client, server, 1 << 60)
            self.run(self.carry, server, client, left)

    @staticmethod
    def carry(a, b, left):
        try:
            while left > 0:
                data = a.recv(65536)[:left]
                if not data:
                    break
                b.sendall(data)
                left -= len(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class CutAnswers(Case):
    def test_the_client_goes_on_whatever_byte_was_the_last(self):
        s = self.server()
        for step in (11, 13):
            proxy = Cutting(s.tls_port, step)
            self.addCleanup(proxy.close)
            hosts = ",".join([f"localhost:{proxy.port}"] * 250)
            code = None
            while code != 0:  # an answer that is cut again and again is given up, rightly
                r = clave("ls", "/", "--timeout", "20s", *flags(), connect="tls:" + hosts)
                self.assertIn(r.code, (0, 69), r)
                self.assertLess(proxy.connections, 1000, r)
                code = r.code
            self.assertGreater(proxy.connections, 50)


class Usage(Case):
    def refuses(self, code, text, *words):
        r = clave("serve", "--data", scratch("data"), *words)
        self.assertEqual(r.code, code, r)
        self.assertIn(text, r.err)

    def test_flags(self):
        at = ["--listen", "tls:127.0.0.1:0"]
        own = ["--tls-cert", SERVER.cert, "--tls-key", SERVER.key]
        self.refuses(64, "an address for TLS needs --tls-cert FILE", *at)
        self.refuses(64, "name the authorities for clients' certificates", *at, *own)
        self.refuses(64, "no address for TLS", *own)
        self.refuses(64, "no address for TLS", "--tls-clients", "none")
        self.refuses(64, "--tls-ca '': it is empty", *at, *own, "--tls-ca", "")  # not the system's authorities
        self.refuses(64, "it is need, want or none", "--tls-clients", "maybe")
        self.refuses(74, "cannot read /nowhere", *at, "--tls-cert", "/nowhere", "--tls-ca", CA.cert)
        self.refuses(64, f"--tls-key {SERVER.key} has no certificate: name it with "
                     "--tls-cert FILE", *at, "--tls-key", SERVER.key, "--tls-ca", CA.cert)
        self.refuses(64, f"no certificate can be read from {SERVER.key}", *at, "--tls-cert",
                     SERVER.key, "--tls-ca", CA.cert)
        self.refuses(64, "key values mismatch", *at, "--tls-cert", SERVER.cert, "--tls-key",
                     CLIENT.key, "--tls-ca", CA.cert)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
