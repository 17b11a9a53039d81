"""The Python package: its structs and its table beside the headers; then its wheel in an empty virtual environment, as
its users have it: its own tests, its docstrings, its types.

  python_test.py SOURCE-DIR BUILD-DIR
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

SOURCE, BUILD = (os.path.abspath(p) for p in sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "test", "cmd"))
os.environ.setdefault("CLAVE", os.path.join(BUILD, "clave"))
from harness import CLAVE, ClaveServer, environment, scratch, spawn  # noqa: E402

PACKAGE = os.path.join(SOURCE, "packages", "python")
DEBIAN = "/usr/lib/python3/dist-packages"  # has kazoo
OLDEST = "3.9"


def run(*command, cwd="/", seconds=120, **env):
    """What it has printed."""
    done = subprocess.run(command, cwd=cwd, env=environment(CLAVE=CLAVE, **env), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=seconds, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Table(unittest.TestCase):
    """What the headers have is bound, or named here with the reason why not."""

    NOT_BOUND = {
        "clave_async_delete_guaranteed": "for recipes written in C: what they free is deleted so",
        "clave_async_watch_": "one-shot watches: Watcher and Cache miss nothing",
        "clave_async_add_watch": "Watcher is made of it",
        "clave_async_grant_ref": "a Hold is counted by Python",
        "clave_async_latch_state_of": "a Candidate is started from the beginning",
        "clave_metrics_write": "metrics.page gives a str",
        "clave_async_client_": "the engine without I/O: clave_client drives it",
        "clave_loop_free": "one loop for the process, for ever",
        "clave_instance_": "an Instance is what the engine has read; json writes one",
        "clave_service_type_parse": "the type is its name",
        "clave_client_post": "clave_client_run serves",
    }

    def functions(self, header):
        text = re.sub(r"/\*.*?\*/", "", read(f"{SOURCE}/include/clave/{header}"), flags=re.S)
        return re.findall(r"CLAVE_(?:METHOD|MAKING|EXPORT)[^;]*?\b(clave_\w+)\(", text)

    def test_functions(self):
        code = "".join(map(read, glob.glob(f"{PACKAGE}/clave/*.py") + glob.glob(f"{PACKAGE}/bridge/*.c")))
        headers = [f"async/{os.path.basename(p)}" for p in glob.glob(f"{SOURCE}/include/clave/async/*.h")]
        seen = 0
        for header in sorted(headers) + ["client.h", "err.h", "metrics.h", "tls.h", "version.h"]:
            for name in self.functions(header):
                if header == "client.h" and not name.startswith(("clave_client_", "clave_loop_")):
                    continue  # requests: their asynchronous form is bound
                seen += 1
                bound = re.search(rf"\b{name}\b", code) or name in (f"clave_async_rwlock_{s}" for s in ("read", "write"))
                reasons = [why for start, why in self.NOT_BOUND.items() if name.startswith(start)]
                self.assertTrue(bound or reasons, f"{header}: {name} is not bound, and no reason is given")
        self.assertGreater(seen, 120)

    def test_nouns(self):
        table = re.search(r"noun +blocking.*?\n \* *\n", read(f"{SOURCE}/include/clave/clave.h"), re.S).group(0)
        nouns = re.findall(r"^ \*   ([a-z_]+) +[a-z-]", table, re.M)
        shown = re.findall(r"^\| `([a-z_]+)` \|", read(f"{PACKAGE}/README.md"), re.M)
        self.assertEqual(sorted(shown), sorted(nouns), "the table of nouns in packages/python/README.md")


class Installed(unittest.TestCase):
    """The wheel, in an environment that has nothing else."""

    @classmethod
    def setUpClass(cls):
        cls.wheels = scratch("wheels")
        run(f"{SOURCE}/tools/python-wheel", BUILD, cls.wheels)
        cls.venv = scratch("venv")
        run("/usr/bin/python3", "-m", "venv", cls.venv)
        cls.python = f"{cls.venv}/bin/python"
        cls.wheel = glob.glob(f"{cls.wheels}/*.whl")[0]
        run(cls.python, "-m", "pip", "install", "--no-index", "--no-cache-dir", cls.wheel)
        cls.site = os.path.dirname(glob.glob(f"{cls.venv}/lib/python3*/site-packages/clave")[0])

    def test_two_wheels_are_the_same(self):
        again = scratch("again")
        run(f"{SOURCE}/tools/python-wheel", BUILD, again)
        run("cmp", self.wheel, glob.glob(f"{again}/*.whl")[0])

    def test_it_brings_its_libraries(self):
        linked = run("ldd", f"{self.site}/clave/_bridge.so.1")
        for name in "libclave", "libuv", "libz":
            self.assertRegex(linked, rf"{name}\.so\.1 => {re.escape(self.site)}/clave/")
        linked = run("ldd", f"{self.site}/clave/bin/clave")
        for name in "libuv", "libz":
            self.assertRegex(linked, rf"{name}\.so\.1 => {re.escape(self.site)}/clave/")

    def test_it_brings_the_program(self):
        """As a command, and for `local:` where no other is installed."""
        folder = scratch("local")

        def end_server():
            with open(f"{folder}/clave.lock", encoding="ascii") as f:
                os.kill(int(f.read().split()[0]), signal.SIGTERM)

        self.addCleanup(end_server)
        self.assertIn("clave ", run(f"{self.venv}/bin/clave", "version"))
        held = 'import clave\nwith clave.Client() as c, c.lock("/x") as hold: print(hold.token > 0)'
        nowhere = scratch("nothing")
        # beside it, in any order, that the lock is one of this user's own server
        self.assertIn("True", run(self.python, "-c", held, CLAVE_LOCAL_DIR=folder, PATH=nowhere).splitlines())

    def test_structs(self):
        """Each field has the place and the size that the headers give it."""
        print_them = (
            "import ctypes\nfrom clave import _lib\n"
            "for s, name in _lib.STRUCTS.items():\n"
            "    print(name, ctypes.sizeof(s), *(f'{f[0]}:{getattr(s, f[0]).offset}:{getattr(s, f[0]).size}' "
            "for f in s._fields_))\n")
        ours = run(self.python, "-c", print_them)
        lines = []
        for line in ours.splitlines():
            name, _, *fields = line.split()
            shown = " ".join(f"{f.split(':')[0]}:%zu:%zu" for f in fields)
            values = ", ".join(f"offsetof({name}, {f}), sizeof((({name} *)0)->{f})" for f in
                               (f.split(":")[0] for f in fields))
            lines.append(f'printf("{name} %zu {shown}\\n", sizeof({name}), {values});')
        folder = scratch("structs")
        os.makedirs(folder)
        with open(f"{folder}/structs.c", "w", encoding="utf-8") as f:
            f.write("#include <stddef.h>\n#include <stdio.h>\n#include <clave/clave.h>\n"
                    f"int main(void) {{ {' '.join(lines)} return 0; }}\n")
        run("cc", f"-I{SOURCE}/include", "-o", "structs", "structs.c", cwd=folder)
        self.assertEqual(ours, run(f"{folder}/structs"))
        self.assertGreater(len(lines), 15)

    def test_its_own_tests(self):
        """Its modules side by side: most of their time they wait."""
        with open(f"{self.site}/debian.pth", "w", encoding="utf-8") as f:
            f.write(f"{DEBIAN}\n")
        names = sorted(os.path.basename(p)[:-3] for p in glob.glob(f"{PACKAGE}/tests/test_*.py"))
        logs = [open(scratch("log"), "w+", encoding="utf-8") for _ in names]
        running = [spawn([self.python, "-B", "-X", "faulthandler", "-m", "unittest", "-v", name], cwd=f"{PACKAGE}/tests",
                         env=environment(CLAVE=CLAVE), stdout=log, stderr=subprocess.STDOUT)
                   for name, log in zip(names, logs)]
        codes = [process.wait(200) for process in running]
        for log in logs:
            log.seek(0)
            print(log.read())
            log.close()
        self.assertEqual(codes, [0] * len(names), names)

    def test_docstrings_and_readme(self):
        server = ClaveServer().start()
        self.addCleanup(server.process.kill)
        modules = sorted(os.path.basename(p)[:-3] for p in glob.glob(f"{PACKAGE}/clave/[a-z]*.py"))
        script = ("import doctest, importlib, sys\nfailed = tried = 0\n"
                  f"for name in {['clave'] + ['clave.' + m for m in modules]!r}:\n"
                  "    r = doctest.testmod(importlib.import_module(name))\n"
                  "    failed += r.failed; tried += r.attempted\n"
                  f"r = doctest.testfile({PACKAGE + '/README.md'!r}, module_relative=False)\n"
                  "sys.exit(failed + r.failed or r.attempted == 0 or tried < 5)\n")
        run(self.python, "-c", script, CLAVE_CONNECT=server.connect, PYTHONPATH=DEBIAN)

    def test_types(self):
        if not shutil.which("mypy"):
            self.skipTest("mypy is not installed")
        run("mypy", "--strict", "--python-version", OLDEST, "--cache-dir=/dev/null", f"{PACKAGE}/clave")
        user = scratch("user.py")
        with open(user, "w", encoding="utf-8") as f:
            f.write('import clave\n\nwith clave.Client() as c, c.lock("/x", timeout=1) as hold:\n'
                    "    token: int = hold.token\n    reveal_type(hold)\n")
        said = run("mypy", "--strict", "--cache-dir=/dev/null", "--python-executable", self.python, user)
        self.assertIn("clave.hold.Hold", said)
        with open(user, "w", encoding="utf-8") as f:
            f.write("import clave\nimport clave.aio\n\n")
            f.writelines(f"{client}().{noun}('/x', timeuot=1)\n" for client in ("clave.Client", "clave.aio.Client")
                         for noun in ("lock", "rwlock", "multilock", "semaphore", "slots", "election", "cache"))
        with self.assertRaises(AssertionError) as typos:
            run("mypy", "--strict", "--cache-dir=/dev/null", "--python-executable", self.python, user)
        self.assertEqual(str(typos.exception).count("timeuot"), 14)
        pyright = shutil.which("pyright", path=f"{os.environ['PATH']}:{BUILD}/works-with/node_modules/.bin")
        if pyright:
            run(pyright, "--pythonpath", "/usr/bin/python3", f"{PACKAGE}/clave")  # which has kazoo
            with self.assertRaises(AssertionError) as typos:
                run(pyright, "--pythonpath", self.python, user)
            self.assertEqual(str(typos.exception).count('No parameter named "timeuot"'), 14)


if __name__ == "__main__":
    missing = [p for p in ("patchelf", "readelf", "strip") if not shutil.which(p)]
    if missing:
        print("SKIPPED: not installed:", *missing)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
