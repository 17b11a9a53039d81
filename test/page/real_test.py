"""The page on a real gate, `clave serve --http`: what programs do is seen, and how the gate restarts."""
import json
import os
import signal
import sys
import time
import unittest
import urllib.request

from browser import Browser, Keys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
from harness import CLAVE, ClaveServer, Running, clave, free_port, scratch  # noqa: E402

LIVE_MS = 200
ATTEMPTS = 6


class Real(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        port = free_port()
        self.server = ClaveServer(flags=["--http", f"127.0.0.1:{port}"]).start()
        self.addCleanup(lambda: self.server.process.poll() is None and self.server.stop())
        self.url = f"http://127.0.0.1:{port}/ui/"

    def tearDown(self):
        self.browser.driver.get("about:blank")
        self.assertEqual(self.browser.complaints(), [])

    def open(self, route=""):
        self.browser.open(self.url + (f"#/{route}" if route else ""))
        self.browser.see("Live")

    def run_verb(self, *words):
        p = Running(*words, connect=self.server.connect)
        self.addCleanup(p.process.wait, 30)
        self.addCleanup(p.process.terminate)
        return p.process

    def locks(self):
        return self.browser.js("return [...document.querySelectorAll('#locks tbody a.main')].map((a) => a.innerText)")

    def test_a_lock_its_waiter_and_the_hand_over(self):
        b = self.browser
        self.open()
        b.see("No lock is held")
        b.see(f"clave lock -c {self.server.connect} /demo/first", "pre")
        holder = self.run_verb("lock", "/jobs/a", "--", "sleep", "1000")
        b.wait(lambda: self.locks() == ["/jobs/a"])
        b.see(f"pid {holder.pid}", "#locks")
        waiter = self.run_verb("lock", "/jobs/a", "--", "sleep", "2000")
        b.see(f"pid {waiter.pid}", "#locks")
        b.click("#locks a.main")
        b.wait(lambda: b.texts("#queue tbody td:nth-child(2)") == ["holder", "waiting"])
        b.see("sleep 2000", "#queue")
        b.see("granted", "#past")
        holder.terminate()
        b.wait(lambda: b.texts("#queue tbody td:nth-child(2)") == ["holder"])
        b.see("sleep 2000", "#queue")
        b.see("ended", "#past")
        waiter.terminate()
        b.see("Nobody holds this lock")
        b.wait(lambda: b.texts("#past td:nth-child(4)").count("session closed") == 2, "how both ended")

    def test_a_request_to_release_leaves_a_trace(self):
        b = self.browser
        # It takes a moment to end: a node that is gone before the gate has read it does not show what it said.
        self.run_verb("lock", "--revocable", "/jobs/r", "--", "sh", "-c", "trap 'sleep 2; exit' TERM; while :; do sleep 0.1; done")
        self.open("locks/jobs/r")
        b.click("#queue .actions .button")
        b.one("#revoke input").send_keys("maintenance", Keys.ENTER)
        b.see("Nobody holds this lock")
        self.assertNotIn("asked", "".join(b.texts("#past .who + .sub")), "of what happened, only the column What")
        happened = "queued, granted, asked to release, ended"  # the first two in one row, or, over the end of a second, in two
        b.wait(lambda: ", ".join(reversed(b.texts("#past td:nth-child(2)"))) == happened, happened)
        self.assertEqual(b.text("#past tr:nth-child(2) .who"), b.text("#past tr:nth-child(3) .who"), "who was asked")
        b.see("by loopback: maintenance", "#past")

    def test_it_is_live(self):
        """The best of some attempts: a machine that is busy with other things proves nothing."""
        self.open()
        b = self.browser
        b.see("No lock is held")
        b.js("""window.seen = {};
            new MutationObserver(() => { const at = performance.timeOrigin + performance.now();
                for (const a of document.querySelectorAll('#locks a.main')) window.seen[a.innerText] ??= at; })
                .observe(document.body, {childList: true, subtree: true, characterData: true})""")
        took = []
        for i in range(ATTEMPTS):
            clave("create", "-p", f"/live/{i}", connect=self.server.connect)
            path = f"/live/{i}/_c_00000000-0000-0000-0000-000000000000-lock-"
            clave("create", "--sequential", path, connect=self.server.connect)
            end = time.time()  # the node was there before
            b.wait(lambda p=f"/live/{i}": p in self.locks())
            took.append(b.js("return window.seen[arguments[0]]", f"/live/{i}") - end * 1000)
        self.assertLess(min(took), LIVE_MS, took)

    def test_a_deadlock(self):
        self.open("deadlocks")
        b = self.browser
        b.see("No deadlock")
        connect = ["--connect", self.server.connect]
        both = scratch("both-hold")
        for one, two in ("/d/a", "/d/b"), ("/d/b", "/d/a"):
            self.run_verb("lock", one, "--", "sh", "-c", 'until [ -e "$0" ]; do sleep 0.02; done; exec "$@"', both,
                          CLAVE, "lock", *connect, two, "--", "true")
        b.wait(lambda: b.text(".nav .count") == "2")
        with open(both, "w"):
            pass
        b.see("Deadlock of 2")
        self.assertEqual(len(b.all(".waitgraph .owner")), 2, "a clave lock and what it runs are one")
        self.assertEqual(len(b.all(".waitgraph .lock")), 2)
        b.see("which waits for", ".members")

    def test_an_election(self):
        self.open("elections")
        b = self.browser
        first = self.run_verb("elect", "/services/x", "--", "sleep", "1000")
        b.see("/services/x", "#elections")
        b.see(f":{first.pid}", "#elections")
        b.wait(lambda: len(b.all("#elections .term.now")) == 1, "its term, from events alone")
        b.driver.refresh()
        b.wait(lambda: len(b.all("#elections .term.now")) == 1, "its term")
        second = self.run_verb("elect", "/services/x", "--", "sleep", "2000")
        b.see("1 candidate", "#elections")
        b.click("#elections a.main")
        b.wait(lambda: len(b.all("#candidates tbody tr")) == 2)
        self.assertEqual(b.texts("#candidates tbody td:nth-child(6)"), ["clave", "clave"])
        first.terminate()
        b.see(f":{second.pid}", "#candidates tbody tr:first-child")
        b.wait(lambda: len(b.all("#terms tbody tr")) == 2)

    def test_the_tree(self):
        clave("create", "-p", "/config/app", '{"port": 7400}', connect=self.server.connect)
        self.open("tree/config")
        b = self.browser
        b.click("#children a.main")
        b.see('"port": 7400', ".node-data")
        b.see("world:anyone")

    def test_what_a_user_without_a_token_may(self):
        self.open("sessions")
        b = self.browser
        b.see("Not for this role")
        b.see("lock", ".foot")

    def test_a_token_and_the_sessions_of_the_gate(self):
        port, tokens = free_port(), scratch("tokens")
        with open(tokens, "w") as f:
            f.write("0123456789abcdef0123456789abcdef admin name=ops\n")
        os.chmod(tokens, 0o600)
        server = ClaveServer(flags=["--http", f"127.0.0.1:{port}", "--http-tokens", tokens]).start()
        self.addCleanup(server.stop)
        b = self.browser
        b.open(f"http://127.0.0.1:{port}/ui/#/sessions")
        b.one("#token-field").send_keys("0123456789abcdef0123456789abcdeX", Keys.ENTER)
        b.see("does not know this token")
        b.one("#token-field").send_keys("0123456789abcdef0123456789abcdef", Keys.ENTER)
        b.see("Live", ".foot")
        b.see("admin ops", ".foot")
        b.see("No session")
        made = urllib.request.Request(f"http://127.0.0.1:{port}/v1/sessions", b'{"ttl_ms": 15000, "name": "nightly"}', {
            "Content-Type": "application/json", "Authorization": "Bearer 0123456789abcdef0123456789abcdef"})
        with urllib.request.urlopen(made, timeout=30) as answer:
            session = json.load(answer)
        b.see("nightly", "#sessions")
        b.see(hex(int(session["id"])), "#sessions")
        holder = Running("lock", "/jobs/stuck", "--", "sleep", "1000", connect=server.connect)
        self.addCleanup(holder.process.wait, 30)
        b.go("locks/jobs/stuck")
        b.click("#queue .actions .danger")
        b.one("#break input[name=reason]").send_keys("its machine is gone")
        b.click("#break input[name=confirmed]")
        b.click("#break button[type=submit]")
        b.see("Nobody holds this lock")
        b.see("broken by ops: its machine is gone", "#past")

    def test_a_server_that_is_stopped_is_not_green(self):
        """Its connections stand; nothing is answered."""
        self.open()
        b = self.browser
        b.see("as of", ".foot")
        self.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.process.send_signal, signal.SIGCONT)
        b.one(".foot .link-state.silent")
        stood = b.text(".foot .as-of")
        b.see(f"how things were at {stood[6:]}", "#banner")
        self.server.process.send_signal(signal.SIGCONT)
        b.one(".foot .link-state.live")

    def test_a_restart(self):
        self.open()
        b = self.browser
        b.see("No lock is held")
        self.server.stop()
        b.see("The gate does not answer.")
        self.server.start()
        b.see("Live", ".foot")
        self.run_verb("lock", "/jobs/after", "--", "sleep", "1000")
        b.wait(lambda: self.locks() == ["/jobs/after"])


if __name__ == "__main__":
    unittest.main()
