"""The tarball of `make dist`: two of one commit are the same bytes; unpacked, without git and network,
it builds with the release preset, and its server tells the commit's date.

  dist_test.py SOURCE-DIR VERSION [COMPILER-LAUNCHER]
"""
import hashlib
import os
import subprocess
import sys
import tempfile
import time

SOURCE, VERSION = sys.argv[1:3]
LAUNCHER = sys.argv[3] if len(sys.argv) > 3 else ""


def run(*command, cwd, **env):
    """Its output; ends the test when it fails."""
    done = subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **env}, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\nexit code {done.returncode}")
    return done.stdout


def succeeds(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def tarball(folder):
    run(f"{SOURCE}/tools/dist", folder, cwd="/")
    path = f"{folder}/clave-{VERSION}.tar.gz"
    with open(path, "rb") as f:
        return path, hashlib.sha256(f.read()).hexdigest()


def builds(folder):
    """The program, built without network where this system lets us, and without git."""
    alone = ["unshare", "-rn"] if succeeds("unshare", "-rn", "true") else []
    no_git = f"{folder}/bin"
    os.mkdir(no_git)
    os.symlink("/bin/false", f"{no_git}/git")
    env = {"PATH": f"{no_git}:{os.environ['PATH']}", "CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1"}
    env.update({"CMAKE_C_COMPILER_LAUNCHER": LAUNCHER} if LAUNCHER else {})
    env["SOURCE_DATE_EPOCH"] = ""
    there = f"{folder}/clave-{VERSION}"
    # Whether all is there and compiles: without optimisation, which takes most of the time.
    run(*alone, "cmake", "--preset", "release", "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-DNDEBUG", cwd=there, **env)
    run(*alone, "cmake", "--build", "--preset", "release", "-j", "2", cwd=there, **env)
    return f"{there}/build/clave"


def main():
    if not succeeds("git", "-C", SOURCE, "rev-parse", "HEAD^{tree}"):
        print("SKIPPED: this is no clone of git")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        path, first = tarball(folder)
        _, second = tarball(f"{folder}/second")
        if first != second:
            sys.exit(f"FAILED: two tarballs of one commit: {first}, {second}")
        run("tar", "-xf", path, cwd=folder)
        program = builds(folder)
        said = run(program, "version", cwd=folder)
        if VERSION not in said:
            sys.exit(f"FAILED: the program is {said}")
        commit = int(run("git", "-C", SOURCE, "log", "-1", "--format=%ct", cwd="/"))
        date = time.strftime("%m/%d/%Y %H:%M UTC", time.gmtime(commit)).encode()
        with open(program, "rb") as f:
            if date not in f.read():
                sys.exit(f"FAILED: the server does not tell the date of the commit, {date}")


main()
