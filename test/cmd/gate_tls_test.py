"""clave gate over TLS: requests, streams and waits as without it; who is let in by a certificate; clients
that stall, vanish, or speak something else; and that nothing is left of any of them."""
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import time
import unittest

from certificates import EXPIRED
from gate_rig import Rig, ask
from gate_tls_rig import CA, CLIENT, CLIENT_DN, OTHER, SERVER, TlsGate, context, der_of
from harness import PATIENCE, ClaveServer, clave, scratch

TOKEN = "operator-0123456789"
CURL = ["curl", "-sS", "--max-time", str(PATIENCE), "--cacert", CA.cert]


def file_of(text):
    path = scratch("file")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o600)
    return path


def request(method, path, *headers, body=b""):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}", *headers]
    if body:
        lines += [f"Content-Length: {len(body)}", "Content-Type: application/json"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Secure(Rig):
    kind = TlsGate
    flags = ("--http-tls-ca", CA.cert, "--http-tokens",
             file_of(f'{TOKEN} admin name=ops\n"x509={CLIENT_DN}" lock /jobs name=worker\n'))
    operator = {"Authorization": "Bearer " + TOKEN}

    def await_true(self, what, text):
        until = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), until, text)
            time.sleep(0.02)

    def await_said(self, what, text, gate=None):
        """In the log, which has a line a second for all clients that are turned away."""
        def said():
            what()
            return text in (gate or self.gate).said()
        self.await_true(said, f"it is said: {text}")

    def hear(self, s, text):
        got = b""
        while text not in got:
            piece = s.recv(65536)
            self.assertTrue(piece, got)
            got += piece
        return got

    def session(self):
        status, _, made = self.gate.call("POST", "/v1/sessions", {"ttl_ms": 20000}, **self.operator)
        self.assertEqual(status, 201, made)
        return made

    def claim(self, s, path, **more):
        return self.gate.call("POST", "/v1/claims", {"session": s["id"], "path": path, "kind": "lock"},
                              Clave_Session=s["secret"], **self.operator, **more)

    def end(self, s):
        self.gate.call("DELETE", "/v1/sessions/" + s["id"], Clave_Session=s["secret"], **self.operator)

    # ---- as without TLS ----------------------------------------------------------------------

    def test_requests_on_one_connection(self):
        c = self.gate.open()
        for _ in range(20):
            self.assertEqual(ask(c, "GET", "/healthz")[0], 200)
        self.assertEqual(c.sock.version(), "TLSv1.3")
        data = os.urandom(1 << 20)
        status, _, made = ask(c, "PUT", "/v1/znodes/large", data, If_None_Match="*", **self.operator)
        self.assertIn(status, (200, 201, 413), made)  # by the servers' --max-request
        data = data[:1000000]
        self.assertEqual(ask(c, "PUT", "/v1/znodes/big", data, If_None_Match="*", **self.operator)[0], 201)
        self.assertEqual(ask(c, "GET", "/v1/znodes/big", **self.operator)[2], data)
        c.close()

    def test_bodies_that_are_too_large(self):
        with self.gate.dial() as s:
            s.sendall(request("POST", "/v1/sessions", "Content-Length: 2097153", "Expect: 100-continue"))
            self.assertIn(b" 413 ", self.hear(s, b"\r\n"))

    def test_a_slow_reader(self):
        """Gets all of it."""
        data = os.urandom(900000)
        self.assertEqual(self.gate.call("PUT", "/v1/znodes/slow", data, If_None_Match="*",
                                        **self.operator)[0], 201)
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(PATIENCE)
        raw.connect(("127.0.0.1", self.gate.port))
        with context().wrap_socket(raw, server_hostname="localhost") as s:
            s.sendall(request("GET", "/v1/znodes/slow", "Connection: close"))
            got = b""
            while piece := s.recv(1000):
                got += piece
        self.assertEqual(got[got.index(b"\r\n\r\n") + 4:], data)

    def test_curl(self):
        url = f"https://localhost:{self.gate.port}/healthz"
        r = subprocess.run(CURL + ["-w", "%{http_code}", url], capture_output=True, text=True, check=True)
        self.assertEqual(r.stdout, '{"status": "ok"}200')

        def refused():
            r = subprocess.run(["curl", "-sS", "--cacert", OTHER.cert, url], capture_output=True, text=True)
            self.assertEqual(r.returncode, 60, r)
        self.await_said(refused, "it does not know the authority that signed our certificate")

    def test_a_long_poll_and_events(self):
        first, second = self.session(), self.session()
        self.assertEqual(self.claim(first, "/poll")[0], 201)
        with self.gate.dial() as events, self.gate.dial() as waits:
            events.sendall(request("GET", "/v1/events"))
            self.hear(events, b"event: reset")
            body = json.dumps({"session": second["id"], "path": "/poll", "kind": "lock"}).encode()
            waits.sendall(request("POST", "/v1/claims", "Clave-Session: " + second["secret"],
                                  "Prefer: wait=60", body=body))
            self.hear(events, b'/poll')
            self.await_true(lambda: len(clave("ls", "/poll", connect=self.server.connect).out.split()) == 2,
                            "it waits")
            self.end(first)
            self.assertIn(b"201 Created", self.hear(waits, b'"held"'))
        self.end(second)

    def test_a_hold_ends_with_its_client(self):
        for reset in (False, True):
            s = self.gate.dial()
            s.sendall(request("POST", "/v1/hold", body=b'{"path":"/held","kind":"lock"}'))
            self.hear(s, b'"held"')
            if reset:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
            with self.gate.dial() as t:
                t.sendall(request("POST", "/v1/hold", body=b'{"path":"/held","kind":"lock"}'))
                self.hear(t, b'"held"')
            self.await_true(lambda: not clave("ls", "/held", connect=self.server.connect).out.split(),
                            "released")

    def test_pages_and_origins(self):
        self.assertEqual(self.gate.call("GET", "/ui/")[0], 200)
        mine = f"localhost:{self.gate.port}"
        for origin, status in ((f"https://{mine}", 201), (f"http://{mine}", 403), ("https://x.example", 403)):
            with self.subTest(origin):
                got = self.gate.call("POST", "/v1/sessions", {"ttl_ms": 1000}, Origin=origin, **self.operator)
                self.assertEqual(got[0], status, got)
        links = self.gate.call("GET", "/znodes/v1/?view=children", **self.operator)[2]
        self.assertIn(f"https://{mine}/", json.dumps(links))

    # ---- who is let in -----------------------------------------------------------------------

    def whoami(self, ctx=None, **headers):
        c = self.gate.open(ctx)
        try:
            return ask(c, "GET", "/v1/whoami", **headers)[2]
        finally:
            c.close()

    def test_who_a_certificate_is(self):
        worker = context(cert=CLIENT)
        self.assertEqual(self.whoami(worker)["name"], "worker")
        self.assertEqual(self.whoami(worker)["grants"], [{"role": "lock", "prefix": "/jobs"}])
        self.assertEqual(self.whoami(worker, **self.operator)["name"], "ops")  # a token counts first
        self.assertEqual(self.whoami()["status"], 401)  # on loopback, too: there are users
        stranger = context(cert=CA.client("/CN=stranger"))
        self.assertEqual(self.whoami(stranger)["status"], 401)

    def shown_out(self, gate, ctx, text):
        """TLS 1.3 tells a client only after its own handshake."""
        def refused():
            with self.assertRaises(OSError), gate.dial(ctx) as s:
                s.sendall(request("GET", "/healthz"))
                if not s.recv(1):
                    raise OSError
        self.await_said(refused, text, gate)

    def test_certificates_that_are_no_good(self):
        for cert, text in ((OTHER.client(), "(/C=DE/O=Acme/CN=client) is signed by no authority in"),
                           (CA.client("/CN=late", ca=EXPIRED), "(/CN=late) is not valid")):
            with self.subTest(text):
                self.shown_out(self.gate, context(cert=cert), text)

    def test_certificates_that_are_needed(self):
        gate = TlsGate(self.server.connect, "--http-tls-ca", CA.cert, "--http-tls-clients", "need").start()
        self.addCleanup(gate.stop)
        self.shown_out(gate, context(), "it presents no certificate")
        with gate.dial(context(cert=CLIENT)) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.hear(s, b"200 OK")

    # ---- who does not speak as expected --------------------------------------------------------

    def test_http_1_1_is_agreed_on(self):
        for offered, agreed in ((["h2", "http/1.1"], "http/1.1"), ([], None)):
            ctx = context()
            if offered:
                ctx.set_alpn_protocols(offered)
            with self.gate.dial(ctx) as s:
                self.assertEqual(s.selected_alpn_protocol(), agreed)
        ctx = context()
        ctx.set_alpn_protocols(["h2"])
        with self.assertRaises(ssl.SSLError):
            self.gate.dial(ctx)

    def test_a_client_without_tls(self):
        """It is told so, in its language, and in the log."""
        r = subprocess.run(["curl", "-sS", "--max-time", str(PATIENCE), "-w", "%{http_code}",
                            f"http://127.0.0.1:{self.gate.port}/healthz"], capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stdout[-3:]), (0, "400"), r)
        self.assertIn("this address speaks TLS", r.stdout)
        with socket.create_connection(("127.0.0.1", self.gate.port), PATIENCE) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            got = b""
            while piece := s.recv(4096):
                got += piece
            self.assertTrue(got.startswith(b"HTTP/1.1 400 "), got)

        def clear():
            with socket.create_connection(("127.0.0.1", self.gate.port), PATIENCE) as s:
                s.sendall(b"ruok")
                self.assertTrue(s.recv(4096))
        self.await_said(clear, "is turned away: it does not speak TLS")

    def test_clients_that_stall_or_vanish(self):
        """Those that do not shake hands keep nobody out, and nothing is left of any."""
        gate = TlsGate(self.server.connect, "--http-max-connections", "8").start()
        self.addCleanup(gate.stop)
        with gate.dial() as s:
            shaken = s.session_reused
        self.assertFalse(shaken)
        self.await_true(lambda: gate.call("GET", "/readyz")[0] == 200, "it is connected")
        time.sleep(0.1)
        files = gate.open_files()
        stalled = []
        for part in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc") * 4:
            stalled.append(socket.create_connection(("127.0.0.1", gate.port), PATIENCE))
            stalled[-1].sendall(part)
        for _ in range(3):
            self.assertEqual(gate.call("GET", "/healthz")[0], 200)
        self.assertLessEqual(gate.open_files() - files, 3 + 3)  # a quarter of 8, and one, shake hands
        for s in stalled:
            s.close()
        for reset in (False, True):
            s = gate.dial()
            s.sendall(b"GET /healthz HTTP/1.1\r\nHo")
            if reset:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        self.await_true(lambda: gate.open_files() <= files, "all sockets are closed")

    def test_a_client_that_is_out_of_reach(self):
        """The kernel asks whether it is there: its timer of a silent connection is set."""
        with self.gate.dial() as s:
            s.sendall(request("GET", "/healthz"))
            self.hear(s, b"200 OK")
            local = "%04X" % s.getsockname()[1]

            def timer():
                with open("/proc/net/tcp", encoding="ascii") as f:
                    return [r[5][:2] for r in map(str.split, f) if r[2].endswith(":" + local) and
                            r[1].endswith(":%04X" % self.gate.port)]
            self.await_true(lambda: timer() == ["02"], "a probe is set")  # 01: not acknowledged yet

    # ---- renewal -----------------------------------------------------------------------------

    def test_renewal(self):
        """New connections see the new certificate, old ones go on; files that are no good change nothing."""
        gate = TlsGate(self.server.connect).start()
        self.addCleanup(gate.stop)
        old = gate.open()
        self.assertEqual(ask(old, "GET", "/healthz")[0], 200)
        newer = CA.server()
        gate.renew(newer)
        gate.reload()
        self.assertEqual(gate.presented(), der_of(newer))
        with open(gate.cert, "w", encoding="ascii") as f:
            f.write("nothing\n")
        gate.reload()
        self.assertIn(f"no certificate can be read from {gate.cert}", gate.said())
        self.assertEqual(gate.presented(), der_of(newer))
        self.assertEqual(ask(old, "GET", "/healthz")[0], 200)
        old.close()


class Configured(unittest.TestCase):
    def test_what_is_checked(self):
        at = ("--http", "tls:127.0.0.1:0", "--http-tls-cert")
        good = (*at, SERVER.cert, "--http-tls-key", SERVER.key)
        for code, text, flags in (
                (64, "an address for TLS needs --http-tls-cert FILE", at[:2]),
                (64, "--http-tls-key /k has no certificate", (*at[:2], "--http-tls-key", "/k")),
                (64, "add --http tls:ADDR", ("--http", "127.0.0.1:0", "--http-tls-cert", SERVER.cert)),
                (64, "add --http tls:ADDR", ("--http", "127.0.0.1:0", "--http-tls-clients", "need")),
                (64, "--http-tls-cert '': it is empty", (*at, "")),
                (64, "--http-tls-ca '': it is empty", (*good, "--http-tls-ca", "")),  # not the system's authorities
                (64, "with --http-tls-ca FILE", (*good, "--http-tls-clients", "want")),
                (64, "a Unix socket has no TLS", ("--http", "tls:unix:/x")),
                (64, "expected host:port", ("--http", "tls:localhost")),
                (64, "x509= is followed by", (*good, "--http-tokens", file_of("x509= read\n"))),
                (74, "cannot read /nowhere", (*at, "/nowhere")),
                (64, "no key file is named", (*at, SERVER.cert)),
                (0, "", good)):
            for verb in (("gate", "--connect", "127.0.0.1:1"), ("serve", "--data", scratch("d"))):
                with self.subTest(text=text, verb=verb[0]):
                    r = clave(*verb, *flags, "--check-config")
                    self.assertEqual(r.code, code, r)
                    self.assertIn(text, r.err)
                    self.assertEqual(text == "", "the configuration is valid" in r.out)

    def test_in_a_server(self):
        """Its clients' TLS and that of HTTP have files of their own."""
        gate = TlsGate(None).start()
        self.addCleanup(lambda: gate.process.poll() is None and gate.stop())
        self.assertEqual(gate.call("POST", "/v1/sessions", {"ttl_ms": 10000})[0], 201)  # on loopback
        newer = CA.server()
        gate.renew(newer)
        gate.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + PATIENCE
        while gate.presented() != der_of(newer):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)
        self.assertEqual(gate.stop(), 0)


if __name__ == "__main__":
    unittest.main()
