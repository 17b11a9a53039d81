"""docs/guide/locks.md: its C code is that of examples/guide.c, which is compiled and run; its shell lines run."""
import glob
import os
import re
import subprocess
import unittest

from harness import CLAVE, SOURCE, scratch, server


def read(name):
    with open(os.path.join(SOURCE, name)) as f:
        return f.read()


class Guide(unittest.TestCase):
    def test_c_code_is_that_of_the_example(self):
        blocks = re.findall(r"```c\n(.*?)```", read("docs/guide/locks.md"), re.S)
        self.assertGreater(len(blocks), 8)
        for block in blocks:
            self.assertIn(block, read("examples/guide.c"))

    def test_shell_lines_run(self):
        blocks = re.findall(r"```sh\n(.*?)```", read("docs/guide/locks.md"), re.S)
        self.assertGreater(len(blocks), 6)
        s = server()
        home = os.path.dirname(scratch("x"))
        env = dict(os.environ, CLAVE_CONNECT=s.connect, HOME=home,
                   PATH=os.path.dirname(CLAVE) + ":" + os.environ["PATH"])
        for line in "".join(blocks).splitlines():
            r = subprocess.run(["sh", "-c", line], env=env, capture_output=True, text=True, timeout=30)
            self.assertEqual(r.returncode, 0, f"{line}: {r.stderr}")
            for word in re.findall(r"echo (.*)$", line):
                if "not made" in line:
                    self.assertEqual(r.stdout, "")
                elif "$" not in word:
                    self.assertEqual(r.stdout.strip(), word, line)
        s.stop()

    def test_functions_and_headers_exist(self):
        text = read("docs/guide/locks.md")
        headers = "".join(read(os.path.relpath(h, SOURCE))
                          for h in glob.glob(f"{SOURCE}/include/clave/**/*.h", recursive=True))
        for name in set(re.findall(r"\b(clave_[a-z_]+[a-z])\b", text)):
            self.assertIn(name, headers)
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            self.assertTrue(os.path.exists(os.path.join(SOURCE, "docs/guide", target)), target)


if __name__ == "__main__":
    unittest.main()
