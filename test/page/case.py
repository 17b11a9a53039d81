"""What the tests of the page share: one Chromium a file, however many classes; a fixture gate a test."""
import unittest

from browser import Browser
from fixture_gate import FixtureGate


class PageCase(unittest.TestCase):
    browser = None

    @classmethod
    def setUpClass(cls):
        if not PageCase.browser:
            PageCase.browser = Browser()
            unittest.addModuleCleanup(PageCase.close)

    @staticmethod
    def close():
        PageCase.browser.close()
        PageCase.browser = None

    def setUp(self):
        self.browser.size(1440, 900)
        self.browser.dark(False)

    def tearDown(self):
        self.browser.blank()
        self.assertEqual(self.browser.complaints(), [])

    def gate(self, fill=None, route="", live=True, **options):
        """A gate that the page is open on."""
        gate = FixtureGate(**options)
        self.addCleanup(gate.stop)
        if fill:
            fill(gate)
        self.browser.open(gate.url + (f"#/{route}" if route else ""))
        if live:
            self.browser.see("Live")
        return gate

    def rows(self, table="locks"):
        """The text of the main link of each row that exists."""
        return self.browser.js("return [...document.querySelectorAll(`#${arguments[0]} tbody a.main`)].map((a) => a.innerText)", table)
