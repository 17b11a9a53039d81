"""`clave history`: what a gate has seen of a lock."""
import json
import os
import re
import time
import unittest

from gate_rig import Rig
from gate_tls_rig import CA, OTHER, TlsGate
from harness import CLAVE, PATIENCE, Running, clave, free_port, scratch

TOKEN = "0123456789abcdef0123456789abcdef"


def tokens_file():
    path = scratch("tokens")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
        f.write(f"{TOKEN} admin name=ops\n")
    return path


class History(Rig):
    own = True
    path = "/jobs/a b&c"

    @classmethod
    def setUpClass(cls):
        cls.tokens = tokens_file()
        cls.socket = scratch("http.sock")
        cls.flags = ("--http-tokens", cls.tokens, "--http", f"unix:{cls.socket}")
        super().setUpClass()
        cls.url = f"http://{cls.gate.address}"
        with open(scratch("token"), "w", encoding="ascii") as f:
            f.write(TOKEN + "\n")
        cls.token = f.name
        # Held until the gate has seen it: what comes and goes sooner has no entry.
        seen = f"until '{CLAVE}' history '{cls.path}' | grep -q granted; do :; done"
        r = clave("--connect", f"127.0.0.1:{cls.gate.zk_port}", "lock", cls.path, "--", "sh", "-c", seen,
                  env={"CLAVE_HTTP": cls.url, "CLAVE_HTTP_TOKEN": TOKEN})
        until = time.monotonic() + PATIENCE
        while r.code or len(cls.history(cls.path).out.splitlines()) < 3:
            if r.code or time.monotonic() > until:
                raise AssertionError(r)

    @classmethod
    def history(cls, *more):
        return clave("history", "--http", cls.url, "--token-file", cls.token, *more)

    def entries(self, *more):
        r = self.history(*more)
        self.assertEqual((r.code, r.err), (0, ""), r)
        return r.out

    def test_who_broke_it_and_why(self):
        """As text for a terminal, whatever the reason has in it."""
        holder = Running("lock", "/broken/a", "--", "sleep", "1000", connect=f"127.0.0.1:{self.gate.zk_port}")
        self.addCleanup(holder.process.communicate)
        self.addCleanup(holder.process.terminate)
        until = time.monotonic() + PATIENCE
        while "granted" not in (out := self.history("/broken/a").out):
            self.assertLess(time.monotonic(), until, out)
        token = re.search(r"token (\d+)", out).group(1)
        status, _, told = self.gate.call("POST", "/v1/locks/broken/a/break", {"token": token, "reason": "its host\x1b[31m is gone", "force": True},
                                         Authorization="Bearer " + TOKEN)
        self.assertEqual(status, 200, told)
        while "broken" not in (out := self.history("/broken/a").out):
            self.assertLess(time.monotonic(), until, out)
        self.assertTrue(out.rstrip().endswith("  broken by ops: its host?[31m is gone"), out)

    def test_a_lock_has_a_line_for_each_thing_that_happened(self):
        lines = self.entries(self.path).splitlines()
        self.assertEqual([line.split()[1] for line in lines], ["queued", "granted", "ended"], lines)
        for line in lines:
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT[0-9:.]+Z  \w+ *  /jobs/a b&c  .* pid \d+.*  token \d+")
        self.assertTrue(lines[2].endswith(("  released", "  closed")), lines)
        self.assertEqual(self.entries("/jobs/none"), "")
        self.assertEqual(self.entries("-n", "1", self.path).splitlines(), lines[2:])
        self.assertEqual(self.entries("--since", "2000-01-01T00:00:00Z").splitlines()[:3], lines)

    def test_json_is_what_the_gate_answers(self):
        told = json.loads(self.entries("--json", self.path))
        self.assertEqual([e["what"] for e in told["entries"]], ["queued", "granted", "ended"])
        self.assertTrue(told["current"])

    def test_a_unix_socket_needs_no_token(self):
        r = clave("history", "--http", f"unix:{self.socket}", self.path)
        self.assertEqual((r.code, len(r.out.splitlines())), (0, 3), r)

    def test_the_environment_names_gate_and_token(self):
        r = clave("history", self.path, env={"CLAVE_HTTP": self.url + "/", "CLAVE_HTTP_TOKEN": TOKEN})
        self.assertEqual((r.code, len(r.out.splitlines())), (0, 3), r)

    def test_exit_codes(self):
        nobody = f"http://127.0.0.1:{free_port()}"
        for code, words, said in ((64, [], "--http"), (64, ["--http", "ftp://x"], "ftp://x"),
                                  (77, ["--http", self.url], "401"), (69, ["--http", nobody], nobody),
                                  (64, ["--http", self.url, "--token-file", "/no/such"], "/no/such"),
                                  (64, ["--http", self.url, "--token-file", self.token, "--since", "x"], "since"),
                                  (66, ["--http", self.url, "jobs"], "jobs")):
            r = clave("history", *words)
            self.assertEqual((r.code, r.out), (code, ""), r)
            self.assertTrue(re.match(r"clave: history", r.err) and said in r.err, r)


class OverTls(unittest.TestCase):
    def test_the_gates_certificate_is_verified(self):
        gate = TlsGate(None, "--http-tokens", tokens_file()).start()
        try:
            url = f"https://localhost:{gate.port}"
            for ca, code in ((CA, 0), (OTHER, 69), (None, 69)):
                more = ["--ca", ca.cert] if ca else []
                r = clave("history", "--http", url, *more, env={"CLAVE_HTTP_TOKEN": TOKEN})
                self.assertEqual((r.code, r.out), (code, ""), r)
        finally:
            gate.stop()


if __name__ == "__main__":
    unittest.main()
