"""A planted fault's lowest failing seed, found by however many jobs, shrunk: a few faults are left, the same
invariant still breaks with them, the command it prints plays that again, and the picture of it is
well-formed.

    shrink_test.py PLANT BUILDDIR"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

FAULT = "heartbeat_is_ping"
FEW = 8  # the first 30 failing seeds, of up to 83 faults, are left with 5 at most


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)


def find(program, jobs):
    """The lowest seed that breaks during the day: what is not so in the end may be due to all of
    the day, and few faults alone may not show it."""
    first = 1
    while True:
        done = run(program, "--seeds", "3000", "--first", str(first), "--jobs", str(jobs))
        assert done.returncode == 1, done.stdout
        (found,) = re.findall(r"^seed (\d+) BREAKS: (.*)$", done.stdout, re.M)
        if "after the last fault" not in done.stdout:
            return found
        first = int(found[0]) + 1


def shrink(program, seed, invariant, svg):
    done = run(program, "--seed", seed, "--shrink", "--svg", svg)
    assert done.returncode == 1, done.stdout + done.stderr
    head, timeline = done.stdout.split("\n\n", 1)
    broken, left, struck, again = re.fullmatch(
        r"seed \d+ BREAKS: (.*)\nwith (\d+) of (\d+) faults .*\nreplay: clave_sim (.*)",
        head).groups()
    assert broken == invariant, head
    assert int(left) <= FEW, head
    # The timeline is of the shrunk run, and ends in the same violation.
    assert f"breaks: {invariant}." in timeline, timeline
    assert f"\n{left} fault" in timeline, timeline
    print(f"seed {seed}: {left} of {struck} faults, {again}")
    return again, timeline


def check_picture(svg):
    names = [e.tag.split("}")[1] for e in xml.parse(svg).iter()]
    assert names[0] == "svg" and names.count("rect") > 12, names  # the legend alone has 9


def check_refused(program):
    for wrong in (["--faults", "3,2"], ["--faults", "3,"], ["--faults", "x"], ["--faults", ""],
                  ["--faults", "70000"], ["--clients", "-1"], ["--salt"]):
        assert run(program, "--seed", "1", *wrong).returncode == 64, wrong
    assert run(program, "--faults", "3").returncode == 64, "of which seed?"


def main():
    plant, builddir = sys.argv[1:]
    with tempfile.TemporaryDirectory() as into:
        program = os.path.join(into, "clave_sim")
        svg = os.path.join(into, "timeline.svg")
        done = run(plant, "--program", program, builddir, FAULT)
        assert done.returncode == 0, done.stderr
        seed, invariant = find(program, 1)
        assert find(program, 3) == (seed, invariant)
        again, timeline = shrink(program, seed, invariant, svg)
        check_picture(svg)
        done = run(program, *shlex.split(again))
        assert (done.returncode, done.stdout) == (1, timeline), done.stdout
        check_refused(program)


main()
