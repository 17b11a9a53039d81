"""The history of `clave serve --http` over restarts: it comes from the logs of the server."""
import os
import signal
import time
import unittest

from gate_rig import Gate
from harness import PATIENCE, ApacheServer, clave, has_apache, scratch


class OverRestarts(unittest.TestCase):
    def setUp(self):
        token = "0123456789abcdef0123456789abcdef"
        tokens = scratch("tokens")
        with open(os.open(tokens, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(f"{token} admin name=ops\n")
        self.headers = {"Authorization": "Bearer " + token}
        self.gate = Gate(None, "--http-tokens", tokens).start()

    def tearDown(self):
        if self.gate.process.poll() is None:
            self.gate.stop()

    def restart(self, how):
        self.gate.stop(how)
        self.gate.start()

    def call(self, method, path, body=None, **headers):
        return self.gate.call(method, path, body, **headers, **self.headers)

    def session(self):
        status, _, made = self.call("POST", "/v1/sessions", {"ttl_ms": 40000})
        self.assertEqual(status, 201, made)
        return made

    def claim(self, session, path, kind="lock"):
        body = {"session": session["id"], "path": path, "kind": kind}
        status, _, claim = self.call("POST", "/v1/claims", body, Clave_Session=session["secret"])
        self.assertIn(status, (201, 202), claim)
        self.await_entry(lambda e: claim["id"] in e["place"]["node"])
        return claim

    def await_entry(self, wanted):
        """A node that is gone before the gate has read it is in the log only."""
        until = time.monotonic() + PATIENCE
        while not any(map(wanted, entries := self.history())):
            self.assertLess(time.monotonic(), until, entries)
            time.sleep(0.02)

    def end(self, session, claim=None):
        path = f"/v1/claims/{claim['id']}" if claim else f"/v1/sessions/{session['id']}"
        status, _, told = self.call("DELETE", path, Clave_Session=session["secret"])
        self.assertEqual(status, 204, told)

    def history(self, more=""):
        status, _, told = self.call("GET", "/v1/history?limit=1000" + more)
        self.assertEqual(status, 200, told)
        return told["entries"]

    def settled(self, count):
        """When the last of so many entries is there, and no cause is to be found out any more."""
        until = time.monotonic() + PATIENCE
        while len(entries := self.history()) < count or \
                any(e["cause"] == "unknown" for e in entries):
            self.assertLess(time.monotonic(), until, entries)
            time.sleep(0.02)
        return entries

    def steps(self, entries):
        return [(e["path"], e["what"], e["cause"], e["kind"], e["place"]["token"],
                 e["place"]["session"], e["place"]["node"]) for e in entries]

    def assertContinues(self, before, after):
        """What was told before a restart is told again, each entry once, and with larger numbers."""
        self.assertEqual(sorted(self.steps(before)), sorted(self.steps(after)))
        times = {(e["path"], e["what"], e["place"]["token"]): e for e in after}
        for e in before:
            same = times[e["path"], e["what"], e["place"]["token"]]
            if e["what"] == "queued":
                self.assertEqual((e["time"], e["zxid"]), (same["time"], same["zxid"]))
            self.assertGreaterEqual(int(same["zxid"]), int(e["place"]["token"]))
        self.assertLess(max(int(e["n"]) for e in before), min(int(e["n"]) for e in after))
        zxids = [int(e["zxid"]) for e in after]
        self.assertEqual(zxids, sorted(zxids))
        self.assertEqual(self.history(f"&since={before[-1]['n']}"), after)

    def play(self):
        """Everything that can happen to a place, but an expiry; one lock and one election are held at the end."""
        one, two, three = self.session(), self.session(), self.session()
        first = self.claim(one, "/jobs/a")
        self.claim(two, "/jobs/a")
        self.end(one, first)
        self.claim(two, "/leader", "election")
        self.claim(three, "/leader", "election")
        self.end(two)
        broken = self.claim(one, "/jobs/b")
        status, _, told = self.call("POST", "/v1/locks/jobs/b/break",
                                    {"token": broken["token"], "force": True})
        self.assertEqual(status, 200, told)
        return self.claim(three, "/jobs/c")

    def leader(self):
        status, _, told = self.call("GET", "/v1/elections/leader")
        self.assertEqual(status, 200, told)
        return told

    def test_what_happened_before_a_crash(self):
        held = self.play()
        before, led = self.settled(16), self.leader()
        self.assertEqual(len(led["terms"]), 2)
        since = self.call("GET", "/v1/locks/jobs/c")[2]["held_since"]
        self.restart(signal.SIGKILL)
        self.assertContinues(before, self.history())
        again = self.leader()
        for key in "token", "cause", "text":
            self.assertEqual([t[key] for t in led["terms"]], [t[key] for t in again["terms"]])
        self.assertEqual(again["since"], again["terms"][1]["from"])
        status, _, lock = self.call("GET", "/v1/locks/jobs/c")
        self.assertEqual((status, lock["held_since"]), (200, since))
        self.assertEqual(lock["holders"][0]["token"], held["token"])

    def test_what_happens_after_it_goes_on(self):
        self.end(self.session(), None)
        self.play()
        self.settled(16)
        self.restart(signal.SIGTERM)
        four = self.session()
        self.end(four, self.claim(four, "/jobs/d"))
        before = self.settled(19)
        self.restart(signal.SIGTERM)
        self.assertContinues(before, self.history())

    @unittest.skipUnless(has_apache(), "no Apache ZooKeeper here")
    def test_a_directory_of_apache(self):
        self.gate.stop()
        apache = ApacheServer()
        apache.start()
        for _ in range(2):
            self.assertEqual(clave("lock", "/nightly", "--", "true", connect=apache.connect).code, 0)
        apache.stop()
        self.gate.data = apache.data
        self.gate.start()
        told = [(e["what"], e["cause"]) for e in self.history("&path=/nightly")]
        self.assertEqual(told, 2 * [("queued", None), ("granted", None), ("ended", "closed")])


if __name__ == "__main__":
    unittest.main()
