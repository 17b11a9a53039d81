"""The examples of C++, built with the compiler that the other tests are not built with, GCC or Clang, and run.

  other_compiler_test.py SOURCE-DIR BUILD-DIR RUNTIME-WITH-SERVER CMAKE-COMPILER-ID
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD, WITH_SERVER, USED = sys.argv[1:5]
OTHER = "g++" if "Clang" in USED else "clang++"


def succeeds(*command):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        print(f"{' '.join(command)}\n{done.stdout}\nexit code {done.returncode}")
    return done.returncode == 0


def main():
    if not shutil.which(OTHER):
        print(f"SKIPPED: {OTHER} is not installed")
        return 77
    examples = sorted(glob.glob(f"{SOURCE}/examples/cpp/*.cpp"))
    fine = len(examples) > 5
    with tempfile.TemporaryDirectory() as folder:
        for example in examples:
            program = f"{folder}/{os.path.basename(example)[:-4]}"
            fine = (succeeds(OTHER, "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE}/include", example, "-o", program,
                             f"-L{BUILD}", "-lclave", f"-Wl,-rpath,{BUILD}") and succeeds(WITH_SERVER, program) and fine)
    return 0 if fine else 1


sys.exit(main())
