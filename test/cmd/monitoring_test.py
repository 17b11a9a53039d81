"""What docs/operate/monitoring.md and contrib/ say about metrics, held against what is exported."""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from harness import PATIENCE, ClaveServer, Running, free_port

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RULES = os.path.join(ROOT, "contrib", "clave.rules.yml")
BOARD = os.path.join(ROOT, "contrib", "clave.grafana.json")
# What Prometheus makes by itself, and its exporter for machines; clave-backup's is in
# data_backup_test.py.
OF_PROMETHEUS = {"up", "node_systemd_unit_state", "clave_backup_last_success_timestamp_seconds"}
ADDED = {"job", "instance", "le"}  # labels


def read(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def families(page):
    """The types of a page of metrics, by name; an alias with _total is not listed."""
    types = dict(line.split(" ")[2:] for line in page.splitlines() if line.startswith("# TYPE "))
    return {n: t for n, t in types.items() if n.removesuffix("_total") not in set(types) - {n}}


def get(port, path):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    c.request("GET", path)
    r = c.getresponse()
    page = r.read().decode()
    c.close()
    if r.status != 200:
        raise AssertionError((path, r.status, page))
    return page


def await_page(port, *lines):
    """The page of a gate when it has these lines, patterns; or whatever it has in the end."""
    until, page = time.monotonic() + PATIENCE, ""
    while time.monotonic() < until and not all(re.search(f"(?m)^{x}$", page) for x in lines):
        page = get(port, "/metrics")
    return page


def of_gate(connect):
    """When it has seen a lock and an election being won, and a candidate that waits."""
    port = free_port()
    running = [Running("gate", "--connect", connect, "--http", f"127.0.0.1:{port}")]
    try:
        running[0].line()
        await_page(port, "clave_observe_current 1")
        for verb in ("lock", "elect"):
            running.append(Running(verb, "/" + verb, "--", "sh", "-c", "echo; exec sleep 1000",
                                   connect=connect))
            running[-1].line()
        running.append(Running("elect", "/elect", "--", "true", connect=connect))  # it stands behind
        return await_page(port, r'clave_lock_holders\{.*kind="lock"\} 1',
                          r"clave_election_has_leader\{.*\} 1",
                          r'clave_lock_oldest_wait_seconds\{.*kind="election"\} .*')
    finally:
        for r in running:
            r.end(signal.SIGTERM)


def of_program(connect):
    """A program that uses the library."""
    r = subprocess.run([os.environ["CLAVE_EXAMPLE_METRICS"]], capture_output=True, text=True,
                       env=dict(os.environ, CLAVE_CONNECT=connect), timeout=PATIENCE, check=True)
    return r.stdout


def documented(section):
    """The metrics in the first column of the tables of a section."""
    text = read("docs/operate/monitoring.md").split(f"\n### {section}\n")[1].split("\n### ")[0]
    found = []
    for line in text.split("\n## ")[0].splitlines():
        if line.startswith("| `"):
            found += re.findall(r"`([a-z_0-9]+)(?:\{[^`]*\})?`", line.split(" | ")[0])
    return found


def alerts():
    """The expressions in the first column of the tables of alerts."""
    text = read("docs/operate/monitoring.md").split("\n## What to alert on\n")[1].split("\n## ")[0]
    cells = re.findall(r"(?m)^\| (`(?:[^`])+`)", text)
    return {c.strip("`").replace("\\|", "|") for c in cells if re.search(r"[<>=] ?[0-9]", c)}


def selectors(query):
    """[(metric, [labels])] of a query of PromQL."""
    query = re.sub(r"\b(?:by|ignoring|on|without) *\([^)]*\)", " ", query)
    query = re.sub(r"\[[^\]]*\]", " ", query)
    found = []
    for name, rest in re.findall(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\}|\(?)', query):
        if rest != "(":
            found.append((name, re.findall(r'([a-z_]+) *=?[=~!]', rest)))
    return found


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        s = ClaveServer(["--admin", "127.0.0.1:0"])
        s.start()
        try:
            cls.pages = {"Metrics": get(re.search(r"admin \S+:(\d+)", s.ready)[1], "/metrics"),
                         "Metrics of a gate": of_gate(s.connect),
                         "Metrics of a program": of_program(s.connect)}
        finally:
            s.stop()
        # The names of samples, and the labels that they have. Some gauges have no sample now.
        cls.samples = {}
        for page in cls.pages.values():
            for name, kind in families(page).items():
                more = {"histogram": ["_bucket", "_sum", "_count"], "summary": ["_sum", "_count"]}
                cls.samples.update({name + m: set() for m in [""] + more.get(kind, [])})
            for line in page.splitlines():
                if line[0] != "#":
                    name = re.match(r"[^{ ]+", line)[0]
                    cls.samples.setdefault(name, set()).update(re.findall(r'[{,]([a-z_]+)="', line))

    def test_the_tables_are_complete_and_true(self):
        for section, page in self.pages.items():
            with self.subTest(section):
                self.assertEqual(sorted(documented(section)), sorted(families(page)))
                for label in set(re.findall(r"\{([a-z]+)=", page)) - {"le"}:
                    self.assertIn("{" + label + "=", read("docs/operate/monitoring.md"))

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_prometheus_reads_the_pages(self):
        for page in self.pages.values():
            r = subprocess.run(["promtool", "check", "metrics"], input=page, text=True,
                               capture_output=True, timeout=PATIENCE)
            self.assertIn(r.returncode, (0, 3), r)  # 3: it has advice
            for line in r.stderr.splitlines():  # Apache's names do not follow it
                self.assertNotRegex(line, "^clave_")

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_prometheus_takes_the_rules(self):
        for what, path in (("check", RULES), ("test", RULES.replace(".yml", ".test.yml"))):
            r = subprocess.run(["promtool", what, "rules", path], capture_output=True, text=True,
                               timeout=PATIENCE)
            self.assertEqual(r.returncode, 0, r)

    def exported(self, query):
        found = selectors(query)
        self.assertTrue(found, query)
        for name, labels in found:
            if name in OF_PROMETHEUS:
                continue
            self.assertIn(name, self.samples, query)
            self.assertLessEqual(set(labels) - ADDED, self.samples[name], query)
        had = ADDED.union(*(self.samples.get(name, set()) for name, _ in found))
        for group in re.findall(r"\bby *\(([^)]*)\)", query):
            self.assertLessEqual(set(re.findall(r"\w+", group)), had, query)

    def test_the_rules_are_those_of_the_page(self):
        rules = re.findall(r"(?m)^ +expr: (.*)$", read(RULES))
        for query in rules:
            self.exported(query)
        self.assertEqual(alerts(), set(rules))

    def test_the_board_shows_what_there_is(self):
        board = json.loads(read(BOARD))
        queries = [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
        self.assertGreater(len(queries), 30)
        for query in queries:
            self.exported(query)
        ids = [p["id"] for p in board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        known = {"$" + v["name"] for v in board["templating"]["list"]} | {"$__rate_interval"}
        self.assertLessEqual({v for q in queries for v in re.findall(r"\$\w+", q)}, known)

    def test_the_links_of_the_page(self):
        for path in re.findall(r"\]\(\.\./\.\./([^)#]+)\)", read("docs/operate/monitoring.md")):
            self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)


if __name__ == "__main__":
    unittest.main()
