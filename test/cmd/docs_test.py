"""The pages of docs for users: their C code is that of examples/, which is compiled and run; their
shell lines run; the functions they name exist. tools/check-docs has the rules for blocks: one that
is not run here says why, or where it is."""
import glob
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import unittest

from harness import CLAVE, PATIENCE, SOURCE, ClaveServer, free_port, scratch, spawn


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as f:
        return f.read()


def load_check():
    loader = importlib.machinery.SourceFileLoader("check_docs", f"{SOURCE}/tools/check-docs")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_docs", loader))
    loader.exec_module(module)
    return module


CHECK = load_check()
PAGES = CHECK.pages(*CHECK.USERS)


def blocks(page, *infos):
    return [text for info, text in CHECK.BLOCK.findall(read(page)) if info in infos]


class Code(unittest.TestCase):
    def test_c_code_is_that_of_an_example(self):
        examples = [read(os.path.relpath(e, SOURCE))
                    for e in glob.glob(f"{SOURCE}/examples/*.c") + glob.glob(f"{SOURCE}/examples/cpp/*.cpp")]
        count = 0
        for page in PAGES:
            for block in blocks(page, "c", "cpp"):
                count += 1
                self.assertTrue(any(block in e for e in examples), f"{page}: {block}")
        self.assertGreater(count, 10)

    def test_functions_exist(self):
        headers = "".join(read(os.path.relpath(h, SOURCE))
                          for h in glob.glob(f"{SOURCE}/include/clave/**/*.h", recursive=True))
        metrics = read("docs/operate/monitoring.md")
        for page in PAGES:
            if page != "docs/operate/monitoring.md":
                for name in set(re.findall(r"\b(clave_[a-z_]+[a-z])\b", read(page))):
                    self.assertTrue(name in headers or f"`{name}" in metrics or name == "clave_static",
                                    f"{page}: {name}")

    def test_flags_exist(self):
        """Those of a line that begins with clave and a verb."""
        count = 0
        for page in PAGES:
            for verb, rest in re.findall(r"^clave ([a-z]+)\b(.*)$", "".join(
                    t for i, t in CHECK.BLOCK.findall(read(page)) if i.split(" ")[0] == "sh"), re.M):
                r = subprocess.run([CLAVE, verb, "--help"], capture_output=True, text=True,
                                   timeout=PATIENCE)
                self.assertEqual(r.returncode, 0, f"{page}: {verb}")
                for flag in re.findall(r"(--[a-z-]+)", re.split(" -- | [|] |#", rest)[0]):
                    self.assertIn(flag, r.stdout, f"{page}: clave {verb} {flag}")
                    count += 1
        self.assertGreater(count, 20)


class Shell(unittest.TestCase):
    """Each page's blocks run in order, in a directory of their own, against one server."""

    @classmethod
    def setUpClass(cls):
        tokens = scratch("tokens")
        with open(tokens, "w", encoding="utf-8") as f:
            f.write("4f6a0d1c7be24c0f9a35d1e86b027f4c admin name=docs\n")
        os.chmod(tokens, 0o600)
        cls.gate = f"http://127.0.0.1:{free_port()}"
        cls.server = ClaveServer(["--http", cls.gate.removeprefix("http://"), "--http-tokens", tokens])
        cls.server.start()
        subprocess.run([CLAVE, "create", "/guide"], check=True, capture_output=True, timeout=PATIENCE,
                       env=dict(os.environ, CLAVE_CONNECT=cls.server.connect))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def environment(self):
        home = scratch("home")
        os.mkdir(home)
        with open(f"{home}/.curlrc", "w", encoding="utf-8") as f:
            f.write('fail-with-body\nheader = "Authorization: Bearer 4f6a0d1c7be24c0f9a35d1e86b027f4c"\n')
        return dict(os.environ, HOME=home, CLAVE_CONNECT=self.server.connect, GATE=self.gate,
                    PATH=f"{os.path.dirname(CLAVE)}:{SOURCE}/examples/http:{os.environ['PATH']}")

    def run_block(self, page, text, env):
        r = subprocess.run(["bash", "-ec", text], cwd=env["HOME"], env=env,
                           capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, 0, f"{page}: {text}\n{r.stdout}{r.stderr}")
        for line in text.splitlines():
            for words in re.findall(r"-- echo ([^#]*?)\s*(?:#.*)?$", line):
                if "# is not run" in line:
                    self.assertNotIn(f"{words}\n", r.stdout, f"{page}: {line}")
                elif "$" not in words:
                    self.assertIn(f"{words}\n", r.stdout, f"{page}: {line}")

    def test_lines_run(self):
        count = 0
        for page in PAGES:
            env = self.environment()
            for text in blocks(page, "sh", "sh http"):
                with self.subTest(page, text=text):
                    self.run_block(page, text, env)
                    count += 1
        self.assertGreater(count, 8)

    def test_streams(self):
        """A command that goes on: its first lines say that the lock is held."""
        for page in PAGES:
            for text in blocks(page, "sh stream"):
                p = spawn(["bash", "-c", "exec " + text], env=self.environment(), stdout=subprocess.PIPE, text=True)
                self.assertTrue(any('"held"' in line for line in p.stdout), page)
                p.kill()
                p.wait()
                p.stdout.close()


class Http(unittest.TestCase):
    def test_the_endpoints_and_roles(self):
        contract = json.loads(read("src/web/api/openapi.json"))["paths"]
        roles = {path: {m.upper(): o["x-clave-role"] for m, o in methods.items() if "x-clave-role" in o}
                 for path, methods in contract.items()}
        rows = re.findall(r"^\| `(/[^`]+)` \| ([^|]+) \|", read("docs/reference/http.md"), re.M)
        self.assertEqual({path: dict(x.split(" ") for x in methods.split(", ")) for path, methods in rows},
                         roles)


class Limits(unittest.TestCase):
    def test_the_flags_and_their_defaults(self):
        text = subprocess.run([CLAVE, "serve", "--help"], capture_output=True, text=True,
                              timeout=PATIENCE).stdout
        found = re.findall(r"`(--[a-z-]+)`, (\d+(?: MiB| s)?)", read("docs/reference/limits.md"))
        self.assertGreater(len(found), 12)
        for flag, default in found:
            self.assertRegex(text, rf"(?m)^ +{flag} (?:.|\n {{20,}})*\[{default.replace(' s', 's')}\]", flag)


class Errors(unittest.TestCase):
    def test_the_codes_and_classes(self):
        known = dict(re.findall(r"X\(([A-Z]+), -\d+, ([A-Z]+),", read("include/clave/err.h")))
        rows = re.findall(r"^\| `(E[A-Z]+)` \| ([A-Z]+) \|", read("docs/reference/errors.md"), re.M)
        self.assertGreater(len(rows), 20)
        for name, of_class in rows:
            self.assertEqual(known.get(name), of_class, name)

    def test_the_exit_codes(self):
        codes = re.findall(r"^\| \**(\d+)", read("docs/reference/exit-codes.md"), re.M)
        self.assertGreater(len(codes), 9)
        man = read("docs/man/clave.1")
        for code in codes:
            self.assertRegex(man, rf"(?m)^\.B .*\b{code}\b")

    def test_the_verbs(self):
        text = subprocess.run([CLAVE, "help"], capture_output=True, text=True, timeout=PATIENCE).stdout
        verbs = re.findall(r"^  ([a-z]+)  ", text.split("Verbs:")[1].split("Flags")[0], re.M)
        page = read("docs/reference/verbs.md")
        self.assertGreater(len(verbs), 25)
        for verb in verbs:
            self.assertRegex(page, rf"`(?:clave )?{verb}\b", verb)


if __name__ == "__main__":
    unittest.main()
