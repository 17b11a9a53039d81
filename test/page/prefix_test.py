"""The page behind a proxy that serves the gate below a path of its own, and tells neither of them."""
import os
import sys
import unittest

from browser import Browser
from prefix_proxy import PrefixProxy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
from harness import ClaveServer, Running, clave, free_port  # noqa: E402

PREFIX = "/tools/clave"
SCREENS = {"locks": "/jobs/a", "locks/jobs/a": "sleep 1000", "deadlocks": "No deadlock", "elections": "/services/x", "elections/services/x": "0 behind the leader",
           "events": "granted", "sessions": "Session", "tree": "jobs", "tree/config": '"port": 7400', "server": "read-write"}


class Prefix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.server = ClaveServer(flags=["--http", f"127.0.0.1:{port}"]).start()
        cls.addClassCleanup(cls.server.stop)
        for verb, path, seconds in ("lock", "/jobs/a", "1000"), ("elect", "/services/x", "2000"):
            p = Running(verb, path, "--", "sleep", seconds, connect=cls.server.connect)
            cls.addClassCleanup(p.process.wait, 30)
            cls.addClassCleanup(p.process.terminate)
        clave("create", "-p", "/config", '{"port": 7400}', connect=cls.server.connect)
        cls.proxy = PrefixProxy(port, PREFIX)
        cls.addClassCleanup(cls.proxy.stop)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def tearDown(self):
        self.browser.blank()
        self.assertEqual(self.browser.complaints(), [])
        self.proxy.answered.clear()

    def test_every_screen_and_the_stream(self):
        b = self.browser
        b.open(f"{self.proxy.url}{PREFIX}/ui/")
        b.see("Live", ".foot")
        for route, seen in SCREENS.items():
            with self.subTest(route=route):
                b.go(route)
                b.see(seen, "main")
                self.assertEqual(b.driver.current_url, f"{self.proxy.url}{PREFIX}/ui/#/{route}")
        clave("create", "-p", "/config/app", connect=self.server.connect)
        # Sessions of the gate are the role admin's: 403 is the gate's own answer.
        strange = [a for a in self.proxy.answered if a[1] not in (200, 304, 403)]
        self.assertEqual(strange, [])
        self.assertIn((f"{PREFIX}/v1/events", 200), self.proxy.answered)

    def test_the_ways_to_the_page(self):
        for target in f"{PREFIX}/", f"{PREFIX}/ui":
            with self.subTest(target=target):
                self.browser.open(self.proxy.url + target)
                self.browser.see("Live", ".foot")
                self.assertEqual(self.browser.driver.current_url.split("#")[0], f"{self.proxy.url}{PREFIX}/ui/")

    def test_an_address_is_a_bookmark(self):
        b = self.browser
        b.open(f"{self.proxy.url}{PREFIX}/ui/#/locks/jobs/a")
        b.see("sleep 1000", "#queue")
        b.click(".crumbs a")
        b.see("/jobs/a", "#locks")


if __name__ == "__main__":
    unittest.main()
