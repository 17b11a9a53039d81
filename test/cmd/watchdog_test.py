"""clave lock --watchdog: the device of the machine is fed while the lock is certainly held, stopped when nothing of the
command is left, and otherwise resets the machine before anybody else may hold the lock.

The device is a stand-in (standin_watchdog.c), which says what was done to it and when; that the machine would have been
reset follows from that."""
import json
import os
import signal
import unittest

from harness import UNSAFE, Served, clave, scratch
from lock_rig import TICK, Holder, alive, nodes, queue, until
from lock_unkillable_test import AsUser as _AsUser
from lock_unkillable_test import can_set_user_id
from standin_device import DEVICE_MS, Device, now_ms

SESSION_MS = 8000  # the shortest that fits
SESSION = ["--session-timeout", f"{SESSION_MS}ms"]
SLACK_MS = 200  # between what a process is told and the time that it, or this test, reads


class Watchdog(Served):
    flags = TICK

    def setUp(self):
        super().setUp()
        self.device = Device()

    def hold(self, *flags, script="exec sleep 1000", verb=("lock",), path=None):
        return Holder(self.server, path or self.path, "--watchdog", self.device.path, "--json", *SESSION, *flags,
                      script=script, verb=verb, env=self.device.env).started()

    def run_to_end(self, *words, device=None):
        device = device or self.device
        return clave(*words[:1], "--watchdog", device.path, *SESSION, *words[1:], connect=self.server.connect,
                     env=device.env)

    @staticmethod
    def events(r, name):
        return [e for e in map(json.loads, r.err.splitlines()) if e["event"] == name]

    def fed_in_time(self):
        fed = [at for at, _, what in self.device.log() if what.startswith(("set", "feed"))]
        self.assertLess(max(b - a for a, b in zip(fed, fed[1:])), DEVICE_MS)

    # ---- while all is well

    def test_it_is_fed_while_the_command_runs_and_stopped_after_it(self):
        for verb in (["lock"], ["rwlock"], ["rwlock", "-r"], ["elect"]):
            self.device = Device()
            script = f"cat {self.device.path}.log; sleep 2"
            r = self.run_to_end(*verb, self.path + "".join(verb), "--", "sh", "-c", script)
            self.assertEqual(r.code, 0, r)
            self.assertEqual([line.split(" ", 2)[2] for line in r.out.splitlines()], ["open", "set 1"],
                             "before the command starts")
            self.assertGreaterEqual(self.device.done().count("feed"), 6)
            self.fed_in_time()
            self.device.never_fires(self)

    def test_it_is_fed_while_clave_is_replaced(self):
        """The guardian has the device. The new program knows that: it stops it if the guardian is killed."""
        h = self.hold("--in-place")
        for _ in range(2):
            os.kill(h.wrapper, signal.SIGUSR2)
            self.assertEqual(json.loads(until(lambda: next(
                (line for line in iter(h.run.process.stderr.readline, "") if '"event": "replaced"' in line), "")))["event"], "replaced")
        until(lambda: self.device.done().count("feed") >= 3)
        self.assertEqual(self.device.done().count("open"), 1)
        self.fed_in_time()
        os.kill(h.guardian, signal.SIGKILL)
        h.code()
        self.device.never_fires(self)

    def test_a_longer_session_has_a_longer_timeout(self):
        r = self.run_to_end("lock", "--session-timeout", "18s", "--json", self.path, "--", "true")
        self.assertEqual((r.code, self.device.done()[:2]), (0, ["open", "set 2"]), r)
        (armed,) = self.events(r, "watchdog-armed")
        self.assertEqual((armed["device"], armed["timeout_ms"]), (self.device.path, 2000))

    def test_it_is_stopped_if_the_command_cannot_be_run(self):
        r = self.run_to_end("lock", self.path, "--", "/no/such/command")
        self.assertEqual(r.code, 127, r)
        self.device.never_fires(self)

    def test_it_is_fed_while_something_that_was_left_behind_is_ended(self):
        h = self.hold("--max-hold", "100ms", "--grace", "1s", script="trap '' TERM; while :; do sleep 0.05; done")
        self.assertEqual(h.code(), 76)
        self.fed_in_time()
        self.device.never_fires(self)

    # ---- what ends in order

    def test_a_loss_of_the_servers_ends_in_order(self):
        h = self.hold(script="trap '' TERM; while :; do sleep 0.05; done")
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            r = h.run.end()
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        self.assertEqual(r.code, 76, r)
        self.device.never_fires(self)

    def test_a_lock_that_is_lost_at_once_ends_in_order(self):
        """As if its node had been deleted: nobody feeds it then, so that the grace is short."""
        h = self.hold("--grace", "2s", script="trap '' TERM; while :; do sleep 0.05; done")
        at = now_ms()
        for node in nodes(self.server, self.path):
            clave("rm", f"{self.path}/{node}", connect=self.server.connect)
        r = h.run.end()
        self.assertEqual(r.code, 76, r)
        self.assertLess(self.device.log()[-1][0], at + 10 * DEVICE_MS)
        self.device.never_fires(self)

    def test_clave_is_killed(self):
        h = self.hold(script="sleep 1000 & exec sleep 1000")
        os.kill(h.wrapper, signal.SIGKILL)
        until(lambda: self.device.fires_at() is None)
        self.assertFalse(alive(h.command), UNSAFE)
        h.run.end()
        self.device.never_fires(self)

    def test_the_guardian_is_killed(self):
        """The device runs on; clave stops it when it has ended what was left."""
        h = self.hold(script="trap '' TERM; sleep 1000 & wait")
        os.kill(h.guardian, signal.SIGKILL)
        r = h.run.end()
        self.assertEqual(r.code, 137, r)
        self.device.never_fires(self)
        self.assertEqual(self.device.log()[-1][1], h.wrapper)

    def test_the_guardian_is_killed_when_it_has_just_opened_it(self):
        """And when it was about to; then clave opens it, to stop it."""
        for when in ("after", "before"):
            self.device = Device(kills=when)
            r = self.run_to_end("lock", self.path, "--", "echo", "ran")
            self.device.never_fires(self)
            self.assertEqual((r.code, r.out), (137, ""), r)
            self.assertIn("the guardian was killed", r.err)
            self.assertNotIn("too little time", r.err)

    def test_a_file_that_clave_would_have_stopped_is_left_as_it_is(self):
        plain = Device(kills="before", options="")
        with open(plain.path, "w", encoding="utf-8") as f:
            f.write("a file")
        self.assertEqual(self.run_to_end("lock", self.path, "--", "echo", "ran", device=plain).code, 137)
        with open(plain.path, encoding="utf-8") as f:
            self.assertEqual(f.read(), "a file")
        self.assertNotIn("magic", plain.done())

    def test_it_is_said_that_it_cannot_be_stopped(self):
        h = self.hold()
        os.unlink(self.device.path)
        os.kill(h.guardian, signal.SIGKILL)
        r = h.run.end()
        self.assertEqual(r.code, 137, r)
        self.assertIn(f"cannot stop the watchdog {self.device.path}", r.err)
        self.assertIn("resets this machine", r.err)

    # ---- what does not

    def fires_for(self, h, at, *more):
        """It fires by the deadline of a hold of which the last sign of life was at that time."""
        until(lambda: self.device.fires_at() is not None and now_ms() > self.device.fires_at(), what="it fires")
        deadline = at + SESSION_MS * 7 // 8
        self.assertLessEqual(self.device.fires_at(), deadline - SESSION_MS // 16 + SLACK_MS,
                             f"{UNSAFE}: {self.device.log()}")
        self.assertNotIn("magic", self.device.done())
        for pid in (h.wrapper, h.guardian, h.command, *more):  # as the machine would be
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        h.run.end()

    def test_the_guardian_is_stopped(self):
        h = self.hold()
        os.kill(h.guardian, signal.SIGSTOP)
        self.fires_for(h, now_ms())

    def test_clave_and_the_guardian_are_killed(self):
        """What the command has started runs on."""
        h = self.hold(script="sleep 1000 & echo $!; wait")
        left = int(h.run.line())
        for pid in (h.wrapper, h.guardian):
            os.kill(pid, signal.SIGKILL)
        self.fires_for(h, now_ms(), left)

    def test_clave_is_stopped_and_then_the_guardian(self):
        h = self.hold()
        os.kill(h.wrapper, signal.SIGSTOP)
        os.kill(h.guardian, signal.SIGSTOP)
        self.fires_for(h, now_ms())

    # ---- what cannot be used

    def refused(self, device, *flags, says, code=82):
        r = self.run_to_end("lock", *flags, self.path, "--", "echo", "ran", device=device)
        self.assertEqual((r.code, r.out), (code, ""), r)
        for words in says:
            self.assertIn(words, r.err)
        self.assertIsNone(device.fires_at())
        return r

    def test_what_is_refused(self):
        fits = ["at most an eighth", "session 8s: device 1s; 16s: 2s; 24s: 3s"]
        self.refused(Device(fixed=60), says=["its timeout is 1m and cannot be set to less", "session timeout of 8s", *fits])
        self.refused(Device(least=2), says=["its timeout is 2s", *fits])
        self.refused(Device(options=0x8080), says=["stops it at every close"])
        self.refused(Device(nowayout=self.nowayout()), says=["nowayout=0"])
        self.refused(Device(), "--session-timeout", "7s", says=["a session timeout of 7s is too short", *fits])
        missing = Device()
        os.unlink(missing.path)
        self.refused(missing, says=["No such file", "modprobe softdog"])

    @staticmethod
    def nowayout():
        name = scratch("nowayout")
        with open(name, "w", encoding="utf-8") as f:
            f.write("1\n")
        return name

    def test_something_else_is_left_as_it_is(self):
        plain = Device()
        plain.env = {}
        with open(plain.path, "w", encoding="utf-8") as f:
            f.write("a file")
        self.refused(plain, says=["it is not a watchdog"])
        with open(plain.path, encoding="utf-8") as f:
            self.assertEqual(f.read(), "a file")

    def test_a_candidate_that_was_not_ready_yet_is_not_deposed(self):
        """The hooks say so on the output, which ends when they have."""
        hooks = ["--on-elected", "echo elected", "--on-deposed", "echo deposed"]
        for flags, said in (([], {"elected", "deposed"}), (["--ready"], set())):
            r = self.run_to_end("elect", *hooks, *flags, self.path, "--", "true", device=Device(fixed=60))
            self.assertEqual((r.code, set(r.out.split())), (82, said), r)

    def test_another_has_it(self):
        h = self.hold()
        path = self.path + "-other"
        r = self.run_to_end("lock", path, "--", "echo", "ran")
        self.assertEqual((r.code, r.out), (82, ""), r)
        self.assertIn("RuntimeWatchdogSec=off", r.err)
        self.assertEqual(queue(self.server, path), [])
        r = self.run_to_end("lock", "--json", "--watchdog-mode", "try", path, "--", "echo", "ran")
        self.assertEqual((r.code, r.out), (0, "ran\n"), r)
        (told,) = self.events(r, "watchdog-failed")
        self.assertIn("another program feeds it", told["why"])
        until(lambda: self.device.done().count("feed") > 2)
        h.run.end(signal.SIGTERM)
        self.fed_in_time()
        self.device.never_fires(self)

    def test_try_and_off(self):
        short = Device()
        r = self.run_to_end("lock", "--watchdog-mode", "try", "--session-timeout", "4s", self.path, "--", "echo", "ran",
                            device=short)
        self.assertEqual((r.code, r.out), (0, "ran\n"), r)
        self.assertIn("running the command without --watchdog", r.err)
        r = self.run_to_end("lock", "--watchdog-mode", "off", self.path, "--", "echo", "ran", device=short)
        self.assertEqual((r.code, r.out, r.err), (0, "ran\n", ""), r)
        self.assertEqual(short.log(), [])

    def test_usage(self):
        for flags, why in ((["--watchdog", "/dev/watchdog", "--on-lost", "ignore"], "lets it run on"),
                           (["--watchdog-mode", "try"], "needs --watchdog DEVICE"),
                           (["--watchdog", "/dev/watchdog", "--watchdog-mode", "auto"], "watchdog-mode")):
            r = clave("lock", *flags, "/usage", "--", "true", connect=self.server.connect)
            self.assertEqual(r.code, 64, r)
            self.assertIn(why, r.err)
        r = clave("semaphore", "-n", "1", "--watchdog", "/dev/watchdog", "/usage", "--", "true",
                  connect=self.server.connect)
        self.assertEqual(r.code, 64, r)


@unittest.skipUnless(can_set_user_id(), "no set-user-ID program can be made here")
class Unkillable(_AsUser):
    """A command of another user, which clave may not signal."""

    def setUp(self):
        super().setUp()
        self.device = Device()

    def hold_by_root(self, *flags):
        return self.hold("--watchdog", self.device.path, "--json", *SESSION, *flags,
                         script=f"exec {self.root} sleep 1000", env=self.device.env)

    def test_the_machine_is_reset_before_the_next_holder(self):
        h = self.hold_by_root()
        until(lambda: "feed" in self.device.done())
        self.server.process.send_signal(signal.SIGSTOP)
        at = now_ms()
        try:
            until(lambda: now_ms() > self.device.fires_at(), what="it fires")
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        self.assertLessEqual(self.device.fires_at(), at + SESSION_MS * 7 // 8 - SESSION_MS // 16 + SLACK_MS, UNSAFE)
        self.assertTrue(alive(h.command))
        self.assertNotIn("magic", self.device.done())
        os.kill(h.command, signal.SIGKILL)
        r = h.run.end()
        self.assertIn("watchdog-starved", r.err)

    def test_unhealthy_work_that_cannot_be_ended_resets_the_machine(self):
        """The lock is kept, by heartbeats that go on: the reset makes room for the next holder."""
        h = self.hold_by_root("--grace", "50ms", "--health", '[ "$CLAVE_EVENT" = waiting ]', "--health-every", "100ms",
                              "--health-grace", "0")
        self.said_of(h, "not released")
        until(lambda: now_ms() > self.device.fires_at(), what="it fires")
        self.assertNotIn("magic", self.device.done())
        self.assertEqual(len(queue(self.server, self.path)), 1)
        os.kill(h.command, signal.SIGKILL)
        self.assertEqual(h.run.end().code, 80)

    def test_a_fence_that_could_not_be_ended_is_not_the_command(self):
        holder = Holder(self.server, self.path, "--fence", "true").started()
        for pid in (holder.wrapper, holder.guardian):
            os.kill(pid, signal.SIGKILL)
        h = self.hold("--watchdog", self.device.path, "--json", *SESSION, "--fence", f"exec {self.root} sleep 2",
                      "--fence-timeout", "200ms", "--fence-fails", "pass", "--health", '[ "$CLAVE_EVENT" = waiting ]',
                      "--health-every", "100ms", "--health-grace", "0", env=self.device.env,
                      script="trap '' TERM; while :; do sleep 0.05; done")
        r = h.run.end()
        self.assertEqual(r.code, 80, r)
        self.assertIn('"event": "stuck"', r.err)
        self.assertNotIn("watchdog-starved", r.err)
        self.device.never_fires(self)

    def test_it_is_fed_while_the_lock_is_kept(self):
        """The command should have ended, but the servers confirm the lock: nobody else is waiting for a reset."""
        h = self.hold_by_root("--max-hold", "1s", "--grace", "50ms")
        self.said_of(h, "not released")
        fed = len(self.device.log())
        until(lambda: len(self.device.log()) > fed + 8)
        os.kill(h.command, signal.SIGKILL)
        self.assertEqual(h.run.end().code, 76)
        self.device.never_fires(self)


if __name__ == "__main__":
    unittest.main()
