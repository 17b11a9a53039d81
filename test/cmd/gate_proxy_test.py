"""clave gate behind nginx and HAProxy, with the configurations of docs/operate/proxy.md and those proxies'
own defaults: streams flow, a hang-up is passed on, waits are as long as asked for, whom a request
is from, by its headers or by the PROXY protocol, and how many connections a proxy may have."""
import http.client
import json
import os
import re
import select
import socket
import subprocess
import time
import unittest

from gate_rig import Gate, UnixConnection, ask
from harness import PATIENCE, ClaveServer, environment, free_port, scratch, spawn

SOURCE = os.environ.get("CLAVE_SOURCE", os.path.join(os.path.dirname(__file__), "../.."))


def page_block(number):
    """Block `number` of docs/operate/proxy.md that begins with a language."""
    with open(f"{SOURCE}/docs/operate/proxy.md", encoding="utf-8") as f:
        return re.findall(r"^```(?:nginx|haproxy)\n(.*?)^```$", f.read(), re.M | re.S)[number]


class Proxy:
    def __init__(self, gate, text):
        self.port = free_port()
        self.file = scratch("conf")
        text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{self.port}")
        text = re.sub(r"^\s*(ssl_certificate|ssl_certificate_key) .*\n", "", text, flags=re.M)
        text = re.sub(r"bind :443 .*", f"bind 127.0.0.1:{self.port}", text)
        text = text.replace("127.0.0.1:8080", gate.address)
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(self.around(text))
        self.log = open(scratch("log"), "w+", encoding="utf-8")
        self.process = spawn(self.command(), stdin=subprocess.DEVNULL, stdout=self.log,
                             stderr=self.log)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self.open().connect()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    with open(self.log.name, encoding="utf-8") as f:
                        raise AssertionError(f"no proxy: {f.read()}") from None
                time.sleep(0.02)

    def open(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def call(self, method, path, body=None, **headers):
        """As gate_rig.ask; HAProxy writes the names of headers in small letters."""
        c = self.open()
        try:
            status, told, data = ask(c, method, path, body, **headers)
        finally:
            c.close()
        told = {name.title(): value for name, value in told.items()}
        if isinstance(data, bytes) and "json" in told.get("Content-Type", ""):
            data = json.loads(data)
        return status, told, data

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.log.close()


class Nginx(Proxy):
    def around(self, text):
        where = scratch("nginx")
        os.mkdir(where)
        temp = "".join(f"{kind}_temp_path {where}/{kind};\n" for kind in
                       ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return (f"daemon off;\nmaster_process off;\npid {where}/pid;\nerror_log stderr;\nevents {{}}\n"
                f"http {{\naccess_log off;\n{temp}{text}\n}}\n")

    def command(self):
        return ["/usr/sbin/nginx", "-c", self.file, "-e", "stderr"]


class HaProxy(Proxy):
    def around(self, text):
        return text

    def command(self):
        return ["/usr/sbin/haproxy", "-db", "-f", self.file]


NGINX_DEFAULTS = "server { listen 443 ssl; location / { proxy_pass http://127.0.0.1:8080; } }"
# Those of Debian's haproxy.cfg.
HAPROXY_DEFAULTS = """
defaults
    mode http
    timeout connect 5000
    timeout client 50000
    timeout server 50000
frontend web
    bind :443 ssl
    default_backend gate
backend gate
    server one 127.0.0.1:8080
"""


class Behind(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ClaveServer(["--max-connections", "0"]).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def gate(self, *flags):
        gate = Gate(self.server.connect, *flags).start()
        self.addCleanup(gate.stop)
        return gate

    def behind(self, kind, gate, text):
        proxy = kind(gate, text)
        self.addCleanup(proxy.stop)
        return proxy

    # ---- streams and waits -------------------------------------------------------------------

    def hold(self, proxy, path):
        c = proxy.open()
        c.request("POST", "/v1/hold", json.dumps({"path": path, "kind": "lock", "ttl_ms": 4000}),
                  {"Content-Type": "application/json"})
        return c, c.getresponse()

    def await_free(self, gate, path):
        until = time.monotonic() + PATIENCE
        while gate.call("GET", f"/v1/locks{path}")[0] != 404:
            self.assertLess(time.monotonic(), until, f"{path} is still held")
            time.sleep(0.02)

    def streams_flow(self, proxy, gate, name):
        began = time.monotonic()
        c, r = self.hold(proxy, f"/{name}")
        self.assertEqual(r.status, 200)
        seen = []
        while "heartbeat" not in seen:
            seen.append(json.loads(r.readline())["event"])
        self.assertIn("held", seen)
        self.assertLess(time.monotonic() - began, 10, "the lines come late")
        events = proxy.open()
        events.request("GET", "/v1/events")
        self.assertEqual(events.getresponse().readline()[:5], b"retry")
        events.close()
        status, _, answer = proxy.call("POST", "/v1/hold", {"path": f"/{name}"}, Prefer="wait=1")
        self.assertEqual((status, answer["class"]), (409, "retry"))
        r.close()
        c.close()
        self.await_free(gate, f"/{name}")

    def test_streams_flow_through_nginx_as_it_is(self):
        gate = self.gate()
        self.streams_flow(self.behind(Nginx, gate, NGINX_DEFAULTS), gate, "nginx")

    def test_streams_flow_through_haproxy_as_it_is(self):
        gate = self.gate()
        self.streams_flow(self.behind(HaProxy, gate, HAPROXY_DEFAULTS), gate, "haproxy")

    # ---- the page of the documentation -------------------------------------------------------

    def whoami(self, proxy, path="/v1/whoami", **headers):
        """The name of the sender; None: the gate knows none."""
        status, _, who = proxy.call("GET", path, **headers)
        return who["name"] if status == 200 else None

    def behind_a_prefix(self, kind, block):
        flags = ["--http-public", "https://gate.example/clave", "--http-proxy", "127.0.0.1"]
        gate = self.gate(*flags)
        proxy = self.behind(kind, gate, page_block(block))
        page = {"Host": "gate.example", "Origin": "https://gate.example", "Sec-Fetch-Site": "same-origin"}
        status, told, made = proxy.call("POST", "/clave/v1/sessions", {"ttl_ms": 10000}, **page,
                                        X_Forwarded_For="127.0.0.9")
        self.assertEqual(status, 201, made)
        self.assertEqual(told["Location"], f"/clave/v1/sessions/{made['id']}")
        status, _, made = proxy.call("POST", "/clave/v1/sessions", {}, X_Forwarded_For="127.0.0.9",
                                     Origin="https://elsewhere.example")
        self.assertEqual(status, 403, made)
        # What the client says before what the proxy adds: whoever is not of this machine stays so.
        self.assertEqual(self.whoami(proxy, "/clave/v1/whoami", X_Forwarded_For="192.0.2.9"), None)
        self.assertEqual(proxy.call("GET", "/clave/ui/")[0], 200)

    def test_the_page_about_nginx(self):
        self.behind_a_prefix(Nginx, 0)

    def test_the_page_about_haproxy(self):
        self.behind_a_prefix(HaProxy, 1)

    def test_programs_go_on_when_gates_restart(self):
        """examples/http, behind two gates that take turns."""
        ttl, over = 6, scratch("over")
        key, tokens = scratch("key"), scratch("tokens")
        for path, text in ((key, 32 * "4f"), (tokens, "0123456789abcdef lock name=worker")):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
                f.write(text + "\n")
        flags = ["--http-public", "https://gate.example/clave", "--http-key", key, "--http-tokens", tokens]
        gates = [self.gate(*flags), self.gate(*flags)]
        text = page_block(2)
        for gate, address in zip(gates, ("10.0.0.5:8080", "10.0.0.6:8080")):
            text = text.replace(address, gate.address)
        proxy = self.behind(Nginx, gates[0], text)
        programs = []
        for name in ("lock.sh", "lock.py", "lock.mjs"):
            began = scratch("began")
            env = environment(CLAVE_GATE=f"http://127.0.0.1:{proxy.port}/clave", CLAVE_TTL_MS=str(ttl * 1000),
                              CLAVE_GATE_TOKEN="0123456789abcdef")
            programs.append((name, began, spawn(
                [f"{SOURCE}/examples/http/{name}", f"/{name}", "sh", "-c",
                 f"touch {began}; until test -e {over}; do sleep 0.1; done"], env=env)))
        until = time.monotonic() + PATIENCE
        while not all(os.path.exists(began) for _, began, _ in programs):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)
        for gate in gates:
            self.assertEqual(gate.stop(), 0)
            gate.start()
            began = time.monotonic()
            while time.monotonic() < began + 1.5 * ttl:  # for so long it is held on
                self.assertEqual([name for name, _, p in programs if p.poll() is not None], [])
                time.sleep(0.1)
        with open(over, "w", encoding="ascii"):
            pass
        for name, _, p in programs:
            self.assertEqual(p.wait(PATIENCE), 0, name)

    # ---- whose a request is ------------------------------------------------------------------

    def test_what_a_proxy_has_passed_on_is_not_of_this_machine(self):
        gate = self.gate()
        self.assertEqual(self.whoami(gate), "loopback")
        text = NGINX_DEFAULTS.replace("proxy_pass", "proxy_set_header X-Real-IP $remote_addr; proxy_pass")
        proxy = self.behind(Nginx, gate, text)
        self.assertEqual(self.whoami(proxy), None)
        self.assertEqual(proxy.call("POST", "/v1/sessions", {})[0], 401)

    def test_a_proxy_that_is_named_says_whose_it_is(self):
        gate = self.gate("--http-proxy", "127.0.0.1")
        self.assertEqual(self.whoami(gate), None)
        text = HAPROXY_DEFAULTS.replace("backend gate", "backend gate\n    option forwardfor")
        proxy = self.behind(HaProxy, gate, text)
        # The client is 127.0.0.1, as the proxy is: it cannot be told from one more proxy.
        self.assertEqual(self.whoami(proxy), None)
        self.assertEqual(self.whoami(proxy, X_Forwarded_For="127.0.0.9"), "loopback")

    # ---- the PROXY protocol --------------------------------------------------------------------

    def proxied(self, *flags):
        """A gate with an address for the PROXY protocol beside the other one."""
        port = free_port()
        gate = self.gate("--http", f"proxy:127.0.0.1:{port}", *flags)
        gate.plain, gate.address = gate.address, f"127.0.0.1:{port}"
        return gate

    def await_audit(self, audit, text):
        """A line of it. It is written behind the answer, by a thread of its own."""
        until = time.monotonic() + PATIENCE
        while True:
            with open(audit, encoding="utf-8") as f:
                told = f.read()
            if text in told:
                return
            self.assertLess(time.monotonic(), until, f"{text!r} not in {told!r}")
            time.sleep(0.02)

    def raw(self, gate, header, fields=b"", what=b"GET /v1/whoami"):
        """The status of a request after this header; None: it was closed."""
        host, port = gate.address.split(":")
        with socket.create_connection((host, int(port)), PATIENCE) as s:
            s.settimeout(PATIENCE)
            s.sendall(header + what + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + fields + b"\r\n")
            try:
                status = s.makefile("rb").readline().split()
            except ConnectionError:
                return None
            return int(status[1]) if status else None

    def test_haproxy_names_its_clients_before_the_request(self):
        audit = scratch("audit")
        gate = self.proxied("--http-audit", audit)
        for word in ("send-proxy", "send-proxy-v2"):
            with self.subTest(word=word):
                text = HAPROXY_DEFAULTS.replace("server one 127.0.0.1:8080",
                                                f"server one 127.0.0.1:8080 {word} check")
                proxy = self.behind(HaProxy, gate, text)
                # A client on this machine, as the proxy says: of which one it does not.
                self.assertEqual(self.whoami(proxy), None)
                self.assertEqual(self.whoami(proxy, X_Forwarded_For="127.0.0.9"), None)
                self.assertEqual(proxy.call("GET", "/readyz")[0], 200)
                c = proxy.open()
                c.connect()
                c.sock.close()
                c.sock = socket.create_connection(("127.0.0.1", proxy.port), PATIENCE, ("127.0.0.5", 0))
                port = c.sock.getsockname()[1]
                self.assertEqual(ask(c, "POST", "/v1/sessions", {})[0], 401)
                c.close()
                self.await_audit(audit, f"ip=127.0.0.5:{port}")

    def test_whoever_names_nobody_is_nobody(self):
        gate = self.proxied()
        local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"
        unix = b"\r\n\r\n\0\r\nQUIT\n\x21\x31\0\xd8" + 216 * b"\0"
        for header, status in ((b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n", 401), (b"PROXY UNKNOWN\r\n", 401),
                               (local, 401), (unix, 401), (b"", None)):
            with self.subTest(header=header):
                self.assertEqual(self.raw(gate, header), status)
        until = time.monotonic() + PATIENCE
        while "does not begin with a header of the PROXY protocol" not in gate.said():
            self.assertLess(time.monotonic(), until, gate.said())
            time.sleep(0.02)
        path = scratch("socket")
        gate = self.gate("--http", f"proxy:unix:{path}")
        c = UnixConnection(path)
        c.connect()
        c.sock.sendall(b"PROXY UNKNOWN\r\n")
        self.assertEqual(ask(c, "GET", "/v1/whoami")[0], 401)
        c.close()

    def test_a_proxy_behind_another_one(self):
        """One that speaks HTTP behind one that does not: the address in the PROXY header is the
        former's, and --http-proxy names that one."""
        audit = scratch("audit")
        gate = self.proxied("--http-proxy", "127.0.0.7", "--http-audit", audit)
        for host, address in ((7, "192.0.2.9"), (8, "127.0.0.8:1")):
            with self.subTest(host=host):
                status = self.raw(gate, b"PROXY TCP4 127.0.0.%d 127.0.0.1 1 2\r\n" % host,
                                  b"X-Forwarded-For: 192.0.2.9\r\n", b"DELETE /v1/sessions/1")
                self.assertEqual(status, 401)
                self.await_audit(audit, f"ip={address}\t")

    # ---- how many connections it may have --------------------------------------------------------

    def test_a_flood_takes_no_connection_of_a_proxy(self):
        """None of them is of a sender who is known."""
        gate = self.gate("--http-max-connections", "100", "--http-proxy", "127.0.0.1")
        proxy = self.behind(HaProxy, gate, HAPROXY_DEFAULTS)
        holds, flood = [], []
        for i in range(40):
            c = proxy.open()
            self.addCleanup(c.close)
            c.request("POST", "/v1/hold", json.dumps({"path": f"/{i}", "ttl_ms": 3000}),
                      {"Content-Type": "application/json", "X-Forwarded-For": "127.0.0.9"})
            r = c.getresponse()
            self.assertEqual(json.loads(r.readline())["event"], "held")
            holds.append(r)
        for _ in range(200):
            s = socket.create_connection((gate.address.split(":")[0], gate.port), PATIENCE, ("127.0.0.5", 0))
            self.addCleanup(s.close)
            flood.append(s)
        gone, until = 0, time.monotonic() + PATIENCE
        while gone < 120:  # there is no room for more than 60 of them
            readable = select.select(flood, [], [], PATIENCE)[0]
            self.assertTrue(readable and time.monotonic() < until, f"{gone} are closed")
            gone += len(readable)
            flood = [s for s in flood if s not in readable]
        status, _, answer = proxy.call("GET", "/v1/locks?fresh", X_Forwarded_For="127.0.0.9")
        self.assertEqual((status, len(answer["locks"])), (200, 40), "holds were lost")

    def test_more_clients_than_connections(self):
        gate = self.gate("--http-max-connections", "100", "--http-proxy", "127.0.0.1")
        proxy = self.behind(HaProxy, gate, HAPROXY_DEFAULTS)
        clients = [proxy.open() for _ in range(200)]
        for c in clients:
            self.addCleanup(c.close)
            c.request("GET", "/readyz", headers={"Connection": "close"})
        self.assertEqual([c.getresponse().status for c in clients], 200 * [200])

    def test_names_that_are_none(self):
        for flag, value, says in (("--http-public", "gate.example", "URL"), ("--http-public", "https:///x", "URL"),
                                  ("--http-prefix", "clave", "/clave"), ("--http-proxy", "nginx", "address"),
                                  ("--http-proxy", "10.0.0.0/33", "address")):
            with self.subTest(flag=flag, value=value):
                with self.assertRaises(AssertionError) as caught:
                    Gate(self.server.connect, flag, value).start()
                self.assertIn(says, str(caught.exception))
        with self.assertRaises(AssertionError) as caught:
            Gate(self.server.connect, "--http-public", "https://a/x,https://b/y").start()
        self.assertIn("two prefixes", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
