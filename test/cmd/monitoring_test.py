"""What docs/monitoring.md and contrib/ say about metrics, held against what is exported."""
import http.client
import os
import re
import shutil
import subprocess
import unittest

from harness import PATIENCE, ClaveServer

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def read(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def families(page):
    """The types of a page of metrics, by name; an alias with _total is not listed."""
    types = dict(line.split(" ")[2:] for line in page.splitlines() if line.startswith("# TYPE "))
    return {n: t for n, t in types.items() if n.removesuffix("_total") not in set(types) - {n}}


def exported():
    """The pages of a server, and of a program on it."""
    s = ClaveServer(["--admin", "127.0.0.1:0"])
    s.start()
    try:
        c = http.client.HTTPConnection("127.0.0.1", re.search(r"admin \S+:(\d+)", s.ready)[1],
                                       timeout=PATIENCE)
        c.request("GET", "/metrics")
        return c.getresponse().read().decode(), program(s.connect)
    finally:
        s.stop()


def documented(section):
    """The metrics in the first column of the tables of a section."""
    text = read("docs/monitoring.md").split(f"\n### {section}\n")[1].split("\n### ")[0]
    found = []
    for line in text.split("\n## ")[0].splitlines():
        if line.startswith("| `"):
            found += re.findall(r"`([a-z_0-9]+)(?:\{[^`]*\})?`", line.split(" | ")[0])
    return found


def program(connect):
    """The page of a program that uses the library."""
    r = subprocess.run([os.environ["CLAVE_EXAMPLE_METRICS"]], capture_output=True, text=True,
                       env=dict(os.environ, CLAVE_CONNECT=connect), timeout=PATIENCE, check=True)
    return r.stdout


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page, cls.program = exported()

    def test_the_tables_are_complete_and_true(self):
        self.assertEqual(sorted(documented("Metrics")), sorted(families(self.page)))
        self.assertEqual(sorted(documented("Metrics of a program")), sorted(families(self.program)))
        for label in re.findall(r"\{[a-z]+=", self.page + self.program):
            if label != "{le=":
                self.assertIn(label, read("docs/monitoring.md"))

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_prometheus_reads_the_page(self):
        for page in (self.page, self.program):
            r = subprocess.run(["promtool", "check", "metrics"], input=page, text=True,
                               capture_output=True, timeout=PATIENCE)
            self.assertIn(r.returncode, (0, 3), r)  # 3: it has advice
            for line in r.stderr.splitlines():  # Apache's names do not follow it
                self.assertNotRegex(line, "^clave_")


if __name__ == "__main__":
    unittest.main()
