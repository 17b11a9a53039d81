"""What `make` does where packages are missing: alone it says which, and installs nothing and asks for
nothing; `make demo` and `make check` install them. Played on a machine of stubs."""
import os
import shutil
import subprocess
import unittest

from harness import SOURCE, scratch

TOOLS = ("sh", "make", "nproc", "tr", "sort", "sed", "grep", "mktemp", "rm", "tail", "cat")
BUILD = ["cmake", "gcc", "libhttp-parser-dev", "libjansson-dev", "libssl-dev", "libuv1-dev", "pkg-config", "zlib1g-dev"]


class Machine:
    """A PATH with the usual tools, and what installs packages: each of its calls is written down."""

    def __init__(self, root=True, debian=True):
        self.folder, self.calls = scratch("bin"), scratch("calls")
        os.mkdir(self.folder)
        for name in TOOLS:
            os.symlink(shutil.which(name), os.path.join(self.folder, name))
        self.stub("id", f"echo {0 if root else 1000}")
        self.stub("sudo", f'echo "sudo $*" >>{self.calls}; "$@"')
        self.stub("apt-get", f'echo "apt-get $*" >>{self.calls}; exit 100')
        if debian:
            self.install()

    def stub(self, name, script):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)

    def install(self, *packages):
        """What dpkg knows of from here on."""
        known = "|".join(packages) or "none"
        self.stub("dpkg-query", f'case "$4" in {known}) echo "install ok installed" ;; *) exit 1 ;; esac')

    def run(self, *command):
        p = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=60,
                           stdin=subprocess.DEVNULL, env={"PATH": self.folder, "TMPDIR": scratch("")})
        return p.returncode, p.stdout + p.stderr

    def asked_for(self):
        if not os.path.exists(self.calls):
            return []
        with open(self.calls) as f:
            return f.read().splitlines()


class Setup(unittest.TestCase):
    def test_make_alone_says_what_is_missing(self):
        for root, command in (True, "to install them: apt-get install "), \
                (False, "to install them: sudo apt-get install "):
            for goal in [], ["install"]:
                machine = Machine(root=root)
                build = scratch("build")
                code, told = machine.run("make", f"BUILD={build}", *goal)
                self.assertEqual(code, 2, told)
                for package in BUILD:
                    self.assertIn(f" {package}", told)
                self.assertIn(command, told)
                self.assertEqual(machine.asked_for(), [])
                self.assertFalse(os.path.exists(build), "it has not begun")

    def test_only_what_is_missing(self):
        machine = Machine()
        machine.install("libuv1-dev", "libssl-dev", "libjansson-dev", "zlib1g-dev", "cmake", "make")
        machine.stub("cc", "")
        machine.stub("pkg-config", '[ "$2" = libllhttp ]')  # not of Debian
        code, told = machine.run("tools/setup", "--check", "demo")
        self.assertEqual(code, 69, told)
        self.assertIn("Debian packages are missing: python3\n", told)
        self.assertEqual(machine.run("tools/setup", "--check", "build"), (0, ""))
        self.assertEqual(machine.asked_for(), [])

    def test_demo_and_check_install(self):
        for goal, package in ("demo", "python3"), ("check", "libcmocka-dev"):
            for root in True, False:
                machine = Machine(root=root)
                code, told = machine.run("make", f"BUILD={scratch('build')}", goal)
                self.assertEqual(code, 2, told)
                self.assertIn("apt-get could not install", told)
                asked = machine.asked_for()
                self.assertTrue(asked[0].startswith("apt-get install " if root else
                                                    "sudo apt-get install "), asked)
                self.assertIn(f" {package}", asked[0])

    def test_another_system(self):
        machine = Machine(debian=False)
        code, told = machine.run("make", f"BUILD={scratch('build')}")
        self.assertEqual(code, 2, told)
        self.assertIn("this is not a Debian system", told)
        self.assertIn("\n  libuv1-dev\n", told)
        for name in "cc", "cmake", "pkg-config":
            machine.stub(name, "")
        self.assertEqual(machine.run("tools/setup", "--check", "build"), (0, ""))
        self.assertEqual(machine.asked_for(), [])


if __name__ == "__main__":
    unittest.main()
