"""clave gate as a server of HTTP: what is no good request, clients that vanish at every stage, many
that wait, one connection for many requests; and that nothing is left of any of them."""
import datetime
import gzip
import json
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import time
import unittest
import urllib.request

from gate_rig import Rig, ask, is_sanitized
from harness import PATIENCE, ClaveServer, clave, free_port, scratch

MANY = 1000


def raw_head(method, path, *headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"] + list(headers)
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Served(Rig):
    def exchange(self, raw, half_close=False):
        """What a raw request is answered; b"" if the connection is closed without an answer."""
        with self.gate.dial() as s:
            got = b""
            try:
                s.sendall(raw)
                if half_close:
                    s.shutdown(socket.SHUT_WR)
                while piece := s.recv(65536):
                    got += piece
            except OSError:  # reset, or not connected any more
                pass
            return got

    def session(self, ttl_ms=20000):
        status, _, made = self.gate.call("POST", "/v1/sessions", {"ttl_ms": ttl_ms})
        self.assertEqual(status, 201, made)
        return made

    def claim(self, session, path, **more):
        headers = {"Clave_Session": session["secret"]}
        headers.update({k: v for k, v in more.items() if k == "Prefer"})
        body = {"session": session["id"], "path": path, "kind": "lock"}
        return self.gate.call("POST", "/v1/claims", body, **headers)

    def waits(self, session, path):
        """A connection whose request waits for a lock that is held."""
        body = '{"session":"%s","path":"%s","kind":"lock"}' % (session["id"], path)
        s = self.gate.dial()
        s.sendall(raw_head("POST", "/v1/claims", "Content-Type: application/json", "Prefer: wait=60",
                           "Clave-Session: " + session["secret"], f"Content-Length: {len(body)}")
                  + body.encode())
        return s

    def children(self, path):
        return clave("ls", path, connect=self.server.connect).out.split()

    def places(self, path):
        return sum(len(lock["waiters"]) + len(lock["holders"]) for lock in self.gate.call(
            "GET", f"/v1/locks?limit=1000&prefix={path}")[2]["locks"])

    # ---- requests that are no good -----------------------------------------------------------

    def test_what_is_no_good_request(self):
        call = self.gate.call
        json_type = {"Content_Type": "application/json"}
        self.assertProblem(call("GET", "/v1/nothing"), 404, "openapi")
        self.assertProblem(call("PATCH", "/v1/sessions"), 405)
        self.assertProblem(call("NONSENSE", "/v1/sessions"), 501)
        self.assertEqual(call("PUT", "/v1/sessions")[1]["Allow"], "POST, GET, HEAD")
        self.assertProblem(call("POST", "/v1/sessions", b"{}", Content_Type="text/plain"), 415)
        self.assertProblem(call("POST", "/v1/sessions", b"{}"), 415)
        for body in (b"{", b"[]", b"nonsense", b'{"ttl_ms": 1} x', b'{"a":1,"a":2}', b"\xff\xfe",
                     b'{"ttl_ms": "\xff"}', b"[" * 60000):
            with self.subTest(body=body[:20]):
                self.assertProblem(call("POST", "/v1/sessions", body, **json_type), 400)
        self.assertProblem(call("GET", "/v1/sessions/%zz"), 400)
        self.assertProblem(call("POST", "/v1/sessions", b"{}", Host="elsewhere.example", **json_type), 421)
        self.assertProblem(call("POST", "/v1/sessions", b"{}", Origin="http://elsewhere.example",
                                **json_type), 403)
        self.assertProblem(call("POST", "/v1/sessions", b"{}", Sec_Fetch_Site="cross-site", **json_type), 403)
        self.assertProblem(call("GET", "/v1/server", Authorization="Bearer wrong-token-0123456789"), 401)

    def test_bodies_that_are_too_large(self):
        too_much = 2097153
        got = self.exchange(raw_head("POST", "/v1/sessions", "Content-Type: application/json",
                                     f"Content-Length: {too_much}", "Expect: 100-continue"))
        self.assertTrue(got.startswith(b"HTTP/1.1 413 "), got[:100])
        chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
        head = raw_head("POST", "/v1/sessions", "Content-Type: application/json",
                        "Transfer-Encoding: chunked", "Connection: close")
        got = self.exchange(head + chunk * 65 + b"0\r\n\r\n")
        self.assertTrue(got.startswith(b"HTTP/1.1 413 "), got[:100])
        if not is_sanitized():
            self.assertLess(self.gate.resident(), 64 << 20)

    def test_what_is_no_http(self):
        nul = b" HTTP/1.1\r\nHost: localhost"
        for raw in (b"\0" * 1000, b"GET /healthz\0x" + nul + b"\r\n\r\n", b"GET /healthz" + nul + b"\0.evil\r\n\r\n",
                    b"GET /healthz" + nul + b"\r\nX\0Y: z\r\n\r\n", b"\0GET /healthz" + nul + b"\r\n\r\n",
                    b"GET /healthz" + nul + b":80@evil\r\n\r\n", b"ruok\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\r\n\r\n",
                    b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n",
                    b"GET /healthz HTTP/1.1\r\n\r\n",  # without a Host
                    b"GET /healthz HTTP/1.1\r\n" + b"x: y\r\n" * 20000 + b"\r\n",
                    b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                    b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                    raw_head("POST", "/v1/sessions", "Transfer-Encoding: chunked") + b"zz\r\n",
                    raw_head("POST", "/v1/sessions", "Content-Type: application/json",
                             "Transfer-Encoding: gzip", "Connection: close") + b"\r\n"):
            with self.subTest(raw[:30]):
                got = self.exchange(raw, half_close=True)
                self.assertNotIn(b" 20", got.split(b"\r\n")[0])
                answers = re.findall(rb"(?:^|\r\n|})HTTP/1\.1 \d+ ", got)
                self.assertEqual(len(answers), 1, f"refused once: {got}")
        self.assertEqual(self.gate.call("GET", "/healthz")[0], 200)

    def test_where_a_request_ends_is_beyond_doubt(self):
        """What a proxy in front of the gate could read in another way is refused, and nothing that
        follows on the connection is taken for a request."""
        json_type, chunked = "Content-Type: application/json", "Transfer-Encoding: chunked"
        smuggled = raw_head("GET", "/healthz")
        chunks = b"2\r\n[]\r\n0\r\n\r\n"
        for status, headers, body in (
                (400, ["Content-Length: 2", "Content-Length: 60"], b"[]"),
                (400, ["Content-Length: 5", chunked], chunks),
                (501, ["Transfer-Encoding: gzip"], b""),
                (501, ["Transfer-Encoding: gzip, chunked"], chunks),
                (400, ["Content-Length: 2", "Transfer-Encoding: xchunked"], b"[]"),
                (400, ["Host: evil.example", "Content-Length: 2"], b"[]"),
                (400, ["Host : evil.example", "Content-Length: 2"], b"[]"),
                (400, ["X: a\r\n folded: b", "Content-Length: 2"], b"[]"),
                (400, ["X: a\rb", "Content-Length: 2"], b"[]"),
                (400, ["X: a\0b", "Content-Length: 2"], b"[]"),
                (400, ["X: a\r\n\rGET / HTTP/1.1", "Content-Length: 2"], b"[]"),
                (400, ["Content-Length: 18446744073709551615"], b"[]")):
            for method in ("POST", "GET", "DELETE", "PATCH"):
                with self.subTest(headers=headers, method=method):
                    got = self.exchange(raw_head(method, "/v1/sessions", json_type, *headers) + body + smuggled)
                    head, _, problem = got.partition(b"\r\n\r\n")
                    self.assertTrue(head.startswith(b"HTTP/1.1 %d " % status), got)
                    self.assertIn(b"\r\nConnection: close", head)
                    self.assertEqual(json.loads(problem)["status"], status)
        # http_parser leaves it to the engine, llhttp takes it for another coding.
        got = self.exchange(raw_head("POST", "/v1/sessions", json_type, chunked, chunked) + chunks + smuggled)
        self.assertRegex(got, rb"^HTTP/1.1 (400|501) ")
        for body in (b"zz\r\n", b"-2\r\n[]\r\n0\r\n\r\n", b"2\r\n[]XX0\r\n\r\n", b"f" * 18 + b"\r\n[]"):
            with self.subTest(body=body):
                got = self.exchange(raw_head("POST", "/v1/sessions", json_type, chunked) + body + smuggled)
                self.assertRegex(got, rb"^HTTP/1.1 4(00|13) ")
                self.assertNotIn(b"200 OK", got)

    def test_other_forms_of_requests(self):
        close = "Connection: close"
        expected = "Content-Length: 2", "Expect: 100-continue", "Content-Type: application/json", close
        for status, raw in (
                (200, b"GET /healthz HTTP/1.0\r\n\r\n"), (505, b"GET /healthz HTTP/2.0\r\n\r\n"),
                (400, b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"), (400, raw_head("GET", "/ui/a b", close)),
                (200, raw_head("GET", "http://127.0.0.1/healthz", close)),
                (421, raw_head("GET", "http://elsewhere/healthz", close)),
                (400, raw_head("OPTIONS", "*", close)), (400, raw_head("CONNECT", "127.0.0.1:1", close)),
                (405, raw_head("TRACE", "/healthz", close)), (400, raw_head("GET", "/healthz#a", close)),
                (200, raw_head("HEAD", "/healthz", close)), (200, raw_head("HEAD", "/v1/events", close)),
                (404, raw_head("HEAD", "/v1/nothing", close)), (100, raw_head("POST", "/v1/sessions", *expected) + b"[]")):
            with self.subTest(raw=raw):
                got = self.exchange(raw)
                self.assertTrue(got.startswith(b"HTTP/1.1 %d " % status), got)
                if status in (400, 405):
                    self.assertEqual(json.loads(got.partition(b"\r\n\r\n")[2])["status"], status)
                if raw.startswith(b"HEAD"):
                    self.assertEqual(got.partition(b"\r\n\r\n")[2], b"")

    # ---- connections -------------------------------------------------------------------------

    def test_one_connection_for_many_requests(self):
        c = self.gate.open()
        for _ in range(50):
            self.assertEqual(ask(c, "GET", "/healthz")[0], 200)
            self.assertEqual(ask(c, "POST", "/v1/sessions", b"{", Content_Type="application/json")[0], 400)
        c.close()
        got = self.exchange(raw_head("GET", "/healthz") * 20
                            + raw_head("GET", "/healthz", "Connection: close"))
        self.assertEqual(got.count(b"HTTP/1.1 200 OK"), 21)

    def test_of_a_server_elsewhere_only_the_latency_is_known(self):
        def told():
            return self.gate.call("GET", "/v1/server")[2]
        self.await_true(lambda: told()["gate"]["latency_ms"] is not None, "how fast they answer")
        self.assertIsNone(told()["server"])

    def test_the_page(self):
        status, headers, body = self.gate.call("GET", "/ui/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertEqual(headers["Content-Encoding"], "gzip")
        self.assertIn(b"<title>", gzip.decompress(body))

    def test_curl(self):
        r = subprocess.run(["curl", "-sS", "--max-time", str(PATIENCE), "-w", "%{http_code}",
                            f"http://127.0.0.1:{self.gate.port}/healthz"], capture_output=True, text=True,
                           check=True)
        self.assertEqual(r.stdout, '{"status": "ok"}200')

    def test_times_are_those_of_the_wall_clock(self):
        s = self.session()
        self.assertEqual(self.claim(s, "/watched")[0], 201)
        self.await_true(lambda: self.gate.call("GET", "/v1/history?path=/watched")[2]["entries"],
                        "the grant is in the history")
        status, _, lock = self.gate.call("GET", "/v1/locks/watched")
        self.assertEqual(status, 200, lock)
        entry = self.gate.call("GET", "/v1/history?path=/watched")[2]["entries"][0]
        for text in (lock["held_since"], entry["time"]):
            then = datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
            self.assertLess(abs(then - time.time()), 3 * PATIENCE, text)
        self.gate.call("DELETE", "/v1/sessions/" + s["id"], Clave_Session=s["secret"])

    def test_clients_that_vanish_at_every_stage(self):
        """Nothing is left of them: no descriptor, no place in a queue."""
        held, later = self.session(), self.session()
        self.assertEqual(self.claim(held, "/vanish")[0], 201)
        body = b'{"ttl_ms":10000}'
        post = raw_head("POST", "/v1/sessions", "Content-Type: application/json",
                        f"Content-Length: {len(body)}")
        whole = self.open_files_at_rest()
        for reset in (False, True):
            for part in (b"", b"GET /hea", post[:30], post, post + body[:5],
                         raw_head("GET", "/v1/openapi.json")):
                s = self.gate.dial()
                s.sendall(part)
                if reset:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
            s = self.waits(later, "/vanish")
            self.await_true(lambda: len(self.children("/vanish")) == 2, "it waits")
            if reset:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
            self.await_true(lambda: self.gate.open_files() <= whole, "its socket is closed")
            # Who polls keeps the place; who ends the session gives it up.
            self.assertEqual(len(self.children("/vanish")), 2)
            self.gate.call("DELETE", "/v1/sessions/" + later["id"], Clave_Session=later["secret"])
            self.await_true(lambda: len(self.children("/vanish")) == 1, "its place is given up")
            later = self.session()
        for s in (held, later):
            self.gate.call("DELETE", "/v1/sessions/" + s["id"], Clave_Session=s["secret"])

    def test_streams_that_vanish(self):
        """The place of a hold is gone with its connection; nothing is left of any stream."""
        held = self.session()
        self.assertEqual(self.claim(held, "/streams")[0], 201)
        files, body = self.open_files_at_rest(), '{"path":"/streams"}'
        hold = raw_head("POST", "/v1/hold", "Content-Type: application/json",
                        f"Content-Length: {len(body)}") + body.encode()
        for reset in (False, True):
            sockets = []
            for raw in (hold, raw_head("GET", "/v1/events"), raw_head("GET", "/metrics") * 3):
                sockets.append(self.gate.dial())
                sockets[-1].sendall(raw)
                self.assertTrue(sockets[-1].recv(20).startswith(b"HTTP/1.1 200 "))
            self.await_true(lambda: len(self.children("/streams")) == 2, "it waits")
            for s in sockets:
                if reset:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
            self.await_true(lambda: len(self.children("/streams")) == 1, "its place is given up")
            self.await_true(lambda: self.gate.open_files() <= files, "all sockets are closed")
        self.assertIn(b'clave_http_waiting{how="answer"} 0', self.gate.call("GET", "/metrics")[2])
        self.gate.call("DELETE", "/v1/sessions/" + held["id"], Clave_Session=held["secret"])

    def open_files_at_rest(self):
        """Without the connections of tests before, which close soon."""
        least, until = self.gate.open_files(), time.monotonic() + 0.5
        while time.monotonic() < until:
            least = min(least, self.gate.open_files())
            time.sleep(0.02)
        return least

    def test_a_thousand_that_wait_and_are_killed(self):
        """Their places are gone, and what they cost is bounded."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * MANY)), hard))
        held, many = self.session(40000), self.session(40000)
        for i in range(MANY):  # a session has one place a path
            self.assertEqual(self.claim(held, f"/many/{i}")[0], 201)
        files, before = self.open_files_at_rest(), self.gate.resident()
        sockets = [self.waits(many, f"/many/{i}") for i in range(MANY)]
        self.await_true(lambda: self.places("/many") == 2 * MANY, "all of them wait")
        each = (self.gate.resident() - before) / MANY
        if not is_sanitized():
            self.assertLess(each, 40 * 1024)  # with claim, request and heap that is not used any more
        for s in sockets:
            s.close()
        self.await_true(lambda: self.gate.open_files() <= files, "all sockets are closed")
        begin = time.monotonic()
        self.gate.call("DELETE", "/v1/sessions/" + many["id"], Clave_Session=many["secret"])
        self.await_true(lambda: self.places("/many") == MANY, "all places are given up")
        self.assertLess(time.monotonic() - begin, PATIENCE)
        self.gate.call("DELETE", "/v1/sessions/" + held["id"], Clave_Session=held["secret"])


class InServer(Rig):
    own = True

    def test_it_tells_how_the_server_is(self):
        def told():
            return self.gate.call("GET", "/v1/server?samples")[2]
        self.await_true(lambda: told()["server"] and told()["gate"]["latency_ms"] is not None, "figures")
        before = told()
        self.assertGreater(before["server"]["free_bytes"], 0)
        self.assertEqual(before["samples"]["every_ms"], 10000)
        self.assertEqual(self.gate.call("POST", "/v1/sessions", {"ttl_ms": 10000})[0], 201)
        self.await_true(lambda: told()["server"]["sessions"] > before["server"]["sessions"], "the new session")
        self.assertGreaterEqual(told()["server"]["fsync_us"], 1)

    def test_it_serves(self):
        status, _, made = self.gate.call("POST", "/v1/sessions", {"ttl_ms": 10000})
        self.assertEqual(status, 201)
        status, _, claim = self.gate.call("POST", "/v1/claims",
                                          {"session": made["id"], "path": "/own", "kind": "lock"},
                                          Clave_Session=made["secret"])
        self.assertEqual((status, claim["state"]), (201, "held"))
        self.assertEqual(len(clave("ls", "/own", connect=f"127.0.0.1:{self.gate.zk_port}").out.split()), 1)


class TimeZone(unittest.TestCase):
    def test_it_is_read_at_the_start(self):
        """Its file may lie on a disk that hangs: opening it then is as opening a FIFO."""
        zone, http = scratch("zone"), f"127.0.0.1:{free_port()}"
        shutil.copyfile("/usr/share/zoneinfo/Etc/UTC", zone)
        s = ClaveServer(["--http", http])
        s.env = {"TZ": ":" + zone}
        s.start()
        self.addCleanup(s.stop)
        os.unlink(zone)
        os.mkfifo(zone)
        self.addCleanup(lambda: os.close(os.open(zone, os.O_RDWR)))  # a server that waits goes on
        with urllib.request.urlopen(f"http://{http}/v1/locks", timeout=PATIENCE) as answer:
            self.assertEqual(answer.status, 200)


if __name__ == "__main__":
    unittest.main()
