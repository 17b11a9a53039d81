"""Every screen, light and dark, on a desk and on a phone: axe-core has nothing to say of it."""
import os
import unittest

import scenes
from browser import Browser
from fixture_gate import FixtureGate

SCREENS = {"locks": "/accounts/alice", "locks/accounts/alice": "Held ", "locks/accounts/alice?as=table&span=1h": "Ended by", "locks/nobody": "Nobody holds", "deadlocks": "Deadlock of 3",
           "elections": "indexer", "elections/services/scheduler": "Candidates", "sessions": "nightly backup", "tree": "Access list",
           "tree/config": "JSON", "events": "granted", "events/17": "Event 17", "server": "fsync"}
COLOURS = ["color-contrast", "link-in-text-block"]  # in the dark, nothing else is different


class Axe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.environ["AXE"]) as f:
            cls.axe = f.read()
        cls.gate = scenes.cluster(FixtureGate(), 16, deadlock=True)
        cls.empty = FixtureGate(role="read")
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def nothing_on(self, gate, screens):
        b = self.browser
        b.open(gate.url)
        b.see("Live")
        for width, dark, rules in (1440, False, None), (1440, True, COLOURS), (390, True, None):
            b.size(width, 900)
            b.dark(dark)
            for route, seen in screens.items():
                with self.subTest(route=route, width=width, dark=dark):
                    b.go(route)
                    b.see(seen, "main")
                    self.assertEqual(b.axe(self.axe, rules), [])

    def test_a_cluster_at_work(self):
        self.nothing_on(self.gate, SCREENS)

    def test_nothing_there_yet(self):
        self.nothing_on(self.empty, {"locks": "No lock is held", "deadlocks": "No deadlock", "elections": "No election",
                                     "sessions": "No session", "events": "Nothing yet", "server": "Ask the servers"})

    def test_dialogs(self):
        b = self.browser
        b.size(1440, 900)
        b.open(self.gate.url + "#/locks/accounts/alice")
        b.see("holding", "main")
        for button, dialog in (".actions .danger", "#break"), (".foot button:last-child", "#help"), (".foot button", "#token"):
            b.click(button)
            b.one(dialog)
            self.assertEqual(b.axe(self.axe), [])
            b.js("document.querySelector(arguments[0]).close()", dialog)

    def test_the_gate_gone(self):
        gate = scenes.cluster(FixtureGate(), 12, deadlock=True)
        b = self.browser
        b.open(gate.url)
        b.see("in all", "main")
        gate.stop()
        b.see("does not answer")
        for width, dark in (1440, False), (390, True):
            b.size(width, 900)
            b.dark(dark)
            self.assertEqual(b.axe(self.axe), [])


if __name__ == "__main__":
    unittest.main()
