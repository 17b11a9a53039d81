"""The npm package and the tools of its users, as the registry has them today: publint and attw find nothing, TypeScript
compiles its types with and without others beside them, esbuild bundles it, jest and vitest run tests of it, and its own
tests pass on the oldest and the newest Node that it is for.

  node_tools_test.py SOURCE-DIR BUILD-DIR
"""
import concurrent.futures
import json
import os
import shutil
import sys
import unittest

SOURCE, BUILD = (os.path.abspath(p) for p in sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "test", "cmd"))
os.environ.setdefault("CLAVE", os.path.join(BUILD, "clave"))
from harness import CLAVE, scratch  # noqa: E402
from node_test import has_registry, run  # noqa: E402

PACKAGE = os.path.join(SOURCE, "packages", "node")
TOOLS = ["publint", "@arethetypeswrong/cli", "typescript@5", "esbuild", "jest", "vitest"]
NODES = ["18", "24"]
OWN = ["testing.test.js", "http1.test.js", "first_hour.test.js", "locks.test.js"]

USES = """import { connect, BusyError } from 'clave';
import { fenceFile } from 'clave/fence';
import { coordinator } from 'clave/node-cron';
import { startGate } from 'clave/testing';
const gate = await startGate();
const clave = connect(gate.url);
const held = await clave.lock('/x');
const busy = await clave.lock('/x', { wait: 0 }).catch((error) => error instanceof BusyError);
await held.release();
await clave.close();
await gate.close();
console.log(busy, typeof fenceFile, typeof coordinator);
"""

TYPED = """import { connect } from 'clave';
import { startGate } from 'clave/testing';
export async function work(): Promise<boolean> {
  await using lock = await connect().lock('/x', { wait: '1s' });
  const gate = await startGate();
  return lock.signal.aborted || gate.requests > 0;
}
"""

# As the README has it. `test` and `expect` are there in both.
TESTED = """const { connect } = IMPORT('clave');
const { startGate } = IMPORT('clave/testing');
test('a job that loses its lock is told', async () => {
  const gate = await startGate();
  const clave = connect(gate.url);
  const lock = await clave.lock('/jobs/nightly');
  const lost = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
  gate.expire('/jobs/nightly');
  gate.fault({ status: 503, times: 2 });
  await lost;
  await expect(lock.release()).rejects.toMatchObject({ name: 'LostError' });
  await clave.close();
  await gate.close();
}, 20000);
"""


def install(project, *names):
    os.makedirs(project, exist_ok=True)
    with open(f"{project}/package.json", "w", encoding="utf-8") as f:
        json.dump({"name": "project", "version": "1.0.0", "private": True}, f)
    run("npm", "install", "--no-audit", "--no-fund", *names, cwd=project, seconds=300)
    return project


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        packed = scratch("packed")
        run(f"{SOURCE}/tools/npm-pack", packed, cwd="/")
        cls.tarball = next(f"{packed}/{f}" for f in os.listdir(packed) if f.endswith(".tgz"))
        cls.project = install(scratch("tools"), cls.tarball, *TOOLS)

    def put(self, name, text):
        with open(f"{self.project}/{name}", "w", encoding="utf-8") as f:
            f.write(text)

    def tool(self, *words):
        return run("npx", "--no-install", *words, cwd=self.project)

    def test_publint(self):
        self.tool("publint", "node_modules/clave", "--strict")

    def test_are_the_types_wrong(self):
        self.tool("attw", "--pack", self.tarball)

    def test_types_without_those_of_node(self):
        self.put("typed.mts", TYPED)
        for libs in ["es2022"], ["es2022", "dom"], ["esnext"]:
            for target in "es2022", "esnext":
                options = {"strict": True, "noEmit": True, "target": target, "lib": libs, "types": [], "module": "nodenext"}
                if libs == ["es2022"] or libs[-1] == "dom":
                    options["lib"] = libs + ["esnext.disposable"]
                self.put("tsconfig.json", json.dumps({"compilerOptions": options, "files": ["typed.mts"]}))
                self.tool("tsc", "-p", "tsconfig.json")
        self.put("typed.mts", TYPED.replace("await using", "const"))
        self.put("tsconfig.json", json.dumps({"compilerOptions": {**options, "lib": ["es2022"], "target": "es2022"},
                                              "files": ["typed.mts"]}))
        self.tool("tsc", "-p", "tsconfig.json")

    def test_a_bundle(self):
        self.put("uses.mjs", USES)
        self.tool("esbuild", "uses.mjs", "--bundle", "--platform=node", "--format=esm", "--outfile=bundle.mjs")
        elsewhere = scratch("bundle")
        os.makedirs(elsewhere)
        shutil.copy(f"{self.project}/bundle.mjs", elsewhere)
        for where in f"{self.project}/uses.mjs", f"{elsewhere}/bundle.mjs":
            self.assertEqual(run("node", where, cwd=elsewhere), "true function function\n")

    def test_jest_and_vitest(self):
        self.put("a.test.js", TESTED.replace("IMPORT", "require"))
        self.tool("jest", "a.test.js")
        self.put("b.test.mjs", "import { test, expect } from 'vitest';\n" + TESTED.replace("IMPORT", "await import"))
        self.tool("vitest", "run", "b.test.mjs")


class Nodes(unittest.TestCase):
    def test_its_own_tests(self):
        """Side by side: most of their time they wait."""
        nodes = {v: f"{install(scratch(f'node{v}'), f'node@{v}')}/node_modules/node/bin/node" for v in NODES}
        for version, node in nodes.items():
            self.assertTrue(run(node, "--version", cwd="/").startswith(f"v{version}."))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            jobs = [(node, f"test/{name}") for node in nodes.values() for name in OWN]
            for said in pool.map(lambda job: run(job[0], "--test", job[1], cwd=PACKAGE, seconds=300, CLAVE=CLAVE), jobs):
                print(said)


if __name__ == "__main__":
    if not (shutil.which("node") and shutil.which("npm")):
        print("SKIPPED: node and npm are not installed")
        sys.exit(77)
    if not has_registry():
        print("SKIPPED: the registry of npm cannot be reached, from which the tools come")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
