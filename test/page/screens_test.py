"""Deadlocks, elections, sessions, the tree, events and the server: what each screen shows and follows."""
import re
import time
import unittest

import scenes
from browser import Keys
from case import PageCase
from fixture_gate import lock, place, rfc3339


class Deadlocks(PageCase):
    def test_the_cycle_is_drawn_and_told(self):
        gate = self.gate(route="deadlocks")
        b = self.browser
        b.see("No deadlock")
        scenes.deadlock_of(gate, ["/accounts/alice", "/accounts/bob"])
        for one in list(gate.locks.values()):
            gate.put_lock(one)
        gate.publish("deadlock", gate.deadlocks[0])
        b.see("Deadlock of 2")
        self.assertEqual(len(b.all(".waitgraph .owner")), 2)
        self.assertEqual(len(b.all(".waitgraph .lock")), 2)
        self.assertEqual(len(b.all(".waitgraph .edge")), 4)
        red = b.js("return getComputedStyle(document.querySelector('.waitgraph .edge')).stroke")
        self.assertEqual(red, "rgb(179, 38, 30)")
        self.assertIn("waits for /accounts/", b.one(".waitgraph").get_attribute("aria-label"))
        b.see("+ 3 wait", ".waitgraph")
        self.assertEqual(b.text(".nav .alarm"), "1")
        self.assertIn("(1) Deadlocks", b.driver.title)
        b.see("1 deadlock.", "#said")
        gate.deadlocks.clear()
        gate.drop_lock("/accounts/alice")
        b.see("No deadlock", "main")
        self.assertEqual(b.all(".nav .alarm"), [])

    def test_it_can_be_ended_where_it_is_shown(self):
        gate = self.gate(lambda g: scenes.deadlock_of(g, ["/accounts/alice", "/accounts/bob"]), route="deadlocks")
        b = self.browser
        holder = gate.locks["/accounts/alice"]["holders"][0]
        b.wait(lambda: len(b.all(".member")) == 2)
        member, = [e for e in b.all(".member") if "holds\n/accounts/alice" in e.text or "holds /accounts/alice" in e.text]
        self.assertIn(f"{holder['host']} pid {holder['pid']}", member.text)
        self.assertIn("/accounts/bob", member.text)
        self.assertIn(f"clave locks break -c zk1:2181,zk2:2181,zk3:2181 --force /accounts/alice {holder['node']}", [e.get_attribute("title") for e in b.all(".member code")])
        for n, dialog, path in (0, "#revoke", "revoke"), (1, "#break", "break"):
            member.find_elements("css selector", ".actions button")[n].click()
            b.see("/accounts/alice", f"{dialog} .facts")
            b.one(f"{dialog} input[name=reason]").send_keys("it hangs")
            if n:
                b.click(f"{dialog} input[name=confirmed]")
            b.click(f"{dialog} button[type=submit]")
            b.wait(lambda n=n: len(gate.asked) == n + 1)
            self.assertEqual(gate.asked[n][1], f"/v1/locks/accounts/alice/{path}")
            self.assertEqual(gate.asked[n][2]["node"], holder["node"])
            b.wait(lambda d=dialog: not b.all(d))

    def test_who_may_not_end_it_has_the_command(self):
        self.gate(lambda g: scenes.deadlock_of(g, ["/accounts/alice", "/accounts/bob"]), route="deadlocks", role="read")
        b = self.browser
        b.wait(lambda: len(b.all(".member .command-line")) == 2)
        self.assertEqual(b.all(".member .actions button"), [])

    def test_a_clave_lock_and_what_it_runs_are_one_member(self):
        gate = self.gate(scenes.nested_deadlock, route="deadlocks")
        b = self.browser
        b.see("Deadlock of 2")
        self.assertEqual(len(b.all(".waitgraph .owner")), 2)
        outer, inner = gate.locks["/d/a"]["holders"][0], gate.locks["/d/b"]["waiters"][0]
        b.see(f"runs {inner['host']} pid {inner['pid']}, which waits for", ".members")
        self.assertEqual([t.split("\n")[0] for t in b.texts(".member")][0], f"{outer['host']} pid {outer['pid']}")

    def test_a_semaphore_is_found_by_its_leases(self):
        def fill(gate):
            scenes.deadlock_of(gate, ["/s/a", "/s/b"])
            for m in gate.deadlocks[0]["members"]:
                for key in "node", "blocker":
                    m[key] = m[key].replace(m["path"], m["path"] + "/leases")
                m["path"] += "/leases"
        self.gate(fill)
        b = self.browser
        b.wait(lambda: len(b.all("#locks .badge.red")) == 2)
        b.go("deadlocks")
        b.wait(lambda: len(b.all(".member .command-line")) == 2)

    def test_a_possible_one_is_no_alarm(self):
        self.gate(lambda g: scenes.deadlock_of(g, ["/a", "/b"], certain=False), route="deadlocks")
        b = self.browser
        b.see("Possible deadlock of 2")
        b.see("perhaps one of them can go on", "main")
        self.assertEqual(b.js("return getComputedStyle(document.querySelector('.waitgraph .edge')).stroke"), "rgb(226, 163, 59)")
        self.assertEqual(b.all(".nav .alarm"), [])
        self.assertEqual(b.text("#said"), "")
        self.assertTrue(b.driver.title.startswith("Deadlocks"))
        b.go("locks")
        b.see("+ 1 possible", ".tiles")
        b.see("possible deadlock", "#locks")
        self.assertEqual(b.all("#locks .red, .tiles .red"), [])

    def test_a_long_cycle_is_a_column(self):
        def fill(gate):
            scenes.deadlock_of(gate, [f"/l/{i}" for i in range(7)])
            gate.deadlocks[0]["victim"] = gate.deadlocks[0]["members"][2]["node"]
        self.gate(fill, route="deadlocks")
        b = self.browser
        b.see("Deadlock of 7")
        self.assertEqual(len({g.rect["x"] for g in b.all(".waitgraph .owner rect")}), 1)
        b.see("is to give up", ".waitgraph")


class Elections(PageCase):
    def test_leaders_terms_and_gaps(self):
        gate = self.gate(scenes.some_elections, route="elections")
        b = self.browser
        b.wait(lambda: self.rows("elections")[:1] == ["/services/indexer"], "first the one that nobody leads")
        b.see("nobody leads")
        row = "#elections tr[data-key='/services/scheduler'] "
        self.assertEqual(len(b.all(row + ".term")), 4)
        self.assertEqual(len(b.all(row + ".gap")), 3)
        self.assertEqual(len(b.all(row + ".now")), 1)
        self.assertEqual(self.rows("elections")[-1], "/demo/leader", "last the one that is over")
        for path, badge in ("/services/indexer", "red"), ("/services/importer", "amber"), ("/demo/leader", "off"):
            self.assertEqual(len(b.all(f"#elections tr[data-key='{path}'] .badge.{badge}")), 1, path)
        self.assertEqual(len(b.all("#elections tr[data-key='/demo/leader'] .gap")), 0)
        gate.put_election(scenes.election("/services/indexer", [(9, 0, None)], start=60))
        b.see_not("nobody leads")
        vacant = scenes.election("/services/billing", [(50, 40, "expired")], leads=False, candidates=1)
        gate.put_election(vacant, "vacant")
        b.see("nobody leads")

    def test_what_a_queue_tells_during_the_load_does_not_hide_the_terms(self):
        """As a stream begins: with each queue as it is, before the list of elections is answered."""
        gate = self.gate(lambda g: (scenes.some_elections(g), g.hold_back.clear()), route="elections", live=False)
        b = self.browser
        b.wait(lambda: gate.held > 0 and gate.streams)
        e = gate.elections["/services/billing"]
        gate.put_lock({"path": e["path"], "kind": "election", "holders": [e["leader"]], "waiters": e["candidates"][:1], "nholders": 1, "nwaiters": 1,
                       "oldest_wait_ms": 0, "held_since": e["since"]})
        known = "import('/ui/js/model/store.js').then((m) => arguments[0](m.store.elections.size))"
        b.wait(lambda: b.driver.execute_async_script(known) == 1)
        gate.hold_back.set()
        b.wait(lambda: len(b.all("#elections tr[data-key='/services/billing'] .now")) == 1, "its term")
        b.see("1 candidate", "#elections tr[data-key='/services/billing']")

    def test_one_election_its_terms_and_a_transfer(self):
        gate = self.gate(scenes.some_elections, route="elections/services/scheduler")
        b = self.browser
        b.see("10.0.4.17:7400")
        self.assertEqual(len(b.all("#terms tbody tr")), 4)
        b.see("expired", "#terms")
        self.assertEqual(b.texts("#candidates tbody td:nth-child(2)"), ["leader", "candidate", "candidate"])
        b.click("#candidates tr:nth-child(3) button")
        b.one("#transfer input").send_keys("maintenance", Keys.ENTER)
        b.wait(lambda: gate.asked)
        candidate = gate.elections["/services/scheduler"]["candidates"][1]
        self.assertEqual(gate.asked[0], ("POST", "/v1/elections/services/scheduler/transfer", {"to": candidate["node"], "reason": "maintenance"}))


class Sessions(PageCase):
    def test_the_one_with_the_least_slack_is_first(self):
        self.gate(lambda g: scenes.cluster(g, 6), route="sessions")
        b = self.browser
        b.see("33 of 214: those that hold or wait, and those of HTTP clients")
        self.assertIn("0x100000a5f2b0007", b.text("#sessions tbody tr"))
        self.assertEqual(len(b.all("#sessions tbody tr:first-child .slack.low")), 1)
        b.one("main input[type=search]").send_keys("0x100000a5f2b0003")
        b.wait(lambda: len(b.all("#sessions tbody tr")) == 1)
        b.see("/jobs/", "#sessions")


    def test_how_many_there_are_is_told_beside_how_many_are_shown(self):
        gate = self.gate(lambda g: (scenes.cluster(g, 6), g.server_figures.update(sessions=5003)), route="sessions")
        b = self.browser
        b.see("33 of 5\u202f003: those that hold or wait, and those of HTTP clients")
        b.one("main input[type=search]").send_keys("billing")
        b.wait(lambda: re.search(r"^\d+ of 33$", b.text(".head .aside")))
        self.assertTrue(gate.got)

    def test_sessions_of_the_servers_are_known_from_the_queues(self):
        def fill(gate):
            gate.locks["/jobs/a"] = lock("/jobs/a", 1, 20, [3])
            gate.elections["/services/x"] = scenes.election("/services/x", [(50, 0, None)], candidates=0)
            gate.refuse["/v1/sessions"] = (403, {"title": "Forbidden", "detail": "the role admin is needed."})
        gate = self.gate(fill, role="read", route="sessions")
        b = self.browser
        b.see("3 in all")
        self.assertEqual(b.texts("#sessions th"), ["Session", "Holds and waits for"], "age and slack are not known of any")
        holder = gate.locks["/jobs/a"]["holders"][0]
        b.see(hex(int(holder["session"])), "#sessions")
        b.see(f"{holder['host']} pid {holder['pid']}", "#sessions")
        self.assertEqual(sorted(b.texts("#sessions .badge")), ["held", "held", "waiting"])
        b.see("Without the HTTP sessions: the role admin is needed.", "main")
        gate.drop_lock("/jobs/a")
        b.see("1 in all")


class Tree(PageCase):
    def test_down_to_the_data_and_up_again(self):
        self.gate(lambda g: scenes.cluster(g, 6), route="tree")
        b = self.browser
        b.wait(lambda: "config" in [r.strip() for r in self.rows("children")])
        b.js("[...document.querySelectorAll('#children a')].find((a) => a.innerText.trim() === 'config').click()")
        b.see('"peers": [', ".node-data")
        b.see("world:anyone")
        b.click("#children a.main")
        b.see("000010  10 11 12", ".node-data")
        b.keys("u")
        b.see('"peers": [', ".node-data")
        b.go("tree/is/not/there")
        b.see("This node does not exist")

    def test_a_node_with_10000_children(self):
        self.gate(lambda g: g.nodes.update({"/": b"", "/many": b"x", **{f"/many/n{i:05d}": b"" for i in range(10000)}}), route="tree/many")
        b = self.browser
        b.see("10\u202f000")
        self.assertLess(len(b.all("#children tbody tr")), 100)
        b.one(".find input").send_keys("0777")
        b.wait(lambda: len(self.rows("children")) == 11)


class Events(PageCase):
    def entry(self, gate, what, path="/jobs/a", cause=None, ago=0):
        gate.log({"zxid": "4294967400", "time": rfc3339(time.time() - ago), "path": path, "kind": "lock", "what": what, "cause": cause, "place": place(1)})

    def test_the_log_is_live_and_each_entry_has_an_address(self):
        gate = self.gate(lambda g: self.entry(g, "queued", ago=5), route="events")
        b = self.browser
        b.wait(lambda: b.texts("#log td:nth-child(2)") == ["queued"])
        self.entry(gate, "granted")
        gate.put_lock(lock("/jobs/a", 1, 0))
        b.wait(lambda: b.texts("#log td:nth-child(2)") == ["granted", "queued"])
        b.click("#log tbody tr:nth-child(2) a.main")
        b.see("Event 1", "main")
        b.see("4294967297", ".facts")
        address = b.driver.current_url
        self.assertTrue(address.endswith("#/events/1"))
        b.open(address)
        b.see("4294967297", ".facts")

    def test_a_queue_and_its_grant_in_one_second_are_one_row(self):
        """Each keeps its address, and its row where only that is asked for."""
        now = int(time.time())

        def fill(gate):
            for what, at, who in ("queued", 10.1, 1), ("queued", 10.2, 2), ("granted", 10.8, 1), ("granted", 11.2, 2), ("ended", 11.3, 1):
                gate.log({"zxid": None, "time": rfc3339(now - 60 + at), "path": "/jobs/a", "kind": "lock", "what": what, "cause": "released" if what == "ended" else None, "place": place(who)})
        self.gate(fill, route="events")
        b = self.browser
        b.wait(lambda: len(b.all("#log tbody tr")) == 4)
        self.assertEqual([t.split("\n")[0] for t in b.texts("#log td:nth-child(2)")], ["ended", "granted", "queued, granted", "queued"])
        b.go("events?what=queued")
        b.wait(lambda: b.texts("#log td:nth-child(2)") == ["queued", "queued"])
        b.go("events/3")
        b.see("0.7 s, since event 1", ".facts")
        b.go("events/1")
        b.see("queued", ".facts")

    def test_filters(self):
        def fill(gate):
            for what, cause in ("queued", None), ("granted", None), ("ended", "expired"):
                self.entry(gate, what, f"/jobs/{what}", cause)
        self.gate(fill, route="events")
        b = self.browser
        b.wait(lambda: len(b.all("#log tbody tr")) == 3)
        b.js("[...document.querySelectorAll('.choice button')].find((e) => e.innerText === 'Ended').click()")
        b.wait(lambda: b.texts("#log td:nth-child(2)") == ["ended"])
        b.see("session expired", "#log")
        self.assertTrue(b.driver.current_url.endswith("#/events?what=ended"))
        b.open(b.driver.current_url)
        b.wait(lambda: b.texts("#log td:nth-child(2)") == ["ended"])

    def test_who_did_it_and_why(self):
        def fill(gate):
            for what, cause, deed in ("asked", None, {"by": "ann", "reason": "maintenance"}), ("ended", "broken", {"by": "bob", "reason": "its host is gone"}), ("ended", "broken", None):
                gate.log({"zxid": None, "time": rfc3339(time.time() - 9), "path": "/jobs/a", "kind": "lock", "what": what, "cause": cause, "deed": deed, "place": place(len(gate.history))})
        self.gate(fill, route="events")
        b = self.browser
        b.wait(lambda: b.texts("#log td:last-child") == ["broken by somebody else", "broken by bob: its host is gone", "by ann: maintenance"])
        b.one("main input[type=search]").send_keys("host is gone")
        b.wait(lambda: len(b.all("#log tbody tr")) == 1)
        b.click("#log a.main")
        b.see("Done by\nbob\nReason\nits host is gone", ".facts")
        b.size(390, 844)
        b.see("broken by bob: its host is gone", "#log")

    def test_a_request_to_release_and_the_side_of_a_lock(self):
        def fill(gate):
            self.entry(gate, "granted")
            self.entry(gate, "asked")
            gate.history[0]["place"]["role"] = "writer"
        self.gate(fill, route="locks/jobs/a")
        self.browser.wait(lambda: self.browser.texts("#past td:nth-child(2)") == ["asked to release", "granted to write"])


class Server(PageCase):
    def test_the_gate_and_who_one_is(self):
        """Of a server elsewhere the page says what the gate knows, and that it knows no more."""
        self.gate(role="lock", route="server")
        for text in "read-write", "zk1:2181", "0.1.0", "lock below /", "ops", "not known", "Ask the servers":
            self.browser.see(text, "main")
        self.assertNotIn("fsync", self.browser.text("main"))

    def test_who_may_not_read_all_is_told_why_there_is_less(self):
        def fill(gate):
            gate.grants = [{"role": "read", "prefix": "/jobs"}]
            gate.samples = None
        self.gate(fill, route="server")
        self.browser.see("takes the role read on /.", "main")
        self.browser.see("The gate now", "main")

    def test_numbers_and_an_hour_of_lines(self):
        self.gate(scenes.busy_server, route="server")
        b = self.browser
        b.see("Healthy", ".health")
        shown = {t.split("\n")[0]: [line for line in t.split("\n")[1:] if line] for t in b.texts(".figure")}
        self.assertEqual(shown["Sessions"][0], "214")
        self.assertEqual(shown["fsync, 99 of 100 within"][0], "2.1 ms")
        self.assertRegex(shown["fsync, 99 of 100 within"][1], r"^most [45]\d ms, at \d\d:\d\d$")
        self.assertRegex(shown["Disk free, of 99.7 GiB"][1], "^least 57.0 GiB")
        self.assertRegex(shown["Requests"][0], r"^[\d.]+/s$", "not how many since the start")
        labels = [e.get_attribute("aria-label") for e in b.all(".plot")]
        self.assertEqual(len(labels), 15)
        self.assertIn("Sessions: 196 to 214", labels, "the present number counts")
        self.assertEqual(shown["Sessions"][1], "most 214, now")
        self.assertIn("The server in the last hour", b.text("main"))
        self.assertIn("48\u202f211 transactions ago", b.text(".facts"))

    def test_a_counter_that_begins_anew_is_a_gap(self):
        def fill(gate):
            gate.samples["gate"] = {"requests": [100, 200, 5, 105, None, 300, 450]}
        self.gate(fill, route="server")
        b = self.browser
        b.see("most 15/s", "main")
        self.assertEqual(len(b.all("[aria-label^='Requests'] .line")), 3)

    def test_what_is_wrong_is_said_first(self):
        cases = (({"quiet_ms": 41000}, "Restored from a backup: no lock is granted for 41 s"), ({"free_bytes": 5 << 30}, "The disk is nearly full: 5.0 GiB are free"),
                 ({"fsync_us": 300000}, "The disk is slow: it takes 300 ms"))
        for change, text in cases:
            with self.subTest(text=text):
                self.gate(lambda g, c=change: (scenes.busy_server(g), g.server_figures.update(c)), route="server")
                self.browser.see("Needs attention", ".health")
                self.browser.see(text, ".health")

    def test_a_copy_that_is_not_current_is_said_on_every_screen(self):
        self.gate(lambda g: g.figures.update(current=False), route="server")
        b = self.browser
        b.see("The gate has lost its servers.", "#banner")
        b.see("not up to date", "main")
        b.go("locks")
        b.see("What you see is how things were at", "#banner")


if __name__ == "__main__":
    unittest.main()
