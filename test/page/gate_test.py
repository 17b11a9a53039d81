"""The page and the gate: one that asks for a token, one that goes and comes back, one stream for all tabs."""
import time
import unittest

import scenes
from browser import Keys
from case import PageCase
from fixture_gate import FixtureGate, lock


def one(gate):
    gate.locks["/jobs/a"] = lock("/jobs/a", 1, 20, [3])


class Token(PageCase):
    def test_a_gate_that_asks_for_a_token(self):
        gate = self.gate(one, live=False, token="right")
        b = self.browser
        b.one("#token-field").send_keys("wrong", Keys.ENTER)
        b.see("does not know this token")
        b.one("#token-field").send_keys("right", Keys.ENTER)
        b.wait(lambda: self.rows() == ["/jobs/a"])
        b.see("Live")
        b.wait(lambda: not b.all("dialog"))
        b.driver.refresh()
        b.wait(lambda: self.rows() == ["/jobs/a"])
        self.assertEqual(b.all("dialog"), [], "it is kept in the tab")
        self.assertNotIn("right", b.driver.current_url)
        gate.token = "another"
        b.one("#token-field").send_keys("another", Keys.ENTER)  # with its next question it is asked for
        b.wait(lambda: not b.all("dialog"))
        b.see("Live")

    def test_a_wrong_token_takes_nothing_away(self):
        """Of a gate that asks for none, too: what it does not know is not kept."""
        self.gate(one, knows=["right"])
        b = self.browser
        b.wait(lambda: self.rows() == ["/jobs/a"])
        b.click(".foot button")
        b.one("#token-field").send_keys("wrong", Keys.ENTER)
        b.see("does not know this token", "#token")
        b.keys(Keys.ESCAPE)
        b.wait(lambda: not b.all("dialog"))
        b.see("Live", ".foot")
        b.see("Enter a token", ".foot")
        self.assertEqual(self.rows(), ["/jobs/a"])

    def test_a_token_that_the_gate_has_forgotten(self):
        gate = self.gate(one, knows=["right"])
        b = self.browser
        b.click(".foot button")
        b.one("#token-field").send_keys("right", Keys.ENTER)
        b.see("Change token", ".foot")
        gate.knows = []
        b.driver.refresh()
        b.see("no longer accepts this tab's token", "#token")
        b.click("#token button[type=submit]")
        b.see("Live", ".foot")
        b.see("Enter a token", ".foot")
        b.wait(lambda: self.rows() == ["/jobs/a"])

    def test_what_the_role_does_not_allow_is_said(self):
        gate = self.gate(one, role="read", live=False)
        gate.refuse["/v1/sessions"] = (403, {"title": "Forbidden", "detail": "the role admin is needed."})
        b = self.browser
        b.see("read-only", ".foot")
        b.go("sessions")
        b.see("Without the HTTP sessions")
        b.see("the role admin is needed.")


class Gone(PageCase):
    def test_it_says_so_stands_still_and_comes_back_by_itself(self):
        gate = self.gate(one)
        b = self.browser
        b.wait(lambda: self.rows() == ["/jobs/a"])
        title = b.one("main h1").rect["y"]
        gate.stop()
        b.see("The gate does not answer.")
        b.see("No connection", ".foot")
        self.assertEqual(b.one("main h1").rect["y"], title, "nothing moves")
        self.assertEqual(self.rows(), ["/jobs/a"], "what was known stays")
        stood = b.text("#locks time")
        before = time.monotonic()
        b.wait(lambda: time.monotonic() > before + 1.2)  # ages are drawn every second
        self.assertEqual(b.text("#locks time"), stood)
        gate.epoch, gate.ring, gate.sent = "f2", [], 0  # another process
        gate.locks = {"/jobs/b": lock("/jobs/b", 3, 1)}
        gate.start()
        b.wait(lambda: self.rows() == ["/jobs/b"])
        b.see("Live", ".foot")
        b.see_not("does not answer")
        b.see("The gate answers again", "#said")
        gate.put_lock(lock("/jobs/c", 4, 1))
        b.wait(lambda: self.rows() == ["/jobs/b", "/jobs/c"])

    def test_a_gate_that_was_gone_at_first(self):
        b = self.browser
        gate = self.gate(one)
        gate.stop()
        b.see("does not answer")
        b.go("deadlocks")
        b.go("locks")
        b.see("Locks", "h1")
        b.see("does not answer")
        gate.start()
        b.wait(lambda: self.rows() == ["/jobs/a"])

    def test_what_happened_meanwhile_is_replayed(self):
        gate = self.gate(one)
        b = self.browser
        gate.put_lock(lock("/jobs/b", 2, 1))
        b.wait(lambda: len(self.rows()) == 2)
        gate.stop()
        b.see("does not answer")
        gate.put_lock(lock("/jobs/c", 3, 1))
        gate.hold_back.clear()  # nothing can be loaded: only the stream tells
        gate.start()
        b.wait(lambda: len(self.rows()) == 3)
        gate.hold_back.set()


class Fresh(PageCase):
    """What is shown is as old as the last answer says, whatever the connection seems to be."""

    def as_of(self):
        return self.browser.text(".foot .as-of")

    def test_silence_is_amber_after_three_seconds_and_ages_stand_still(self):
        """As of a server that is stopped: connections stand, and nothing is answered."""
        gate = self.gate(one)
        b = self.browser
        first = b.wait(self.as_of)
        self.assertRegex(first, r"^as of \d\d:\d\d:\d\d$")
        b.wait(lambda: self.as_of() not in ("", first), "it goes on with each answer")
        gate.hold_back.clear()
        b.one(".foot .link-state.silent")
        b.see("No answer", ".foot")
        stood, age = self.as_of(), b.text("#locks time")
        self.assertLess((clock(time.strftime("%H:%M:%S", time.gmtime())) - clock(stood)) % 86400, 30)
        b.see("has not answered for a while", "#banner")
        b.see(f"how things were at {stood[6:]}", "#banner")
        self.assertEqual((self.as_of(), b.text("#locks time")), (stood, age))
        gate.hold_back.set()
        b.one(".foot .link-state.live")
        b.see_not("has not answered", "#banner")

    def test_a_gate_whose_copy_is_old_is_not_fresh(self):
        """It answers at once, and its servers do not."""
        gate = self.gate(one)
        b = self.browser
        before = clock(b.wait(self.as_of))
        gate.figures.update(age_ms=3600000)
        b.one(".foot .link-state.silent")
        b.wait(lambda: 3500 < (before - clock(self.as_of())) % 86400 < 3700)

    def test_a_gate_that_is_gone_was_heard_of_before(self):
        gate = self.gate(one)
        b = self.browser
        gate.figures.update(age_ms=3600000)
        b.one(".foot .link-state.silent")
        gate.stop()
        b.see("The gate does not answer.")
        stood = self.as_of()  # before that, each answer was newer
        self.assertGreater((clock(time.strftime("%H:%M:%S", time.gmtime())) - clock(stood)) % 86400, 3500)
        b.see(f"how things were at {stood[6:]}", "#banner")


def clock(text):
    h, m, s = text[-8:].split(":")
    return int(h) * 3600 + int(m) * 60 + int(s)


class Streams(PageCase):
    def test_two_tabs_have_one_stream_which_ends_with_them(self):
        gate = FixtureGate()
        self.addCleanup(gate.stop)
        one(gate)
        driver = self.browser.driver
        window, tabs = driver.current_window_handle, []
        for _ in range(2):
            driver.switch_to.new_window("tab")
            tabs.append(driver.current_window_handle)
            driver.get(gate.url)
            self.browser.wait(lambda: self.rows() == ["/jobs/a"])
            self.browser.see("as of")
        self.assertEqual(len(gate.streams), 1)
        gate.put_lock(lock("/jobs/b", 2, 1))
        for tab in reversed(tabs):
            driver.switch_to.window(tab)
            self.browser.wait(lambda: len(self.rows()) == 2)
            driver.close()
        driver.switch_to.window(window)
        self.browser.wait(lambda: not gate.streams, "no stream")

    def test_a_browser_without_shared_workers(self):
        b = self.browser
        script = b.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.SharedWorker"})
        try:
            gate = self.gate(one)
            gate.put_lock(lock("/jobs/b", 2, 1))
            b.wait(lambda: len(self.rows()) == 2)
        finally:
            b.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)

    def test_an_event_during_the_load_is_newer_than_the_load(self):
        gate = self.gate(one, live=False)
        b = self.browser
        b.wait(self.rows)
        gate.hold_back.clear()
        gate.publish("reset", {})
        b.wait(lambda: gate.held > 0)
        gate.put_lock(lock("/jobs/new", 3, 1))
        b.wait(lambda: "/jobs/new" in self.rows())
        gate.hold_back.set()  # now the answer of before arrives
        gate.put_lock(lock("/jobs/last", 4, 1))
        b.wait(lambda: "/jobs/last" in self.rows())
        self.assertIn("/jobs/new", self.rows())


class Addresses(PageCase):
    def test_back_finds_the_list_as_it_was_left(self):
        self.gate(lambda g: scenes.some_locks(g, 500))
        b = self.browser
        b.see("500 in all")
        for way in "back", "up":
            with self.subTest(way=way):
                b.js("scrollTo(0, 9000)")
                b.wait(lambda: b.js("return Number(document.querySelector('#locks tr.go').getAttribute('aria-rowindex'))") > 100)
                path = b.js("const row = [...document.querySelectorAll('#locks tr.go')].find((r) => r.getBoundingClientRect().top > 300);"
                            " row.querySelector('a.main').click(); return row.getAttribute('data-key')")
                b.see(path, "h1")
                self.assertEqual(b.js("return scrollY"), 0)
                b.js("history.back()") if way == "back" else b.keys("u")
                b.wait(lambda p=path: b.focused().strip() == p, "the focus is on the row that was opened")
                self.assertEqual(b.js("return scrollY"), 9000)
                b.js("document.activeElement.blur()")
        b.click(".nav a")
        b.go("deadlocks")
        b.see("No deadlock")
        b.click(".nav a")
        b.wait(lambda: b.focused() == "Locks", "who comes anew begins at the top")
        self.assertEqual(b.js("return scrollY"), 0)

    def test_an_address_that_names_nothing_says_so(self):
        self.gate(one)
        b = self.browser
        for route in "nothing", "deadlocks/x", "constructor", "lockss/jobs/a":
            b.go(route)
            b.see(f"There is no page #/{route}", "main")
            self.assertIn("No such page", b.driver.title)
            self.assertEqual(b.all(".nav a[aria-current]"), [] if route != "deadlocks/x" else b.all(".nav a[aria-current]"))
        b.click("main a.button")
        b.wait(lambda: self.rows() == ["/jobs/a"])
        for route in "locks/jobs/a/", "locks//jobs//a", "Locks/jobs/a":
            b.go(route)
            b.wait(lambda: b.text("h1") == "/jobs/a", route)
            b.wait(lambda: b.all("#queue tbody tr.x, #queue .who"))

    def test_a_tab_that_nobody_looks_at_has_the_alarm_in_its_title(self):
        gate = self.gate(one)
        b = self.browser
        b.js("Object.defineProperty(document, 'visibilityState', {get: () => 'hidden'}); window.requestAnimationFrame = () => 0")
        scenes.deadlock_of(gate, ["/d/a", "/d/b"])
        gate.publish("deadlock", gate.deadlocks[0])
        b.wait(lambda: b.driver.title.startswith("(1) "))


class Keyboard(PageCase):
    def three(self, gate):
        for i, path in enumerate(("/x1", "/x2", "/x3")):
            gate.locks[path] = lock(path, i, 10, [100 - i])

    def test_all_of_it_without_a_mouse(self):
        self.gate(self.three)
        b = self.browser
        b.wait(lambda: self.rows() == ["/x1", "/x2", "/x3"])
        b.keys("j")
        b.wait(lambda: b.focused().strip() == "/x1")
        outline = b.js("return getComputedStyle(document.activeElement.closest('tr')).outlineStyle")
        self.assertEqual(outline, "solid", "the focus is seen")
        b.keys("j")
        b.wait(lambda: b.focused().strip() == "/x2")
        b.keys("k", Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        b.wait(lambda: b.focused().strip() == "/x3")
        b.keys(Keys.ENTER)
        b.see("/x3", "h1")
        b.wait(lambda: b.focused().strip() == "/x3", "the heading has the focus")
        b.keys("u")
        b.see("Locks", "h1")
        for i, name in enumerate(("Locks", "Deadlocks", "Elections", "Events", "Sessions", "Tree", "Server"), 1):
            b.keys(str(i))
            b.see(name, "h1")
        b.keys("1")
        b.wait(lambda: len(self.rows()) == 3)
        b.keys("/")
        b.wait(lambda: b.focused() == "filter")
        b.keys("x2")
        b.wait(lambda: self.rows() == ["/x2"])
        b.keys(Keys.ESCAPE)
        b.wait(lambda: len(self.rows()) == 3)

    def test_escape_leaves_the_innermost_thing(self):
        self.gate(self.three)
        b = self.browser
        b.wait(self.rows)
        b.click(".foot button:last-child")
        b.one("#help")
        b.keys(Keys.ESCAPE)
        b.wait(lambda: not b.all("#help"))
        b.keys("j")
        b.wait(lambda: b.focused().strip() == "/x1")
        b.keys(Keys.ENTER)
        b.see("/x1", "h1")
        b.click("#queue .actions .danger")
        b.one("#break")
        b.keys(Keys.ESCAPE)
        b.wait(lambda: not b.all("#break"))
        b.see("/x1", "h1")
        b.keys(Keys.ESCAPE)
        b.see("Locks", "h1")
        b.size(390, 844)
        b.click(".nav .more")
        b.one(".rest.open")
        b.keys(Keys.ESCAPE)
        b.wait(lambda: not b.all(".rest.open"))

    def test_escape_is_no_way_around_a_token(self):
        gate = self.gate(one, live=False, token="right")
        b = self.browser
        b.one("#token-field")
        b.keys(Keys.ESCAPE, Keys.ESCAPE, Keys.ESCAPE)
        b.one("#token-field").send_keys("right", Keys.ENTER)
        b.wait(lambda: self.rows() == ["/jobs/a"])
        self.assertTrue(gate.got)

    def test_help_and_shortcuts_off(self):
        self.gate(self.three)
        b = self.browser
        b.wait(self.rows)
        b.keys("?")
        b.see("the next and the previous row", "#help")
        b.click("#help input[name=on]")
        b.click("#help button[type=submit]")
        b.wait(lambda: not b.all("dialog"))
        b.keys("3", "?")
        b.see("Locks", "h1")
        self.assertEqual(b.all("dialog"), [])
        b.js("localStorage.clear()")

    def test_the_first_tab_skips_to_the_content(self):
        self.gate(self.three)
        b = self.browser
        b.wait(self.rows)
        b.keys(Keys.TAB)
        b.wait(lambda: "Skip" in b.focused())
        b.keys(Keys.ENTER)
        b.wait(lambda: b.js("return document.activeElement.id") == "main")
        self.assertEqual(len(self.rows()), 3)


if __name__ == "__main__":
    unittest.main()
