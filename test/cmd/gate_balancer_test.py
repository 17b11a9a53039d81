"""Twenty clients of the npm package contend for one lock over two gates of one key, behind HAProxy and
nginx, which send each request to the next gate in turn: no hold is told as lost, none overlaps, tokens
grow.

    CLAVE_GRANTS=500 CLAVE=build/dev/clave test/cmd/gate_balancer_test.py

prints the time that a release takes, too (120 grants without CLAVE_GRANTS)."""
import json
import os
import shutil
import subprocess
import unittest

from gate_proxy_test import HaProxy, Nginx
from gate_rig import Gate
from harness import ClaveServer, scratch

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = 20
GRANTS = int(os.environ.get("CLAVE_GRANTS", "120"))
SECONDS = 60 + GRANTS // 2

HAPROXY = """
defaults
    mode http
    timeout connect 5s
    timeout client 120s
    timeout server 120s
frontend web
    bind :443 ssl
    default_backend gates
backend gates
    balance roundrobin
    server one {one}
    server two {two}
"""
NGINX = """
upstream gates {{ server {one}; server {two}; keepalive 64; }}
server {{
    listen 443 ssl;
    location / {{
        proxy_pass http://gates;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $host;
        proxy_read_timeout 120s;
    }}
}}
"""


@unittest.skipUnless(shutil.which("node"), "needs node")
class Balanced(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ClaveServer(["--max-connections", "0"]).start()
        key = scratch("key")
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as f:
            f.write(os.urandom(32).hex() + "\n")
        cls.gates = [Gate(cls.server.connect, "--http-key", key).start() for _ in range(2)]

    @classmethod
    def tearDownClass(cls):
        for gate in cls.gates:
            gate.stop()
        cls.server.stop()

    def contend(self, kind, text):
        proxy = kind(self.gates[0], text.format(one=self.gates[0].address, two=self.gates[1].address))
        self.addCleanup(proxy.stop)
        done = subprocess.run(
            ["node", f"{HERE}/balancer_clients.mjs", f"http://127.0.0.1:{proxy.port}", str(CLIENTS),
             str(GRANTS)], capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = json.loads(done.stdout)
        print(f"{kind.__name__}: {seen['grants']} grants, {len(seen['lost'])} told as lost, "
              f"{seen['overlaps']} overlaps; release p50 {seen['release_ms']['p50']:.1f} ms, "
              f"p99 {seen['release_ms']['p99']:.1f} ms", flush=True)
        self.assertEqual((seen["lost"], seen["overlaps"], seen["tokens_back"], seen["errors"]),
                         ([], 0, 0, []))
        self.assertGreaterEqual(seen["grants"], GRANTS)
        self.assertEqual(seen["clients"], CLIENTS)

    def test_haproxy(self):
        self.contend(HaProxy, HAPROXY)

    def test_nginx(self):
        self.contend(Nginx, NGINX)


if __name__ == "__main__":
    unittest.main()
