"""`clave lock --once`, `--min-hold` and `--lock-delay`: what surrounds the command."""
import json
import os
import signal
import time
import unittest

from harness import UNSAFE, Running, Served, clave, scratch, server
from lock_rig import EXPIRES, MAX_HOLD, MAX_TERM, TICK, Holder, nodes, queue, stopped, until


def lines(path):
    with open(path) as f:
        return f.read().split()


class Once(Served):
    flags = TICK

    def once(self, path, *words, script="echo ran", key="k"):
        return clave("lock", "--once", key, *words, path, "--", "sh", "-c", script,
                     connect=self.server.connect)

    def record(self, path, key="k"):
        text = clave("get", f"{path}-once/{key}", connect=self.server.connect).out
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    # ---- what counts

    def test_of_many_starters_one_runs(self):
        log = scratch("log")
        runs = [Running("lock", "--once", "hourly", "--for", "1h", "/many", "--", "sh", "-c",
                        'echo $$ >>"$0"', log, connect=self.server.connect) for _ in range(8)]
        results = [run.end() for run in runs]
        self.assertEqual([r.code for r in results], [0] * 8)
        self.assertEqual(len(lines(log)), 1, f"{UNSAFE}: it ran twice, or never")
        # Behind what somebody may have said of a long wait.
        last = [r.err.splitlines()[-1] for r in results if r.err]
        told = [line for line in last if ": waiting, " not in line]
        self.assertEqual(len(told), 7)
        for text in told:
            self.assertRegex(text, r"^clave: lock: /many: 'hourly' was done already, started \d+m?s "
                                   r"ago by \S+ pid \d+ \(sh -c ")

    def test_the_period(self):
        self.assertEqual(self.once("/period", "--for", "300ms").out, "ran\n")
        until(lambda: self.once("/period", "--for", "300ms", "-q").out == "ran\n")
        self.assertEqual(self.once("/period", "--for", "1h").out, "")
        self.assertEqual(self.record("/period")["state"], "done")

    def test_once_for_all(self):
        self.assertEqual(self.once("/all").out, "ran\n")
        r = self.once("/all")
        self.assertEqual((r.code, r.out), (0, ""))
        self.assertRegex(r.err, r"'k' was done already, started by \S+ pid \d+")
        self.assertEqual(self.once("/all", key="other").out, "ran\n")
        clave("rm", "/all-once/k", connect=self.server.connect)
        self.assertEqual(self.once("/all").out, "ran\n")

    def test_an_operators_word_counts(self):
        clave("create", "-p", "/said-once/k", connect=self.server.connect)
        self.assertEqual(self.once("/said").out, "")

    def test_a_run_that_failed_is_repeated(self):
        self.assertEqual(self.once("/fails", script="exit 3").code, 3)
        self.assertEqual(self.record("/fails")["state"], "failed")
        self.assertEqual(self.once("/fails", script="kill -9 $$").code, 137)
        r = clave("lock", "--once", "k", "/fails", "--", "/no/such", connect=self.server.connect)
        self.assertEqual(r.code, 127)
        self.assertEqual(self.once("/fails", "--max-hold", "300ms", script="sleep 100").code, 76)
        self.assertEqual(self.record("/fails")["state"], "failed")
        self.assertEqual(self.once("/fails").out, "ran\n")
        self.assertEqual(self.once("/fails").out, "")

    def test_a_guardian_that_is_late_loses_no_record(self):
        """The maximum hold is over, the lock is not."""
        run = Holder(self.server, "/late", "--once", "k", *MAX_HOLD).started()
        os.kill(run.guardian, signal.SIGSTOP)
        r = run.run.end()
        self.assertEqual(r.code, 76, r)
        self.assertIn("the guardian does not answer", r.err)
        self.assertEqual(self.record("/late")["state"], "failed")

    def test_at_most_once(self):
        self.assertEqual(self.once("/most", "--at-most-once", script="exit 3").code, 3)
        r = self.once("/most", "--at-most-once")
        self.assertEqual((r.code, r.out), (0, ""))
        self.assertIn("'k' was tried already", r.err)

    def test_a_waiter_takes_over_from_a_runner_that_dies(self):
        """Killed with its guardian: nothing of it can say how it went."""
        run = Holder(self.server, "/dies", "--once", "k", "--for", "1h", "--session-timeout",
                     EXPIRES).started()
        self.assertEqual(self.record("/dies")["state"], "started")
        waiter = Running("lock", "--once", "k", "--for", "1h", "/dies", "--", "echo", "ran",
                         connect=self.server.connect)
        until(lambda: len(queue(self.server, "/dies")) == 2)
        os.kill(run.guardian, signal.SIGSTOP)
        os.kill(run.wrapper, signal.SIGKILL)
        os.kill(run.guardian, signal.SIGKILL)
        self.assertEqual(waiter.end().out, "ran\n")
        self.assertEqual(self.once("/dies", "--for", "1h").out, "")

    def test_a_lock_that_is_lost_says_nothing(self):
        run = Holder(self.server, "/lost", "--once", "k").started()
        clave("locks", "break", "--force", "/lost", queue(self.server, "/lost")[0]["node"],
              connect=self.server.connect)
        r = run.run.end()
        self.assertEqual(r.code, 76)
        self.assertIn("the result of 'k' was not recorded, so it may be run again", r.err)
        self.assertEqual(self.once("/lost").out, "ran\n")

    def test_a_record_removed_meanwhile(self):
        go = scratch("go")
        run = Holder(self.server, "/removed", "--once", "k",
                     script=f"until test -e {go}; do sleep 0.01; done").started()
        clave("rm", "/removed-once/k", connect=self.server.connect)
        with open(go, "w"):
            pass
        r = run.run.end()
        self.assertEqual(r.code, 0)
        self.assertIn("may be run again", r.err)
        self.assertEqual(self.once("/removed").out, "ran\n")

    def test_a_server_that_is_away_at_the_end(self):
        """The lock still stands: the record is made when the server is back."""
        s = server(flags=["--tick", "500ms"])
        go = scratch("go")
        run = Holder(s, "/away", "--once", "k", "--session-timeout", "10s",
                     script=f"until test -e {go}; do sleep 0.01; done").started()
        s.stop(signal.SIGKILL)
        with open(go, "w"):
            pass
        until(lambda: not os.path.exists(f"/proc/{run.command}"))
        s.start()
        self.assertEqual(run.run.end().code, 0)
        r = clave("lock", "--once", "k", "/away", "--", "echo", "ran", connect=s.connect)
        self.assertEqual((r.code, r.out), (0, ""))
        s.stop()

    def test_kinds(self):
        r = clave("rwlock", "--once", "k", "/kinds", "--", "echo", "ran",
                  connect=self.server.connect)
        self.assertEqual(r.out, "ran\n", r)
        self.assertEqual(self.once("/kinds").out, "")

    def test_who_may(self):
        joe = ["--acl", "creator", "--auth", "digest:joe:x"]
        self.assertEqual(self.once("/joes", *joe).out, "ran\n")
        self.assertEqual(self.once("/joes", *joe).out, "")
        self.assertEqual(self.once("/joes").code, 77)

    # ---- what is told

    def test_codes_and_words(self):
        self.assertEqual(self.once("/told", "--for", "1h").out, "ran\n")
        r = self.once("/told", "--for", "1h", "--done-code", "9", "-q")
        self.assertEqual((r.code, r.out, r.err), (9, "", ""))
        r = self.once("/told", "--for", "1h", "--json")
        event = json.loads(r.err)
        self.assertEqual((event["event"], event["key"], event["succeeded"]), ("done", "k", True))
        self.assertTrue(0 <= event["age_ms"] < 60000)
        self.assertLess(abs(event["began_ms"] - time.time() * 1000), 60000)
        self.assertEqual(event["by"]["command"], "sh -c echo ran")
        record = self.record("/told")
        self.assertEqual((record["state"], record["command"]), ("done", "sh -c echo ran"))

    def test_usage(self):
        for words in (["--once", "a/b"], ["--once", ""], ["--once", ".."], ["--for", "1h"],
                      ["--at-most-once"], ["--once", "k", "--for", "0s"],
                      ["--once", "k", "--done-code", "256"]):
            r = clave("lock", *words, "/x", "--", "true", connect=self.server.connect)
            self.assertEqual((r.code, r.out), (64, ""), (words, r))
        for key, fault in ("a\nb", "a control character"), (b"a\xff", "not valid UTF-8"):
            r = clave("lock", "--once", key, "/x", "--", "true", connect=self.server.connect)
            self.assertEqual(r.code, 64, r)
            self.assertIn("--once 'a?", r.err)
            self.assertIn(fault, r.err)
        r = clave("lock", "--once", "k", "/", "--", "true", connect=self.server.connect)
        self.assertEqual(r.code, 64, r)
        r = clave("rwlock", "-r", "--once", "k", "/x", "--", "true", connect=self.server.connect)
        self.assertEqual(r.code, 64, r)


class MinHold(Served):
    flags = TICK

    def test_the_lock_outlasts_the_command(self):
        began = time.monotonic()
        r = clave("lock", "-v", "--min-hold", "3s", "/min", "--", "sh", "-c", "exit 3",
                  connect=self.server.connect)
        self.assertEqual(r.code, 3)
        self.assertGreaterEqual(time.monotonic() - began, 3)
        self.assertRegex(r.err, r"the command has ended; the minimum hold lasts for \d+m?s more")

    def test_a_command_that_takes_longer(self):
        r = clave("lock", "-v", "--min-hold", "50ms", "/min", "--", "sleep", "0.2",
                  connect=self.server.connect)
        self.assertEqual(r.code, 0)
        self.assertNotIn("minimum hold", r.err)

    def resting(self, path, *flags, verb="lock"):
        run = Running(verb, "--json", "--min-hold", "1h", *flags, path, "--", "sh", "-c",
                      "exit 3", connect=self.server.connect)
        while json.loads(run.process.stderr.readline())["event"] != "resting":
            pass
        return run

    def test_others_wait_for_it(self):
        run = self.resting("/rest")
        r = clave("lock", "-n", "/rest", "--", "true", connect=self.server.connect)
        self.assertEqual(r.code, 75)
        self.assertEqual(run.end(signal.SIGTERM).code, 3, "the command's own, all the same")
        self.assertEqual(nodes(self.server, "/rest"), [])

    def test_it_can_be_stopped(self):
        run = self.resting("/stopped")
        run.process.send_signal(signal.SIGTSTP)
        until(lambda: stopped(run.process.pid))
        run.process.send_signal(signal.SIGCONT)
        self.assertEqual(run.end(signal.SIGTERM).code, 3)

    def test_asked_for_it_goes(self):
        run = self.resting("/asked", "--revocable")
        clave("locks", "revoke", "/asked", nodes(self.server, "/asked")[0],
              connect=self.server.connect)
        r = run.end()
        self.assertEqual(r.code, 3)
        self.assertEqual(json.loads(r.err.splitlines()[0])["event"], "asked")

    def test_taken_away_it_is_told(self):
        run = self.resting("/taken")
        clave("locks", "break", "--force", "/taken", nodes(self.server, "/taken")[0],
              connect=self.server.connect)
        r = run.end()
        self.assertEqual(r.code, 3)
        self.assertEqual(json.loads(r.err.splitlines()[0])["event"], "lost")

    def test_a_wrapper_that_is_killed_keeps_nothing(self):
        run = self.resting("/killed")
        run.end(signal.SIGKILL)
        until(lambda: nodes(self.server, "/killed") == [])

    def test_a_command_that_cannot_be_run(self):
        r = clave("lock", "--min-hold", "1h", "/none", "--", "/no/such",
                  connect=self.server.connect)
        self.assertEqual(r.code, 127)

    def test_usage(self):
        r = clave("lock", "--min-hold", "2s", "--max-hold", "1s", "/x", "--", "true",
                  connect=self.server.connect)
        self.assertEqual(r.code, 64, r)

    def test_leases_too(self):
        run = self.resting("/lease", "-n", "1", verb="semaphore")
        r = clave("semaphore", "-n", "1", "-t", "/lease", "--", "true", connect=self.server.connect)
        self.assertEqual(r.code, 75)
        self.assertEqual(run.end(signal.SIGTERM).code, 3)


class LockDelay(Served):
    flags = TICK

    def lock(self, path, *words, script="echo ran"):
        return clave("lock", "--lock-delay", "500ms", *words, path, "--", "sh", "-c", script,
                     connect=self.server.connect)

    def lose(self, path, *flags):
        """A holder that is killed."""
        holder = Holder(self.server, path, "--lock-delay", "500ms", *flags).started()
        holder.run.end(signal.SIGKILL)
        until(lambda: nodes(self.server, path) == [])

    def test_after_a_release_there_is_none(self):
        for script in ("true", "exit 3", "kill -9 $$"):
            self.lock("/released", script=script)
            r = self.lock("/released", "--json")
            self.assertNotIn("delayed", r.err)
        holder = Holder(self.server, "/released", "--lock-delay", "1h").started()
        self.assertIn("released-held", nodes(self.server, "/"))
        holder.run.end(15)
        self.assertNotIn("released-held", nodes(self.server, "/"))

    def test_after_a_loss_it_is_waited_for(self):
        self.lose("/lost", "--name", "late one")
        began = time.monotonic()
        r = self.lock("/lost")
        self.assertEqual(r.out, "ran\n", r)
        self.assertGreaterEqual(time.monotonic() - began, 0.5)
        self.assertRegex(r.err, r"acquired; the previous holder, \S+ pid \d+ \(late one\), lost it: "
                                r"starting the command in 500ms")
        self.assertNotIn("lost it", self.lock("/lost").err)

    def test_an_election_says_it_in_its_own_words(self):
        leader = Running("elect", "--lock-delay", "100ms", "/led", "--",
                         "sh", "-c", "echo leads; exec sleep 60",
                         connect=self.server.connect)
        self.assertEqual(leader.line(), "leads")
        leader.end(signal.SIGKILL)
        r = clave("elect", "--lock-delay", "100ms", "/led", "--", "echo", "ran",
                  connect=self.server.connect)
        self.assertEqual(r.out, "ran\n", r)
        self.assertRegex(r.err, "/led: elected; the previous leader, .*, lost it: starting the command in 100ms")
        r = clave("elect", *MAX_TERM, "/term", "--", "sleep", "60", connect=self.server.connect)
        self.assertEqual(r.code, 76, r)
        self.assertIn("/term: the maximum term has been reached: ending the command", r.err)

    def test_who_waits_behind_waits_too(self):
        self.lose("/behind")
        first = Running("lock", "--lock-delay", "1h", "--json", "/behind", "--", "echo", "ran",
                        connect=self.server.connect)
        event = json.loads(first.process.stderr.readline())
        self.assertEqual((event["event"], event["delay_ms"]), ("delayed", 3600 * 1000))
        r = clave("lock", "-n", "/behind", "--", "true", connect=self.server.connect)
        self.assertEqual(r.code, 75)
        # Its end in the delay is no release: the next waits anew.
        self.assertEqual(first.end(signal.SIGTERM).code, 143)
        self.assertIn("lost it", self.lock("/behind").err)

    def test_who_does_not_take_part(self):
        self.lose("/apart")
        r = clave("lock", "/apart", "--", "echo", "ran", connect=self.server.connect)
        self.assertEqual((r.out, r.err), ("ran\n", ""))

    def test_lost_in_the_delay(self):
        self.lose("/broken")
        run = Running("lock", "--lock-delay", "1h", "/broken", "--", "echo", "ran",
                      connect=self.server.connect)
        self.assertIn("lost it", run.process.stderr.readline())
        clave("locks", "break", "--force", "/broken", nodes(self.server, "/broken")[0],
              connect=self.server.connect)
        r = run.end()
        self.assertEqual((r.code, r.out), (76, ""), r)

    def test_with_once(self):
        self.lose("/both", "--once", "k")
        r = self.lock("/both", "--once", "k")
        self.assertEqual(r.out, "ran\n", r)
        self.assertIn("lost it", r.err)
        r = self.lock("/both", "--once", "k")
        self.assertIn("done already", r.err)
        self.assertNotIn("both-held", nodes(self.server, "/"))

    def test_leaders(self):
        elect = ["elect", "--lock-delay", "500ms", "/led", "--"]
        first = Running(*elect, "sh", "-c", "echo; exec sleep 1000", connect=self.server.connect)
        first.line()
        first.end(signal.SIGKILL)
        r = clave(*elect, "echo", "ran", connect=self.server.connect)
        self.assertEqual(r.out, "ran\n", r)
        self.assertIn("lost it", r.err)
        r = clave(*elect, "echo", "ran", connect=self.server.connect)
        self.assertEqual((r.out, r.err), ("ran\n", ""))


if __name__ == "__main__":
    unittest.main()
