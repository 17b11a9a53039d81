"""The npm package: its own tests; then its tarball in an empty project, as its users have it: ESM, CommonJS, types, the
examples, node-cron, PostgreSQL.

  node_test.py SOURCE-DIR BUILD-DIR
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import unittest

SOURCE, BUILD = (os.path.abspath(p) for p in sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "test", "cmd"))
os.environ.setdefault("CLAVE", os.path.join(BUILD, "clave"))
from gate_rig import Gate  # noqa: E402
from harness import CLAVE, scratch  # noqa: E402
from postgres import PostgresServer  # noqa: E402

TOKEN = "a-token-for-the-tests-of-the-package"
PACKAGE = os.path.join(SOURCE, "packages", "node")
BESIDE = ["node-cron@4", "pg@8", "typescript@5", "@types/node@20", "@types/pg@8"]


def run(*command, cwd, seconds=120, **env):
    """What it has printed."""
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **env}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=seconds, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def has_registry():
    return subprocess.run(["npm", "ping", "--fetch-retries=0", "--fetch-timeout=5000"], capture_output=True,
                          check=False).returncode == 0


class Own(unittest.TestCase):
    def test_its_own_tests(self):
        """Its files side by side: most of their time they wait."""
        names = sorted(f"test/{f}" for f in os.listdir(f"{PACKAGE}/test") if f.endswith(".test.js"))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for said in pool.map(lambda name: run("node", "--test", name, cwd=PACKAGE, seconds=240, CLAVE=CLAVE), names):
                print(said)

    def test_two_tarballs_are_the_same(self):
        first, second = scratch("first"), scratch("second")
        for folder in first, second:
            run(f"{SOURCE}/tools/npm-pack", folder, cwd="/")
        run("cmp", *(f"{d}/{os.listdir(d)[0]}" for d in (first, second)), cwd="/")


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.project = scratch("project")
        os.makedirs(cls.project)
        run(f"{SOURCE}/tools/npm-pack", cls.project, cwd="/")
        tarball = next(f for f in os.listdir(cls.project) if f.endswith(".tgz"))
        run("npm", "init", "-y", cwd=cls.project)
        run("npm", "install", "--no-audit", "--no-fund", "--offline", f"./{tarball}", cwd=cls.project)  # needs nothing else
        if has_registry():
            run("npm", "install", "--no-audit", "--no-fund", *BESIDE, cwd=cls.project, seconds=180)
        for name in os.listdir(f"{SOURCE}/test/package/node"):
            shutil.copy(f"{SOURCE}/test/package/node/{name}", cls.project)
        tokens = scratch("tokens")
        with open(os.open(tokens, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as f:
            f.write(f"{TOKEN} admin\n")
        cls.gate = Gate(None, "--http-tokens", tokens).start()
        cls.addClassCleanup(cls.gate.stop)
        cls.url = f"http://{cls.gate.address}"

    def node(self, *words, **env):
        return run("node", *words, cwd=self.project, CLAVE_GATE=self.url, CLAVE_GATE_TOKEN=TOKEN, **env)

    def needs(self, module):
        if not os.path.isdir(f"{self.project}/node_modules/{module}"):
            self.skipTest(f"{module} could not be had from npm")

    def test_both_kinds_of_modules_have_all_names(self):
        names = "console.log(Object.keys(m).filter((n) => n !== 'default').sort().join())"
        for module in "clave", "clave/fence", "clave/node-cron", "clave/testing":
            with self.subTest(module):
                required = self.node("-e", f"const m = require('{module}'); {names}")
                imported = self.node("--input-type=module", "-e", f"import * as m from '{module}'; {names}")
                self.assertEqual(required, imported)
                self.assertTrue(required.strip())

    def test_types(self):
        self.needs("typescript")
        print(run("npx", "tsc", "--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,esnext.disposable",
                  "--module", "nodenext", "types.ts", cwd=self.project, seconds=120))

    def test_examples(self):
        examples = f"{self.project}/node_modules/clave/examples"
        for name in sorted(os.listdir(examples)):
            with self.subTest(name):
                if name.startswith("cron."):
                    self.needs("node-cron")
                shutil.copy(f"{examples}/{name}", self.project)
                self.assertTrue(self.node(name).strip())

    def test_readme(self):
        with open(f"{PACKAGE}/README.md", encoding="utf-8") as page, \
                open(f"{self.project}/nightly.mjs", "w", encoding="utf-8") as file:
            block = re.search(r"^```js\n(.*?)^```", page.read(), re.M | re.S).group(1)
            file.write(block.replace("connect('http://127.0.0.1:8080')", "connect()"))
        self.assertRegex(self.node("nightly.mjs"), r"\Amade, token \d+\n\Z")

    def test_node_cron(self):
        self.needs("node-cron")
        self.node("coordinator.mjs", self.url, TOKEN)

    def test_postgres(self):
        self.needs("pg")
        if not PostgresServer.found():
            self.skipTest("Debian's postgresql is not installed")
        postgres = PostgresServer()
        self.addCleanup(postgres.end)
        self.node("postgres.cjs", self.url, TOKEN, **postgres.reach())


if __name__ == "__main__":
    if not (shutil.which("node") and shutil.which("npm")):
        print("SKIPPED: node and npm are not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
