"""Every function of the blocking headers is used by clave.hpp, or is named here with the reason why not; and GCC and
Clang compile the header with all warnings, with and without exceptions.

  coverage_test.py SOURCE-DIR
"""
import glob
import os
import re
import shutil
import subprocess
import sys

SOURCE = sys.argv[1]
INCLUDE = os.path.join(SOURCE, "include")
NOT_WRAPPED = {
    "clave_metrics_copy": "metrics() gives a std::string",
}
OTHER_HEADERS = {
    "clave.h": "the umbrella",
    "err.h": "functions of the codes, the same in C++", "options.h": "macros", "version.h": "macros",
    "mem.h": "memory hooks are C", "retry.h": "a struct", "uv.h": "for loops of libuv",
    "testserver.h": "a library of its own",
}
ALL = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wold-style-cast",
       "-Wnon-virtual-dtor", "-Werror", "-fsyntax-only", "-x", "c++", f"-I{INCLUDE}", "-"]
COMPILERS = {"g++": ["-Wuseless-cast"],
             "clang++": ["-Weverything", "-Wno-c++98-compat", "-Wno-c++98-compat-pedantic", "-Wno-padded"]}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def code(path):
    """The text without its comments: a name in one is no use of it."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", read(path), flags=re.S)


def functions():
    for path in sorted(glob.glob(f"{INCLUDE}/clave/*.h")):
        if os.path.basename(path) not in OTHER_HEADERS:
            for name in re.findall(r"CLAVE_(?:METHOD|MAKING|EXPORT)[^;]*?\b(clave_\w+)\(", code(path)):
                yield os.path.basename(path), name


def compiles(compiler, header, *flags):
    """What it has to say against that."""
    done = subprocess.run([compiler, *ALL, *flags], input=f"#include <clave/{header}>\n", text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return [f"{compiler} {' '.join(flags)} {header}:\n{done.stdout}"] if done.returncode else []


def main():
    wrapped = "".join(code(p) for p in glob.glob(f"{INCLUDE}/clave/cpp/*.hpp"))
    bad = []
    seen = list(functions())
    for header, name in seen:
        used = re.search(rf"\b{name}\b", wrapped)
        if bool(used) == (name in NOT_WRAPPED):
            bad.append(f"{header}: {name} is {'used, and listed as not wrapped' if used else 'not in clave/cpp/'}")
    if len(seen) < 80:
        bad.append(f"only {len(seen)} functions were found in the headers")
    for compiler, flags in COMPILERS.items():
        if shutil.which(compiler):
            for more in ([], ["-fno-exceptions"], ["-std=c++20"]):
                bad += compiles(compiler, "clave.hpp", *flags, *more)
    for path in glob.glob(f"{INCLUDE}/clave/cpp/*.hpp"):  # each stands alone
        bad += compiles("c++", f"cpp/{os.path.basename(path)}")
    print("\n".join(bad) or f"{len(seen)} functions")
    return 1 if bad else 0


sys.exit(main())
