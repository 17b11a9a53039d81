"""clave lock --health and its like: a candidate that is unhealthy does not stand, a holder that becomes it is ended.

The check of a test looks at a file: it fails while the file exists, with what the file says, and hangs if it says so."""
import json
import os
import re
import signal
import unittest

from gate_rig import Gate
from harness import UNSAFE, Running, Served, clave, scratch
from lock_rig import LONG, TICK, Holder, alive, queue, until

CHECK = ('test -e "$ILL" || exit 0; why=$(cat "$ILL"); echo "$CLAVE_EVENT $CLAVE_TOKEN"; echo "$why"; '
         'test "$why" = hang || exit 3; echo $$ >>"$ILL.hang"; exec sleep 1000')
# Of two checks in a row, one has its shell started in time on the busiest machine.
QUICK = ["--health-every", "2s", "--health-fails", "2", "--health-grace", "0"]
VERBS = (["lock"], ["rwlock"], ["rwlock", "-r"], ["semaphore", "-n", "1"], ["elect"])


class Health(Served):
    flags = TICK

    def setUp(self):
        super().setUp()
        self.file = scratch("ill")
        self.env = {"ILL": self.file}

    def fall_ill(self, why="no disk"):
        with open(self.file + ".new", "w", encoding="utf-8") as f:
            f.write(why)
        os.rename(self.file + ".new", self.file)

    def recover(self):
        os.unlink(self.file)

    def hung(self):
        """The processes of checks that hang, or did."""
        if not os.path.exists(self.file + ".hang"):
            return []
        with open(self.file + ".hang", encoding="utf-8") as f:
            return [int(line) for line in f if line.endswith("\n")]

    def holder(self, path, *flags, verb=("lock",), **more):
        return Holder(self.server, path, "--session-timeout", LONG, "--health", CHECK, *QUICK, "--json", *flags,
                      verb=verb, env=self.env, **more)

    def run_to_end(self, *words):
        return clave(*words, connect=self.server.connect, env=self.env)

    @staticmethod
    def events(r, name=None):
        found = [json.loads(line) for line in r.err.splitlines()]
        return [e for e in found if name in (None, e["event"])]

    # ---- holders

    def test_a_holder_that_fails_is_ended(self):
        path = lambda verb: "/ends-" + "".join(verb)
        holders = [self.holder(path(verb), "--health-fails", "3", verb=verb) for verb in VERBS]
        for holder in holders:
            holder.started()
        self.fall_ill()
        results = [holder.run.end() for holder in holders]
        self.recover()
        for verb, holder, r in zip(VERBS, holders, results):
            self.assertEqual(r.code, 80, (verb, r))
            self.assertFalse(alive(holder.command), f"{UNSAFE}: {verb}")
            self.assertEqual([e["failures"] for e in self.events(r, "ailing")], [1, 2])
            (told,) = self.events(r, "unhealthy")
            self.assertEqual((told["holding"], told["why"]), (True, "the health check failed with exit code 3: no disk"))
            self.assertEqual([e["cause"] for e in self.events(r, "ending")], ["unhealthy"])
            self.assertEqual(self.run_to_end(*verb, "--no-wait", path(verb), "--", "true").code, 0)

    def test_a_check_that_hangs_has_failed(self):
        holder = self.holder("/hangs").started()
        self.fall_ill("hang")
        r = holder.run.end()
        self.assertEqual(r.code, 80, r)
        self.assertIn("did not end within 2s: hang", self.events(r, "unhealthy")[0]["why"])
        self.assertEqual(len(self.hung()), 2)
        self.assertFalse([p for p in self.hung() if alive(p)])

    def test_heartbeats_go_on_while_a_check_hangs(self):
        """For longer than two sessions: only they keep the hold."""
        holder = Holder(self.server, "/beats", "--session-timeout", "2s", "--health", CHECK, "--health-every", "1h",
                        "--json", env=self.env).started()
        self.fall_ill("hang")
        beats = Holder(self.server, "/beats2", "--session-timeout", "2s", "--health",
                       '[ "$CLAVE_EVENT" = waiting ] || exec sleep 1000', "--health-every", "6s", "--health-fails", "1",
                       "--health-grace", "0", "--json").started()
        r = beats.run.end()
        self.assertEqual((r.code, self.events(r, "lost"), self.events(r, "suspended")), (80, [], []), r)
        self.assertTrue(alive(holder.command))
        holder.run.end(signal.SIGTERM)

    def test_what_its_check_left_behind_is_gone(self):
        left = scratch("left")
        r = self.run_to_end("lock", "--health", f"sleep 1000 & echo $! >>{left}", "/leaves", "--", "sleep", "0.1")
        self.assertEqual(r.code, 0, r)
        with open(left, encoding="utf-8") as f:
            for pid in f.read().split():
                until(lambda pid=pid: not alive(int(pid)), what="a check's own child")

    def test_few_failures_are_forgiven(self):
        count = scratch("count")
        flaky = f'[ "$CLAVE_EVENT" = waiting ] || {{ echo >>{count}; test $(($(wc -l <{count}) % 2)) = 0; }}'
        holder = Holder(self.server, "/flaky", "--health", flaky, *QUICK, "--json").started()
        until(lambda: os.path.exists(count) and os.path.getsize(count) >= 5)
        self.assertTrue(alive(holder.command))
        r = holder.run.end(signal.SIGTERM)
        self.assertEqual((r.code, self.events(r, "unhealthy")), (143, []))

    def test_the_grace_after_the_start(self):
        """A service that needs a moment, and one that never comes up."""
        up = scratch("up")
        check = f'[ "$CLAVE_EVENT" = waiting ] || {{ test -e {up} && echo >>{up}; }}'
        holder = Holder(self.server, "/slow", "--health", check, "--health-every", "2s", "--health-grace", "1h",
                        "--json", script=f"sleep 0.5; touch {up}; exec sleep 1000").started()
        until(lambda: os.path.exists(up) and os.path.getsize(up) >= 2, what="two checks succeed, of which the first ends it")
        self.assertTrue(alive(holder.command))
        os.unlink(up)
        self.assertEqual(holder.code(), 80)
        r = self.run_to_end("lock", "--health", check, "--health-every", "50ms", "--health-grace", "200ms", "/never",
                            "--", "sleep", "1000")
        self.assertEqual(r.code, 80, r)

    def test_a_command_that_ends_by_itself_has_its_own_code(self):
        r = self.run_to_end("lock", "--health", CHECK, *QUICK, "/own", "--", "sh", "-c", "exit 5")
        self.assertEqual(r.code, 5)

    def test_on_lost_says_how(self):
        ended = scratch("ended")
        script = f"trap 'echo term >>{ended}; exit 0' TERM; while :; do sleep 0.05; done"
        for how, expected in (("kill", False), ("term", True)):
            holder = self.holder("/how", "--on-lost", how, script=script).started()
            self.fall_ill()
            self.assertEqual(holder.code(), 80)
            self.recover()
            self.assertEqual(os.path.exists(ended), expected)

    def test_the_minimum_hold_does_not_delay_the_release(self):
        holder = self.holder("/rests", "--min-hold", "1h").started()
        self.fall_ill()
        self.assertEqual(holder.code(), 80)

    def test_a_guardian_that_is_stopped_changes_nothing(self):
        holder = self.holder("/stopped").started()
        os.kill(holder.guardian, signal.SIGSTOP)
        self.fall_ill()
        r = holder.run.end()
        self.assertEqual(r.code, 80, r)
        self.assertFalse(alive(holder.command), UNSAFE)

    def test_no_check_outlives_clave(self):
        holder = self.holder("/dies", "--health-every", "10s", "--health-timeout", "10s").started()
        self.fall_ill("hang")
        (check,) = until(self.hung)
        os.kill(holder.wrapper, signal.SIGKILL)
        until(lambda: not alive(check))
        holder.run.end()

    def test_its_node_says_so_while_it_fails(self):
        check = '[ "$CLAVE_EVENT" = waiting ] || test ! -e "$ILL" || { cat "$ILL"; exit 3; }'
        holder = Holder(self.server, "/says", "--health", check, "--health-every", "2s", "--health-fails", "1000",
                        "--health-grace", "0", env=self.env).started()
        said = lambda: queue(self.server, "/says")[0]["text"]
        self.assertIsNone(said())
        for why in ("no disk", "no network"):
            self.fall_ill(why)
            until(lambda why=why: said() == f"the health check failed with exit code 3: {why}")
            self.assertIn(f"({said()})", clave("locks", "/says", connect=self.server.connect).out)
            self.recover()
            until(lambda: said() is None)
        holder.run.end(signal.SIGTERM)

    def test_everybody_sees_what_its_check_said(self):
        """And, once it is to be ended and cannot be for a while, that it is."""
        gate = Gate(self.server.connect, "--http-metric-paths", "/seen").start()
        self.addCleanup(gate.stop)
        holders = lambda: gate.call("GET", "/v1/locks/seen")[2]["holders"]
        count = re.compile(r'^clave_lock_unhealthy{path="/seen",kind="lock"} (\d)$', re.M)
        counted = lambda: count.findall(gate.call("GET", "/metrics")[2].decode())
        holder = self.holder("/seen", "--health-fails", "5", "--grace", "1h", script="trap '' TERM; while :; do sleep 0.05; done").started()
        until(lambda: counted() == ["0"])
        for ill, why in (("no disk", "the health check failed with exit code 3: no disk"),
                         (None, "ending the command: the health check failed with exit code 3: no disk")):
            if ill:
                self.fall_ill(ill)
            until(lambda why=why: queue(self.server, "/seen")[0]["text"] == why)
            self.assertIn(f"({why})", clave("locks", "/seen", connect=self.server.connect).out)
            self.assertIn(why, clave("top", "--once", "/seen", connect=self.server.connect).out)
            until(lambda: counted() == ["1"])
            until(lambda why=why: [h["text"] for h in holders()] == [why])
        os.kill(holder.command, signal.SIGKILL)
        self.assertEqual(holder.run.end().code, 80)

    # ---- candidates

    def test_an_unhealthy_candidate_does_not_stand(self):
        self.fall_ill()
        for verb in VERBS:
            path = "/stays-" + "".join(verb)
            r = self.run_to_end(*verb, "--no-wait", "--health", CHECK, "--json", path, "--", "true")
            self.assertEqual(r.code, 80, r)
            (told,) = self.events(r, "unhealthy")
            self.assertEqual((told["holding"], told["why"]), (False, "the health check failed with exit code 3: no disk"))
        paths = ["/stays-for-" + "".join(verb) for verb in VERBS]
        waits = [Running(*verb, "--wait", "3s", "--health", CHECK, *QUICK, path, "--", "true", connect=self.server.connect,
                         env=self.env) for verb, path in zip(VERBS, paths)]
        for path, r in zip(paths, [run.end() for run in waits]):
            self.assertEqual(r.code, 80, r)
            self.assertIn("within 3s: the health check failed with exit code 3: no disk", r.err)
            self.assertEqual(clave("locks", path, connect=self.server.connect).out, "")

    def test_it_is_told_that_it_waits(self):
        seen = scratch("seen")
        self.run_to_end("lock", "--health", f'echo "$CLAVE_EVENT|$CLAVE_PATH|$CLAVE_TOKEN" >>{seen}', "/told", "--",
                        "sh", "-c", f'until grep -q "holding|/told|$CLAVE_TOKEN" {seen}; do sleep 0.05; done')
        with open(seen, encoding="utf-8") as f:
            self.assertEqual(f.readline(), "waiting|/told|\n")

    def test_one_that_falls_ill_while_it_waits_withdraws(self):
        path = lambda verb: "/withdraws-" + "".join(verb)
        places = lambda verb: queue(self.server, path(verb))
        first = {}
        for verb in VERBS:
            blocked = ["rwlock"] if verb[0] == "rwlock" else verb
            first[path(verb)] = Holder(self.server, path(verb), verb=blocked).started()
        second = {path(verb): Running(*verb, "--health", CHECK, *QUICK, "--json", path(verb), "--", "echo", "ran",
                                      connect=self.server.connect, env=self.env) for verb in VERBS}
        before = {path(verb): until(lambda verb=verb: [p for p in places(verb) if not p["holder"]])[0] for verb in VERBS}
        self.fall_ill()
        third = {}
        for verb in VERBS:
            until(lambda verb=verb: len(places(verb)) == 1, what="it withdraws")
            third[path(verb)] = Holder(self.server, path(verb), verb=verb)
            until(lambda verb=verb: len(places(verb)) == 2)
        self.recover()
        for verb in VERBS:
            until(lambda verb=verb: len(places(verb)) == 3)
            last, place = places(verb)[2], before[path(verb)]
            self.assertEqual(last["session"], place["session"], "it keeps its session")
            self.assertGreater(last["token"], place["token"])
            first[path(verb)].run.end(signal.SIGTERM)
            third[path(verb)].started().run.end(signal.SIGTERM)
            r = second[path(verb)].end()
            self.assertEqual((r.code, r.out), (0, "ran\n"), r)
            self.assertEqual([e["event"] for e in self.events(r) if e["event"].endswith("healthy")],
                             ["unhealthy", "healthy"])

    def test_a_leader_that_hangs_makes_room(self):
        """And comes back as a candidate when it is well, with --forever."""
        leads = self.holder("/room", "--forever", "--id", "one", verb=("elect",)).started()
        other = Holder(self.server, "/room", "--id", "two", verb=("elect",))
        until(lambda: len(queue(self.server, "/room")) == 2)
        self.fall_ill("hang")
        other.started()
        self.assertFalse(alive(leads.command), UNSAFE)
        self.recover()
        until(lambda: len(queue(self.server, "/room")) == 2, what="it is a candidate again")
        other.run.end(signal.SIGTERM)
        leads.started()
        leads.run.end(signal.SIGTERM)

    # ---- slots

    def test_slot_run(self):
        clave("slot", "limit", "/slots", "1", connect=self.server.connect)
        run = ["slot", "run", "--health", CHECK, *QUICK, "--id", "me", "/slots", "--"]
        self.fall_ill()
        r = self.run_to_end(*run[:2], "--no-wait", *run[2:], "true")
        self.assertEqual(r.code, 80, r)
        self.assertEqual(clave("slot", "list", "/slots", connect=self.server.connect).out, "")
        waits = Running(*run, "sh", "-c", "echo ran; exec sleep 1000", connect=self.server.connect, env=self.env)
        self.recover()
        self.assertEqual(waits.line(), "ran")
        self.fall_ill()
        self.assertEqual(waits.end().code, 80)
        self.assertEqual(clave("slot", "list", "/slots", connect=self.server.connect).out.split()[0], "me")

    # ---- flags

    def test_usage(self):
        for flags, why in ((["--health-every", "1s"], "need --health"),
                           (["--health", "true", "--on-lost", "ignore"], "forbids that"),
                           (["--health", "true", "--health-timeout", "6s"], "longer than --health-every (5s)"),
                           (["--health", "true", "--health-fails", "0"], "--health-fails")):
            r = self.run_to_end("lock", *flags, "/usage", "--", "true")
            self.assertEqual(r.code, 64, r)
            self.assertIn(why, r.err)
        r = self.run_to_end("slot", "take", "--health", "true", "/slots")
        self.assertEqual(r.code, 64, r)


if __name__ == "__main__":
    unittest.main()
