"""Znodes over real HTTP: bytes as they are, versions as tags, guarded writes, and Apache's contrib
REST gateway at its own paths."""
import os
import unittest

from gate_rig import Rig
from harness import scratch

OCTETS = {"Content_Type": "application/octet-stream"}


def tokens():
    path = scratch("tokens")
    with open(path, "w", encoding="ascii") as f:
        f.write("0123456789abcdef0123456789abcdef admin name=ann\n")
    os.chmod(path, 0o600)
    return path


class Znodes(Rig):
    flags = ("--http-tokens", tokens())

    def call(self, method, path, body=None, **headers):
        headers["Authorization"] = "Bearer 0123456789abcdef0123456789abcdef"
        return self.gate.call(method, path, body, **headers)

    def test_bytes_and_versions(self):
        data = bytes(range(256)) * 2000
        status, headers, made = self.call("POST", "/v1/znodes/b%C3%BC%20c", data, **OCTETS)
        self.assertEqual((status, made["path"], headers["Location"]),
                         (201, "/bü c", "/v1/znodes/b%C3%BC%20c"))
        status, headers, got = self.call("GET", headers["Location"])
        self.assertEqual((status, headers["ETag"].split("-")[0], got == data), (200, '"0', True))
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        status, headers, got = self.call("HEAD", "/v1/znodes/b%C3%BC%20c")
        self.assertEqual((status, headers["Content-Length"], got), (200, str(len(data)), b""))
        put = "/v1/znodes/b%C3%BC%20c"
        self.assertEqual(self.call("PUT", put, b"x", If_Match='"1"')[0], 412)
        self.assertEqual(self.call("PUT", put, b"x", If_Match='"0"')[0], 200)
        self.assertEqual(self.call("PUT", put, b"x", If_None_Match="*")[0], 412)
        self.assertEqual(self.call("DELETE", put)[0], 204)
        self.assertProblem(self.call("GET", put), 404, "no such node")

    def test_a_guard_is_the_lock_of_a_session(self):
        session = self.call("POST", "/v1/sessions", {"ttl_ms": 20000})[2]
        mine = {"Clave_Session": session["secret"]}
        claim = self.call("POST", "/v1/claims", {"path": "/lock", "kind": "lock"}, **mine)[2]
        guard = {"Clave_Guard": f"/lock;token={claim['token']}"}
        self.assertEqual(self.call("POST", "/v1/znodes/guarded", b"x", **OCTETS, **guard)[0], 201)
        ops = {"ops": [{"op": "set", "path": "/guarded", "data": "y", "version": 0}]}
        self.assertEqual(self.call("POST", "/v1/multi", ops, **guard)[0], 200)
        other = self.call("POST", "/v1/claims", {"path": "/other", "kind": "write"}, **mine)[2]
        both = {"Clave_Guard": f"{guard['Clave_Guard']}, /other;token={other['token']}"}
        made = self.call("POST", "/v1/znodes/above/guarded?parents", b"x", **OCTETS, **both)
        self.assertEqual((made[0], made[2]["path"]), (201, "/above/guarded"))
        held = f"/v1/locks/lock?token={claim['token']}"
        self.assertTrue(self.call("GET", held)[2]["holds"])
        self.assertEqual(self.call("DELETE", f"/v1/claims/{claim['id']}", **mine)[0], 204)
        self.assertFalse(self.call("GET", held)[2]["holds"])
        self.assertProblem(self.call("DELETE", "/v1/znodes/above/guarded", **both), 410, "/lock")
        self.assertProblem(self.call("PUT", "/v1/znodes/guarded", b"z", **guard), 410)
        self.assertProblem(self.call("POST", "/v1/multi", ops, **guard), 410)
        self.assertEqual(self.call("GET", "/v1/znodes/guarded")[2], b"y")
        self.assertEqual(self.call("DELETE", f"/v1/sessions/{session['id']}", **mine)[0], 204)

    def test_the_contrib_gateway_at_its_own_paths(self):
        status, _, made = self.call("POST", "/sessions/v1?op=create&expire=30")
        self.assertEqual((status, len(made["id"])), (201, 36))
        where = f"/znodes/v1/?op=create&name=rest&ephemeral=true&session={made['id']}"
        status, _, node = self.call("POST", where, b"foo", **OCTETS)
        self.assertEqual((status, node["path"]), (201, "/rest"))
        self.assertEqual(node["uri"], f"http://127.0.0.1:{self.gate.port}/znodes/v1/")
        got = self.call("GET", "/znodes/v1/rest?dataformat=utf8")[2]
        self.assertEqual((got["dataUtf8"], got["version"], got["path"]), ("foo", 0, "/rest"))
        xml = self.call("GET", "/znodes/v1/?view=children", Accept="application/xml")[2]
        self.assertIn(b"<child>rest</child>", xml)
        self.assertEqual(self.call("HEAD", "/znodes/v1/rest", Accept="application/octet-stream")[0], 204)
        self.assertEqual(self.call("PUT", f"/sessions/v1/{made['id']}")[0], 200)
        self.assertEqual(self.call("DELETE", f"/sessions/v1/{made['id']}")[0], 204)
        status, _, fault = self.call("GET", "/znodes/v1/rest")
        self.assertEqual((status, fault["request"]), (404, "GET /znodes/v1/rest"))


class InAServer(Znodes):
    own = True


if __name__ == "__main__":
    unittest.main()
