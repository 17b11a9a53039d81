"""What README.md shows is what there is: its C code is in examples/, its verbs and links exist."""
import os
import re
import unittest

from harness import SOURCE, clave


def read(name):
    with open(os.path.join(SOURCE, name)) as f:
        return f.read()


class Readme(unittest.TestCase):
    def test_c_code_is_compiled_elsewhere(self):
        blocks = re.findall(r"```c\n(.*?)```", read("README.md"), re.S)
        self.assertTrue(blocks)
        for block in blocks:
            self.assertIn(block, read("examples/blocking.c"))

    def test_it_is_short_and_begins_with_two_commands_and_cron(self):
        page = read("README.md")
        self.assertLessEqual(len(re.findall(r"\S*\w\S*", page)), 1200)
        first = re.search(r"```sh\n(.*?)```", page, re.S)[1]
        self.assertRegex(first, r"\Amake demo +#.*\nmake check +#.*\n\Z")
        self.assertRegex(page, r"\|---\|---\|\n\| a cron job on several machines.*docs/start/cron.md")

    def test_links(self):
        for name in ("README.md", "CONTRIBUTING.md"):
            for target in re.findall(r"\]\(([^)#]+)\)", read(name)):
                if not target.startswith("http"):
                    self.assertTrue(os.path.exists(os.path.join(SOURCE, target)), target)

    def test_verbs_and_flags(self):
        for verb, rest in re.findall(r"^clave ([a-z]+)\b(.*)$", read("README.md"), re.M):
            text = clave(verb, "--help").out
            self.assertTrue(text.startswith(f"usage: clave {verb}"), verb)
            for flag in re.findall(r"(--[a-z-]+)", rest.split(" -- ")[0].split("#")[0]):
                self.assertIn(flag, text, f"clave {verb} {flag}")

    def test_exit_codes(self):
        codes = set(re.findall(r"^\| (\d+)", read("README.md"), re.M))
        page = read("docs/man/clave.1")
        for code in codes:
            self.assertRegex(page, rf"(?m)^\.B .*\b{code}\b")


if __name__ == "__main__":
    unittest.main()
