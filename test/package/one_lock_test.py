"""One lock for all languages: the programs of examples/one-lock in one queue, against `clave serve --http`; then each of
them killed while it holds.

  one_lock_test.py SOURCE-DIR BUILD-DIR
"""
import os
import shutil
import subprocess
import sys
import time
import unittest

SOURCE, BUILD = (os.path.abspath(p) for p in sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "test", "cmd"))
os.environ.setdefault("CLAVE", os.path.join(BUILD, "clave"))
from gate_rig import Gate  # noqa: E402
from harness import CLAVE, JARS, UNSAFE, environment, scratch, spawn  # noqa: E402
from packages import python_package, why_no_python  # noqa: E402

JOBS = os.path.join(SOURCE, "examples", "one-lock")
CURATOR = [f"{JARS}{j}.jar" for j in ("curator-recipes", "curator-framework", "curator-client", "zookeeper", "slf4j-nop")]
LINK = [f"-I{SOURCE}/include", f"-L{BUILD}", "-lclave", f"-Wl,-rpath,{BUILD}"]
SECONDS = 60


def made(*command, **env):
    subprocess.run(command, check=True, env={**os.environ, **env})


def programs():
    """The command of each language that this machine has."""
    out = os.path.dirname(scratch(""))
    made("cc", f"{JOBS}/nightly.c", *LINK, "-o", f"{out}/c")
    found = {"c": [f"{out}/c"], "shell": [f"{JOBS}/nightly.sh"]}
    if not why_no_python():
        found["python"] = [sys.executable, "-B", f"{JOBS}/nightly.py"]
    if shutil.which("c++"):
        made("c++", "-std=c++17", f"{JOBS}/nightly.cpp", *LINK, "-o", f"{out}/c++")
        found["c++"] = [f"{out}/c++"]
    if shutil.which("go"):
        made("go", "build", "-o", f"{out}/go", f"{JOBS}/nightly.go", GOCACHE=f"{out}/cache", GO111MODULE="off")
        found["go"] = [f"{out}/go"]
    if shutil.which("javac") and all(map(os.path.exists, CURATOR)):
        made("javac", "-nowarn", "-cp", ":".join(CURATOR), "-d", out, f"{JOBS}/Nightly.java")
        found["java"] = ["java", "-Xmx64m", "-XX:+UseSerialGC", "-cp", ":".join([*CURATOR, out]), "Nightly"]
    if shutil.which("node"):
        os.makedirs(f"{out}/node_modules")
        os.symlink(f"{SOURCE}/packages/node", f"{out}/node_modules/clave")
        shutil.copy(f"{JOBS}/nightly.mjs", out)
        found["javascript"] = ["node", f"{out}/nightly.mjs"]
    print("languages:", *sorted(found))
    return found


class OneLock(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = programs()
        cls.python = "" if why_no_python() else python_package()

    def setUp(self):
        # Whatever a program asks for: its place is free so long after it is killed.
        self.gate = Gate(None, "--tick", "1s", "--max-session-timeout", "4s").start()
        self.addCleanup(self.gate.stop)
        self.ledger = scratch("ledger")
        self.env = environment(CLAVE_CONNECT=f"127.0.0.1:{self.gate.zk_port}", CLAVE_GATE=f"http://{self.gate.address}",
                               PYTHONPATH=self.python, PATH=f"{os.path.dirname(CLAVE)}:{os.environ['PATH']}")

    def start(self, language):
        return spawn([*self.programs[language], self.ledger], env=self.env)

    def lines(self):
        """(what, token, language) of each line that is whole."""
        if not os.path.exists(self.ledger):
            return []
        with open(self.ledger, encoding="utf-8") as f:
            words = [line.split() for line in f.read().splitlines(keepends=True) if line.endswith("\n")]
        return [(what, int(token), language) for what, token, language in words]

    def judge(self):
        """Nobody began before the one before it had ended or was killed; tokens grow. Returns who ended."""
        seen, ended = self.lines(), []
        for i, (what, token, language) in enumerate(seen):
            before = seen[i - 1] if i else None
            if what == "end":
                self.assertEqual(before, ("begin", token, language), f"{UNSAFE}: another began meanwhile: {seen}")
                ended.append(language)
        tokens = [token for what, token, _ in seen if what == "begin"]
        self.assertEqual(tokens, sorted(set(tokens)), f"{UNSAFE}: tokens do not grow")
        return ended

    def test_all_stand_in_one_queue(self):
        running = [self.start(language) for _ in range(3) for language in self.programs]
        for p in running:
            self.assertEqual(p.wait(SECONDS), 0, p.args)
        self.assertEqual(sorted(self.judge()), sorted(3 * list(self.programs)))

    def test_a_holder_that_is_killed_is_followed(self):
        doomed = {language: self.start(language) for language in self.programs}
        until = time.monotonic() + SECONDS
        while any(p.poll() is None for p in doomed.values()):
            self.assertLess(time.monotonic(), until, self.lines())
            for what, _, language in self.lines()[-1:]:
                if what == "begin" and doomed[language].poll() is None:
                    doomed[language].kill()
            time.sleep(0.005)
        killed = [language for language, p in doomed.items() if p.returncode < 0]
        self.assertGreaterEqual(len(killed), len(doomed) / 2, "most are killed while they hold")
        last = {language: self.start(language) for language in self.programs}
        for language, p in last.items():
            self.assertEqual(p.wait(SECONDS), 0, language)
        ended = self.judge()
        for language in self.programs:
            self.assertIn(language, ended)


unittest.main(argv=sys.argv[:1], verbosity=1)
