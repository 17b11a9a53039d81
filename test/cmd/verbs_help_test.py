"""Help, pages and parser say the same: every flag in --help is accepted and documented."""
import os
import re
import subprocess
import unittest

from harness import CLAVE, SOURCE, clave, environment, free_port, spawn

# What each kind of value may look like, and what the verb wants besides.
VALUES = {"HOSTS": f"127.0.0.1:{free_port()}", "DURATION": "50ms", "SCHEME:ID": "digest:a:b",
          "N": "1", "ACL": "open", "DIR": None, "ADDR": None}


def verbs():
    text = clave("help").out
    block = text.split("\nVerbs:\n", 1)[1].split("\n\n", 1)[0]
    return [line.split()[0] for line in block.splitlines()]


def flags(verb):
    """(short or None, long, value name or None) of each flag in the verb's help."""
    found = []
    for line in clave(verb, "--help").out.splitlines():
        m = re.match(r"^  (?:-(\w), |    )--([a-z-]+)(?: ([A-Z:|a-z=]+))?(?:  |$)", line)
        if m:
            found.append((m.group(1), m.group(2), m.group(3)))
    return found


def is_alias(name):
    """Another name of a page that man finds once they are installed."""
    with open(os.path.join(SOURCE, "docs", "man", name)) as f:
        return f.read().startswith(".so man1/")


def page(name):
    with open(os.path.join(SOURCE, "docs", "man", name)) as f:
        text = f.read()
    if is_alias(name):
        return page(text.split("/", 1)[1].strip())
    return re.sub(r"\\f[BIPR]", "", text.replace("\\-", "-"))


class Help(unittest.TestCase):
    def test_each_verb_has_help(self):
        names = verbs()
        for needed in ("get set create rm ls tree stat getacl setacl watch sync ping serve version help").split():
            self.assertIn(needed, names)
        for verb in names:
            for words in ((verb, "--help"), ("help", verb), (verb, "-h"), ("-h", verb)):
                r = clave(*words)
                self.assertEqual((r.code, r.err), (0, ""), r)
            r = clave(verb, "--help")
            self.assertTrue(r.out.startswith(f"usage: clave {verb}"), r)
            self.assertGreaterEqual(len(flags(verb)), 2)
            for line in r.out.splitlines():
                self.assertLessEqual(len(line), 96, line)

    def test_flags_that_mean_nothing_are_not_shown(self):
        self.assertIn("--connect", clave("get", "--help").out)
        for verb in ("serve", "version", "help"):
            self.assertNotIn("--connect", clave(verb, "--help").out)

    def test_each_flag_is_accepted(self):
        """The parser stops with --help after the flag only if it knows the flag."""
        for verb in verbs():
            for short, long, value in flags(verb):
                for form in ([f"--{long}"], [f"-{short}"] if short else None):
                    if form is None or long == "help":
                        continue
                    words = [verb] + form + ([VALUES.get(value) or "x"] if value else [])
                    r = clave(*words, "--help")
                    refused = "no such flag" in r.err or "needs a value" in r.err
                    self.assertFalse(refused, (words, r))
                if value:
                    self.assertEqual(clave(verb, f"--{long}").code, 64)
                    r = clave(verb, f"--{long}=" + (VALUES.get(value) or "x"), "--help")
                    self.assertNotIn("no such flag", r.err)

    def test_a_flag_is_found_by_its_words(self):
        for words in (("connections", "max"), ("max", "Connections")):
            r = clave("help", *words)
            self.assertEqual(r.code, 0, r)
            self.assertRegex(r.out, r"(?m)^clave serve:\n(.*\n)*? +--max-connections N +connections from one address")
        self.assertNotIn("--max-sessions ", clave("help", "connections", "max").out)
        self.assertIn("clave lock:\n", clave("help", "sigterm", "sigkill").out)
        self.assertIn("Flags for every verb:\n", clave("help", "certificate", "present").out)
        self.assertEqual(clave("help", "connections", "nonsense").code, 64)

    def test_unknown_flags_are_refused(self):
        for verb in verbs():
            r = clave(verb, "--no-such-flag")
            self.assertEqual(r.code, 64, r)
            self.assertIn("--no-such-flag", r.err)
            self.assertIn(f"clave help {verb}", r.err)

    def test_each_verb_is_in_a_page(self):
        """Its flags: tools/check-flags."""
        main = page("clave.1")
        for verb in verbs():
            own = os.path.join(SOURCE, "docs", "man", f"clave-{verb}.1")
            text = main + (page(f"clave-{verb}.1") if os.path.exists(own) else "")
            self.assertTrue(re.search(rf"\bclave {verb}\b", text), verb)

    def test_pages_are_well_formed(self):
        folder = os.path.join(SOURCE, "docs", "man")
        for name in sorted(os.listdir(folder)):
            text = page(name)
            self.assertTrue(text.startswith((".TH", ".\\\"", ".Dd")), name)
            self.assertIn(".SH NAME", text)
            p = subprocess.run(["sh", "-c", "command -v man"], stdout=subprocess.DEVNULL)
            if p.returncode == 0 and not is_alias(name):
                p = subprocess.run(["man", "--warnings", "-l", os.path.join(folder, name)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   env={**os.environ, "MANWIDTH": "90", "LC_ALL": "C.UTF-8"})
                self.assertEqual(p.stderr.decode(), "", name)


if __name__ == "__main__":
    unittest.main()
