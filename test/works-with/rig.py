"""What the rows of `make works-with` share. A row is a program: it runs somebody else's program on a
server of clave and prints one line of JSON for the table. Exit code 77: it is not installed."""
import json
import os
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "test", "cmd"))
from harness import ask, clave, free_port, scratch, server, spawn  # noqa: E402, F401

BUILD = os.path.abspath(os.environ.get("CLAVE_BUILD", os.path.join(ROOT, "build", "dev")))
NODE_MODULES = os.path.join(BUILD, "works-with", "node_modules")
PYTHON = "/usr/bin/python3"


def debian(*packages):
    """The version of the first one, if all are installed."""
    found = [subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", p],
                            capture_output=True, text=True, check=False).stdout.split() for p in packages]
    return found[0][1] if all(f and f[0] == "installed" for f in found) else None


def npm(module):
    try:
        with open(os.path.join(NODE_MODULES, module, "package.json"), encoding="utf-8") as f:
            return json.load(f)["version"]
    except OSError:
        return None


def say(program, used, version, result):
    print(json.dumps({"program": program, "used": used, "version": version, "result": result}))


def row(program, used, version, test, tick="200ms"):
    """`test` gets a server, whose sessions last at most 20 ticks, and returns the result for the table; an exception is a failure."""
    if version is None:
        say(program, used, "-", "not installed: nothing was tested")
        sys.exit(77)
    s = server(flags=["--tick", tick])
    result = test(s)
    s.stop()
    say(program, used, version, result)


def row_of_tests(program, used, version, names):
    """A row whose tests are part of `make check`."""
    p = spawn(["ctest", "--test-dir", BUILD, "--output-on-failure", "-R", f"^({'|'.join(names)})$"],
              stdout=subprocess.PIPE, text=True)
    out, _ = p.communicate()
    print(out, file=sys.stderr)
    assert p.returncode == 0 and out.count("Passed") + out.count("***Skipped") == len(names), "see above"
    skipped = "***Skipped" in out
    say(program, used, version or "-", "not installed: nothing was tested" if skipped else "works: " + ", ".join(names))
    sys.exit(77 if skipped else 0)


def until(condition, seconds, what):
    """What `condition` returns, once that is true."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def run(command, env=None, stdin="", seconds=100, **keywords):
    """A program's output, both streams; it must succeed."""
    p = spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
              env={**os.environ, **(env or {})}, **keywords)
    out, _ = p.communicate(stdin, timeout=seconds)
    assert p.returncode == 0, f"{command[0]} ended with {p.returncode}:\n{out[-3000:]}"
    return out
