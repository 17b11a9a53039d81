"""A planted fault's failing seed, shrunk: at most half the faults that struck at first, the same invariant
still breaks with them, and the picture of it is well-formed.

    shrink_test.py PLANT BUILDDIR"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

FAULT = "heartbeat_is_ping"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def main():
    plant, builddir = sys.argv[1:]
    with tempfile.TemporaryDirectory() as into:
        program = os.path.join(into, "clave_sim")
        svg = os.path.join(into, "timeline.svg")
        done = run(plant, "--program", program, builddir, FAULT)
        assert done.returncode == 0, done.stderr
        done = run(program, "--seeds", "3000", "--jobs", "2")
        seed, invariant = re.search(r"^seed (\d+) BREAKS: (.*)$", done.stdout, re.M).groups()
        done = run(program, "--seed", seed, "--shrink", "--svg", svg)
        assert done.returncode == 1, done.stdout + done.stderr
        broken, left, struck = re.search(
            r"BREAKS: (.*)\nwith (\d+) of (\d+) faults", done.stdout).groups()
        assert broken == invariant
        assert int(left) * 2 <= int(struck), done.stdout
        # The story is of the shrunk run, and ends in the same violation.
        assert f"breaks: {invariant}." in done.stdout, done.stdout
        assert f"\n{left} fault" in done.stdout, done.stdout
        names = [e.tag.split("}")[1] for e in xml.parse(svg).iter()]
        assert names[0] == "svg" and names.count("rect") > 20, names
        print(f"seed {seed}: {left} of {struck} faults")


main()
