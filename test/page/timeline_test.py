"""Who held a lock when: on its own screen along time and as a table, in the list as the last hour."""
import time
import unittest

import scenes
from case import PageCase
from fixture_gate import lock, place, rfc3339
from scenes import remember, stay

PATH = "/jobs/a"
CAUSES = ("released", "expired", "closed", "broken", "unknown")


def two_in_turns(gate):
    """1 held 300 s of the last 20 minutes, 2 waited 100 s for it and holds now, 3 waits; all since an hour ago."""
    gate.began = time.time() - 3600
    now, waits = place(2, since=700), place(3, "waiting", 60)
    remember(gate, stay(PATH, 1, 900, 900, 600, "expired") + stay(PATH, now, 700, 600) + stay(PATH, waits, 60, None))
    gate.locks[PATH] = {**lock(PATH), "holders": [now], "waiters": [waits], "nholders": 1, "nwaiters": 1, "held_since": rfc3339(time.time() - 600)}


class OfALock(PageCase):
    def bars(self, kind):
        return self.browser.js("return [...document.querySelectorAll(`.track i.${arguments[0]}`)].map((e) => [e.title, parseFloat(e.style.left), parseFloat(e.style.width)])", kind)

    def test_rows_bars_and_why_each_ended(self):
        self.gate(two_in_turns, route="locks/jobs/a?span=1h")
        b = self.browser
        b.see("2 holds by 2 clients", "main")
        b.see("Held 25 % of the time", "main")
        names = [t.split(" ")[0] for t in b.texts(".timeline .name")]
        self.assertEqual(names, [place(i)["host"] for i in (2, 3, 1)], "who is there now first, as in the queue")
        self.assertEqual([t for t, _, _ in self.bars("wait")][0].split(" from")[0], "waited")
        for (title, left, width), (at, long) in zip(self.bars("hold"), ((50 / 60, 10 / 60), (45 / 60, 5 / 60))):
            self.assertAlmostEqual(left, at * 100, delta=1, msg=title)
            self.assertAlmostEqual(width, long * 100, delta=1, msg=title)
        self.assertEqual(b.texts(".track .mark"), ["✕"])
        self.assertEqual(b.one(".track .mark").get_attribute("title"), "session expired")
        self.assertIn("session expired", b.text(".legend"))
        self.assertIn("the last 1 h", b.text("#held-title + .note"))
        self.assertIn("Held 25 % of the time, 2 holds by 2 clients", b.one(".timeline").get_attribute("aria-label"))

    def test_it_is_read_without_colour(self):
        """What waits is thin and hatched, what holds is thick; each cause has a mark of its own."""
        def fill(gate):
            two_in_turns(gate)
            remember(gate, [e for i, cause in enumerate(CAUSES) for e in stay(PATH, 40 + i, 3000 - 300 * i, 3000 - 300 * i, 2900 - 300 * i, cause)])
        self.gate(fill, route="locks/jobs/a?span=1h")
        b = self.browser
        b.wait(lambda: len(b.all(".track .mark")) == 6)
        marks = {e.get_attribute("title"): e.text for e in b.all(".track .mark")}
        self.assertEqual(len(set(marks.values())), 5, marks)
        height = "return document.querySelector(arguments[0]).getBoundingClientRect().height"
        self.assertGreater(b.js(height, ".track .hold"), 2 * b.js(height, ".track .wait"))
        self.assertIn("repeating-linear-gradient", b.js("return getComputedStyle(document.querySelector('.track .wait')).backgroundImage"))

    def test_who_broke_it_and_why_is_told_at_its_mark(self):
        def fill(gate):
            gate.began = time.time() - 3600
            entries = stay(PATH, 1, 900, 900, 600, "broken")
            entries[-1]["deed"] = {"by": "ann", "reason": "its host is gone"}
            remember(gate, entries)
        self.gate(fill, route="locks/jobs/a?span=1h")
        b = self.browser
        self.assertEqual(b.one(".track .mark").get_attribute("title"), "broken by ann: its host is gone")
        b.go("locks/jobs/a?span=1h&as=table")
        b.see("broken by ann: its host is gone", "#stays")

    def test_a_job_that_runs_again_and_again_is_one_row(self):
        """Each time another process; two of them at a time are two rows."""
        def fill(gate):
            gate.began = time.time() - 3600
            job = {"host": "cron-1", "name": None, "command": "./nightly"}
            remember(gate, [e for i in range(5) for e in stay(PATH, place(i, pid=100 + i, **job), 1000 - 100 * i, 1000 - 100 * i, 950 - 100 * i)]
                     + stay(PATH, place(9, "waiting", pid=300, **job), 970, None, 960, "closed"))
        self.gate(fill, route="locks/jobs/a")
        b = self.browser
        b.wait(lambda: b.texts(".timeline .name") == ["cron-1 · ./nightly", "cron-1 pid 300 · ./nightly"])
        self.assertEqual(len(self.bars("hold")), 5)

    def test_the_same_as_a_table(self):
        self.gate(two_in_turns, route="locks/jobs/a")
        b = self.browser
        b.see("Who held it when")
        b.js("[...document.querySelectorAll('.choice button')].find((e) => e.innerText === 'Table').click()")
        b.one("#stays")
        self.assertTrue(b.driver.current_url.endswith("#/locks/jobs/a?as=table"))
        rows = b.texts("#stays tbody tr")
        self.assertEqual(len(rows), 3)
        self.assertIn("waits", rows[0])
        self.assertRegex(rows[1], r"1 m 40 s[\s\S]+10 m \d\d s[\s\S]+holds")
        self.assertRegex(rows[2], r"0 s[\s\S]+5 m 00 s[\s\S]+session expired")
        b.go("locks/jobs/a?as=table&span=1d")
        b.see(time.strftime("%Y-%m-%d", time.gmtime()), "#stays")
        b.size(390, 844)
        b.see("ended: session expired", "#stays")

    def test_what_was_held_when_the_history_began_is_drawn_as_that(self):
        def fill(gate):
            gate.began = time.time() - 120
            gate.locks[PATH] = lock(PATH, 1, 300)
            remember(gate, stay(PATH, 7, 60, None, 30, "closed"))
            gate.began = time.time() - 120
        self.gate(fill, route="locks/jobs/a?span=10m")
        b = self.browser
        b.see("not known: before", ".legend")
        (title, left, width), = self.bars("maybe")
        self.assertIn("already when the history began", title)
        self.assertAlmostEqual(left, 50, delta=1)
        self.assertAlmostEqual(width, 30, delta=1)
        (_, left, _), = self.bars("hold")
        self.assertAlmostEqual(left, 80, delta=1)
        self.assertEqual({round(w) for _, _, w in self.bars("dark")}, {80})
        b.go("locks/jobs/a?as=table")
        b.see("not known", "#stays")

    def test_whether_a_reader_of_before_held_is_not_known(self):
        def fill(gate):
            gate.began = time.time() - 100
            remember(gate, stay(PATH, place(1, "reader"), None, None, 40))
            gate.began = time.time() - 100
        self.gate(fill, route="locks/jobs/a?span=10m")
        b = self.browser
        b.see("0 holds by 0 clients", "main")
        (title, _, width), = self.bars("maybe")
        self.assertTrue(title.startswith("held, or waited to read since before the history began"), title)
        self.assertAlmostEqual(width, 10, delta=1)
        self.assertEqual(self.bars("hold") + self.bars("wait"), [])

    def test_it_is_live_and_asks_for_no_more_than_is_new(self):
        gate = self.gate(two_in_turns, route="locks/jobs/a?span=1h")
        b = self.browser
        b.wait(lambda: len(self.bars("hold")) == 2)
        b.wait(lambda: sum(t.startswith("/v1/history") for t in gate.got) == 2, "again when the stream has begun")
        one, = gate.locks[PATH]["holders"]
        follows = gate.locks[PATH]["waiters"][0]
        for what, cause, p in ("ended", "released", one), ("granted", None, follows):
            gate.log({"zxid": None, "time": rfc3339(time.time()), "path": PATH, "kind": "lock", "what": what, "cause": cause, "place": p})
        gate.put_lock({**lock(PATH), "holders": [follows], "waiters": [], "nwaiters": 0})
        b.wait(lambda: len(self.bars("hold")) == 3)
        b.wait(lambda: sorted(b.texts(".track .mark")) == ["✓", "✕"])
        self.assertIn("since=", [t for t in gate.got if t.startswith("/v1/history")][-1])

    def test_a_long_history_is_bounded(self):
        def fill(gate):
            gate.locks[PATH] = lock(PATH, 1, 2)
            remember(gate, [e for i in range(1500) for e in stay(PATH, 100 + i % 40, 3100 - 2 * i, 3100 - 2 * i, 3099 - 2 * i)])
        gate = self.gate(fill, route="locks/jobs/a?span=1h")
        b = self.browser
        b.see("300 events at most", "main")
        b.see("more rows are in the table only", "main")
        self.assertEqual(len(b.all(".timeline .name")), 12)
        self.assertLess(len(b.all(".track > *")), 700)
        self.assertTrue(all("limit=300" in t for t in gate.got if t.startswith("/v1/history?path=")))
        b.see("not known: before", ".legend")

    def test_the_place_that_waits_for_a_permit_becomes_its_lease(self):
        def fill(gate):
            gate.began = time.time() - 3600
            waits, holds = place(1, "waiting", node="lock-1"), place(1, "lease", node="lease-1")
            remember(gate, stay(PATH, waits, 100, None) + [dict(e, place=holds) for e in stay(PATH, holds, None, 60, 20)])
        self.gate(fill, route="locks/jobs/a?as=table")
        b = self.browser
        b.wait(lambda: len(b.all("#stays tbody tr")) == 1)
        self.assertRegex(b.text("#stays tbody tr"), r"40 s[\s\S]+40 s[\s\S]+released")


class OfAllLocks(PageCase):
    def hour(self, path):
        return self.browser.one(f"tr[data-key='{path}'] .hour[role=img]").get_attribute("aria-label")

    def test_the_last_hour_of_each(self):
        def fill(gate):
            two_in_turns(gate)
            gate.locks["/jobs/b"] = lock("/jobs/b", 9, 5)
        self.gate(fill)
        b = self.browser
        b.wait(lambda: self.rows() and b.all(".hour .hold"))
        self.assertRegex(self.hour(PATH), r"^In the last hour: held for 15 m 0\d s, free for 4[45] m \d\d s, at most 1 client waited$")
        self.assertRegex(self.hour("/jobs/b"), r"held for \d s, free for 59 m \d\d s, nobody waited$")
        self.assertEqual(len(b.all(f"tr[data-key='{PATH}'] .hour .hold")), 2, "a gap at the hand-over")
        b.size(390, 844)
        self.assertTrue(b.one(".hour").is_displayed())

    def test_of_a_short_history_no_more_is_said_than_is_known(self):
        def fill(gate):
            gate.began = time.time() - 600
            gate.locks[PATH] = lock(PATH, 1, 3000)
        self.gate(fill)
        b = self.browser
        b.wait(lambda: b.all(".hour .dark"))
        self.assertRegex(self.hour(PATH), r"^In the last 10 m \d\d s: held for 10 m \d\d s, free for 0 s")
        self.assertAlmostEqual(float(b.js("return parseFloat(document.querySelector('.hour .dark').style.width)")), 83.3, delta=1)

    def test_5000_locks_with_a_history_draw_no_more_than_is_seen(self):
        self.gate(lambda g: scenes.cluster(g, 5000))
        b = self.browser
        b.see("in all", "main")
        b.wait(lambda: b.all(".hour .hold"))
        self.assertLess(len(b.all(".hour")), 60)


if __name__ == "__main__":
    unittest.main()
