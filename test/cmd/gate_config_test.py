"""clave gate and clave serve --http: flags and files, tokens and who may do what, the key, the audit
log, SIGHUP, and the end."""
import http.client
import json
import os
import signal
import socket
import subprocess
import time
import unittest

from gate_rig import Gate, UnixConnection, ask
from harness import CLAVE, PATIENCE, ClaveServer, clave, environment, free_port, scratch, spawn

READER, OPERATOR, NAMELESS = "reader-0123456789", "operator-0123456789", "nameless-0123456789"


def file_of(text, mode=0o600, name="file"):
    path = scratch(name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


class Configured(unittest.TestCase):
    def refused(self, text, *flags, code=64):
        r = clave("gate", *flags, "--check-config", connect="127.0.0.1:1")
        self.assertEqual(r.code, code, r)
        self.assertIn(text, r.err)

    def started(self, *flags, own=False):
        server = None
        if not own:
            server = ClaveServer().start()
            self.addCleanup(server.stop)
        gate = Gate(server and server.connect, *flags).start()
        self.addCleanup(lambda: gate.process.poll() is None and gate.stop())
        return gate

    def await_true(self, what, text):
        until = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), until, text)
            time.sleep(0.02)

    def test_what_is_refused(self):
        self.refused("name an address with --http")
        self.refused("expected host:port", "--http", "localhost")
        self.refused("at most 16 addresses", "--http", ",".join(["127.0.0.1:0"] * 17))
        self.refused("--http ',': it names no address", "--http", ",")
        at = ("--http", "127.0.0.1:0")
        self.refused("not a number", *at, "--http-max-body", "1")
        self.refused("without scheme and port", *at, "--http-host", "http://x")
        self.refused("No such file", *at, "--http-tokens", "/nonexistent")
        self.refused("/nowhere", *at, "--http-audit", "/nowhere/audit", code=74)
        r = clave("serve", "--data", scratch("d"), *at, "--http-audit", "/nowhere/audit", "--check-config")
        self.assertEqual((r.code, "/nowhere" in r.err), (74, True), r)
        r = clave("gate", *at, "--connect", "a b", "--check-config")
        self.assertEqual((r.code, "invalid server list" in r.err), (64, True), r)
        r = clave("serve", "--data", scratch("d"), "--http-tokens", "/x", "--check-config")
        self.assertIn("no address for HTTP", r.err)
        r = clave("serve", "--data", "/" + "x" * 100, "--http", "127.0.0.1:0")
        self.assertEqual(r.code, 64, r)
        self.assertIn("Unix socket in the data directory", r.err)

    def test_files_of_tokens(self):
        for text, why in (("short read\n", "at least 16 characters"), ("\n# no\n", "names nobody"),
                          (f"{READER}\n", ":1: expected TOKEN ROLE"), (f"\n{READER} boss\n", ":2: the roles"),
                          (f"{READER} read jobs\n", "a prefix is a path"),
                          ("uid=x admin\n", "the number of a user")):
            with self.subTest(text):
                path = file_of(text)
                self.refused(why, "--http", "127.0.0.1:0", "--http-tokens", path)
                self.refused(path, "--http", "127.0.0.1:0", "--http-tokens", path)
        open_to_all = file_of(f"{READER} read\n", 0o644)
        self.refused(f"chmod 600 {open_to_all}", "--http", "127.0.0.1:0", "--http-tokens", open_to_all)
        r = clave("gate", "--http", "127.0.0.1:0", "--check-config", "--http-tokens",
                  file_of(f"{READER} read bad\n"), connect="127.0.0.1:1")
        self.assertNotIn(READER, r.err)  # never in a message

    def test_keys(self):
        self.refused("64 hexadecimal digits", "--http", "127.0.0.1:0", "--http-key", file_of("abc"))
        self.refused("is open to others", "--http", "127.0.0.1:0", "--http-key", file_of("ab" * 32, 0o604))
        r = clave("gate", "--http", "127.0.0.1:0", "--http-key", file_of("ab" * 32 + "\n"),
                  "--check-config", connect="127.0.0.1:1")
        self.assertEqual((r.code, r.out), (0, "clave: the configuration is valid: http 127.0.0.1:0, "
                                              "servers 127.0.0.1:1\n"), r)

    def test_a_file_with_settings(self):
        server = ClaveServer().start()
        port, other = free_port(), free_port()
        config = file_of(f"connect = {server.connect}\nhttp = 127.0.0.1:{port}\nhttp = 127.0.0.1:{other}\n")
        p = spawn([CLAVE, "--json", "gate", "--config", config], stdin=subprocess.DEVNULL, text=True,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        self.assertEqual(json.loads(p.stdout.readline()),
                         {"http": [f"127.0.0.1:{port}", f"127.0.0.1:{other}"], "connect": server.connect})
        for at in (port, other):
            c = http.client.HTTPConnection("127.0.0.1", at, timeout=PATIENCE)
            self.assertEqual(ask(c, "GET", "/healthz")[0], 200)
            c.close()
        p.terminate()
        self.assertEqual(p.communicate(timeout=PATIENCE)[1], "")
        self.assertEqual(p.returncode, 0)
        r = clave("gate", "--config", file_of("tick = 1s\n"))
        self.assertEqual((r.code, "no such setting" in r.err), (64, True), r)
        self.assertEqual(server.stop(), 0)

    def test_who_may_do_what(self):
        tokens = file_of(f"# ours\n{READER} read name=viewer\n{OPERATOR} read\n"
                         f"{OPERATOR} lock,write /jobs name=ops\n{NAMELESS} read\n")
        for own in (False, True):
            with self.subTest(own=own):
                gate = self.started("--http-tokens", tokens, "--http-host", "gate.example", own=own)
                self.assertEqual(gate.call("GET", "/v1/server")[0], 401)
                self.assertEqual(gate.call("GET", "/healthz")[0], 200)
                reader, nameless = {"Authorization": "Bearer " + READER}, {"Authorization": "Bearer " + NAMELESS}
                self.assertEqual(gate.call("GET", "/v1/whoami", **nameless)[2]["name"], "token")
                self.assertEqual(gate.call("GET", "/v1/server", **reader)[0], 200)
                self.assertEqual(gate.call("GET", "/v1/whoami", **reader)[2]["name"], "viewer")
                self.assertEqual(gate.call("POST", "/v1/sessions", {}, **reader)[0], 403)
                self.assertEqual(gate.call("GET", "/v1/server", Host="gate.example:80", **reader)[0], 200)
                self.assertEqual(gate.call("GET", "/v1/server", Host="gate.elsewhere", **reader)[0], 421)
                self.reloads(gate, tokens, reader)

    def reloads(self, gate, tokens, reader):
        """Other tokens hold after SIGHUP; a file that is no good changes nothing."""
        with open(tokens, encoding="utf-8") as f:
            before = f.read()
        with open(tokens, "a", encoding="utf-8") as f:
            f.write("nonsense\n")
        gate.process.send_signal(signal.SIGHUP)
        self.await_true(lambda: "not reloaded, nothing is changed" in gate.said(), "it is said")
        self.assertEqual(gate.call("GET", "/v1/server", **reader)[0], 200)
        with open(tokens, "w", encoding="utf-8") as f:
            f.write(before.replace(READER, "other-0123456789"))
        gate.process.send_signal(signal.SIGHUP)
        self.await_true(lambda: gate.call("GET", "/v1/server", **reader)[0] == 401, "the old one is out")
        self.assertEqual(gate.call("GET", "/v1/server", Authorization="Bearer other-0123456789")[0], 200)
        with open(tokens, "w", encoding="utf-8") as f:
            f.write(before)

    def reload(self, gate, config, text):
        before = gate.said().count(" reloaded: ")
        with open(config, "w", encoding="utf-8") as f:
            f.write(text)
        gate.process.send_signal(signal.SIGHUP)
        self.await_true(lambda: gate.said().count(" reloaded: ") > before, "it is reloaded")

    def test_limits_change(self):
        for own in (False, True):
            with self.subTest(own=own):
                config = file_of("http-max-connections = 2\n")
                gate = self.started("--config", config, own=own)
                held = [gate.dial(), gate.dial()]
                late = gate.dial()
                self.assertEqual(held[0].recv(1), b"", "the oldest one has made room")
                held[1].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertIn(b" 200 ", held[1].recv(1000))
                self.reload(gate, config, "http-max-connections = 20\nhttp-max-waiting = 1\n")
                more = [gate.dial() for _ in range(5)]
                late.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self.assertIn(b" 200 ", late.recv(100))
                streams = [gate.open() for _ in range(2)]

                def status(c):
                    c.request("GET", "/v1/events")
                    return c.getresponse().status

                self.await_true(lambda: status(streams[0]) == 200, "a stream")
                self.assertEqual(gate.call("GET", "/v1/events")[0], 503)
                self.reload(gate, config, "")
                self.assertEqual(status(streams[1]), 200)
                for c in held + more + [late] + streams:
                    c.close()
                self.assertIn("http-max-connections 20 -> (default), http-max-waiting 1 -> (default)",
                              gate.said())
                self.assertEqual(gate.stop(), 0)

    def test_what_is_observed(self):
        self.refused("expected paths", "--http", "127.0.0.1:0", "--http-metric-paths", "/a,b")
        gate = self.started("--http-metric-paths", "/jobs,/locks", own=True)
        made = gate.call("POST", "/v1/sessions", {"ttl_ms": 10000})[2]
        claim = {"session": made["id"], "path": "/jobs/a", "kind": "lock"}
        self.assertEqual(gate.call("POST", "/v1/claims", claim, Clave_Session=made["secret"])[0], 201)

        def holders():
            return b'clave_lock_holders{path="/jobs/a",kind="lock"} 1\n' in gate.call("GET", "/metrics")[2]
        self.await_true(holders, "the lock is in the metrics")

    def test_the_user_of_a_unix_socket(self):
        path = scratch("gate.sock")
        gate = self.started("--http", "unix:" + path)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        c = UnixConnection(path)
        self.assertEqual(ask(c, "GET", "/v1/whoami")[2]["grants"], [{"role": "admin", "prefix": "/"}])
        c.close()
        self.assertEqual(gate.stop(), 0)
        self.assertFalse(os.path.exists(path))

    def test_the_audit_log(self):
        path = scratch("audit")
        gate = self.started("--http-audit", path, "--log-level", "info")
        made = gate.call("POST", "/v1/sessions", {"ttl_ms": 10000})[2]
        gate.call("GET", "/v1/server")

        def lines():
            with open(path, encoding="utf-8") as f:
                return f.read().splitlines()
        self.await_true(lambda: lines(), "a change is logged")
        self.assertRegex(lines()[0], r"INFO audit.Slf4jAuditLogger: user=loopback\tip=127\.0\.0\.1:\d+"
                                     r"\toperation=POST\ttarget=/v1/sessions\tsession=-?\d+\tstatus=201\tresult=success$")
        gate.call("POST", "/v1/claims", {"path": "/audited", "kind": "semaphore", "limit": 2}, Clave_Session=made["secret"])
        self.await_true(lambda: len(lines()) == 2, "a claim is logged")
        self.assertIn(f"\ttarget=/v1/claims\tsession={made['id']}\tznode=/audited\twhat=semaphore limit=2 permits=1\tstatus=201\t",
                      lines()[1])
        gate.call("POST", "/v1/slots/a%E2%80%AE%C3%A9/break", {"owner": "x"})
        self.await_true(lambda: len(lines()) == 3, "what was refused is logged")
        self.assertIn("\tznode=/a???\u00e9\tstatus=403\t", lines()[2])
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o640)
        os.rename(path, path + ".1")
        gate.process.send_signal(signal.SIGHUP)
        self.await_true(lambda: os.path.exists(path), "the file is opened anew")
        gate.call("DELETE", "/v1/sessions/" + made["id"], Clave_Session=made["secret"])
        self.await_true(lambda: lines(), "a change is logged")
        self.assertEqual(len(lines()), 1)

    def test_the_end_answers_those_who_wait(self):
        for own in (False, True):
            with self.subTest(own=own):
                gate = self.started(own=own)
                made = gate.call("POST", "/v1/sessions", {"ttl_ms": 10000})[2]
                claim = {"session": made["id"], "path": "/end", "kind": "lock"}
                secret = {"Clave-Session": made["secret"], "Content-Type": "application/json"}
                self.assertEqual(gate.call("POST", "/v1/claims", claim, **secret)[0], 201)
                waits = gate.call("POST", "/v1/sessions", {"ttl_ms": 10000})[2]
                claim["session"], secret["Clave-Session"] = waits["id"], waits["secret"]
                c = gate.open()
                c.request("POST", "/v1/claims", json.dumps(claim), {**secret, "Prefer": "wait=60"})
                half = gate.dial()
                half.sendall(b"POST /v1/claims HT")
                servers = gate.connect or f"127.0.0.1:{gate.zk_port}"
                self.await_true(lambda: len(clave("ls", "/end", connect=servers).out.split()) == 2, "it waits")
                begin = time.monotonic()
                self.assertEqual(gate.stop(), 0)
                self.assertLess(time.monotonic() - begin, 10)
                # Its place is made, and without --http-key no other gate goes on with it.
                self.assertEqual(c.getresponse().status, 504)
                c.close()
                half.close()

    def test_off_it_costs_nothing(self):
        s = ClaveServer().start()
        with open(f"/proc/{s.process.pid}/maps", encoding="ascii") as f:
            maps = f.read()
        self.assertNotIn("jansson", maps)
        self.assertNotIn("libhttp_parser", maps)
        self.assertEqual(s.stop(), 0)

    def test_a_server_that_asks_for_identities(self):
        """HTTP has its own rules of who may come in; and it is not the server's user to the server."""
        gate = self.started("--require-auth", "digest", "--super-uid", str(os.getuid()), own=True)
        self.await_true(lambda: gate.call("GET", "/readyz")[0] == 200, "it is let in")
        made = gate.call("POST", "/v1/sessions", {"ttl_ms": 10000})
        self.assertEqual(made[0], 201, made)

    def test_http_leaves_the_server_its_files(self):
        """A server that cannot open a file of its log or a snapshot ends."""
        http_port, zk_port = free_port(), free_port()
        p = spawn(["prlimit", "--nofile=256:256", CLAVE, "serve", "--data", scratch("files"), "--listen",
                   f"127.0.0.1:{zk_port}", "--http", f"127.0.0.1:{http_port}"],
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                  text=True, env=environment())
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.terminate)
        self.assertIn(str(http_port), p.stdout.readline())
        for _ in range(200):  # those beyond the limit wait in the kernel's queue
            self.addCleanup(socket.create_connection(("127.0.0.1", http_port), PATIENCE).close)
        files = f"/proc/{p.pid}/fd"
        for _ in range(20):  # turns of the server
            self.assertEqual(clave("stat", "/", connect=f"127.0.0.1:{zk_port}").code, 0)
        self.assertGreater(len(os.listdir(files)), 48)
        self.assertLess(len(os.listdir(files)), 128)

    def test_the_identity_of_the_gate(self):
        """--auth is the identity of requests without a session, also when they are told anew."""
        server = ClaveServer(["--require-auth", "digest"]).start()
        self.addCleanup(server.stop)
        tokens = file_of(f"{READER} admin\n")
        gate = Gate(server.connect, "--http-tokens", tokens, "--auth", "digest:gate:secret").start()
        self.addCleanup(gate.stop)
        self.await_true(lambda: gate.call("GET", "/readyz")[0] == 200, "it is let in")
        self.assertEqual(clave("--auth", "digest:gate:secret", "create", "--acl", "creator", "/ours", "a",
                               connect=server.connect).code, 0)
        admin = {"Authorization": "Bearer " + READER}
        self.assertEqual(gate.call("GET", "/v1/znodes/ours", **admin)[2], b"a")

    def test_flags_that_a_gate_does_not_have(self):
        text = clave("gate", "--help").out
        self.assertIn("--auth SCHEME:ID", text)
        self.assertNotIn("--timeout", text)
        self.refused("no such flag: --timeout", "--http", "127.0.0.1:0", "--timeout", "5s")
        r = clave("--timeout", "5s", "gate", "--http", "127.0.0.1:0", "--check-config", "--connect", "127.0.0.1:1")
        self.assertEqual((r.code, "no such flag: --timeout" in r.err), (64, True), r)  # before the verb, too
        r = clave("gate", "--check-config", "--config", file_of("http = 127.0.0.1:0\nauth = digest:a:b\n"))
        self.assertEqual((r.code, "clave's configuration" in r.err), (64, True), r)
        self.assertNotIn("digest:a:b", r.err)

    def test_servers_that_are_away(self):
        gate = Gate(f"127.0.0.1:{free_port()}").start()
        self.addCleanup(gate.stop)
        self.await_true(lambda: "no server of 127.0.0.1:" in gate.said(), "it is said")
        self.assertIn("refused", gate.said())

    def test_sighup_opens_the_audit_log_though_the_file_is_bad(self):
        path, config = scratch("audit"), file_of("tick = 2s\n")
        gate = self.started("--http-audit", path, "--config", config, own=True)
        with open(config, "a", encoding="utf-8") as f:
            f.write("nonsense\n")
        os.rename(path, path + ".1")
        gate.process.send_signal(signal.SIGHUP)
        self.await_true(lambda: os.path.exists(path), "the file is opened anew")
        self.assertIn("nothing is changed", gate.said())

    def test_a_key_that_was_drawn_is_told(self):
        """A server keeps its own in its data directory."""
        self.assertIn("a random key is used", self.started("--log-level", "info").said())
        self.assertNotIn("a random key is used", self.started("--log-level", "info", own=True).said())

    def test_a_server_that_starts_again(self):
        """HTTP is there again; so is what is durable."""
        gate = self.started(own=True)
        made = gate.call("POST", "/v1/sessions", {"ttl_ms": 20000})[2]
        claim = {"session": made["id"], "path": "/again", "kind": "lock"}
        self.assertEqual(gate.call("POST", "/v1/claims", claim, Clave_Session=made["secret"])[0], 201)
        self.assertEqual(gate.stop(signal.SIGKILL), -signal.SIGKILL)
        gate.start()
        self.await_true(lambda: gate.call("GET", "/readyz")[0] == 200, "it is ready")
        self.assertEqual(len(clave("ls", "/again", connect=f"127.0.0.1:{gate.zk_port}").out.split()), 1)


if __name__ == "__main__":
    unittest.main()
