"""`clave rwlock`, `clave semaphore`, and `clave locks revoke|break`. What they share with `clave
lock` is tested there: the implementation is one."""
import json
import os
import pty
import signal
import subprocess
import unittest

from harness import CLAVE, PATIENCE, UNSAFE, Running, Served, clave, environment, server
from lock_rig import TICK, alive, nodes, queue, stranger, until


class Holder:
    """A verb whose command says "PID" on its first line and goes on until it is ended."""

    def __init__(self, server, *words, script="exec sleep 1000"):
        self.run = Running(*words, "--", "sh", "-c", "echo $$; " + script, connect=server.connect)
        self.wrapper = self.run.process.pid
        self.command = None

    def started(self):
        self.command = int(self.run.line())
        return self

    def stop(self):
        self.run.process.send_signal(signal.SIGTERM)
        return self.run.end().code


class Kinds(Served):
    flags = TICK

    def verb(self, *words, **keywords):
        return clave(*words, connect=self.server.connect, **keywords)

    def hold(self, *words, **keywords):
        return Holder(self.server, *words, **keywords)

    def assert_busy(self, r):
        self.assertNotEqual(r.code, 0, f"{UNSAFE}: more hold than may: {r}")
        self.assertEqual(r.code, 75, r)

    def roles(self, path):
        return [p["role"] for p in queue(self.server, path)]

    # ---- rwlock

    def test_readers_share_and_a_writer_is_alone(self):
        a = self.hold("rwlock", "-r", "/rw").started()
        b = self.hold("rwlock", "-r", "/rw").started()
        self.assert_busy(self.verb("rwlock", "-n", "/rw", "--", "true"))
        c = self.hold("rwlock", "/rw")
        until(lambda: len(queue(self.server, "/rw")) == 3)
        r = self.verb("rwlock", "-r", "-n", "/rw", "--", "true")
        self.assertEqual(r.code, 75, "a reader waits for the writer before it")
        d = self.hold("rwlock", "--read", "/rw")
        until(lambda: self.roles("/rw") == ["reader", "reader", "to-write", "to-read"])
        self.assertEqual([a.stop(), b.stop()], [143, 143])
        c.started()
        self.assertEqual(self.roles("/rw"), ["writer", "to-read"])
        self.assertEqual(c.stop(), 143)
        d.started()
        self.assertEqual(self.roles("/rw"), ["reader"])
        d.stop()
        self.assertEqual(nodes(self.server, "/rw"), [])

    def test_the_contract_is_that_of_lock(self):
        r = self.verb("rwlock", "-r", "/rw2", "--", "sh", "-c", 'echo "$CLAVE_NODE"; exit 7')
        self.assertEqual(r.code, 7)
        self.assertRegex(r.out, r"^/rw2/_c_[0-9a-f-]{36}-__READ__\d{10}\n$")
        r = self.verb("rwlock", "-W", "/rw2", "--", "sh", "-c", 'echo "$CLAVE_NODE"; kill -9 $$')
        self.assertEqual(r.code, 137)
        self.assertIn("-__WRIT__", r.out)
        a = self.hold("rwlock", "-r", "/rw2").started()
        os.kill(a.wrapper, signal.SIGKILL)
        until(lambda: not alive(a.command))
        until(lambda: nodes(self.server, "/rw2") == [])
        a.run.end()

    # ---- semaphore

    def test_the_command_knows_its_node(self):
        for kind in (["lock"], ["rwlock"], ["rwlock", "-r"], ["semaphore", "-n", "1"]):
            r = clave(*kind, "/node" + kind[0], "--", "sh", "-c", '"$0" get "$CLAVE_NODE"', CLAVE,
                      connect=self.server.connect)
            self.assertEqual(r.code, 0, r)
            self.assertIn("granted=ctime\n", r.out)

    def test_n_run_at_once(self):
        first = [self.hold("semaphore", "-n", "3", "/sem").started() for _ in range(3)]
        self.assert_busy(self.verb("semaphore", "-n", "3", "--no-wait", "/sem", "--", "true"))
        more = self.hold("semaphore", "-n", "3", "/sem")
        until(lambda: len(nodes(self.server, "/sem/locks")) == 1)
        until(lambda: len(nodes(self.server, "/sem/leases")) == 4)
        self.assertEqual(self.roles("/sem"), ["lease"] * 3 + ["waiting"], "the fourth lease is that of who waits")
        self.assertEqual(first[0].stop(), 143)
        more.started()
        until(lambda: self.roles("/sem") == ["lease"] * 3)  # its place in the queue goes unawaited
        for h in first[1:] + [more]:
            h.stop()
        self.assertEqual(nodes(self.server, "/sem/leases") + nodes(self.server, "/sem/locks"), [])

    def test_the_number_may_be_shared(self):
        a = self.hold("semaphore", "--limit-node", "/n", "-n", "1", "/shared").started()
        b = self.hold("semaphore", "--limit-node", "/n", "/shared")
        until(lambda: len(nodes(self.server, "/shared/leases")) == 2)
        self.assertIsNone(b.run.process.poll())
        r = self.verb("set", "/n", "-", stdin=b"\0\0\0\2")
        self.assertEqual(r.code, 0, r)
        b.started()
        a.stop()
        b.stop()

    def test_usage(self):
        r = self.verb("semaphore", "/s", "--", "true")
        self.assertEqual(r.code, 64)
        self.assertIn("-n N", r.err)
        self.assertEqual(self.verb("semaphore", "-n", "0", "/s", "--", "true").code, 64)
        self.verb("create", "/no-number", "3")
        for words in ["-t"], ["-w", "3s"]:  # the second says so while it waits, too
            r = self.verb("semaphore", "--limit-node", "/no-number", *words, "/s", "--", "true")
            self.assertEqual(r.code, 75, r)
            self.assertIn("/no-number does not hold a number of leases", r.err)
            self.assertNotIn("held by", r.err)
        self.assertEqual(self.verb("semaphore", "-n", "2", "--limit-node", "n", "/s", "--",
                                   "true").code, 66)
        self.assertEqual(self.verb("rwlock", "/s").code, 64)
        self.assertEqual(self.verb("locks", "--force", "/s").code, 64)
        self.assertEqual(self.verb("locks", "revoke", "/s").code, 64)
        self.assertEqual(self.verb("locks", "revoke", "--force", "/s", "x").code, 64)

    # ---- check

    def test_check_knows_every_kind(self):
        shows = 'echo $CLAVE_TOKEN; exec sleep 1000'
        for words, path in ((["rwlock", "-r"], "/check-r"), (["rwlock", "-r"], "/check-r"),
                            (["rwlock"], "/check-w"), (["semaphore", "-n", "2"], "/check-s"),
                            (["semaphore", "-n", "2"], "/check-s"), (["elect"], "/check-e")):
            h = self.hold(*words, path, script=shows).started()
            token = h.run.line()
            self.addCleanup(h.stop)
            r = self.verb("check", path, token)
            self.assertEqual((r.code, r.err), (0, ""), (words, r))
            self.assertEqual(self.verb("check", path, int(token) + 1).code, 76)
        waits = self.hold("elect", "/check-e")
        self.addCleanup(waits.stop)
        until(lambda: len(queue(self.server, "/check-e")) == 2)
        self.assertEqual(self.roles("/check-e"), ["holder", "waiting"])
        self.assertEqual(self.verb("check", "/check-e",
                                   queue(self.server, "/check-e")[1]["token"]).code, 76)

    # ---- all locks, and paths that are none

    def test_all_locks_and_elections_of_a_server(self):
        s = server(flags=TICK)
        self.addCleanup(s.stop)
        kinds = {"/all/e": (["elect", "--id", "boss"], "election"), "/all/l": (["lock", "--name", "n"], "lock"),
                 "/all/r": (["rwlock", "-r"], "rw"), "/s": (["semaphore", "-n", "2"], "semaphore")}
        clave("create", "-p", "/config/web/url", "x", connect=s.connect)
        clave("slot", "limit", "/z", "2", connect=s.connect)
        self.assertEqual(clave("locks", connect=s.connect).out, "")
        holders = {path: Holder(s, *words, path).started() for path, (words, _) in kinds.items()}
        waiter = Holder(s, "lock", "/all/l")
        until(lambda: len(queue(s, "/all/l")) == 2)
        lines = [line.split() for line in clave("locks", connect=s.connect).out.splitlines()]
        self.assertEqual([(path, kind) for path, kind, *_ in lines], [(path, kind) for path, (_, kind) in kinds.items()])
        self.assertEqual([(line[2], line[3]) for line in lines], [("1", str(int(p == "/all/l"))) for p in kinds])
        self.assertEqual([line[6] for line in lines],
                         ["-"] + [str(holders[path].wrapper) for path in list(kinds)[1:]])
        self.assertEqual((lines[0][7], lines[1][7]), ("boss", "n"))
        told = [json.loads(line) for line in clave("locks", "--json", connect=s.connect).out.splitlines()]
        self.assertEqual([(t["path"], t["kind"]) for t in told], [(path, kind) for path, (_, kind) in kinds.items()])
        for h in waiter, *holders.values():
            h.stop()
        clave("slot", "take", "/z", "--id", "rack 4", connect=s.connect)
        self.assertRegex(clave("locks", connect=s.connect).out, r"^/z slot 1 0 \d+\w+ \S+ - rack 4\n$")

    def test_a_path_that_is_no_lock_is_said_to_be_none(self):
        self.verb("create", "-p", "/none/config/url", "x")
        self.verb("create", "-p", "/none/lock/config", "x")
        a = self.hold("lock", "/none/lock").started()
        e = self.hold("elect", "--id", "boss", "/none/e").started()
        none = "none of its children is a %s; to see all locks and elections: clave locks\n"
        for words, fault in ((["locks", "/"], "/: no lock: " + none % "place in a queue"),
                             (["locks", "/none"], "/none: no lock: " + none % "place in a queue"),
                             (["locks", "revoke", "/none", "x"], "/none: no lock: "),
                             (["locks", "break", "/none", "x"], "/none: no lock: "),
                             (["candidates", "/none"], "/none: no election: " + none % "candidate"),
                             (["leader", "/none"], "/none: no election: "), (["resign", "/none"], "/none: no election: "),
                             (["transfer", "/none", "x"], "/none: no election: "),
                             (["leader", "/none/lock"], "/none/lock: no election: "),
                             (["locks", "list"], "list: invalid path"), (["locks", "/none/lock", "x"], "unexpected"),
                             (["locks", "revok", "/none/lock", "x"], "'revok' is not a path; did you mean 'revoke'?")):
            r = self.verb(*words)
            self.assertEqual((r.code, r.out), (64 if "argument" in r.err or "did you" in r.err else 66, ""), (words, r))
            self.assertIn(fault, r.err)
        self.verb("rm", "/none/lock/config")
        self.assertIn("no election, but a lock; to see it: clave locks /none/lock", self.verb("leader", "/none/lock").err)
        self.verb("slot", "limit", "/none/slots", "1")
        for words in ["locks"], ["leader"], ["candidates"]:
            self.assertIn("but slots; to see them: clave slot list /none/slots", self.verb(*words, "/none/slots").err)
        self.assertEqual([at["pid"] for at in queue(self.server, "/none/lock")], [a.wrapper])
        for words in (["locks", "/none/e"], ["leader", "/none/e"], ["locks", "/missing"], ["candidates", "/missing"]):
            r = self.verb(*words)
            self.assertEqual((r.code, r.err), (0, ""), (words, r))
        self.assertEqual(self.verb("leader", "/missing").out, "vacant\n")
        a.stop()
        e.stop()

    # ---- revoke

    def test_who_is_revocable_lets_go_when_asked(self):
        for words in (["lock"], ["rwlock", "-r"], ["semaphore", "-n", "1"]):
            path = "/asked-" + words[0]
            a = self.hold(*words, "--revocable", path).started()
            token = str(queue(self.server, path)[0]["token"])
            r = self.verb("locks", "revoke", "--wait", "10s", path, token)
            self.assertEqual((r.code, r.err), (0, ""), r)
            self.assertRegex(r.out, rf"^{path}: asked \S+ pid {a.wrapper} \(sh -c .*\) to release it\n$")
            end = a.run.end()
            self.assertEqual(end.code, 76, end)
            self.assertIn("another participant asks for it", end.err)
            self.assertEqual(queue(self.server, path), [])

    def test_a_path_of_any_length(self):
        path = "/" + "p" * 1398
        a = self.hold("lock", "--revocable", path).started()
        before = self.verb("get", path)
        r = self.verb("locks", "revoke", "-w", "10s", path, queue(self.server, path)[0]["node"])
        self.assertEqual((r.code, r.err), (0, ""), r)
        self.assertEqual(a.run.end().code, 76)
        self.assertEqual(self.verb("get", path).out, before.out)

    def test_who_is_not_goes_on(self):
        for words in (["lock"], ["rwlock"], ["semaphore", "-n", "1"]):
            path = "/deaf-" + words[0]
            a = self.hold(*words, path).started()
            before = queue(self.server, path)[0]
            r = self.verb("locks", "revoke", path, before["node"])
            self.assertEqual((r.code, r.out), (73, ""), r)
            self.assertRegex(r.err, rf"{path}: \S+ pid {a.wrapper} .* takes no requests to release it .* nothing was "
                                    rf"asked; .*: clave locks break --force {path} {before['node']}$")
            after = queue(self.server, path)[0]
            self.assertEqual((before["revocable"], after["asked"], after["pid"]), (False, False, a.wrapper))
            self.assertTrue(alive(a.command))
            a.stop()

    def test_a_request_keeps_who_it_is(self):
        """One that takes its time is asked, and asked again: the node says so, and all it said before."""
        a = self.hold("lock", "--name", "slow", "--revocable", "--grace", "60s", "/kept",
                      script="trap '' TERM; while :; do sleep 0.1; done").started()
        before = queue(self.server, "/kept")[0]
        self.assertEqual((before["revocable"], before["asked"]), (True, False))
        for _ in range(2):
            r = self.verb("locks", "revoke", "--json", "/kept", before["node"])
            told = json.loads(r.out)
            self.assertEqual((r.code, told["asked"], told["revocable"], told["pid"]), (0, True, True, a.wrapper))
            after = queue(self.server, "/kept")[0]
            same = [{k: v for k, v in at.items() if k not in ("asked", "age_ms")} for at in (before, after)]
            self.assertEqual(same[0], same[1])
            self.assertTrue(after["asked"])
        self.assertIn(f"{a.wrapper} slow sh -c", self.verb("locks", "/kept").out)
        self.assertIn("(asked to release it)", self.verb("locks", "/kept").out)
        r = self.verb("locks", "revoke", "-w", "0.2", "/kept", before["node"])
        self.assertEqual(r.code, 75, r)
        self.assertIn("was not released", r.err)
        self.verb("locks", "break", "--force", "/kept", before["node"])
        a.run.end(signal.SIGKILL)

    def test_curators_word(self):
        """Curator's owners look for it, byte by byte; one of clave's that gets it says again who it is."""
        node = stranger(self, self.server).create("/curator/_c_1-lock-", b"127.0.0.1", ephemeral=True, sequence=True, makepath=True)
        r = self.verb("locks", "revoke", "/curator", node)
        self.assertEqual((r.code, r.out), (0, "/curator: asked 127.0.0.1 to release it; its node does not say whether "
                                              "it takes requests\n"))
        self.assertEqual(self.verb("get", node).out, "__REVOKE__")
        self.assertTrue(queue(self.server, "/curator")[0]["asked"])
        for flags in [], ["--revocable", "--grace", "60s"]:
            a = self.hold("lock", *flags, "/word", script="trap '' TERM; while :; do sleep 0.1; done").started()
            node = queue(self.server, "/word")[0]["node"]
            self.verb("set", "/word/" + node, "__REVOKE__")
            until(lambda: [at["pid"] for at in queue(self.server, "/word")] == [a.wrapper])
            at = queue(self.server, "/word")[0]
            self.assertEqual((at["asked"], at["revocable"], at["held_ms"]), (True, bool(flags), None))
            self.verb("locks", "break", "--force", "/word", node)
            self.assertEqual(a.run.end(signal.SIGKILL if flags else None).err.count("asks for it"), len(flags) > 0)

    def test_others_are_asked_as_they_can_be(self):
        node = stranger(self, self.server).create("/kazoo/" + "a" * 32 + "__lock__0000000000", b"me", ephemeral=True, makepath=True)
        r = self.verb("locks", "revoke", "/kazoo", "a" * 32 + "__lock__0000000000")
        self.assertEqual(r.code, 73, r)
        self.assertIn("takes no requests", r.err)
        self.assertEqual(self.verb("get", "/kazoo/" + "a" * 32 + "__lock__0000000000").out, "me", node)
        a = self.hold("elect", "--id", "boss", "/asked-leader").started()
        node = queue(self.server, "/asked-leader")[0]["node"]
        r = self.verb("locks", "revoke", "/asked-leader", node)
        self.assertIn("asked boss to release it", r.out)
        self.assertIn("asked to resign", a.run.end().err)

    def test_one_that_is_gone_cannot_be_asked(self):
        a = self.hold("lock", "--revocable", "/deaf").started()
        node = queue(self.server, "/deaf")[0]["node"]
        a.stop()
        r = self.verb("locks", "revoke", "/deaf", node)
        self.assertEqual(r.code, 66)
        self.assertIn("no participant has", r.err)

    # ---- break

    def test_break_refuses_a_live_owner_unless_forced(self):
        a = self.hold("lock", "/broken").started()
        node = queue(self.server, "/broken")[0]["node"]
        r = self.verb("locks", "break", "/broken", node)
        self.assertEqual(r.code, 73, r)
        self.assertIn(f"pid {a.wrapper}", r.err)
        self.assertIn("--force", r.err)
        self.assertEqual(len(queue(self.server, "/broken")), 1)
        b = self.hold("lock", "/broken")
        until(lambda: len(queue(self.server, "/broken")) == 2)
        r = self.verb("locks", "break", "--force", "/broken", node)
        self.assertEqual(r.code, 0, r)
        b.started()
        end = a.run.end()
        self.assertEqual(end.code, 76, end)
        self.assertIn("its node was deleted by another client", end.err)
        b.stop()

    def test_break_takes_what_a_dead_process_left(self):
        left = subprocess.Popen(["true"])
        left.wait()
        data = f"clave/1\nhost={os.uname().nodename}\npid={left.pid}\n"
        stranger(self, self.server).create("/left/lock-0000000000", data.encode(), ephemeral=True, makepath=True)
        r = self.verb("locks", "break", "/left", "lock-0000000000")
        self.assertEqual((r.code, r.err), (0, ""), r)
        self.assertEqual(nodes(self.server, "/left"), [])

    def test_break_asks_at_a_terminal(self):
        self.verb("create", "-p", "/tty/lock-0000000000", "x")
        for answer, code, rest in ((b"n\n", 73, 1), (b"\n", 73, 1), (b"y\n", 0, 0)):
            master, slave = pty.openpty()
            p = subprocess.Popen([CLAVE, "locks", "break", "/tty", "lock-0000000000"],
                                 stdin=slave, stderr=slave, stdout=slave, close_fds=True,
                                 env=environment(CLAVE_CONNECT=self.server.connect))
            os.close(slave)
            shown = b""
            while b"[y/N]" not in shown:
                shown += os.read(master, 1024)
            self.assertIn(b"Delete its node?", shown)
            os.write(master, answer)
            self.assertEqual(p.wait(PATIENCE), code)
            os.close(master)
            self.assertEqual(len(nodes(self.server, "/tty")), rest)

    # ---- nodes that no session owns

    def left_over(self, path, name):
        """What a program leaves that copied the tree while somebody was in the queue there."""
        self.assertEqual(self.verb("create", "-p", f"{path}/{name}", "x").code, 0)
        return name

    def ended_as_told(self, text):
        """Runs the command that a message or a line ends with."""
        command = text.strip().split("to delete it: ")[1].split("\n")[0].rstrip(")")
        self.assertTrue(command.startswith("clave "), command)
        return subprocess.run(["sh", "-c", command.replace("clave", CLAVE, 1)], env=environment(CLAVE_CONNECT=self.server.connect),
                              capture_output=True, text=True)

    def test_who_waits_behind_one_is_told_how_to_end_it(self):
        for verb, path, name, role in [(["lock"], "/o/lock", "_c_{}-lock-0000000000", "holder"),
                                       (["rwlock", "-r"], "/o/rw", "_c_{}-__WRIT__0000000000", "reader"),
                                       (["semaphore", "-n", "1"], "/o/sem", "leases/_c_{}-lease-0000000000", "lease"),
                                       (["semaphore", "-n", "1"], "/o/sem2", "locks/_c_{}-lock-0000000000", "lease"),
                                       (["elect"], "/o/svc", "_c_{}-latch-0000000000", "holder")]:
            with self.subTest(verb=verb, path=path):
                name = self.left_over(path, name.format("01234567-89ab-4def-8123-456789abcdef")).split("/")[-1]
                tries = "-t" if verb[0] == "semaphore" else "-n"
                for wait in [[tries], ["--wait", "1500ms"]][path == "/o/sem2":]:  # a try does not see whose is before it there
                    r = self.verb(*verb, *wait, path, "--", "true")
                    self.assertEqual(r.code, 75, r)
                    self.assertIn(f"left over: no session owns {name}; it never ends by itself; to delete it: ", r.err)
                    self.assertIn("1 ahead; left" if wait[0] == "--wait" and "lease" not in name else "left", r.err)
                lines = self.verb("locks", path).out
                self.assertRegex(lines, r"^1 left-over .* \(left over: no session owns this node; it never ends by itself; to delete it: ")
                self.assertIn("left over: no session owns 1 of its nodes", self.verb("locks").out)
                self.assertEqual([(p["role"], p["holder"], p["left_over"]) for p in queue(self.server, path)], [("left-over", False, True)])
                self.assertEqual(self.verb("locks", "revoke", path, name).code, 73)
                r = self.ended_as_told(lines)
                self.assertEqual(r.returncode, 0, r)
                self.hold(*verb, path).started().stop()

    def test_a_candidate_that_is_left_over_is_no_leader(self):
        name = self.left_over("/o/election", "_c_01234567-89ab-4def-8123-456789abcdef-latch-0000000000")
        r = self.verb("leader", "/o/election")
        self.assertEqual((r.code, r.out), (66, "vacant\n"))
        self.assertIn(f"left over: no session owns {name}", r.err)
        self.assertEqual(json.loads(self.verb("leader", "--json", "/o/election").out)["left_over"]["node"], name)
        self.assertRegex(self.verb("candidates", "/o/election").out, r"^1 left-over .*\(left over: ")
        waiter = self.hold("elect", "/o/election")
        until(lambda: len(queue(self.server, "/o/election")) == 2)
        self.assertEqual(self.verb("leader", "/o/election").code, 66)
        self.assertEqual(self.ended_as_told(r.err).returncode, 0)
        waiter.started()
        self.assertEqual(self.verb("leader", "/o/election").code, 0)
        waiter.stop()


if __name__ == "__main__":
    unittest.main()
