"""`clave lock`: what the command gets, exit codes, options, what is told."""
import json
import os
import re
import signal
import socket
import stat as mode
import subprocess
import time
import unittest

from harness import (CLAVE, PATIENCE, UNSAFE, Running, Served, clave, environment, free_port,
                     scratch, server, spawn)
from lock_rig import LONG, MAX_HOLD, TICK, Holder, alive, nodes, queue, stranger, until
from peers import Nonsense

# Signals 32 and 33: a program may inherit them ignored, and has no way to change that.
OF_LIBC = 3 << 31


class Lock(Served):
    flags = TICK

    def lock(self, *words, **keywords):
        return clave("lock", *words, connect=self.server.connect, **keywords)

    # ---- what the command gets

    def test_arguments_are_untouched(self):
        words = ["-n", "--", "a b", "", "$HOME", "*", "--help", "-c", "ü", "'\""]
        r = self.lock("/args", "--", "/usr/bin/printf", "[%s]", *words)
        self.assertEqual(r.out, "".join(f"[{w}]" for w in words), r)
        self.assertEqual(r.code, 0)

    def test_two_dashes_may_be_left_out(self):
        r = self.lock("-v", "/args", "-q", "printf", "%s.", "-n", "--", "-v")
        self.assertEqual(r.out, "-n.--.-v.", r)

    def test_streams_are_the_commands(self):
        data = os.urandom(200000)
        r = self.lock("/streams", "--", "cat", stdin=data)
        self.assertEqual((r.code, r.bytes, r.err), (0, data, ""))
        r = self.lock("/streams", "--", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual((r.out, r.err), ("out\n", "err\n"))

    def test_the_end_of_output_comes_with_the_end(self):
        """Nobody holds on to the pipe: not the guardian, not the server it talks to."""
        r = subprocess.run(["sh", "-c", '"$0" lock /pipe -- echo x | cat', CLAVE],
                           env=environment(CLAVE_CONNECT=self.server.connect),
                           stdout=subprocess.PIPE, timeout=PATIENCE)
        self.assertEqual(r.stdout, b"x\n")

    def test_open_descriptors_are_inherited(self):
        r, w = os.pipe()
        p = subprocess.Popen([CLAVE, "lock", "/fds", "--", "sh", "-c", f"echo hello >&{w}"],
                             pass_fds=[w], env=environment(CLAVE_CONNECT=self.server.connect))
        os.close(w)
        self.assertEqual(os.read(r, 100), b"hello\n")
        self.assertEqual(p.wait(), 0)
        self.assertEqual(os.read(r, 100), b"")
        os.close(r)

    def test_nothing_of_ours_is_inherited(self):
        r = self.lock("/fds", "--", "sh", "-c", "ls /proc/self/fd | wc -l")
        self.assertEqual(int(r.out), 4, "0, 1, 2 and that of ls itself")
        r = self.lock("/sigs", "--", "sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status")
        for name, bits in re.findall(r"Sig(Blk|Ign):\s*(\w+)", r.out):
            self.assertEqual(int(bits, 16) & ~OF_LIBC, 0, name)

    def test_ignored_signals_stay_ignored(self):
        p = spawn(["nohup", CLAVE, "lock", "/nohup", "--", "sh", "-c",
                   "grep SigIgn /proc/self/status"], stdin=subprocess.DEVNULL,
                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                  env=environment(CLAVE_CONNECT=self.server.connect))
        out, _ = p.communicate(timeout=PATIENCE)
        self.assertEqual(int(out.split()[1], 16) & ~OF_LIBC, 1)

    def test_environment(self):
        r = self.lock("/env/x", "--", "env")
        env = dict(line.split("=", 1) for line in r.out.splitlines() if "=" in line)
        self.assertEqual(env["CLAVE_PATH"], "/env/x")
        self.assertEqual(env["CLAVE_CONNECT"], self.server.connect)
        self.assertRegex(env["CLAVE_NODE"], r"^/env/x/_c_[0-9a-f-]{36}-lock-\d{10}$")
        self.assertRegex(env["CLAVE_TOKEN"], r"^[1-9]\d*$")
        self.assertRegex(env["CLAVE_SESSION"], r"^0x[0-9a-f]+$")
        self.assertRegex(env["CLAVE_DEADLINE"], r"^/proc/\d+/fd/\d+$")

    def test_the_page_tells_the_deadline(self):
        script = ("import os,struct,time;"
                  "d,t,s=struct.unpack('qqq',open(os.environ['CLAVE_DEADLINE'],'rb').read(24));"
                  "left=d-time.clock_gettime_ns(time.CLOCK_BOOTTIME)//10**6;"
                  "print(0 < left <= 10000, t == int(os.environ['CLAVE_TOKEN']),"
                  " s == int(os.environ['CLAVE_SESSION'], 16))\n"
                  "try: os.write(os.open(os.environ['CLAVE_DEADLINE'],os.O_RDWR),b'12345678')\n"
                  "except PermissionError: print('sealed')")
        r = self.lock("/page", "--", "/usr/bin/python3", "-c", script)
        self.assertEqual(r.out, "True True True\nsealed\n", r)

    def test_the_command_has_its_own_group(self):
        r = self.lock("/group", "--", "sh", "-c", "echo $$ $(cut -d' ' -f5 /proc/$$/stat)")
        pid, group = r.out.split()
        self.assertEqual(pid, group)

    def test_the_node_is_gone_afterwards(self):
        self.assertEqual(self.lock("/gone", "--", "true").code, 0)
        self.assertEqual(nodes(self.server, "/gone"), [])

    # ---- exit codes

    def test_the_commands_own_code(self):
        for code in (0, 1, 42, 75, 255):
            self.assertEqual(self.lock("/code", "--", "sh", "-c", f"exit {code}").code, code)

    def test_the_commands_signal(self):
        for sig in (1, 9, 10, 11, 15):
            r = self.lock("/sig", "--", "sh", "-c", f"kill -{sig} $$")
            self.assertEqual(r.code, 128 + sig, r)

    def test_usage(self):
        for words in (["/x"], [], ["/x", "--"], ["-w", "soon", "/x", "--", "true"],
                      ["-E", "256", "/x", "--", "true"], ["-E", "x", "/x", "--", "true"],
                      ["--on-lost", "cry", "/x", "--", "true"], ["--nonsense", "/x", "--", "true"],
                      ["--acl", "x", "/x", "--", "true"], ["--max-hold", "0ms", "/x", "true"]):
            r = self.lock(*words)
            self.assertEqual((r.code, r.out), (64, ""), (words, r))
            self.assertTrue(r.err.startswith("clave: lock: "), r)

    def test_bad_path(self):
        for path in ("x", "/x/", "/x//y", "/../x"):
            r = self.lock(path, "--", "echo", "ran")
            self.assertEqual((r.code, r.out), (66, ""), r)
            self.assertIn("invalid path", r.err)

    def test_a_parent_that_cannot_have_children(self):
        with_child = Holder(self.server, "/eph").started()
        node = nodes(self.server, "/eph")[0]
        r = self.lock(f"/eph/{node}/below", "--", "echo", "ran")
        self.assertEqual((r.code, r.out), (66, ""), r)
        with_child.run.end(15)

    def test_unreachable(self):
        nobody = f"127.0.0.1:{free_port()}"
        r = clave("lock", "--timeout", "2s", "-c", nobody, "/x", "--", "echo", "ran")
        self.assertEqual((r.code, r.out), (69, ""), r)
        self.assertIn(f"{nobody}: no server could be reached within 2s: cannot connect", r.err)
        r = clave("lock", "-w", "200ms", "-c", nobody, "/x", "--", "echo", "ran")
        self.assertEqual((r.code, r.out), (69, ""), r)

    def test_a_server_that_is_none(self):
        with socket.create_server(("127.0.0.1", 0)) as s:  # takes connections and says nothing
            r = clave("lock", "--timeout", "300ms", "-c", f"127.0.0.1:{s.getsockname()[1]}", "/x",
                      "--", "echo", "ran")
        self.assertEqual((r.code, r.out), (69, ""), r)

    def test_servers_that_cannot_be_understood(self):
        r = clave("lock", "-c", "a:b:c,", "/x", "--", "echo", "ran")
        self.assertEqual((r.code, r.out), (64, ""), r)

    def test_not_authorised(self):
        clave("create", "/closed", "--acl", "read", connect=self.server.connect)
        r = self.lock("/closed", "--", "echo", "ran")
        self.assertEqual((r.code, r.out), (77, ""), r)
        self.assertIn("not authorised", r.err)
        clave("create", "/joes", "--acl", "creator", "--auth", "digest:joe:x",
              connect=self.server.connect)
        self.assertEqual(self.lock("/joes", "--", "true").code, 77)
        self.assertEqual(self.lock("--auth", "digest:joe:x", "/joes", "--", "true").code, 0)

    def test_acl_of_the_node(self):
        r = self.lock("--acl", "creator", "/acl", "--", "true")
        self.assertEqual(r.code, 66, "the ACL needs an identity")
        script = 'echo $CLAVE_NODE; "$0" get "$CLAVE_NODE" >/dev/null; echo $?'
        r = self.lock("--acl", "creator", "--auth", "digest:joe:x", "/acl", "--", "sh", "-c",
                      script, CLAVE)
        self.assertEqual(r.out.split()[1], "77", r)

    def test_an_acl_that_keeps_others_from_waiting(self):
        """Said to who asks for it, and to who meets it."""
        joe = ["--auth", "digest:joe:x"]
        others = 'env -u CLAVE_OWNER "$0" lock -w 9s /own -- echo ran; echo $?'
        r = self.lock("--acl", "creator", *joe, "/own", "--", "sh", "-c", others, CLAVE)
        self.assertEqual(r.out, "77\n", r)
        self.assertIn("/own: with this --acl only a participant that may read the node can queue after it", r.err)
        self.assertIn("/own: not authorised", r.err)
        self.assertIn("to read the node before its own", r.err)
        r = self.lock("-q", "--acl", "creator", *joe, "/own", "--", "true")
        self.assertEqual((r.code, r.err), (0, ""), r)
        r = self.lock("--acl", "world:anyone:r,auth::cdrwa", *joe, "/own", "--", "sh", "-c",
                      'env -u CLAVE_OWNER "$0" lock -w 100ms /own -- echo ran; echo $?', CLAVE)
        self.assertEqual(r.out, "75\n", r)
        self.assertNotIn("--acl", r.err)

    def test_cannot_be_run(self):
        r = self.lock("/none", "--", "/no/such/command")
        self.assertEqual(r.code, 127, r)
        self.assertIn("cannot run '/no/such/command'", r.err)
        plain = self.lock("/none", "--", "no-such-command-anywhere")
        self.assertEqual((plain.code, "sh -c" in plain.err), (127, False), plain)
        line = self.lock("/none", "--", "echo hi; date")
        self.assertEqual(line.code, 127, line)
        self.assertIn("a line for a shell is given as: -- sh -c 'echo hi; date'\n", line.err)
        file = scratch("file")
        with open(file, "w") as f:
            f.write("#!/bin/sh\n")
        os.chmod(file, mode.S_IRUSR)
        self.assertEqual(self.lock("/none", "--", file).code, 126)
        self.assertEqual(self.lock("/none", "--", os.path.dirname(file)).code, 126)
        self.assertEqual(nodes(self.server, "/none"), [])

    def test_to_wait_and_not_to_wait(self):
        for verb in (["lock", "-n"], ["rwlock", "--no-wait"], ["semaphore", "-t", "-n", "1"], ["elect", "-n"]):
            for wait in ("3s", "0"):
                r = clave(*verb, "-w", wait, "/contradiction", "true", connect=self.server.connect)
                self.assertEqual(r.code, 64, r)
                self.assertIn("--no-wait and --wait contradict each other", r.err)

    # ---- not acquired

    def test_no_wait(self):
        holder = Holder(self.server, "/busy").started()
        for flags in (["-n"], ["--no-wait"], ["-w", "0ms"], ["--wait", "0"]):
            r = self.lock(*flags, "/busy", "--", "echo", "ran")
            self.assertEqual((r.code, r.out), (75, ""), r)
            self.assertRegex(r.err, rf"/busy: held by \S+ pid {holder.wrapper} \(sh -c .*\); to see the queue: "
                                    r"clave locks /busy\n$")
        event = json.loads(self.lock("-n", "--json", "/busy", "true").err)
        self.assertEqual((event["event"], event["holder"]["pid"]), ("not-acquired", holder.wrapper))
        self.assertEqual(self.lock("-n", "-E", "9", "/busy", "--", "true").code, 9)
        self.assertEqual(self.lock("-n", "-E", "0", "/busy", "--", "true").code, 0)
        r = self.lock("-n", "-q", "/busy", "--", "true")
        self.assertEqual((r.code, r.err), (75, ""))
        self.assertEqual(len(nodes(self.server, "/busy")), 1, "no node is left")
        holder.run.end(15)
        self.assertEqual(self.lock("-n", "/busy", "--", "echo", "ran").out, "ran\n")

    def test_hints_can_be_pasted(self):
        """With the flags that named the server; other kinds of locks name the holder as well."""
        c, path = self.server.connect, "/it's busy"
        for n, (verb, tries) in enumerate(((["lock"], ["-n"]), (["rwlock"], ["-n", "-r"]),
                                           (["semaphore", "-n", "1"], ["-t"]))):
            holder = Holder(self.server, path + str(n), verb=verb).started()
            r = clave("-c", c, *verb, *tries, path + str(n), "--", "true")
            self.assertEqual(r.code, 75, r)
            self.assertIn(f"pid {holder.wrapper} (sh -c ", r.err)
            hint = r.err.strip().partition("to see the queue: clave ")[2]
            seen = subprocess.run(["sh", "-c", f'"$CLAVE" --json {hint}'], env=environment(CLAVE=CLAVE),
                                  capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(json.loads(seen.stdout)["pid"], holder.wrapper, (hint, seen))
            holder.run.end(15)

    def test_wait(self):
        holder = Holder(self.server, "/slow").started()
        start = time.monotonic()
        runs = [Running("lock", "-w", "3s", *more, "/slow", "--", "echo", "ran",
                        connect=self.server.connect) for more in ([], ["-E", "3"])]
        r, other = (run.end() for run in runs)
        self.assertGreaterEqual(time.monotonic() - start, 3)
        self.assertEqual((r.code, r.out), (75, ""), r)
        self.assertRegex(r.err, rf"not acquired within \d+s; held by \S+ pid {holder.wrapper} ")
        self.assertEqual((other.code, other.out), (3, ""), other)
        self.assertEqual(len(nodes(self.server, "/slow")), 1, "no node is left")
        waiter = Holder(self.server, "/slow", "-w", "60s").waiting(self.server, "/slow", 2)
        holder.run.end(15)
        waiter.started().run.end(15)

    # ---- one at a time

    def test_exclusion(self):
        """Eight processes count in a file with an unsafe read and write."""
        counter = scratch("counter")
        with open(counter, "w") as f:
            f.write("0")
        script = 'for i in 1 2 3 4 5; do n=$(cat "$0"); n=$((n+1)); echo $n > "$0"; done'
        runs = [Running("lock", "/count", "--", "sh", "-c", script, counter,
                        connect=self.server.connect) for _ in range(8)]
        for run in runs:
            self.assertEqual(run.end().code, 0)
        with open(counter) as f:
            self.assertEqual(int(f.read()), 40, f"{UNSAFE}: two holders, or a lost one")

    def test_tokens_grow(self):
        tokens = [int(self.lock("/tokens", "--", "sh", "-c", "echo $CLAVE_TOKEN").out)
                  for _ in range(4)]
        self.assertEqual(tokens, sorted(set(tokens)), f"{UNSAFE}: tokens that do not grow")

    # ---- who holds it, and for how long

    def holder(self, path):
        return [p for p in queue(self.server, path) if p["holder"]][0]

    def line_of_holder(self, path):
        return clave("locks", path, connect=self.server.connect).out.splitlines()[0]

    def test_the_time_it_is_held(self):
        """Not that in the queue."""
        for verb in (["lock"], ["rwlock"], ["semaphore", "-n", "1"]):
            path = "/held-" + verb[0]
            first = Holder(self.server, path, verb=verb).started()
            before = self.holder(path)
            self.assertLessEqual(before["held_ms"], before["age_ms"] + 50)
            second = Holder(self.server, path, verb=verb).waiting(self.server, path, 2)
            waits = [p for p in queue(self.server, path) if not p["holder"]][0]
            self.assertIsNone(waits["held_ms"])
            time.sleep(1.5)  # in the queue
            free = time.monotonic()
            first.run.end(signal.SIGTERM)
            second.started()
            until(lambda: self.holder(path)["held_ms"] <= (time.monotonic() - free) * 1000)
            self.assertNotIn("<", self.line_of_holder(path))
            second.run.end(signal.SIGTERM)

    def test_what_it_holds_is_not_lost(self):
        """What the locks add to the node for deadlocks stands there after the write, too."""
        first = Holder(self.server, "/kept").started()
        second = Holder(self.server, "/kept", "--detect-deadlock").waiting(self.server, "/kept", 2)
        node = "/kept/" + max(nodes(self.server, "/kept"), key=lambda n: n[-10:])
        before = clave("get", node, connect=self.server.connect).out
        self.assertIn("granted=ctime\n", before)
        self.assertIn("yields=1\n", before)
        first.run.end(signal.SIGTERM)
        second.started()
        until(lambda: clave("get", node, connect=self.server.connect).out == before.replace("ctime", "mtime"))
        second.run.end(signal.SIGTERM)

    def test_a_time_that_nobody_knows(self):
        """A revocable holder's node is written to by others; Curator's and kazoo's say nothing."""
        first = Holder(self.server, "/unknown", "--revocable").started()
        self.assertIsNone(self.holder("/unknown")["held_ms"])
        self.assertRegex(self.line_of_holder("/unknown"), r"^1 holder +\d+ +<\d+m?s ")
        second = Holder(self.server, "/unknown", "--revocable").waiting(self.server, "/unknown", 2)
        first.run.end(signal.SIGTERM)
        second.started()
        self.assertIsNone(self.holder("/unknown")["held_ms"])
        self.assertTrue(alive(second.command))
        second.run.end(signal.SIGTERM)

    # ---- maximum hold

    def test_max_hold(self):
        r = self.lock(*MAX_HOLD, "/max", "--", "sleep", "100")
        self.assertEqual(r.code, 76, r)
        self.assertIn("the maximum hold has been reached", r.err)
        self.assertEqual(self.lock("--max-hold", "60s", "/max", "--", "true").code, 0)

    def test_max_hold_kills_what_ignores_term(self):
        r = self.lock(*MAX_HOLD, "/max", "--", "sh", "-c",
                      "trap 'echo term' TERM; while :; do sleep 0.05; done")
        self.assertEqual((r.code, r.out), (76, "term\n"), r)

    def test_max_hold_is_the_commands_in_full(self):
        """SIGTERM comes when the manual says so: at its end, and not before."""
        r = self.lock("--max-hold", "2s", "/max", "--", "sh", "-c",
                      "trap 'date +%s%N; exit' TERM; date +%s%N; while :; do sleep 0.02; done")
        begun, told = map(int, r.out.split())
        self.assertEqual(r.code, 76, r)
        self.assertGreater(told - begun, 1.8e9, "the hold had begun somewhat before the command")

    def test_the_grace_of_the_maximum_hold_comes_behind_it(self):
        r = self.lock("--session-timeout", LONG, "--max-hold", "500ms", "--grace", "1s", "/max",
                      "--", "sh", "-c", "trap : TERM; while :; do date +%s%N; sleep 0.02; done")
        beats = list(map(int, r.out.split()))
        self.assertEqual(r.code, 76, r)
        self.assertGreater(beats[-1] - beats[0], 1.2e9)

    def test_the_page_knows_the_maximum_hold(self):
        r = self.lock("--max-hold", "5s", "/max", "--", CLAVE, "check", "--for", "6s")
        self.assertEqual(r.code, 76, r)
        r = self.lock(*MAX_HOLD, "/max", "--", CLAVE, "check", "--for", "1s")
        self.assertEqual(r.code, 0, r)

    def test_a_grace_that_is_too_long(self):
        r = self.lock("--grace", "1h", "/grace", "--", "true")
        self.assertEqual(r.code, 0)
        self.assertRegex(r.err, r"the grace is \d+ms, a quarter of the session timeout")

    # ---- what is told

    def test_silence(self):
        r = self.lock("/silent", "--", "true")
        self.assertEqual((r.out, r.err), ("", ""))

    def test_verbose(self):
        r = self.lock("-v", "/loud", "--", "sh", "-c", "exit 3")
        self.assertRegex(r.err, r"clave: lock: /loud: acquired after \d+m?s, token \d+, session 0x")
        self.assertRegex(r.err, r"clave: lock: /loud: the command has ended after .*; exit code 3")

    def test_session_timeout_outside_the_limits(self):
        """Said once, with and without -v, and as an event; not if it is what was requested."""
        limited = r"limited the session timeout to \d+ ms \(requested 3600000 ms\): its maxSessionTimeout"
        for flags, times in ((["-v"], 1), ([], 1), (["--json"], 1), (["--session-timeout", "10s"], 0)):
            with self.subTest(flags):
                r = self.lock("--session-timeout", "1h", *flags, "/limits", "--", "true")
                self.assertEqual(r.code, 0, r)
                self.assertEqual(len(re.findall(limited, r.err)), times, r.err)
        r = self.lock("--session-timeout", "10ms", "/limits", "--", "true")
        self.assertRegex(r.err, r"\(requested 10 ms\): its minSessionTimeout .* allows no less")

    def test_json(self):
        r = self.lock("--json", "/json", "--", "sh", "-c", "echo out; exit 4")
        self.assertEqual(r.out, "out\n", "standard output is the command's")
        events = [json.loads(line) for line in r.err.splitlines()]
        self.assertEqual([e["event"] for e in events], ["acquired", "ended"])
        self.assertEqual(events[1]["code"], 4)
        self.assertGreater(events[0]["token"], 0)
        self.assertTrue(all(e["path"] == "/json" for e in events))

    def test_waiting_is_told(self):
        holder = Holder(self.server, "/told", "--name", "first one").started()
        lines = Running("lock", "/told", "--", "true", connect=self.server.connect)
        said = lines.process.stderr.readline()
        self.assertRegex(said, r"^clave: lock: /told: waiting, 1 ahead; held by .* pid "
                         + str(holder.wrapper) + r" \(first one\)$")
        events = Running("lock", "--json", "/told", "--", "true", connect=self.server.connect)
        event = json.loads(events.process.stderr.readline())
        self.assertEqual((event["event"], event["ahead"]), ("waiting", 2))
        self.assertEqual((event["holder"]["pid"], event["holder"]["name"]),
                         (holder.wrapper, "first one"))
        holder.run.end(15)
        self.assertEqual((lines.end().code, events.end().code), (0, 0))

    def test_the_holders_trace_is_told(self):
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        holder = Holder(self.server, "/traced", env={"TRACEPARENT": trace}).started()
        waiter = Running("lock", "/traced", "--", "true", connect=self.server.connect,
                         env={"TRACEPARENT": "nonsense"})
        self.assertRegex(waiter.process.stderr.readline(),
                         r"held by .*, trace 4bf92f3577b34da6a3ce929d0e0e4736$")
        self.assertEqual([p["traceparent"] for p in queue(self.server, "/traced")], [trace, None])
        events = Running("lock", "--json", "/traced", "--", "true", connect=self.server.connect)
        event = json.loads(events.process.stderr.readline())
        self.assertEqual(event["holder"]["traceparent"], trace)
        holder.run.end(15)
        self.assertEqual((waiter.end().code, events.end().code), (0, 0))

    def test_waiting_without_a_server_is_told(self):
        s = server(flags=TICK)
        holder = Holder(s, "/away").started()
        # For so long that all of them are in the queue before the server goes.
        waiters = [Running("lock", "-w", "9s", *more, "/away", "--", "true", connect=s.connect)
                   for more in ((), ("--json",))]
        until(lambda: len(queue(s, "/away")) == 3)
        s.stop()
        self.assertEqual(holder.code(), 76)
        line, event = (w.end() for w in waiters)
        self.assertEqual((line.code, event.code), (75, 75), line)
        # The newest fault: of an attempt to connect, or of the session that has run out.
        why = f"cannot connect to {s.connect}|no server confirmed"
        self.assertRegex(line.err, rf"not acquired within \d+s, no server is answering: ({why})")
        last = json.loads(event.err.splitlines()[-1])
        self.assertEqual(last["event"], "not-acquired")
        self.assertRegex(last["why"], why)

    def test_a_server_that_makes_sessions_and_no_sense_is_told(self):
        peer = Nonsense()
        r = clave("lock", "-w", "4s", "/a", "--", "true", connect=peer.connect)
        self.assertEqual((r.code, r.out), (75, ""), r)
        self.assertIn(f"no server is answering: {peer.connect} sent a reply to no request of ours", r.err)
        peer.close()

    def test_control_characters_of_others_are_not_shown(self):
        holder = Holder(self.server, "/evil", "--name", "\033[31m\u009b7").started()
        waiter = Running("lock", "/evil", "--", "true", connect=self.server.connect)
        said = waiter.process.stderr.readline()
        self.assertIn("(?[31m?7)", said)
        r = clave("locks", "/evil", connect=self.server.connect)
        self.assertNotIn("\033", r.out)
        holder.run.end(15)
        waiter.end()

    # ---- locks and check

    def test_locks(self):
        self.assertEqual(clave("locks", "/none/there", connect=self.server.connect).out, "")
        a = Holder(self.server, "/roll", "--name", "a b").started()
        b = Holder(self.server, "/roll", script="true it").waiting(self.server, "/roll", 2)
        list_ = queue(self.server, "/roll")
        self.assertEqual([p["position"] for p in list_], [1, 2])
        self.assertEqual([p["holder"] for p in list_], [True, False])
        self.assertEqual([p["pid"] for p in list_], [a.wrapper, b.wrapper])
        self.assertEqual([p["host"] for p in list_], [socket.gethostname()] * 2)
        self.assertEqual([p["name"] for p in list_], ["a b", None])
        self.assertEqual(list_[1]["command"], "sh -c echo $$; true it")
        self.assertLess(list_[0]["token"], list_[1]["token"])
        self.assertTrue(0 <= list_[0]["age_ms"] < 60000)
        lines = clave("locks", "/roll", connect=self.server.connect).out.splitlines()
        self.assertRegex(lines[0], rf"^1 holder  \d+ +\w+ {socket.gethostname()} {a.wrapper} a_b sh")
        self.assertRegex(lines[1], rf"^2 waiting \d+ +\w+ {socket.gethostname()} {b.wrapper} - sh -c")
        a.run.end(15)
        self.assertEqual(b.code(), 0)
        until(lambda: queue(self.server, "/roll") == [])

    def test_locks_of_others(self):
        stranger(self, self.server).create("/others/lock-0000000007", b"10.0.0.1", ephemeral=True, makepath=True)
        self.assertRegex(clave("locks", "/others", connect=self.server.connect).out,
                         r"^1 holder  \d+ +<\w+ - - - 10\.0\.0\.1\n$")

    def test_check_inside(self):
        script = '"$0" check && "$0" check --for 1s -v; "$0" check --for 1h; echo $?'
        r = self.lock("/check", "--", "sh", "-c", script, CLAVE)
        self.assertEqual(r.out, "76\n", r)
        self.assertRegex(r.err, r"held with token \d+, for \d+ms at least")
        r = self.lock("/check", "--", CLAVE, "check", "--json")
        told = json.loads(r.out)
        self.assertEqual((told["held"], told["path"]), (True, "/check"))
        self.assertTrue(0 < told["left_ms"] <= 10000)

    def test_check_by_the_server(self):
        script = 'CLAVE_DEADLINE=/proc/1/fd/0 "$0" check; echo $?; echo $CLAVE_TOKEN'
        r = self.lock("/check", "--", "sh", "-c", script, CLAVE)
        code, token = r.out.split()
        self.assertEqual(code, "0", r)
        self.assertEqual(clave("check", "/check", token, connect=self.server.connect).code, 76)
        holder = Holder(self.server, "/check").started()
        token = queue(self.server, "/check")[0]["token"]
        self.assertEqual(clave("check", "/check", token, connect=self.server.connect).code, 0)
        r = clave("check", "/check", token + 1, connect=self.server.connect)
        self.assertEqual((r.code, r.out), (76, ""))
        self.assertIn("not held with token", r.err)
        holder.run.end(15)

    def test_check_usage(self):
        for words in ([], ["/x"], ["/x", "y"], ["/x", "1", "2"], ["--for", "1s", "/x", "1"]):
            r = clave("check", *words, connect=self.server.connect)
            self.assertEqual((r.code, r.out), (64, ""), (words, r))

    def test_guarded_write_under_the_lock(self):
        clave("create", "/guarded", "0", connect=self.server.connect)
        r = self.lock("/guard", "--", CLAVE, "set", "--guard", "/guarded", "1")
        self.assertEqual(r.code, 0, r)
        self.assertEqual(clave("get", "/guarded", connect=self.server.connect).out, "1")


class Local(unittest.TestCase):
    def test_nothing_to_set_up(self):
        """The command of the README's first line, on a machine with no server."""
        env = {"CLAVE_LOCAL_DIR": scratch("local")}
        r = clave("lock", "/jobs/nightly", "--", "echo", "ran", env=env)
        self.assertEqual((r.code, r.out), (0, "ran\n"), r)
        self.assertIn("other users and other machines are not excluded", r.err)
        r = clave("lock", "/jobs/nightly", "--", CLAVE, "check", env=env)
        self.assertEqual(r.code, 0, r)

    def test_the_local_server_is_no_offspring(self):
        """A command that starts it is swept away; the server goes on."""
        far = server()
        env = {"CLAVE_LOCAL_DIR": scratch("local"), "CLAVE_CONNECT": far.connect}
        r = clave("lock", "/outer", "--", "sh", "-c", '"$0" -c local: create /x', CLAVE, env=env)
        self.assertEqual(r.code, 0, r)
        with_pid = [p for p in os.listdir("/proc") if p.isdigit() and
                    env["CLAVE_LOCAL_DIR"].encode() in cmdline(p)]
        self.assertEqual(len(with_pid), 1)
        os.kill(int(with_pid[0]), 15)
        far.stop()


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


if __name__ == "__main__":
    unittest.main()
