"""`clave slot`: its parts and their exit codes; slots that outlive processes and servers; answers that
are lost on the way; twenty takers, and the history of the nodes that they left."""
import json
import os
import pty
import random
import re
import shlex
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

from harness import (CLAVE, PATIENCE, UNSAFE, ClaveServer, Running, Served, clave, environment,
                     scratch)
from lock_rig import LONG, TICK, until

DELETE, MULTI, CREATE2 = 2, 14, 15


class Slots(Served):
    flags = TICK

    def slot(self, *words, **keywords):
        return clave("slot", *words, connect=self.server.connect, **keywords)

    def take(self, name, *words):
        r = self.slot("take", self.path, "--id", name, "--json", *words)
        self.assertEqual(r.code, 0, r)
        return json.loads(r.out)

    def limit(self, n):
        r = self.slot("limit", self.path, str(n))
        self.assertEqual((r.code, r.out), (0, ""), r)

    def owners(self):
        r = self.slot("list", self.path, "--json")
        self.assertEqual(r.code, 0, r)
        return [json.loads(line) for line in r.out.splitlines()]

    def ids(self):
        return [o["id"] for o in self.owners()]

    # ---- the limit

    def test_a_limit_is_set_and_printed(self):
        self.limit(3)
        self.assertEqual(self.slot("limit", self.path).out, "3\n")
        self.take("a")
        r = self.slot("limit", self.path, "--json")
        self.assertEqual(json.loads(r.out), {"path": self.path, "limit": 3, "owned": 1})
        for bad in ("-1", "x", "2147483648", "", "1k"):
            r = self.slot("limit", "--", self.path, bad)
            self.assertEqual(r.code, 64, r)
        self.limit(0)
        self.assertEqual(self.ids(), ["a"], "a lower limit takes nobody's slot")
        self.assertEqual(self.slot("take", "-n", self.path, "--id", "b").code, 75)

    def test_without_a_limit_the_message_says_how_to_set_one(self):
        for words in (("take", self.path, "--id", "a"), ("limit", self.path), ("list", self.path),
                      ("run", self.path, "--id", "a", "--", "true")):
            r = self.slot(*words)
            self.assertEqual(r.code, 66, r)
            self.assertIn(f"clave slot limit {self.path} N", r.err)

    # ---- take and give

    def test_a_slot_is_taken_once_and_given_once(self):
        self.limit(1)
        first = self.take("a", "--by", "ann", "--reason", "kernel 6")
        self.assertTrue(first["taken"])
        self.assertEqual((first["by"], first["reason"], first["id"]), ("ann", "kernel 6", "a"))
        self.assertEqual(first["host"], socket.gethostname())
        r = self.slot("take", self.path, "--id", "a")
        self.assertEqual((r.code, r.out), (0, f"{first['token']}\n"))
        self.assertIn("a owns a slot already, since ", r.err)
        r = self.slot("give", self.path, "--id", "a")
        self.assertEqual((r.code, r.out, r.err), (0, "", ""))
        r = self.slot("give", self.path, "--id", "a")
        self.assertEqual(r.code, 0, r)
        self.assertIn("a owns no slot", r.err)
        second = self.take("a")
        self.assertGreater(second["token"], first["token"])
        self.assertNotEqual(second["node"], first["node"])
        r = self.slot("give", self.path, "--id", "a", "--token", str(first["token"]), "--json")
        self.assertEqual(json.loads(r.out), {"path": self.path, "id": "a", "given": False, "token": None})
        self.assertEqual(self.ids(), ["a"], "a late give of an earlier take")
        r = self.slot("give", self.path, "--id", "a", "--token", str(second["token"]), "--json")
        self.assertEqual(json.loads(r.out),
                         {"path": self.path, "id": "a", "given": True, "token": second["token"]})
        self.assertEqual(self.owners(), [])

    def test_a_take_waits_and_gives_up_in_time(self):
        self.limit(1)
        self.take("a")
        for words in (("-w", "200ms"), ("-w", "0"), ("--no-wait",)):
            r = self.slot("take", self.path, "--id", "b", *words)
            self.assertEqual(r.code, 75, r)
            self.assertIn(f"clave slot list {self.path}", r.err)
        waiter = Running("slot", "take", self.path, "--id", "b", connect=self.server.connect)
        until(lambda: self.waiters() == ["b"])
        self.assertEqual(self.slot("give", self.path, "--id", "a").code, 0)
        r = waiter.end()
        self.assertEqual(r.code, 0, r)
        self.assertEqual(self.owners()[0]["token"], int(r.out))
        self.assertEqual(self.ids(), ["b"])
        self.assertEqual(self.waiters(), [])

    def waiters(self):
        r = self.slot("list", self.path, "--waiters", "--json")
        self.assertEqual(r.code, 0, r)
        return [o["id"] for o in map(json.loads, r.out.splitlines()) if o["waits"]]

    def test_a_signal_ends_a_take_and_its_place_goes_at_once(self):
        self.limit(1)
        self.take("a")
        waiter = Running("slot", "take", self.path, "--id", "b", "--session-timeout", LONG,
                         connect=self.server.connect)
        until(lambda: self.waiters() == ["b"])
        self.assertEqual(waiter.end(signal.SIGTERM).code, 143)
        self.assertEqual(self.waiters(), [])

    def test_a_raised_limit_admits_those_that_wait(self):
        self.limit(1)
        self.take("a")
        waiter = Running("slot", "take", self.path, "--id", "b", connect=self.server.connect)
        until(lambda: self.waiters() == ["b"])
        self.limit(2)
        self.assertEqual(waiter.end().code, 0)
        self.assertEqual(self.ids(), ["a", "b"])

    # ---- ids

    def test_ids_that_are_odd_and_ids_that_are_wrong(self):
        self.limit(9)
        odd = ["web/1", "a b", "ä%", "x" * 128, "-a", ".."]
        for name in odd:
            self.take(name)
        self.assertEqual(self.ids(), odd)
        self.assertEqual(self.slot("list", self.path).out.splitlines(), odd)
        for name in ("", "x" * 129, "a\nb", b"\xff"):
            r = self.slot("take", self.path, "--id", name)
            self.assertEqual(r.code, 64, r)
            self.assertIn("1 to 128 bytes" if name else "--id is empty", r.err)
        r = self.slot("take", self.path, "--id", "a", "--reason", "x" * 1025)
        self.assertEqual(r.code, 64, r)

    def test_the_default_id_is_derived_from_the_machine_id(self):
        try:
            with open("/etc/machine-id", encoding="ascii") as f:
                secret = f.read().strip()
        except FileNotFoundError:
            secret = ""
        if not re.fullmatch("[0-9a-f]{32}", secret):
            self.skipTest("this machine has no machine id")
        self.limit(2)
        mine = json.loads(self.slot("take", self.path, "--json").out)
        self.assertRegex(mine["id"], r"^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        self.assertNotEqual(mine["id"].replace("-", ""), secret)
        self.assertEqual(json.loads(self.slot("take", self.path, "--json").out)["token"], mine["token"])
        self.assertEqual(self.slot("give", self.path).code, 0)
        self.assertEqual(self.owners(), [])
        # Now it is taken by a machine that shares the id.
        node = os.path.dirname(mine["node"])
        r = clave("create", node, f"clave/1\nhost=elsewhere\nname={mine['id']}\n", connect=self.server.connect)
        self.assertEqual(r.code, 0, r)
        self.assertEqual(self.owners()[0]["host"], "elsewhere")
        for words in (("take",), ("give",)):
            r = self.slot(*words, self.path)
            self.assertEqual(r.code, 73, r)
            self.assertIn("taken by host elsewhere: cloned machines share their id", r.err)
        r = self.slot("run", self.path, "--", "touch", scratch("never"))
        self.assertEqual(r.code, 73, r)
        self.assertEqual(self.ids(), [mine["id"]])
        self.assertEqual(self.slot("give", self.path, "--id", mine["id"]).code, 0)
        self.assertEqual(self.owners(), [])

    def test_a_machine_without_an_id_is_told_to_name_one(self):
        def without(*words):
            return subprocess.run(["unshare", "-m", "sh", "-c",
                                   'mount --bind /dev/null /etc/machine-id && exec "$0" "$@"', *words],
                                  capture_output=True, text=True, timeout=PATIENCE,
                                  env=environment(CLAVE_CONNECT=self.server.connect))
        if without("true").returncode != 0:
            self.skipTest("no mounts of its own")
        r = without(CLAVE, "slot", "take", self.path)
        self.assertEqual(r.returncode, 64, r)
        self.assertIn("/etc/machine-id", r.stderr)
        self.assertIn("--id", r.stderr)

    # ---- list and break

    def test_a_terminal_is_shown_more(self):
        self.limit(2)
        self.take("a", "--by", "ann", "--reason", "kernel 6")
        self.take("b")
        self.assertEqual(self.slot("break", self.path, "b", "--reason", "disk gone", "--by", "op").code, 0)
        main, end = pty.openpty()
        p = subprocess.Popen([CLAVE, "slot", "list", self.path], stdout=end,
                             env=environment(CLAVE_CONNECT=self.server.connect))
        os.close(end)
        self.assertEqual(p.wait(PATIENCE), 0)
        text = os.read(main, 65536).decode()
        os.close(main)
        self.assertIn("1 owned, the limit is 2", text)
        self.assertRegex(text, r"ID +HOST +SINCE +KEPT BY REASON")
        self.assertRegex(text, r"a +\S+ +20\S+Z +\S+ ann kernel 6")
        self.assertRegex(text, r"broken last: b, 20\S+Z, by op: disk gone")

    def test_a_break_takes_the_slot_of_its_id_only(self):
        self.limit(2)
        a, b = self.take("a"), self.take("b")
        self.assertEqual(self.slot("break", self.path, "a").code, 64, "a reason is due")
        r = self.slot("break", self.path, "a", "--reason", "r", "--token", str(b["token"]))
        self.assertEqual(r.code, 66, r)
        self.assertEqual(self.ids(), ["a", "b"])
        r = self.slot("break", self.path, "a", "--reason", "r", "--token", str(a["token"]), "--json")
        self.assertEqual(json.loads(r.out), {"path": self.path, "id": "a", "broken": True, "token": a["token"]})
        self.assertEqual(self.ids(), ["b"])
        r = self.slot("break", self.path, "a", "--reason", "r")
        self.assertEqual(r.code, 66, r)
        self.assertIn("a owns no slot", r.err)

    def test_what_is_wrong_on_the_command_line(self):
        for words in (("take",), ("steal", "/p"), ("take", "/p", "/q"), ("break", "/p", "--reason", "r"),
                      ("run", "/p"), ("give", "/p", "-w", "1s"), ("list", "/p", "--id", "a"),
                      ("run", "/p", "--keep", "sometimes", "--", "true"), ("take", "/p", "--acl", "parent")):
            r = self.slot(*words)
            self.assertEqual(r.code, 64, r)
        self.assertEqual(self.slot("take", "p").code, 66)

    def test_access_lists(self):
        joe = ("--auth", "digest:joe:secret")
        r = self.slot("limit", self.path, "1", "--acl", "creator", *joe)
        self.assertEqual(r.code, 0, r)
        self.assertEqual(self.slot("take", self.path, "--id", "a", "--acl", "creator", *joe).code, 0)
        for words in (("take", self.path, "--id", "b"), ("give", self.path, "--id", "a"), ("list", self.path),
                      ("break", self.path, "a", "--reason", "r"), ("limit", self.path, "2")):
            r = self.slot(*words)
            self.assertEqual(r.code, 77, r)
        self.assertEqual(self.slot("give", self.path, "--id", "a", *joe).code, 0)
        self.assertEqual(self.slot("take", self.path, "--id", "a", "--acl", "creator").code, 66,
                         "the creator is nobody")

    # ---- what strangers put there

    def line(self, err):
        """The command that a message ends with."""
        return shlex.split(re.findall(r"to (?:remove|set) it: clave (.*)", err)[-1])

    def test_a_child_of_the_owners_that_is_no_slot_is_said_and_removed(self):
        self.limit(1)
        for name in ("foo", "it's no slot"):
            node = f"{self.path}/owners/{name}"
            self.assertEqual(clave("create", node, "", connect=self.server.connect).code, 0)
            r = self.slot("take", "-n", self.path, "--id", "a")
            self.assertEqual(r.code, 75, r)
            self.assertIn("1 owner, the limit is 1", r.err)
            said = [r.err]
            r = self.slot("list", self.path)
            self.assertEqual((r.code, r.out), (0, ""), "it is no id")
            said.append(r.err)
            self.assertEqual([(o["id"], o["node"]) for o in self.owners()], [(None, node)])
            r = self.slot("give", self.path, "--id", name)
            self.assertEqual(r.code, 0, r)
            said.append(r.err)
            for err in said:
                self.assertIn(f"{node} is not a slot, but counts as one", err)
            waits = Running("slot", "take", self.path, "--id", "a", connect=self.server.connect)
            until(lambda: self.waiters() == ["a"])
            if name == "foo":
                r = self.slot("break", self.path, name, "--reason", "gone")
            else:
                r = clave(*self.line(said[1]), connect=self.server.connect)
            self.assertEqual(r.code, 0, r)
            r = waits.end()
            self.assertEqual(r.code, 0, r)
            self.assertIn(f"{node} is not a slot, but counts as one", r.err)
            self.assertEqual(self.slot("give", self.path, "--id", "a").code, 0)

    def test_a_limit_that_is_text_is_said_and_set(self):
        self.limit(1)
        self.assertEqual(clave("set", f"{self.path}/limit", "3", connect=self.server.connect).code, 0)
        said = "the node of the limit holds no number of slots, so nobody takes any"
        for words in (("limit", self.path), ("take", "-n", self.path, "--id", "a"), ("list", self.path)):
            r = self.slot(*words)
            self.assertIn(said, r.err)
            self.assertEqual(r.code, 0 if words[0] == "list" else 66, r)
        line = [w if w != "N" else "3" for w in self.line(r.err)]
        self.assertEqual(clave(*line, connect=self.server.connect).code, 0)
        self.take("a")

    def test_parallel_tries_do_not_refuse_each_other(self):
        self.limit(20)
        tries = [Running("slot", "take", "-n", self.path, "--id", f"m{i}", connect=self.server.connect)
                 for i in range(20)]
        self.assertEqual([t.end().code for t in tries], [0] * 20)

    def test_a_give_ends_a_take_that_waits(self):
        self.limit(1)
        self.take("a")
        waits = Running("slot", "take", self.path, "--id", "b", connect=self.server.connect)
        until(lambda: self.waiters() == ["b"])
        self.assertEqual(self.slot("give", self.path, "--id", "b").code, 0)
        r = waits.end()
        self.assertEqual(r.code, 76, r)
        self.assertIn("its place in the queue was deleted", r.err)
        self.assertEqual(self.ids(), ["a"])

    # ---- run

    def run_slot(self, *words, script, name="a"):
        return self.slot("run", self.path, "--id", name, *words, "--", "sh", "-c", script)

    def test_a_run_gives_the_slot_back_or_keeps_it(self):
        self.limit(1)
        listing = f'"{CLAVE}" slot list {self.path}'
        for keep, code, kept in ((None, 0, False), (None, 7, True), ("never", 7, False),
                                 ("always", 0, True), ("failed", 0, False), ("failed", 3, True)):
            words = ("--keep", keep) if keep else ()
            r = self.run_slot(*words, script=f"{listing}; exit {code}")
            self.assertEqual((r.code, r.out), (code, "a\n"), r)
            self.assertEqual(self.ids(), ["a"] if kept else [], (keep, code))

    def test_the_command_knows_its_slot(self):
        self.limit(1)
        r = self.run_slot(script='echo "$CLAVE_PATH $CLAVE_NODE $CLAVE_TOKEN"; exit 1')
        self.assertEqual(r.code, 1, r)
        path, node, token = r.out.split()
        self.assertEqual(path, self.path)
        self.assertTrue(node.startswith(f"{self.path}/owners/slot-a/take-"), node)
        self.assertEqual(int(token), self.owners()[0]["token"])

    def test_an_id_runs_once_at_a_time(self):
        self.limit(2)
        first = Running("slot", "run", self.path, "--id", "we/b", "--", "sh", "-c", "echo go; exec sleep 1000",
                        connect=self.server.connect)
        self.assertEqual(first.line(), "go")
        before = self.owners()
        r = self.run_slot(script="exit 0", name="we/b")
        self.assertEqual(r.code, 75, r)
        self.assertEqual(self.owners(), before, "the second run neither takes nor gives")
        self.assertEqual(self.run_slot(script="exit 0", name="other").code, 0)
        self.assertEqual(first.end(signal.SIGTERM).code, 143)
        self.assertEqual(self.ids(), ["we/b"], "it failed, so the slot is kept")
        r = self.run_slot(script="exit 0", name="we/b")
        self.assertEqual(r.code, 0, r)
        self.assertEqual(self.ids(), [])

    def test_a_run_that_is_killed_keeps_the_slot(self):
        self.limit(1)
        run = Running("slot", "run", self.path, "--id", "a", "--", "sh", "-c", "echo go; exec sleep 1000",
                      connect=self.server.connect)
        self.assertEqual(run.line(), "go")
        token = self.owners()[0]["token"]
        run.end(signal.SIGKILL)
        self.assertEqual([(o["id"], o["token"]) for o in self.owners()], [("a", token)])

    def test_a_run_whose_lock_is_lost_says_that_it_keeps_the_slot(self):
        self.limit(1)
        run = Running("slot", "run", self.path, "--id", "a", "--keep", "never", "--", "sh", "-c",
                      "trap 'exit 0' TERM; echo go; while :; do sleep 0.1; done", connect=self.server.connect)
        self.assertEqual(run.line(), "go")
        token = self.owners()[0]["token"]
        r = clave("rm", "-r", f"{self.path}/runs/a", connect=self.server.connect)
        self.assertEqual(r.code, 0, r)
        r = run.end()
        self.assertIn("a keeps the slot: the lock of the run was lost", r.err)
        self.assertEqual(self.ids(), ["a"])
        line = shlex.split(r.err[r.err.index("to give it back: clave ") + 23:].splitlines()[0])
        self.assertIn(str(token), line)
        self.assertEqual(clave(*line, connect=self.server.connect).code, 0)
        self.assertEqual(self.ids(), [])

    def test_a_run_waits_for_room(self):
        self.limit(1)
        self.take("b")
        self.assertEqual(self.run_slot("-w", "100ms", script="exit 0").code, 75)
        self.assertEqual(self.ids(), ["b"])
        run = Running("slot", "run", self.path, "--id", "a", "--", "echo", "ran", connect=self.server.connect)
        until(lambda: self.waiters() == ["a"])
        self.assertEqual(self.slot("give", self.path, "--id", "b").code, 0)
        r = run.end()
        self.assertEqual((r.code, r.out), (0, "ran\n"))
        self.assertEqual(self.ids(), [])


class Lossy:
    """Between a client and the server: the first answer to each of these opcodes is lost with its
    connection, after the server has done what was asked; with `shut`, nobody is let in after that."""

    def __init__(self, server, opcodes, shut=False):
        self.server, self.opcodes, self.shut = server, set(opcodes), shut
        self.lost = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.connect = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.shut and self.lost:
                client.close()
                continue
            up = socket.create_connection(("127.0.0.1", self.server.port), PATIENCE)
            doomed = {}
            threading.Thread(target=self.requests, args=(client, up, doomed), daemon=True).start()
            threading.Thread(target=self.answers, args=(up, client, doomed), daemon=True).start()

    @staticmethod
    def frame(s):
        def take(n):
            got = b""
            while len(got) < n:
                more = s.recv(n - len(got))
                if not more:
                    raise OSError
                got += more
            return got
        head = take(4)
        return head + take(struct.unpack(">i", head)[0])

    def requests(self, client, up, doomed):
        try:
            up.sendall(self.frame(client))  # the handshake has no opcode
            while True:
                f = self.frame(client)
                xid, opcode = struct.unpack(">ii", f[4:12])
                if opcode in self.opcodes:
                    self.opcodes.discard(opcode)
                    doomed[xid] = opcode
                up.sendall(f)
        except OSError:
            self.end(client, up)

    def answers(self, up, client, doomed):
        try:
            client.sendall(self.frame(up))
            while True:
                f = self.frame(up)
                xid = struct.unpack(">i", f[4:8])[0]
                if xid in doomed:
                    self.lost.append(doomed[xid])
                    raise OSError
                client.sendall(f)
        except OSError:
            self.end(client, up)

    @staticmethod
    def end(*sockets):
        for s in sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def close(self):
        self.listener.close()


class LostAnswers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ClaveServer(TICK).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def slot(self, *words, connect=None):
        return clave("slot", *words, connect=connect or self.server.connect)

    def ids(self, path):
        return self.slot("list", path).out.splitlines()

    def test_a_take_whose_answer_was_lost_is_found(self):
        self.slot("limit", "/take", "1")
        proxy = Lossy(self.server, [MULTI])
        r = self.slot("take", "/take", "--id", "a", "--json", connect=proxy.connect)
        proxy.close()
        self.assertEqual((r.code, proxy.lost), (0, [MULTI]), r)
        self.assertTrue(json.loads(r.out)["taken"])
        self.assertEqual(self.ids("/take"), ["a"])

    def test_a_give_whose_answer_was_lost_is_repeated(self):
        self.slot("limit", "/give", "1")
        self.slot("take", "/give", "--id", "a")
        proxy = Lossy(self.server, [DELETE, MULTI])
        r = self.slot("give", "/give", "--id", "a", connect=proxy.connect)
        proxy.close()
        self.assertEqual((r.code, len(proxy.lost)), (0, 1), r)
        self.assertNotIn("owns no slot", r.err)
        self.assertEqual(self.ids("/give"), [])

    def test_a_limit_whose_answer_was_lost(self):
        proxy = Lossy(self.server, [CREATE2])
        r = self.slot("limit", "/limit", "4", connect=proxy.connect)
        proxy.close()
        self.assertEqual(len(proxy.lost), 1, r)
        if r.code == 0:  # otherwise it says that it may have been done
            self.assertEqual(self.slot("limit", "/limit").out, "4\n")
        else:
            self.assertEqual(r.code, 69, r)

    def test_when_nobody_answers_any_more_the_message_says_where_to_look(self):
        self.slot("limit", "/shut", "1")
        proxy = Lossy(self.server, [MULTI], shut=True)
        r = self.slot("take", "/shut", "--id", "a", "-w", "1s", connect=proxy.connect)
        proxy.close()
        self.assertEqual(proxy.lost, [MULTI])
        self.assertIn(r.code, (69, 75), r)
        self.assertIn("the slot may have been taken: look with: clave slot list /shut", r.err)
        self.assertEqual(self.ids("/shut"), ["a"])


class Restarts(unittest.TestCase):
    def test_slots_survive_the_server_and_tokens_grow(self):
        s = ClaveServer(TICK).start()
        self.assertEqual(clave("slot", "limit", "/r", "2", connect=s.connect).code, 0)
        before = json.loads(clave("slot", "take", "/r", "--id", "a", "--json", connect=s.connect).out)
        s.stop(signal.SIGKILL)
        s.start()
        owner = json.loads(clave("slot", "list", "/r", "--json", connect=s.connect).out)
        self.assertEqual({k: owner[k] for k in owner}, {k: before[k] for k in owner})
        after = json.loads(clave("slot", "take", "/r", "--id", "b", "--json", connect=s.connect).out)
        self.assertGreater(after["token"], before["token"])
        self.assertEqual(clave("slot", "take", "-n", "/r", "--id", "c", connect=s.connect).code, 75)
        s.stop()

    def test_a_restored_backup_has_its_slots_and_says_so(self):
        quick = ["--tick", "100ms", "--max-session-timeout", "1s"]
        s = ClaveServer(quick).start()
        self.assertEqual(clave("slot", "limit", "/r", "1", connect=s.connect).code, 0)
        before = json.loads(clave("slot", "take", "/r", "--id", "a/b", "--json", connect=s.connect).out)
        copy, restored = scratch("copy"), scratch("restored")
        self.assertEqual(clave("data", "backup", s.data, copy).code, 0)
        self.assertEqual(clave("slot", "give", "/r", "--id", "a/b", connect=s.connect).code, 0)
        s.stop()
        r = clave("data", "restore", "--longest-session", "1s", copy, restored)
        self.assertEqual(r.code, 0, r)
        self.assertIn(f"Slots that are owned again, whatever was given back since the copy was made:\n"
                      f"  /r a/b since {before['since']}\n", r.out)
        again = clave("data", "restore", "--json", copy, scratch("again"))
        self.assertEqual(json.loads(again.out)["slots"],
                         [{"path": "/r", "id": "a/b", "since": before["since"], "token": before["token"]}])
        s.data = restored
        s.start()
        owner = json.loads(clave("slot", "list", "/r", "--json", connect=s.connect).out)
        self.assertEqual((owner["id"], owner["token"]), ("a/b", before["token"]))
        self.assertEqual(clave("slot", "give", "/r", "--id", "a/b", connect=s.connect).code, 0)
        r = clave("slot", "take", "/r", "--id", "c", "--json", connect=s.connect)
        self.assertEqual(r.code, 0, r)
        self.assertGreater(json.loads(r.out)["token"], before["token"])
        s.stop()


class Many(unittest.TestCase):
    """Takers are killed, and so is the server; what was true meanwhile is seen by a second client, and
    afterwards in the log of transactions."""
    TAKERS, LIMIT, TURNS = 20, 3, 300

    def setUp(self):
        self.server = ClaveServer(TICK).start()
        self.turns = 0
        self.guard = threading.Lock()
        self.taken = {}  # token: id, of takes that were answered
        self.giving = set()  # tokens, from when their give begins
        self.faults = []
        self.over = threading.Event()
        self.running = set()

    def tearDown(self):
        self.server.stop(signal.SIGKILL)

    def call(self, *words):
        p = subprocess.Popen([CLAVE, "slot", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True, env=environment(CLAVE_CONNECT=self.server.connect))
        with self.guard:
            self.running.add(p)
        out, _ = p.communicate(timeout=4 * PATIENCE)
        with self.guard:
            self.running.discard(p)
        return p.returncode, out

    def taker(self, name, seed):
        dice = random.Random(seed)
        while not self.over.is_set():
            code, out = self.call("take", "/fleet", "--id", name, "-w", "5s", "--session-timeout", "500ms", "--json")
            if code != 0 or not out:
                continue
            token = json.loads(out)["token"]
            with self.guard:
                self.taken[token] = name
                self.turns += 1
                if self.turns >= self.TURNS:
                    self.over.set()
            if dice.random() < 0.2:
                code, out = self.call("list", "/fleet", "--json")
                listed = [json.loads(line)["token"] for line in out.splitlines()] if code == 0 else [token]
                if code == 0 and token not in listed:
                    self.faults.append(f"{UNSAFE}: {name} lost its slot {token}: {out}")
            with self.guard:
                self.giving.add(token)
            self.call("give", "/fleet", "--id", name, "--token", str(token))

    def sampler(self):
        while not self.over.is_set():
            code, out = self.call("list", "/fleet")
            if code == 0 and len(out.splitlines()) > self.LIMIT:
                self.faults.append(f"{UNSAFE}: {len(out.splitlines())} own a slot: {out}")

    def killer(self):
        dice = random.Random(7)
        while not self.over.wait(dice.uniform(0.05, 0.3)):
            with self.guard:
                if self.running:
                    dice.choice(sorted(self.running, key=lambda p: p.pid)).kill()

    def history(self):
        """What the log says of the owners, in the order in which it was done."""
        out = clave("data", "dump", "--json", self.server.data, timeout=4 * PATIENCE).out
        seen, owners, last = set(), {}, 0
        for entry in map(json.loads, out.splitlines()):
            zxid = entry.get("zxid")
            if "changes" not in entry or zxid in seen:
                continue
            if any(c["type"] == "error" for c in entry["changes"]):
                continue  # a transaction that was refused: nothing of it was done
            seen.add(zxid)
            token = int(zxid, 16)
            for change in entry["changes"]:
                path = change.get("path") or ""
                m = re.fullmatch(r"/fleet/owners/slot-(t\d+)", path)
                if m and change["type"].startswith("create"):
                    self.assertGreater(token, last, "tokens grow")
                    twice = [p for p, (n, _) in owners.items() if n == m.group(1)]
                    self.assertEqual(twice, [], f"{UNSAFE}: an id has one slot, {path} at {zxid}")
                    owners[path], last = (m.group(1), token), token
                    yield token
                elif m and change["type"].startswith("delete"):
                    name, given = owners.pop(path)
                    self.assertIn(given, self.giving, f"{UNSAFE}: the slot of {name} was deleted by nobody")
                self.assertLessEqual(len(owners), self.LIMIT, f"{UNSAFE}: more owners than slots at {zxid}")

    def test_twenty_takers(self):
        self.assertEqual(self.call("limit", "/fleet", str(self.LIMIT))[0], 0)
        threads = [threading.Thread(target=self.taker, args=(f"t{i}", i)) for i in range(self.TAKERS)]
        threads += [threading.Thread(target=self.sampler), threading.Thread(target=self.killer)]
        for t in threads:
            t.start()
        restarts, patience = 0, time.monotonic() + 200
        while not self.over.is_set() and time.monotonic() < patience:
            seen = self.turns
            until(lambda: self.turns >= seen + self.TURNS // 8 or self.over.is_set(), patience=120)
            self.server.stop(signal.SIGKILL)
            self.server.start()
            restarts += 1
        self.over.set()
        for t in threads:
            t.join()
        self.assertEqual(self.faults, [])
        self.assertGreaterEqual(self.turns, self.TURNS)
        self.assertGreater(restarts, 4)
        self.server.stop()
        creates = set(self.history())
        self.assertEqual(set(self.taken) - creates, set(), "each token that was answered is of a create")
        self.server.start()
        self.assertLessEqual(len(self.call("list", "/fleet")[1].splitlines()), self.LIMIT)
        until(lambda: clave("ls", "/fleet/queue", connect=self.server.connect).out == "",
              what="no place is left in the queue")


if __name__ == "__main__":
    unittest.main()
