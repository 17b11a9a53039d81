"""docs/start: what the pages show, run as they show it: the crontab by the rules of cron, on three
machines of which one dies; the unit's command, on three, too; the lock over HTTP.

A machine is a namespace for host names and processes, so that all of it can die at once."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import unittest

from harness import CLAVE, PATIENCE, SOURCE, UNSAFE, ClaveServer, environment, scratch, spawn
from lock_rig import EXPIRES, TICK, until

UNSHARE = ["unshare", "--map-root-user", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
NAMES = ("web1", "web2", "web3")


def namespaces():
    return shutil.which("unshare") and subprocess.run(UNSHARE + ["true"], stderr=subprocess.DEVNULL,
                                                      timeout=PATIENCE).returncode == 0


def blocks(page, language):
    with open(os.path.join(SOURCE, "docs/start", page), encoding="utf-8") as f:
        return re.findall(rf"^```{language} tested-by: test/cmd/start_pages_test.py\n(.*?)^```$", f.read(), re.M | re.S)


def lines(path):
    with open(path, encoding="utf-8") as f:
        return f.read().splitlines()


@unittest.skipUnless(namespaces(), "this user may not make namespaces, which are the machines here")
class ThreeMachines(unittest.TestCase):
    def setUp(self):
        self.server = ClaveServer(TICK).start()
        self.addCleanup(self.server.stop)
        self.bin = scratch("bin")
        self.log = os.path.join(self.bin, "log")
        os.mkdir(self.bin)
        os.symlink(CLAVE, os.path.join(self.bin, "clave"))
        with open(self.log, "w", encoding="utf-8"):
            pass
        self.config = os.path.join(self.bin, "config")  # of each machine
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f"session-timeout = {EXPIRES}\n")

    def program(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def job(self, name, work=""):
        self.program(name, f'#!/bin/sh\necho "begin $(hostname)" >>{self.log}\n{work}\necho "end $(hostname)" >>{self.log}\n')

    def installed(self, text):
        """A page's text, for the programs and the server of this test."""
        return re.sub(r"thatone:2181|zk1,zk2,zk3", self.server.connect, text.replace("/usr/local/bin", self.bin))

    def crontab(self, text):
        """(environment, command) of a file in /etc/cron.d with one line, as cron takes it."""
        env = {"HOME": environment()["HOME"], "CLAVE_SYSTEM_CONFIG": self.config,
               "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "LOGNAME": "root"}
        for line in self.installed(text).splitlines():
            setting = re.fullmatch(r"(\w+)\s*=\s*(.*)", line)
            if setting:
                env[setting[1]] = setting[2]
        entry = re.fullmatch(r"(?:[-\d*/,]+\s+){5}root\s+(.*)", line)
        self.assertNotRegex(entry[1], r"(?<!\\)%", "cron ends the command there")
        return env, entry[1].replace("\\%", "%")

    def machine(self, name, command, env):
        """Its output is what cron would mail."""
        return spawn(UNSHARE + ["sh", "-c", f'hostname {name} && exec /bin/sh -c "$0"', command], env=env,
                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def mail(self, machine):
        out, _ = machine.communicate(timeout=PATIENCE)
        return machine.returncode, out

    def ask(self, *words):
        return subprocess.run([CLAVE, *words], env=environment(CLAVE_CONNECT=self.server.connect), timeout=PATIENCE,
                              capture_output=True, text=True)

    # ---- cron.md

    def test_cron_runs_it_on_one(self):
        self.job("report")
        env, command = self.crontab(blocks("cron.md", "crontab")[0])
        machines = [self.machine(name, command, env) for name in NAMES]
        self.assertEqual([self.mail(m) for m in machines], [(0, "")] * 3)
        ran = lines(self.log)
        self.assertEqual(len(ran), 2, f"{UNSAFE}: {ran}")
        record = self.ask("get", "/jobs/report-once/nightly").stdout
        self.assertIn("state=done\n", record)
        self.assertIn(f"host={ran[0].split()[1]}\n", record)
        # A machine that comes an hour late, or whose clock does.
        self.assertEqual(self.mail(self.machine("late", command, env)), (0, ""))
        self.assertEqual(lines(self.log), ran)

    def test_cron_when_the_machine_dies(self):
        self.job("report", work=f"test -e {self.bin}/dead || exec sleep 1000")
        env, command = self.crontab(blocks("cron.md", "crontab")[0])
        machines = {name: self.machine(name, command, env) for name in NAMES}
        until(lambda: lines(self.log))
        first = lines(self.log)[0].split()[1]
        with open(f"{self.bin}/dead", "w", encoding="utf-8"):
            pass
        machines[first].kill()
        others = [self.mail(m) for name, m in machines.items() if name != first]
        self.mail(machines[first])
        self.assertEqual(others, [(0, "")] * 2)
        ran = lines(self.log)
        self.assertEqual([line.split()[0] for line in ran], ["begin", "begin", "end"], ran)
        self.assertNotEqual(ran[1].split()[1], first)

    def test_cron_when_the_job_fails(self):
        self.job("report", work="exit 3")
        env, command = self.crontab(blocks("cron.md", "crontab")[0])
        machines = [self.machine(name, command, env) for name in NAMES]
        self.assertEqual([self.mail(m)[0] for m in machines], [3] * 3)
        self.assertEqual(len(lines(self.log)), 3)

    def test_the_alert(self):
        if not shutil.which("jq"):
            self.skipTest("there is no jq")
        self.program("ran-lately", blocks("cron.md", "sh")[0])
        env, command = self.crontab(blocks("cron.md", "crontab")[1])
        record = "/jobs/report-once/nightly"

        def alert(command):
            code, out = self.mail(self.machine("web1", command, env))
            return code, out.splitlines()[-1:]

        never = [f"{record}: no good run in the last 26 hours"]
        self.assertEqual(alert(command), (1, never))
        self.ask("lock", "-q", "--once", "nightly", "/jobs/report", "--", "false")
        self.assertEqual(alert(command), (1, never))
        self.ask("lock", "-q", "--once", "nightly", "/jobs/report", "--", "true")
        self.assertEqual(alert(command), (0, []))
        self.assertEqual(alert(command.replace("26", "0"))[0], 1)
        self.assertEqual(alert(command.replace(" 26", " 26; echo told"))[1], ["told"])
        self.server.stop()
        with open(self.config, "a", encoding="utf-8") as f:
            f.write("timeout = 1s\n")  # the alert comes when it is over
        self.assertEqual(alert(command), (1, never))
        self.server.start()

    # ---- service.md

    def test_the_service_moves(self):
        self.program("dispatcher", f'#!/bin/sh\necho "begin $(hostname)" >>{self.log}\nexec sleep 1000\n')
        unit = self.installed(blocks("service.md", "ini")[0])
        settings = dict(re.findall(r"^(\w+)=(.*)$", unit, re.M))
        name, value = settings["Environment"].split("=")
        env = environment(CLAVE_SYSTEM_CONFIG=self.config, **{name: value})
        command = "exec " + settings["ExecStart"]
        self.assertIn("--forever", shlex.split(command))
        machines = {n: self.machine(n, command, env) for n in NAMES}
        for former in range(2):
            until(lambda n=former: len(lines(self.log)) == n + 1)
            leader = lines(self.log)[former].split()[1]
            until(lambda: len(self.ask("candidates", "/dispatcher/leader").stdout.splitlines()) == len(machines))
            machines[leader].kill()
            self.mail(machines.pop(leader))
        until(lambda: len(lines(self.log)) == 3)
        self.assertEqual(sorted(lines(self.log)), [f"begin {n}" for n in NAMES])
        (last,) = machines.values()
        last.kill()
        self.mail(last)

    def test_a_dispatcher_that_hangs(self):
        """Seen by the check of the second unit, which is made to run more often here."""
        self.program("dispatcher", f'#!/bin/sh\necho "begin $(hostname)" >>{self.log}\nexec sleep 1000\n')
        self.program("dispatcher-healthy", f'#!/bin/sh\ntest ! -e {self.bin}/hung-$(hostname) || exec sleep 1000\n'
                     f'echo $CLAVE_EVENT >>{self.bin}/healthy\n')
        line = self.installed(blocks("service.md", "ini")[1]).strip()
        command = "exec " + line.replace("ExecStart=", "").replace("--health ", "--health-every 500ms --health ", 1)
        env = environment(CLAVE_SYSTEM_CONFIG=self.config, CLAVE_CONNECT=self.server.connect)
        machines = [self.machine(n, command, env) for n in NAMES]
        until(lambda: len(lines(self.log)) == 1)
        leader = lines(self.log)[0].split()[1]
        until(lambda: len(self.ask("candidates", "/dispatcher/leader").stdout.splitlines()) == len(machines))
        until(lambda: "holding" in lines(f"{self.bin}/healthy"))
        with open(f"{self.bin}/hung-{leader}", "w", encoding="utf-8"):
            pass
        until(lambda: len(lines(self.log)) == 2)
        self.assertNotEqual(lines(self.log)[1].split()[1], leader)
        self.assertEqual(len(self.ask("candidates", "/dispatcher/leader").stdout.splitlines()), len(machines) - 1)
        for m in machines:
            m.kill()
            self.mail(m)

    def test_the_unit_is_one_of_the_examples(self):
        with open(os.path.join(SOURCE, "examples/systemd/leader.service"), encoding="utf-8") as f:
            example = set(f.read().splitlines())
        for line in blocks("service.md", "ini")[0].splitlines():
            self.assertIn(line, example)


class Http(unittest.TestCase):
    def test_the_page(self):
        """All blocks in one shell, as the reader types them."""
        if not shutil.which("jq"):
            self.skipTest("there is no jq")
        folder = scratch("c")
        os.mkdir(folder)
        begin, *rest = [text.replace("/tmp/clave", folder + "/clave") for text in blocks("http.md", "sh")]
        begin = begin.replace("127.0.0.1:2181", f"unix:{folder}/zk")
        self.assertTrue(begin.endswith("&\n"), begin)
        server = spawn(["bash", "-c", "exec " + begin[:-2]], stdout=subprocess.PIPE, text=True,
                       env=environment(PATH=f"{os.path.dirname(CLAVE)}:{os.environ['PATH']}"))
        self.assertIn("serving on", server.stdout.readline())
        r = subprocess.run(["bash", "-ec", "".join(rest)], env=environment(), capture_output=True, text=True,
                           timeout=PATIENCE)
        self.assertEqual(r.returncode, 0, r)
        self.assertRegex(r.stdout, r"\Aheld\n\d+\n\d+\n\d+\n\{.*\}\{.*\}made today410\n\{.*\"held\".*\}\n", r)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0)
        server.stdout.close()


if __name__ == "__main__":
    unittest.main()
