"""What the command itself says (--notify command, --ready, --watchdog-sec): its own NOTIFY_SOCKET, and what follows from it.

The command of most tests is a Speaker: it sends what the test tells it to."""
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from frozen_disk import FrozenDisk
from gate_rig import is_sanitized
from harness import UNSAFE, Running, Served, clave, free_port, scratch, server
from lock_rig import LONG, TICK, Holder, alive, children, comm, queue, stat, until
from notify_rig import Manager

# A watchdog, where its end is waited for: any process may not be scheduled for two seconds.
SHORT = "3s"

# Reads lines of Python literals and sends them; FDS: with the end of a pipe, whose closing it awaits, as a barrier does.
SPEAKER = """
import ast, os, select, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect("\\0" + os.environ["NOTIFY_SOCKET"][1:])
print(os.getpid(), os.environ.get("WATCHDOG_USEC"), os.environ.get("WATCHDOG_PID"), flush=True)
for line in open(sys.argv[1]):
    what = ast.literal_eval(line)
    if isinstance(what, tuple):
        here, there = os.pipe()
        socket.send_fds(s, [what[0]], [there] * what[1])
        os.close(there)
        poll = select.poll()
        poll.register(here, 0)
        poll.poll()
        os.close(here)
    elif what is None:
        break
    else:
        s.send(what)
    print("sent", flush=True)
"""


class Speaker:
    """A clave whose command says what `say` tells it to."""

    def __init__(self, server, path, *flags, verb=("lock",), env=None):
        self.words = scratch("words")
        os.mkfifo(self.words)
        self.run = Running(*verb, "--session-timeout", LONG, "--json", *flags, path, "--",
                           sys.executable, "-c", SPEAKER, self.words, connect=server.connect, env=env)
        pid, self.usec, self.watchdog_pid = self.run.line().split()
        self.pid = int(pid)
        self.to = open(self.words, "w", buffering=1, encoding="utf-8")

    def say(self, what):
        """Returns when it has been sent; if `what` is a tuple, when it has been heard."""
        print(repr(what), file=self.to)
        assert self.run.line() == "sent", self.run.end()

    def heard(self, text):
        self.say((text, 1))

    def end(self, how=None):
        self.to.close()
        return self.run.end(how)


def events(r, name=None):
    found = [json.loads(line) for line in r.err.splitlines() if line.startswith("{")]
    return [e for e in found if name in (None, e["event"])]


class CommandNotify(Served):
    flags = TICK

    def manager(self):
        m = Manager()
        self.addCleanup(m.socket.close)
        return m

    def speaker(self, path, *flags, **more):
        return Speaker(self.server, path, *flags, **more)

    def text(self, path):
        return queue(self.server, path)[0]["text"]

    # ---- what the command gets

    def test_its_variables(self):
        s = self.speaker("/gets", "--watchdog-sec", "20s")
        self.assertEqual((s.usec, s.watchdog_pid), ("20000000", str(s.pid)))
        self.assertEqual(s.end().code, 0)
        for flags in (["--notify", "command"], ["--ready"]):
            s = self.speaker("/gets", *flags)
            self.assertEqual((s.usec, s.watchdog_pid), ("None", "None"))
            s.heard(b"READY=1")
            self.assertEqual(s.end().code, 0)

    def test_its_watchdog_is_that_of_the_unit(self):
        for flags, usec in ((["--notify", "command"], "10000000"), (["--notify", "command", "--watchdog-sec", "20s"], "20000000"),
                            (["--notify", "command", "--watchdog-sec", "0"], "None"), (["--ready"], "None")):
            s = self.speaker("/unit", *flags, env=self.manager().env(WATCHDOG_USEC="10000000"))
            self.assertEqual(s.usec, usec, flags)
            s.heard(b"READY=1")
            s.end()

    def test_nobody_else_gets_them(self):
        told = scratch("told")
        tell = f"echo $CLAVE_EVENT $NOTIFY_SOCKET $WATCHDOG_USEC >>{told}"
        Holder(self.server, "/aside", "--lock-delay", "0").started().run.end(signal.SIGKILL)
        r = clave("elect", "--watchdog-sec", "20s", "--on-elected", tell, "--health", tell, "/aside2", "--", "sh", "-c",
                  f"until grep -q elected {told}; do sleep 0.01; done; test -n \"$NOTIFY_SOCKET\"",
                  connect=self.server.connect)
        self.assertEqual(r.code, 0, r)
        with open(told, encoding="utf-8") as f:
            self.assertEqual({len(line.split()) for line in f}, {1})

    # ---- ready

    def test_ready(self):
        """The value and the hook are those of a leader that works."""
        hook = scratch("hook")
        m = self.manager()
        s = self.speaker("/ready", "--ready", "--value", "here", "--on-elected", f"echo $CLAVE_TOKEN >{hook}",
                         "--on-deposed", f"echo deposed >>{hook}", verb=("elect",), env=m.env())
        s.heard(b"WATCHDOG=1\nSTATUS=loading")
        leader = lambda: clave("leader", "/ready", connect=self.server.connect).out
        self.assertNotIn("here", leader())
        self.assertFalse(os.path.exists(hook))
        self.assertNotIn("READY=1", m.listen())
        s.heard(b"READY=1")
        until(lambda: os.path.exists(hook) and os.path.getsize(hook))
        until(lambda: "here" in leader())
        m.hears("READY=1")
        s.heard(b"READY=1")
        r = s.end()
        self.assertEqual((r.code, len(events(r, "ready")), m.count("READY=1")), (0, 1, 1), r)
        until(lambda: "deposed" in open(hook, encoding="utf-8").read())  # nobody waits for a hook
        with open(hook, encoding="utf-8") as f:
            self.assertRegex(f.read(), r"^\d+\ndeposed\n$")

    def test_what_is_ready_when(self):
        for flags, at_start, once_ready in (([], True, True), (["--ready"], False, True), (["--notify", "command"], False, True),
                                            (["--notify", "waiting", "--ready"], True, True),
                                            (["--notify", "off", "--ready"], False, False)):
            m = self.manager()
            s = self.speaker("/when", "--watchdog-sec", "20s", *flags, env=m.env())
            s.heard(b"X_NONE=1")
            self.assertEqual("READY=1" in m.listen(), at_start, flags)
            s.heard(b"READY=1")
            self.assertEqual("READY=1" in m.listen(), once_ready, flags)
            s.end()
            self.assertEqual(m.count("READY=1"), once_ready, (flags, m.said))

    def test_one_that_is_not_ready_in_time_is_ended(self):
        hook = scratch("hook")
        for verb in (["lock"], ["rwlock"], ["rwlock", "-r"], ["semaphore", "-n", "1"], ["elect"]):
            hooks = ["--on-elected", f"echo >{hook}", "--on-deposed", f"echo >{hook}"] if verb == ["elect"] else []
            path = "/late-" + "".join(verb)
            r = clave(*verb, "--ready", "--ready-timeout", "300ms", *hooks, "--json", path, "--", "sleep", "1000",
                      connect=self.server.connect)
            self.assertEqual(r.code, 80, r)
            (told,) = events(r, "unhealthy")
            self.assertEqual((told["holding"], told["why"]),
                             (True, "the command was not ready in time (--ready-timeout 300ms)"))
            self.assertEqual([e["cause"] for e in events(r, "ending")], ["unhealthy"])
            self.assertEqual(clave(*verb, "-t" if verb[0] == "semaphore" else "-n", path, "--", "true",
                                   connect=self.server.connect).code, 0)
        self.assertFalse(os.path.exists(hook), "it never led")

    def test_a_start_may_ask_for_more_time(self):
        s = self.speaker("/more", "--ready", "--ready-timeout", "4s")
        s.heard(b"EXTEND_TIMEOUT_USEC=60000000")
        slow = self.speaker("/more2", "--ready", "--ready-timeout", "4s")
        self.assertEqual(slow.run.end().code, 80)  # which has begun later
        self.assertTrue(alive(s.pid))
        s.heard(b"READY=1")
        self.assertEqual(s.end().code, 0)

    # ---- the watchdog

    def test_one_that_falls_silent_is_ended(self):
        for how in ("silence", "chatter"):
            m = self.manager()
            s = self.speaker("/silent", "--notify", "command", "--watchdog-sec", SHORT, env=m.env())
            for _ in range(3):
                s.heard(b"WATCHDOG=1\nREADY=1")
            if how == "chatter":
                s.heard(b"READY=1\nSTATUS=busy\nEXTEND_TIMEOUT_USEC=600000000\nWATCHDOG_USEC=600000000\nWATCHDOG=2")
            r = s.run.end()
            self.assertEqual(r.code, 80, r)
            self.assertFalse(alive(s.pid), UNSAFE)
            (told,) = events(r, "unhealthy")
            self.assertEqual(told["why"], f"the command has not sent WATCHDOG=1 in time (--watchdog-sec {SHORT})")
            self.assertNotIn("WATCHDOG=1", m.listen(), "clave has no watchdog")
            self.assertEqual(m.count("STOPPING=1"), 1)

    def test_one_that_speaks_in_time_is_not(self):
        script = 'for i in $(seq 80); do systemd-notify WATCHDOG=1; sleep 0.05; done'
        if not shutil.which("systemd-notify"):
            self.skipTest("no systemd-notify")
        r = clave("lock", "--watchdog-sec", SHORT, "/speaks", "--", "sh", "-c", script, connect=self.server.connect)
        self.assertEqual(r.code, 0, r)

    def test_it_may_give_itself_up(self):
        s = self.speaker("/trigger", "--notify", "command")
        print(repr(b"WATCHDOG=trigger"), file=s.to)
        r = s.run.end()
        self.assertEqual((r.code, events(r, "unhealthy")[0]["why"]), (80, "the command has sent WATCHDOG=trigger"))

    def test_a_guardian_that_is_stopped_changes_nothing(self):
        s = self.speaker("/stopped", "--watchdog-sec", SHORT)
        os.kill(stat(s.pid)[1], signal.SIGSTOP)
        s.say(b"WATCHDOG=1")
        self.assertEqual(s.run.end().code, 80)
        self.assertFalse(alive(s.pid), UNSAFE)

    def test_a_stopped_command_is_silent(self):
        s = self.speaker("/sigstop", "--watchdog-sec", SHORT)
        s.heard(b"WATCHDOG=1")
        os.kill(s.pid, signal.SIGSTOP)
        self.assertEqual(s.run.end().code, 80)
        self.assertFalse(alive(s.pid), UNSAFE)

    def test_the_next_leads(self):
        s = self.speaker("/next", "--watchdog-sec", SHORT, verb=("elect",))
        other = Holder(self.server, "/next", verb=("elect",))
        s.heard(b"WATCHDOG=1")
        self.assertEqual(s.run.end().code, 80)
        other.started().run.end(signal.SIGTERM)

    # ---- with a check, and with a fence

    def test_with_a_check(self):
        """Whichever fails first."""
        ill = scratch("ill")
        flags = ["--health", f"test ! -e {ill}", "--health-every", "200ms", "--health-grace", "0"]
        s = self.speaker("/both", "--watchdog-sec", SHORT, *flags)
        s.heard(b"WATCHDOG=1")
        r = s.run.end()
        self.assertEqual((r.code, len(events(r, "unhealthy"))), (80, 1))
        s = self.speaker("/both", "--watchdog-sec", "20s", *flags)
        s.heard(b"WATCHDOG=1\nSTATUS=fine")
        until(lambda: self.text("/both") == "fine")
        with open(ill, "w", encoding="utf-8"):
            pass
        r = s.run.end()
        self.assertEqual((r.code, [e["why"] for e in events(r, "unhealthy")]), (80, ["the health check failed with exit code 1"]))

    def test_with_a_fence(self):
        """The fence is not the command: it is not to be ready, and gets no socket."""
        told = scratch("told")
        holder = Holder(self.server, "/fenced", "--fence", "true").started()
        for pid in (holder.wrapper, holder.guardian):
            os.kill(pid, signal.SIGKILL)
        s = self.speaker("/fenced", "--ready", "--ready-timeout", "5s", "--watchdog-sec", SHORT,
                         "--fence", f"sleep 3.5; echo \"[$NOTIFY_SOCKET]\" >{told}")
        s.heard(b"READY=1")
        r = s.run.end()
        self.assertEqual(r.code, 80, r)
        self.assertEqual(len(events(r, "fenced")), 1)
        with open(told, encoding="utf-8") as f:
            self.assertEqual(f.read(), "[]\n")

    # ---- what is shown, and passed on

    def test_its_status(self):
        m = self.manager()
        s = self.speaker("/status", "--ready", env=m.env())
        until(lambda: self.text("/status") == "not ready yet")
        s.heard("STATUS=loading \u20ac\t1 %".encode())
        until(lambda: self.text("/status").startswith("not ready yet: loading \u20ac"))
        s.heard(b"READY=1\nSTATUS=open")
        until(lambda: self.text("/status") == "open")
        self.assertIn("(open)", clave("locks", "/status", connect=self.server.connect).out)
        self.assertRegex("\n".join(m.listen()), r"STATUS=/status: held, token \d+; open")
        s.heard(b"STOPPING=1")
        until(lambda: self.text("/status") == "stopping: open")
        m.hears("STOPPING=1")
        s.heard(b"STATUS=")
        until(lambda: self.text("/status") == "stopping")
        r = s.end()
        self.assertEqual([e["event"] for e in events(r) if e["event"] in ("ready", "status", "stopping")][:2], ["status", "ready"])
        self.assertEqual(len(events(r, "stopping")), 1)

    def test_a_status_that_changes_a_thousand_times(self):
        """It costs the servers one write a second at most, and the newest is shown."""
        s = self.speaker("/often", "--notify", "command")
        version = lambda: json.loads(clave("stat", "--json", "/often/" + queue(self.server, "/often")[0]["node"],
                                           connect=self.server.connect).out)["stat"]["version"]
        for i in range(1000):
            s.say(f"STATUS={i} requests".encode())
        until(lambda: self.text("/often") == "999 requests")
        self.assertLess(version(), 60)
        self.assertLess(len(events(s.end(), "status")), 60)

    def test_what_is_passed_on(self):
        m = self.manager()
        s = self.speaker("/passed", "--notify", "command", env=m.env())
        s.heard(b"READY=1\nMAINPID=1\nMAINPIDFDID=2\nX_OWN=a=b\nERRNO=2\nWATCHDOG=1\nWATCHDOG_USEC=5\nNOTIFYACCESS=all\nno word\n=x\n")
        s.heard(b"FDSTORE=1\nFDNAME=x\nFDPOLL=0")
        s.heard(b"RELOADING=1\nMONOTONIC_USEC=7")
        s.heard(b"READY=1\nEXTEND_TIMEOUT_USEC=1000000\nBUSERROR=x.y\nEXIT_STATUS=3")
        told = [line for line in m.listen() if not line.startswith("STATUS=")]
        self.assertEqual(told, ["X_OWN=a=b", "ERRNO=2", "READY=1", "RELOADING=1", "MONOTONIC_USEC=7", "EXTEND_TIMEOUT_USEC=1000000",
                                "BUSERROR=x.y", "EXIT_STATUS=3", "READY=1"])
        self.assertEqual(s.end().code, 0)

    def test_nothing_is_passed_on_with_off(self):
        m = self.manager()
        s = self.speaker("/off", "--notify", "off", "--ready", env=m.env())
        s.heard(b"READY=1\nSTATUS=x\nX_OWN=1\nSTOPPING=1")
        s.end()
        self.assertEqual(m.listen(), [])

    # ---- what is no message

    def test_what_is_ignored(self):
        s = self.speaker("/ignored", "--ready")
        for what in (b"", b"\n\n", b"READY=1" + b" " * 4200, b"READY=1\0STATUS=x", b"READY=10", b"ready=1", b"READY", b"\xff\xfe=\x80",
                     b"STATUS=" + b"\xff" * 4000, b"=", b"=1\n=2", b"WATCHDOG=", b"EXTEND_TIMEOUT_USEC=-5",
                     b"EXTEND_TIMEOUT_USEC=99999999999999999999999", b"X=" * 2000):
            s.say(what)
        s.heard(b"BARRIER=1")
        self.assertTrue(self.text("/ignored").startswith("not ready yet"))
        s.heard(b"READY=1\0")
        until(lambda: not (self.text("/ignored") or "").startswith("not ready"))
        r = s.end()
        self.assertEqual((r.code, len(events(r, "ready"))), (0, 1))

    def test_descriptors_are_closed(self):
        """Those of messages that are not heard, too: the speaker waits for it."""
        s = self.speaker("/fds", "--notify", "command")
        count = lambda: len(os.listdir(f"/proc/{s.run.process.pid}/fd"))
        s.heard(b"BARRIER=1")
        before = count()
        for text in (b"FDSTORE=1", b"BARRIER=1", b"x" * 5000, b"FDSTORE=1\0FDNAME=x", b"READY=1"):
            for n in (1, 3, 253):
                s.say((text, n))
        self.assertEqual(count(), before)
        self.assertEqual(s.end().code, 0)

    def test_strangers_are_not_heard(self):
        """It is said once."""
        s = self.speaker("/strange", "--notify", "command")
        with open(f"/proc/{s.pid}/environ", "rb") as f:
            (name,) = [v.split(b"=", 1)[1] for v in f.read().split(b"\0") if v.startswith(b"NOTIFY_SOCKET=")]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.connect(b"\0" + name[1:])
            for _ in range(3):
                other.send(b"READY=1\nWATCHDOG=trigger")
            s.heard(b"X_NONE=1")
        self.assertTrue(alive(s.pid))
        r = s.end()
        self.assertEqual((r.code, events(r, "ready"), r.err.count("sent a message to its NOTIFY_SOCKET: ignored")), (0, [], 1))

    def stranger(self, s):
        """A socket of a process that is none of the command's, connected to its NOTIFY_SOCKET."""
        with open(f"/proc/{s.pid}/environ", "rb") as f:
            (name,) = [v.split(b"=", 1)[1] for v in f.read().split(b"\0") if v.startswith(b"NOTIFY_SOCKET=")]
        other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(other.close)
        other.connect(b"\0" + name[1:])
        return other

    def test_connections_that_linger_do_not_stop_it(self):
        """The last close of a TCP connection waits for its data to be taken, for as long as SO_LINGER says."""
        s = self.speaker("/linger", "--notify", "command")
        other = self.stranger(s)
        with socket.create_server(("127.0.0.1", 0)) as server:
            for n in range(12):  # more than there are takers
                slow = socket.create_connection(server.getsockname())
                self.addCleanup(server.accept()[0].close)
                slow.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    while True:
                        slow.send(bytes(65536))
                slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
                os.kill(s.run.process.pid, signal.SIGSTOP)  # its close is to be the last one
                socket.send_fds(other, [b"X_NONE=%d" % n], [slow.fileno()])
                slow.close()
                os.kill(s.run.process.pid, signal.SIGCONT)
            began = time.monotonic()
            s.heard(b"X_NONE=1")
            self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(s.end().code, 0)

    @unittest.skipIf(is_sanitized(), "a sanitizer ends a process that has no memory")
    def test_a_message_waits_for_a_thread(self):
        """One that cannot be started is tried again; what the message says counts once, although a thread that was late
        reports meanwhile."""
        manager = self.manager()
        s = self.speaker("/threads", "--notify", "command", env=manager.env())
        clave_pid = s.run.process.pid
        takers = lambda: [t for t in os.listdir(f"/proc/{clave_pid}/task") if comm(f"{clave_pid}/task/{t}") == "notify-taker"]
        with socket.create_server(("127.0.0.1", 0)) as server:
            slow = socket.create_connection(server.getsockname())
            self.addCleanup(server.accept()[0].close)
            slow.setblocking(False)
            with self.assertRaises(BlockingIOError):
                while True:
                    slow.send(bytes(65536))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
            other = self.stranger(s)
            os.kill(clave_pid, signal.SIGSTOP)  # its close is to be the last one
            socket.send_fds(other, [b"X_NONE=1"], [slow.fileno()])
            slow.close()
            os.kill(clave_pid, signal.SIGCONT)
            until(takers, what="a thread takes the first message")
            before = resource.prlimit(clave_pid, resource.RLIMIT_AS, (1, resource.RLIM_INFINITY))
            print(repr((b"X_ONCE=1", 1)), file=s.to)
            until(lambda: not takers(), what="it was interrupted")
            manager.hears("X_ONCE=1")
            resource.prlimit(clave_pid, resource.RLIMIT_AS, before)
            self.assertEqual(s.run.line(), "sent")
        s.heard(b"X_LAST=1")
        manager.hears("X_LAST=1")
        self.assertEqual(manager.count("X_ONCE=1"), 1)
        self.assertEqual(s.end().code, 0)

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/fuse"), "no file system can be mounted here")
    def test_a_file_whose_close_hangs_does_not_stop_it(self):
        """Nor does it keep the descriptor: the heartbeats go on, and the next message is heard."""
        try:
            disk = FrozenDisk(scratch("disk"))
        except OSError as error:
            self.skipTest(f"no file system can be mounted here: {error}")
        self.addCleanup(disk.close)
        s = self.speaker("/flush", "--notify", "command", "--watchdog-sec", SHORT)
        other = self.stranger(s)
        file = os.open(os.path.join(disk.where, "disk"), os.O_WRONLY)
        disk.frozen = True
        socket.send_fds(other, [b"X_NONE=1"], [file])
        # This test's own close hangs as well.
        closing = threading.Thread(target=os.close, args=[file], daemon=True)
        closing.start()
        self.addCleanup(closing.join)
        self.addCleanup(disk.thaw)  # before the join
        until(lambda: disk.held, what="the test's own close hangs")
        for _ in range(20):
            s.heard(b"WATCHDOG=1")
            self.assertTrue(closing.is_alive())
        with os.scandir(f"/proc/{s.run.process.pid}/fd") as entries:
            self.assertFalse([e.name for e in entries if os.readlink(e.path).startswith(disk.where)])
        self.assertEqual(s.end().code, 0)

    def test_children_of_the_command_are_heard(self):
        """Those in a session of their own, and those whose parent has ended, too."""
        if not shutil.which("systemd-notify"):
            self.skipTest("no systemd-notify")
        for wrap in ("%s", "(%s &)", "setsid -f sh -c '%s'", "setpriv --reuid 65534 --clear-groups %s"):
            if "setpriv" in wrap and os.geteuid() != 0:
                continue
            m = self.manager()
            run = Running("lock", "--notify", "command", "/child", "--", "sh", "-c",
                          wrap % "systemd-notify --ready" + "; exec sleep 1000", connect=self.server.connect, env=m.env())
            m.hears("READY=1")
            run.end(signal.SIGTERM)

    def test_a_flood_delays_nothing(self):
        """For longer than two sessions: heartbeats go on."""
        flood = ("import os, socket, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
                 "s.connect('\\0' + os.environ['NOTIFY_SOCKET'][1:]); end = time.monotonic() + 5; i = 0\n"
                 "while time.monotonic() < end: i += 1; s.send(b'WATCHDOG=1\\nSTATUS=%d' % i)")
        r = clave("lock", "--session-timeout", "2s", "--watchdog-sec", "20s", "--json", "/flood", "--", sys.executable, "-c", flood,
                  connect=self.server.connect)
        self.assertEqual((r.code, events(r, "suspended"), events(r, "lost")), (0, [], []), r)

    # ---- the rest

    def test_forever(self):
        """Each term has a socket of its own; the unit stays active between them."""
        m = self.manager()
        run = Running("elect", "--forever", "--ready", "--watchdog-sec", "1s", "/again", "--", sys.executable, "-c",
                      "import os, socket, time; n = os.environ['NOTIFY_SOCKET']; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
                      "s.connect('\\0' + n[1:]); s.send(b'READY=1'); print(n, flush=True); time.sleep(1000)",
                      connect=self.server.connect, env=m.env())
        names = [run.line(), run.line(), run.line()]
        self.assertEqual(len(set(names)), 3)
        self.assertNotIn("STOPPING=1", m.listen())
        run.end(signal.SIGTERM)
        self.assertIn("STOPPING=1", m.listen())

    def test_slot_run(self):
        clave("slot", "limit", "/slots", "1", connect=self.server.connect)
        r = clave("slot", "run", "--ready", "--ready-timeout", "300ms", "--id", "me", "/slots", "--", "sleep", "1000",
                  connect=self.server.connect)
        self.assertEqual(r.code, 80, r)
        self.assertEqual(clave("slot", "list", "/slots", connect=self.server.connect).out.split(), ["me"])
        m = self.manager()
        r = clave("slot", "run", "--notify", "off", "--id", "me", "/slots", "--", "true", connect=self.server.connect, env=m.env())
        self.assertEqual((r.code, m.listen()), (0, []), r)

    def test_usage(self):
        for flags, why in ((["--ready-timeout", "1s"], "--ready-timeout needs --ready or --watchdog-sec"),
                           (["--ready", "--on-lost", "ignore"], "forbids that"),
                           (["--watchdog-sec", "1s", "--on-lost", "ignore"], "forbids that"),
                           (["--ready-timeout", "0"], "--ready-timeout"), (["--watchdog-sec", "soon"], "--watchdog-sec")):
            r = clave("lock", *flags, "/usage", "--", "true", connect=self.server.connect)
            self.assertEqual(r.code, 64, r)
            self.assertIn(why, r.err)
        r = clave("slot", "take", "--ready", "/slots", connect=self.server.connect)
        self.assertEqual(r.code, 64, r)

    # ---- daemons of Debian

    def daemon(self, path, *words, flags=(), env=None):
        """The daemon is ready, and stops in order."""
        m = self.manager()
        run = Running("lock", "--ready", "--ready-timeout", "25s", "--json", *flags, path, "--", *words, connect=self.server.connect,
                      env=m.env(**(env or {})))
        m.hears("READY=1")
        return m, run

    @unittest.skipUnless(os.path.exists("/usr/sbin/haproxy"), "no haproxy")
    def test_haproxy(self):
        conf = scratch("haproxy.cfg")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(f"defaults\n mode tcp\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n"
                    f"listen x\n bind 127.0.0.1:{free_port()}\n")
        m, run = self.daemon("/haproxy", "/usr/sbin/haproxy", "-Ws", "-f", conf)
        self.assertFalse([line for line in m.said if line.startswith("MAINPID")])
        run.process.send_signal(signal.SIGUSR2)  # load its configuration again
        m.hears("RELOADING=1")
        until(lambda: m.count("READY=1") == 2)
        r = run.end(signal.SIGTERM)
        self.assertEqual(len(events(r, "ready")), 1, r)

    @unittest.skipUnless(shutil.which("redis-server"), "no redis-server")
    def test_redis(self):
        m, run = self.daemon("/redis", "redis-server", "--supervised", "systemd", "--port", str(free_port()), "--dir",
                             tempfile.mkdtemp(dir=os.path.dirname(scratch("redis"))), "--save", "")
        until(lambda: self.text("/redis") == "Ready to accept connections")
        r = run.end(signal.SIGTERM)
        self.assertEqual(len(events(r, "stopping")), 1, r)

    @unittest.skipUnless(shutil.which("etcd"), "no etcd")
    def test_etcd(self):
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        m, run = self.daemon("/etcd", "etcd", "--data-dir", scratch("etcd"), "--listen-client-urls", client,
                             "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                             "--initial-cluster", f"default={peer}", "--log-level", "error")
        run.end(signal.SIGTERM)

    @unittest.skipUnless(shutil.which("kresd"), "no knot-resolver")
    def test_knot_resolver_feeds_its_watchdog(self):
        """And is ended when it hangs: SIGSTOP takes the place of that."""
        there = scratch("kresd")
        os.mkdir(there)
        with open(os.path.join(there, "conf"), "w", encoding="utf-8") as f:
            f.write(f"net.listen('127.0.0.1', {free_port()})\ncache.size = 1*MB\n")
        _, run = self.daemon("/kresd", "kresd", "-n", "-c", os.path.join(there, "conf"), there,
                             flags=["--watchdog-sec", "5s"])
        with self.assertRaises(subprocess.TimeoutExpired):
            run.process.wait(8)
        (guardian,) = [p for p in children(run.process.pid) if comm(p) == "lock-guardian"]
        (command,) = children(guardian)
        os.kill(command, signal.SIGSTOP)
        r = run.end()
        self.assertEqual((r.code, [e["why"] for e in events(r, "unhealthy")]),
                         (80, ["the command has not sent WATCHDOG=1 in time (--watchdog-sec 5s)"]))
        self.assertFalse(alive(command), UNSAFE)


if __name__ == "__main__":
    unittest.main()
