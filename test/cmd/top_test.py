"""`clave top`: what it prints without a terminal, and its screen, driven by keys on one."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import termios
import time
import unittest

from harness import CLAVE, PATIENCE, Running, clave, environment, free_port, scratch, server, spawn
from lock_rig import stranger

HOLD = ("sleep", "1000")


def pending(pid):
    """The signals that a process has not taken yet."""
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"^ShdPnd:\s*(\w+)", f.read(), re.M).group(1), 16)


def spent(pid):
    """Seconds of the processor that a process has used."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Screen:
    """The program on a terminal: a VT52, which has a cursor and erases, and nothing else."""

    def __init__(self, *words, connect, rows=20, columns=90, **env):
        self.fd, slave = pty.openpty()
        self.cells, self.at, self.rest, self.raw = {}, [0, 0], "", ""
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = spawn([CLAVE, "top", *words], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                             env=environment(**{"TERM": "vt52", "LC_ALL": "C.UTF-8", "CLAVE_CONNECT": connect, **env}))

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = {(r, c): v for (r, c), v in self.cells.items() if r < rows and c < columns}
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.slave)
        os.close(self.fd)

    def keys(self, text):
        os.write(self.fd, text.encode())

    def obey(self, text):
        for m in re.finditer(r"\x1bY(.)(.)|\x1b(.)|(.)", text, re.S):
            row, column, escape, c = m.groups()
            if row:
                self.at = [ord(row) - 32, ord(column) - 32]
            elif escape == "H":
                self.at = [0, 0]
            elif escape in ("A", "B", "C", "D"):
                self.at["AB".find(escape) < 0] += 1 if escape in "BC" else -1
            elif escape in ("J", "K"):
                y, x = self.at
                self.cells = {(r, k): v for (r, k), v in self.cells.items() if (r, k) < (y, x) or (escape == "K" and r > y)}
            elif c == "\r":
                self.at[1] = 0
            elif escape == "I" or c == "\n":
                by, edge = (1, self.rows - 1) if c else (-1, 0)
                if self.at[0] == edge:  # it scrolls
                    self.cells = {(r - by, k): v for (r, k), v in self.cells.items() if 0 <= r - by < self.rows}
                else:
                    self.at[0] += by
            elif c == "\t":
                self.at[1] += 8 - self.at[1] % 8
            elif c == "\b":
                self.at[1] -= 1
            elif c and c >= " ":
                if self.at[0] < self.rows and self.at[1] < self.columns:
                    self.cells[tuple(self.at)] = c
                self.at[1] += 1

    def read(self):
        got = os.read(self.fd, 65536).decode(errors="surrogateescape")
        self.raw += got
        text = self.rest + got
        m = re.search(r"(\x1b(Y.?)?)?([\udcc2-\udcf4][\udc80-\udcbf]{0,2})?$", text, re.S)  # what is not all here yet
        self.rest = m.group()
        self.obey(text[:m.start()])

    @property
    def text(self):
        rows = max((r for r, _ in self.cells), default=-1) + 1
        width = max((c for _, c in self.cells), default=-1) + 1
        return "\n".join("".join(self.cells.get((r, c), " ") for c in range(width)).rstrip() for r in range(rows))

    def wait(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            left = end - time.monotonic()
            if left <= 0 or self.process.poll() is not None:
                raise AssertionError(f"{what}; the program: {self.process.poll()}; the screen:\n{self.text}")
            if select.select([self.fd], [], [], min(left, 0.5))[0]:
                self.read()

    def see(self, *texts):
        self.wait(lambda: all(t in self.text for t in texts), f"not seen: {texts}")

    def see_not(self, text):
        self.wait(lambda: text not in self.text, f"seen: {text}")

    def end(self):
        """Its exit code; the terminal is as it was."""
        end = time.monotonic() + PATIENCE
        while (running := self.process.poll() is None) or select.select([self.fd], [], [], 0)[0]:
            if select.select([self.fd], [], [], 0.05 * running)[0]:
                self.read()
            if time.monotonic() > end:
                raise AssertionError(f"it does not end; the screen:\n{self.text}")
        code = self.process.returncode
        if termios.tcgetattr(self.slave) != self.before:
            raise AssertionError("the terminal is not as it was")
        return code


class Top(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server()
        cls.addClassCleanup(cls.server.stop)

    def hold(self, *words):
        p = Running(*words, connect=self.server.connect)
        self.addCleanup(p.process.communicate)
        self.addCleanup(p.process.terminate)
        return p.process

    def once(self, *words, **more):
        r = clave("top", "--once", *words, connect=self.server.connect, **more)
        self.assertEqual((r.code, r.err), (0, ""), r)
        return r.out

    def until(self, text, *words):
        """What it prints once that is in it."""
        end = time.monotonic() + PATIENCE
        while not re.search(text, out := self.once(*words)):
            self.assertLess(time.monotonic(), end, out)
        return out

    def screen(self, *words, **more):
        s = Screen(*words, connect=self.server.connect, **more)
        self.addCleanup(s.close)
        return s

    def queue(self, path):
        """A lock with a holder and one that waits."""
        holder = self.hold("lock", path, "--", *HOLD)
        self.until(f"pid {holder.pid}", path)
        waiter = self.hold("lock", path, "--", "sleep", "2000")
        self.until("1 waiting", path)
        return holder, waiter


class Once(Top):
    def test_holders_and_waiters_the_oldest_wait_first(self):
        first, _ = self.queue("/o/b")
        idle = self.hold("lock", "/o/a", "--name", "ünïcode", "--", *HOLD)
        self.until(f"pid {idle.pid}")
        self.hold("semaphore", "-n", "3", "/o/s", "--", *HOLD)
        self.until(r"semaphore +\S+ pid \d+ +\S+ +0 ", "/o")
        self.hold("elect", "/o/e", "--", *HOLD)
        out = self.until(r"/o/e +election +\S+:\d+ ", "/o")
        rows = [line.split() for line in out.splitlines()[5:]]
        self.assertEqual([r[0] for r in rows], ["/o/b", "/o/a", "/o/s", "/o/e"], out)
        self.assertIn(f"pid {first.pid}", out)
        self.assertIn("sleep 1000", out)
        self.assertIn("ünïcode", out)
        self.assertIn("3 held, 1 waiting, oldest wait ", out)
        self.assertIn(" 1 election, ", out)
        self.assertIn("Locks and elections  1-4 of 4", out)
        self.assertIn(f"on {self.server.connect}, read-write", out.splitlines()[0])
        locks = [json.loads(line) for line in clave("top", "/o", "--json", connect=self.server.connect).out.splitlines()]
        self.assertEqual([(x["path"], x["nwaiters"]) for x in locks], [("/o/a", 0), ("/o/b", 1), ("/o/e", 0), ("/o/s", 0)])

    def test_slots_the_one_kept_longest_first(self):
        clave("slot", "limit", "/slots", "2", connect=self.server.connect)
        for name in "rack 9", "rack 1":
            r = clave("slot", "take", "/slots", "--id", name, "--reason", "kernel update", connect=self.server.connect)
            self.assertEqual(r.code, 0, r)
        self.hold("slot", "take", "-w", "1h", "/slots", "--id", "rack 5")
        out = self.until(r"/slots +slot +rack 9 \+1 +\d+\w+ +1 +\d+\w+ +\S+: kernel update", "/slots")
        self.assertIn("1 held, 1 waiting, ", out)
        told = json.loads(clave("top", "/slots", "--json", connect=self.server.connect).out)
        owners = [json.loads(line) for line in clave("slot", "list", "/slots", "--json", connect=self.server.connect).out.splitlines()]
        self.assertEqual((told["kind"], told["limit"], [p["name"] for p in told["waiters"]]), ("slot", 2, ["rack 5"]))
        self.assertEqual([(p["name"], p["since"], p["token"], p["host"], p["reason"]) for p in told["holders"]],
                         [(o["id"], o["since"], str(o["token"]), o["host"], o["reason"]) for o in owners])
        self.assertEqual(told["held_since"], owners[0]["since"])

    def test_nothing_and_nobody(self):
        self.assertIn("No lock is held and no election has a leader.", self.once("/nothing"))
        r = clave("top", "--timeout", "50ms", connect=f"127.0.0.1:{free_port()}")
        self.assertEqual(r.code, 69, r)
        r = clave("top", "no/path", connect=self.server.connect)
        self.assertEqual(r.code, 66, r)

    def test_what_a_terminal_would_obey_is_escaped(self):
        clave("create", "-p", "/x/bad", connect=self.server.connect)
        r = clave("create", "--sequential", "/x/bad/_c_00000000-0000-0000-0000-000000000000-lock-", "clave/1\nhost=h%1B[31m\ncommand=a%07b\n",
                  connect=self.server.connect)
        self.assertEqual(r.code, 0, r)
        out = self.once("/x")
        self.assertIn("\\x1b", out)
        self.assertNotIn("\x1b", out)
        self.assertNotIn("\x07", out)

    def test_what_is_too_long_is_cut_between_characters(self):
        clave("create", "-p", "/long/host", connect=self.server.connect)
        r = clave("create", "--sequential", "/long/host/_c_00000000-0000-0000-0000-000000000000-lock-", "clave/1\nhost=x" + "ü" * 600 + "\n",
                  connect=self.server.connect)
        self.assertEqual(r.code, 0, r)
        self.assertRegex(self.once("/long"), " xü+~? ")

    def test_a_window_of_another_size_does_not_end_it(self):
        silent = socket.create_server(("127.0.0.1", 0))  # but for the session
        self.addCleanup(silent.close)
        silent.settimeout(PATIENCE)
        p = Running("top", "--once", "/tree", connect=f"127.0.0.1:{silent.getsockname()[1]}")
        peer, _ = silent.accept()
        self.addCleanup(peer.close)
        peer.settimeout(PATIENCE)
        peer.recv(4096)
        peer.sendall(struct.pack(">iiiqi16s?", 37, 0, 10000, 1, 16, b"", False))
        while b"/tree" not in (got := peer.recv(4096)):
            self.assertTrue(got)
        p.process.send_signal(signal.SIGWINCH)
        while pending(p.process.pid) & 1 << signal.SIGWINCH - 1:
            pass
        self.assertEqual(p.end(signal.SIGTERM).code, 128 + signal.SIGTERM)

    def test_a_deadlock(self):
        both = scratch("both-hold")
        for one, two in ("/d/a", "/d/b"), ("/d/b", "/d/a"):
            self.hold("lock", one, "--", "sh", "-c", 'until [ -e "$0" ]; do sleep 0.02; done; exec "$@"', both,
                      CLAVE, "lock", "--connect", self.server.connect, two, "--", "true")
        self.until("2 held", "/d")
        with open(both, "w"):
            pass
        self.assertRegex(self.until("1 deadlock", "/d"), "DEADLOCK: /d/[ab], /d/[ab]\n")


class Live(Top):
    def test_locks_come_and_go_and_a_lock_is_opened(self):
        s = self.screen("/l")
        s.see("No lock is held and", "q quit")
        holder, waiter = self.queue("/l/one")
        s.see("/l/one", f"pid {holder.pid}", "1 held, 1 waiting", "COMMAND")
        s.keys("\r")
        s.see("ROLE", "holder", "waiting", str(waiter.pid), "sleep 2000")
        holder.terminate()
        s.see_not("waiting\x20\x20")
        s.see("holder", str(waiter.pid))
        s.keys("u")
        s.see("KIND", f"pid {waiter.pid}")
        waiter.terminate()
        s.see("No lock is held and")
        s.keys("q")
        self.assertEqual(s.end(), 0)

    def test_keys(self):
        for name in "a", "b", "c":
            p = self.hold("lock", f"/k/{name}1", "--", *HOLD)
            self.until(f"pid {p.pid}", "/k")
        s = self.screen("/k")
        s.see("/k/a1", "/k/b1", "/k/c1", "sort: oldest wait")
        s.keys("s")
        s.see("sort: waiters")
        s.keys("ss")
        s.see("sort: path")
        s.keys("jj\r")
        s.see("/k/c1", "TOKEN")
        s.keys("uk\r")
        s.see("/k/b1", "TOKEN")
        s.keys("u/")
        s.see("show what contains: _")
        s.keys("c1X\x7f")
        s.see("contains: c1_")
        s.see_not("/k/a1")
        s.keys("\r")
        s.see("1-1 of 1, matching c1", "1 held", "/k/c1")
        s.keys("h")
        s.see("how long it has been held")
        s.keys("h/\x1b")
        s.see("/k/a1", "3 held")
        s.keys("q")
        self.assertEqual(s.end(), 0)

    def test_elections_and_locks_apart(self):
        p = self.hold("lock", "/v/lock", "--", *HOLD)
        self.until(f"pid {p.pid}", "/v")
        self.hold("elect", "/v/led", "--id", "node-7", "--", *HOLD)
        self.until("election +node-7", "/v")
        s = self.screen("/v")
        s.see("Locks and elections  1-2 of 2", "/v/lock", "/v/led")
        s.keys("v")
        s.see("Locks  1-1 of 1", "/v/lock")
        s.see_not("/v/led")
        s.keys("v")
        s.see("Elections  1-1 of 1", "node-7")
        s.see_not("/v/lock")
        s.keys("r")
        s.see("/v/led: this is an election: 'clave resign'")
        s.keys("\r")
        s.see("leader", "node-7", "TOKEN")
        s.see_not("clave resign")
        s.keys("q")
        self.assertEqual(s.end(), 0)

    def test_revoke(self):
        p = self.hold("lock", "--revocable", "--name", "nightly", "/v2/mine", "--", *HOLD)
        self.until(f"pid {p.pid}", "/v2")
        s = self.screen("/v2", columns=120)
        s.see("/v2/mine")
        s.keys("r")
        s.see("Ask ", f"pid {p.pid} (nightly) to release /v2/mine (holder)? y: yes")
        s.keys("n")
        s.see_not("to release")
        self.assertIsNone(p.poll())
        s.keys("\rry")  # that was before the question
        s.see("TOKEN", "to release /v2/mine (holder)? y: yes")
        self.assertIsNone(p.poll())
        s.keys("y")
        s.see("nobody is in this queue")
        p.wait(PATIENCE)
        s.keys("q")
        self.assertEqual(s.end(), 0)

    def test_slots_are_taken_from_their_owners_with_a_reason_only(self):
        clave("slot", "limit", "/b", "2", connect=self.server.connect)
        for name in "rack1", "rack2":
            clave("slot", "take", "/b", "--id", name, connect=self.server.connect)
        s = self.screen("/b", columns=140)
        s.see("rack1 +1")
        s.keys("\r")
        s.see("ROLE", "rack1", "rack2")
        s.keys("b")
        s.see("clave slot break PATH ID --reason TEXT")
        clave("slot", "give", "/b", "--id", "rack1", connect=self.server.connect)
        s.keys("u")
        s.see("KIND", "rack2")
        s.see_not("rack1")
        s.keys("q")
        self.assertEqual(s.end(), 0)

    def test_break_refuses_what_clave_locks_break_refuses(self):
        alive = self.hold("lock", "/w/alive", "--", *HOLD)
        self.until(f"pid {alive.pid}", "/w")
        clave("create", "-p", "/w/gone", connect=self.server.connect)
        orphan = "/w/gone/_c_00000000-0000-0000-0000-000000000000-lock-"
        clave("create", "--sequential", orphan, "clave/1\nhost=web9\npid=9\n", connect=self.server.connect)
        s = self.screen("/w", columns=120)
        s.see("/w/alive", "web9 pid 9")
        s.keys("s" * 3 + "b")
        s.see("Delete the node of", f"pid {alive.pid}", " at /w/alive (holder)? y: yes")
        s.keys("y")
        s.see("/w/alive: it belongs to", "which may be alive", "--force")
        s.keys("j")
        s.see_not("--force")
        s.keys("b")
        s.see("Delete the node of web9 pid 9 at /w/gone (left-over)? y: yes")
        s.keys("y")
        s.see("/w/gone: deleted")
        s.keys("k")
        s.see_not("web9 pid 9")
        s.see("/w/alive")
        self.assertIsNone(alive.poll())
        s.keys("q")
        self.assertEqual(s.end(), 0)

    def test_colour_only_where_the_terminal_has_it_and_nobody_minds(self):
        both = scratch("both-hold")
        for one, two in ("/c/a", "/c/b"), ("/c/b", "/c/a"):
            self.hold("lock", one, "--", "sh", "-c", 'until [ -e "$0" ]; do sleep 0.02; done; exec "$@"', both,
                      CLAVE, "lock", "--connect", self.server.connect, two, "--", "true")
        self.until("2 held", "/c")
        with open(both, "w"):
            pass
        self.until("1 deadlock", "/c")
        for red, env in (True, {"TERM": "xterm"}), (False, {"TERM": "xterm", "NO_COLOR": "1"}), (True, {"TERM": "xterm", "NO_COLOR": ""}), (False, {}):
            s = self.screen("/c", **env)
            s.wait(lambda: "DEADLOCK: /c/" in s.raw, "no deadlock")  # the screen itself is a VT52's
            s.keys("q")
            self.assertEqual(s.end(), 0)
            self.assertEqual("\x1b[31m" in s.raw, red, (env, s.raw))

    def test_a_queue_that_has_become_short(self):
        node = "/s/a/_c_00000000-0000-0000-0000-000000000000-lock-"
        zk = stranger(self, self.server)
        for _ in range(14):
            zk.create(node, ephemeral=True, sequence=True, makepath=True)
        s = self.screen("/s", rows=10)
        s.see("/s/a")
        s.keys("\r")
        s.see("holder", " 3  waiting")
        s.keys("j" * 20)
        s.see(" 9  waiting", "13  waiting")
        s.see_not("holder")
        for i in range(1, 14):
            clave("rm", f"{node}{i:010d}", connect=self.server.connect)
        s.see("\n0  holder")
        s.keys("q")
        self.assertEqual(s.end(), 0)

    def test_another_size(self):
        zk = stranger(self, self.server)
        for i in range(12):
            zk.create(f"/r/{'long' * 12}-{i:02d}/_c_00000000-0000-0000-0000-000000000000-lock-", ephemeral=True, sequence=True, makepath=True)
        s = self.screen("/r", rows=30, columns=120)
        s.see("long-00  ", "long-11  ")
        s.resize(10, 40)
        s.process.send_signal(signal.SIGWINCH)
        s.see("12 held", "/r/l~long-00  lock  ses")
        s.keys("j" * 11)
        s.see("/r/l~long-11")
        s.see_not("long-00")
        s.process.terminate()
        self.assertEqual(s.end(), 128 + 15)

    def test_a_screen_of_80_by_24_keeps_who_waits(self):
        deep = "/w/" + "/".join(["department-of-something"] * 7) + "/nightly"
        holder = self.hold("lock", deep, "--", "sh", "-c", "sleep 1000 # a command with many words")
        self.until(f"pid {holder.pid}", "/w")
        self.hold("lock", deep, "--", *HOLD)
        self.until("1 waiting", "/w")
        s = self.screen("/w", rows=24, columns=80)
        s.see("WAITING  OLDEST", "~omething/nightly  lock")
        s.wait(lambda: re.search(r"nightly  lock +\S.* +\d+s +1 +\d+s ", s.text), "how many wait, and how long")
        s.keys("q")
        self.assertEqual(s.end(), 0)

    def test_5000_locks(self):
        """A key is answered, and the whole list is sorted and laid out, in much less than a second of the processor."""
        zk = stranger(self, self.server)
        for i in range(0, 5000, 500):
            t = zk.transaction()
            for k in range(i, i + 500):
                t.create(f"/many-{k:04d}")
                t.create(f"/many-{k:04d}/_c_00000000-0000-0000-0000-000000000000-lock-", b"clave/1\nhost=web1\npid=7\ncommand=x\n", ephemeral=True, sequence=True)
            t.commit()
        s = self.screen("/", rows=24, columns=80)
        s.see("5000 held", "1-19 of 5000")
        before = spent(s.process.pid)
        s.keys("sss")
        s.see("sort: path", "/many-0000")
        s.keys("j" * 40)
        s.see("/many-0040")
        s.keys("/4321\r")
        s.see("1-1 of 1, matching 4321", "/many-4321")
        self.assertLess(spent(s.process.pid) - before, 3)
        s.keys("q")
        self.assertEqual(s.end(), 0)

    def test_a_terminal_without_a_screen(self):
        for term in "dumb", "no-such-terminal":
            s = self.screen(TERM=term)
            self.assertEqual(s.end(), 70)
            self.assertIn(f"(TERM={term})", s.text.replace("\n", ""))

    def test_others_that_xterm_has(self):
        s = self.screen("/nothing", TERM="xterm", LC_ALL="C")
        s.wait(lambda: "No lock is held and" in s.text, "nothing")
        s.keys("q")
        self.assertEqual(s.end(), 0)


class Lost(Top):
    def test_a_lost_connection_is_said_at_once_and_ages_stand_still(self):
        p = self.hold("lock", "/g/a", "--", *HOLD)
        self.until(f"pid {p.pid}", "/g")
        s = self.screen("/g")
        s.see("/g/a", "read-write")
        self.server.stop()
        s.see("NOT LIVE: the connection was lost", "not connected", "/g/a")
        self.server.start()
        s.see_not("NOT LIVE")
        s.see("read-write")
        s.keys("q")
        self.assertEqual(s.end(), 0)


del Top

if __name__ == "__main__":
    unittest.main()
