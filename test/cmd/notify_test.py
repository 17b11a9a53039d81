"""What clave tells the service manager: a socket of ours in the place of systemd's."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import unittest

from harness import PATIENCE, SOURCE, Running, clave, free_port, scratch, server
from lock_rig import EXPIRES, TICK, Holder, queue, until
from notify_rig import Manager
from peers import Proxy


class Notify(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server(flags=TICK)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def manager(self, abstract=False):
        m = Manager(abstract)
        self.addCleanup(m.socket.close)
        return m

    def start(self, *words, env):
        return Running(*words, connect=self.server.connect, env=env)

    # ---- when it is ready

    def test_ready_when_the_command_runs(self):
        for abstract in (False, True):
            holder = Holder(self.server, "/ready").started()
            m = self.manager(abstract)
            run = self.start("lock", "/ready", "--", "sleep", "1000", env=m.env())
            m.hears("STATUS=/ready: waiting, 1 ahead")
            self.assertNotIn("READY=1", m.said)
            holder.run.end(15)
            m.hears("READY=1")
            self.assertRegex("\n".join(m.said), r"STATUS=/ready: held, token \d+")
            self.assertEqual(run.end(15).code, 143)
            self.assertEqual(m.count("READY=1"), 1)
            self.assertEqual(m.said[-1], "STOPPING=1")
            self.assertFalse([line for line in m.said if line.startswith("MAINPID")])

    def test_ready_when_waiting(self):
        for verb, of_holder in (("lock", []), ("rwlock", []), ("rwlock", ["-r"]), ("elect", []),
                                ("semaphore", ["-n", "1"])):
            path = "-".join(["/standby", verb] + of_holder)
            words = of_holder if verb == "semaphore" else []
            holder = self.start(verb, *of_holder, path, "--", "sh", "-c", "echo; exec sleep 1000",
                                env={})
            holder.line()
            m = self.manager()
            run = self.start(verb, "--notify", "waiting", *words, path, "--", "true", env=m.env())
            m.hears("READY=1")
            self.assertEqual(len(queue(self.server, path)), 2)
            holder.end(15)
            self.assertEqual(run.end().code, 0)
            self.assertEqual(m.count("READY=1"), 1)

    def test_not_ready_before_it_stands_in_the_queue(self):
        """It has a session, and no answer to what it asks for."""
        m, proxy = self.manager(), Proxy(self.server.port, 1)
        self.addCleanup(proxy.close)
        run = Running("lock", "--notify", "waiting", "--wait", "3s", "/unanswered", "--", "true",
                      connect=f"127.0.0.1:{proxy.port}", env=m.env())
        m.hears("STATUS=/unanswered: waiting")
        self.assertEqual(run.end().code, 75)
        self.assertNotIn("READY=1", m.listen())

    def test_ready_in_the_lock_delay(self):
        Holder(self.server, "/delayed", "--lock-delay", "1h").started().run.end(signal.SIGKILL)
        m = self.manager()
        run = self.start("lock", "--notify", "waiting", "--lock-delay", "1h", "/delayed", "--", "true",
                         env=m.env())
        until(lambda: any("waiting for the lock delay" in line for line in m.listen()))
        m.hears("READY=1")
        run.end(15)

    def test_not_acquired(self):
        holder = Holder(self.server, "/busy").started()
        m = self.manager()
        r = clave("lock", "-n", "/busy", "--", "true", connect=self.server.connect, env=m.env())
        self.assertEqual(r.code, 75)
        self.assertNotIn("READY=1", m.listen())
        holder.run.end(15)

    def test_every_kind(self):
        for words in (["rwlock", "-r"], ["rwlock"], ["semaphore", "-n", "2"], ["elect"]):
            m = self.manager()
            r = clave(*words, "/kinds-" + words[0], "--", "true", connect=self.server.connect,
                      env=m.env())
            self.assertEqual((r.code, m.count("READY=1")), (0, 1), (words, m.said))

    def test_a_candidate_that_stands_again_goes_on(self):
        m = self.manager()
        second = 'echo led; test -e "$0" && exec sleep 1000; : >"$0"'
        run = self.start("elect", "--forever", "/again", "--", "sh", "-c", second, scratch("first"),
                         env=m.env())
        self.assertEqual([run.line(), run.line()], ["led", "led"])
        self.assertNotIn("STOPPING=1", m.listen())
        run.end(15)
        self.assertIn("STOPPING=1", m.listen())

    # ---- loss, and the watchdog

    def test_loss(self):
        m = self.manager()
        run = self.start("lock", "/lost", "--", "sh", "-c", "echo; exec sleep 1000", env=m.env())
        run.line()
        clave("locks", "break", "--force", "/lost", queue(self.server, "/lost")[0]["node"],
              connect=self.server.connect)
        self.assertEqual(run.end().code, 76)
        self.assertIn("STATUS=/lost: lost; the command is being ended", m.listen())
        self.assertIn("STOPPING=1", m.said)

    def test_the_watchdog_is_fed_while_the_session_is_confirmed(self):
        s = server(flags=TICK)
        m = self.manager()
        run = Running("lock", "--session-timeout", EXPIRES, "/dog", "--", "sh", "-c",
                      "echo; exec sleep 1000", connect=s.connect,
                      env=m.env(WATCHDOG_USEC="1600000"))
        run.line()
        fed = m.count("WATCHDOG=1")
        until(lambda: m.count("WATCHDOG=1") >= fed + 4)
        s.stop(signal.SIGKILL)
        until(lambda: any(line.endswith("; connection lost") for line in m.listen()))
        self.assertEqual(run.end().code, 76)

    def test_no_server_no_food(self):
        s = server(flags=TICK)
        holder = Holder(s, "/food").started()
        m = self.manager()
        run = Running("lock", "--notify", "waiting", "/food", "--", "true", connect=s.connect,
                      env=m.env(WATCHDOG_USEC="200000"))
        m.hears("WATCHDOG=1")
        s.stop(signal.SIGKILL)
        holder.code()  # has seen it by now; so has the other, which is given another moment
        time.sleep(0.5)
        fed = m.count("WATCHDOG=1")
        time.sleep(0.5)
        self.assertEqual(m.count("WATCHDOG=1"), fed)
        run.end(15)

    def test_somebody_elses_watchdog(self):
        m = self.manager()
        run = self.start("lock", "/else", "--", "sh", "-c", "echo; sleep 0.5",
                         env=m.env(WATCHDOG_USEC="100000", WATCHDOG_PID="1"))
        run.end()
        self.assertNotIn("WATCHDOG=1", m.listen())

    def test_what_surrounds_the_command(self):
        flags = ["--lock-delay", "200ms", "--min-hold", "1h", "/around", "--"]
        Holder(self.server, "/around", *flags[:2]).started().run.end(signal.SIGKILL)
        m = self.manager()
        run = self.start("lock", *flags, "true", env=m.env())
        until(lambda: any("the minimum hold has not" in line for line in m.listen()))
        run.end(15)
        told = [line.partition("; ")[2] for line in m.listen() if "token" in line]
        self.assertEqual(told, ["the previous holder lost it: waiting for the lock delay", "",
                                "the command has ended, the minimum hold has not"])
        self.assertEqual([line for line in m.said if "=1" in line], ["READY=1", "STOPPING=1"])

    # ---- what the command and the hooks get of it

    def test_the_command_is_not_the_service(self):
        m = self.manager()
        env = m.env(WATCHDOG_USEC="10000000")
        script = 'echo "$NOTIFY_SOCKET|$WATCHDOG_USEC|$WATCHDOG_PID"'
        for flags in ([], ["--notify", "held"], ["--notify", "waiting"], ["--notify", "off"]):
            r = clave("lock", *flags, "/own", "--", "sh", "-c", script,
                      connect=self.server.connect, env=env)
            self.assertEqual(r.out, "||\n", flags)
        told = scratch("hook")
        clave("elect", "--on-elected", f"echo $NOTIFY_SOCKET >{told}", "/hook", "--", "sh", "-c",
              f"until test -s {told}; do sleep 0.01; done", connect=self.server.connect, env=env)
        with open(told) as f:
            self.assertEqual(f.read(), "\n")

    def test_the_command_says_when(self):
        """It talks to clave, whoever it is that clave talks to: command_notify_test.py has the rest."""
        m = self.manager()
        r = clave("lock", "--notify", "command", "/theirs", "--", "sh", "-c",
                  'echo "$NOTIFY_SOCKET|$WATCHDOG_USEC|$((WATCHDOG_PID - $$))"',
                  connect=self.server.connect, env=m.env(WATCHDOG_USEC="10000000"))
        self.assertRegex(r.out, r"^@clave-notify-[0-9a-f]{16}\|10000000\|0\n$")
        self.assertEqual([line for line in m.listen() if not line.startswith("STATUS=")],
                         ["STOPPING=1"])

    def test_off(self):
        m = self.manager()
        clave("lock", "--notify", "off", "/off", "--", "true", connect=self.server.connect,
              env=m.env())
        self.assertEqual(m.listen(), [])

    def test_nobody_listens(self):
        for name in (scratch("none"), "@clave-none", "vsock:2:1234", "/" + 200 * "x", ""):
            r = clave("lock", "/deaf", "--", "echo", "ran", connect=self.server.connect,
                      env={"NOTIFY_SOCKET": name})
            self.assertEqual((r.code, r.out, r.err), (0, "ran\n", ""), name)

    # ---- serve

    def test_serve(self):
        m = self.manager()
        port = free_port()
        run = Running("serve", "--data", scratch("data"), "--listen", f"127.0.0.1:{port}",
                      env=m.env(WATCHDOG_USEC="1600000"))
        m.hears("READY=1")
        self.assertEqual(clave("ping", connect=f"127.0.0.1:{port}").code, 0)
        until(lambda: m.count("WATCHDOG=1") >= 3)
        self.assertIn(f"STATUS=serving on 127.0.0.1:{port}", "\n".join(m.said))
        self.assertNotIn("STOPPING=1", m.said)
        self.assertEqual(run.end(15).code, 0)
        self.assertEqual(m.count("STOPPING=1"), 1)

    def test_serve_that_cannot(self):
        m = self.manager()
        r = clave("serve", "--data", scratch("data"), "--listen", self.server.connect, env=m.env())
        self.assertEqual(r.code, 74, r)
        self.assertEqual(m.listen(), [])

    def test_usage(self):
        r = clave("lock", "--notify", "soon", "/x", "--", "true", connect=self.server.connect)
        self.assertEqual(r.code, 64)
        self.assertIn("expected held, waiting, command or off", r.err)


class Units(unittest.TestCase):
    """examples/systemd"""
    folder = os.path.join(SOURCE, "examples", "systemd")

    def commands(self):
        """(unit, the words after the program) of each ExecStart."""
        for name in sorted(os.listdir(self.folder)):
            with open(os.path.join(self.folder, name)) as f:
                for line in f.read().splitlines():
                    if line.startswith("ExecStart=/usr/local/bin/clave "):
                        yield name, shlex.split(line)[1:]

    def test_every_flag_is_one(self):
        found = list(self.commands())
        self.assertEqual(len(found), 5)
        for name, words in found:
            flags = words[:words.index("--")] if "--" in words else words
            r = clave(*flags, "--help")
            self.assertEqual((r.code, r.err), (0, ""), name)

    def test_what_they_may_do(self):
        """systemd-analyze's score, 0 to 10 (as tenths): less is safer."""
        if not shutil.which("systemd-analyze"):
            self.skipTest("there is no systemd-analyze")
        for name, most in ("clave-server", 30), ("clave-gate", 30), ("clave-backup", 40):
            with open(os.path.join(self.folder, name + ".service")) as f:
                self.assertIn("\nUser=clave\n", f.read(), name)
            p = subprocess.run(["systemd-analyze", "security", "--offline=yes", f"--threshold={most}",
                                os.path.join(self.folder, name + ".service")],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
            self.assertEqual(p.returncode, 0, p.stdout)

    def test_systemd_takes_them(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("there is no systemd-analyze")
        there = scratch("units")
        os.mkdir(there)
        for name in os.listdir(self.folder):
            if not name.endswith((".service", ".timer")):
                continue
            with open(os.path.join(self.folder, name)) as f:
                text = re.sub(r"/usr/local/bin/[\w-]+", "/bin/true", f.read())
            with open(os.path.join(there, name), "w") as f:
                f.write(text)
        p = subprocess.run(["systemd-analyze", "verify", "--man=no"]
                           + [os.path.join(there, name) for name in sorted(os.listdir(there))],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=PATIENCE)
        self.assertEqual((p.returncode, p.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
