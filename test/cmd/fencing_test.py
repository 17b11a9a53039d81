"""docs/guide/fencing.md: its blocks, run as they stand, refuse the late write of a holder whose lock
has passed on: in Postgres, an object store, a file, a REST service and ZooKeeper data.

The object store is one of ours, since Debian has no S3: If-Match and If-None-Match, with the hash of
the content as ETag."""
import hashlib
import http.server
import os
import re
import shutil
import sqlite3
import subprocess
import threading
import unittest

from harness import CLAVE, PATIENCE, SOURCE, clave, environment, scratch, server, spawn
from postgres import PostgresServer

STALE = 76


def blocks(language):
    with open(os.path.join(SOURCE, "docs/guide/fencing.md"), encoding="utf-8") as f:
        return re.findall(rf"^```{language} tested-by: test/cmd/fencing_test.py\n(.*?)^```$", f.read(), re.M | re.S)


SCRIPTS = {re.match(r"# (\S+)", text)[1]: text for text in blocks("sh")}


class Fence(unittest.TestCase):
    """Two holders of one lock, the second after the first, and what the first had in its environment."""

    @classmethod
    def setUpClass(cls):
        cls.server = server()
        cls.path = f"/fencing/{cls.__name__}"

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def former_holder(self):
        """The environment of a holder whose lock is gone. It is still at work, asleep."""
        r = clave("lock", self.path, "--", "env", "-0", connect=self.server.connect)
        self.assertEqual(r.code, 0, r)
        return dict(v.split("=", 1) for v in r.out.split("\0") if v)

    def script(self, name):
        path = scratch(name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(SCRIPTS[name])
        return ["bash", path]

    def more(self):
        return {}

    def holder(self, name, *words, stdin=""):
        """The script as the command of a clave lock."""
        return clave("lock", self.path, "--", *self.script(name), *words, connect=self.server.connect,
                     stdin=stdin.encode(), env=self.more())

    def late(self, former, name, *words, stdin=""):
        return subprocess.run(self.script(name) + list(words), env={**former, **self.more()}, input=stdin,
                              capture_output=True, text=True, timeout=PATIENCE)


@unittest.skipUnless(PostgresServer.found() and shutil.which("psql"), "Debian's postgresql is not installed")
class Postgres(Fence):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.postgres = PostgresServer()
        cls.addClassCleanup(cls.postgres.end)
        for text in blocks("sql"):
            cls.sql(text)

    def more(self):
        return self.postgres.reach()

    @classmethod
    def sql(cls, text):
        r = subprocess.run(["psql", "-qAtX", "-v", "ON_ERROR_STOP=1"], input=text, capture_output=True, text=True,
                           timeout=PATIENCE, env=environment(**cls.postgres.reach()))
        if r.returncode != 0:
            raise AssertionError(r)
        return r.stdout.strip()

    def body(self):
        return self.sql("SELECT body FROM report")

    def test_a_row(self):
        former = self.former_holder()
        self.assertEqual(self.late(former, "pg-row", "in time").returncode, 0)
        self.assertEqual(self.holder("pg-row", "the next one's").code, 0)
        r = self.late(former, "pg-row", "too late")
        self.assertEqual((r.returncode, r.stderr), (STALE, f"token {former['CLAVE_TOKEN']} is stale\n"))
        self.assertEqual(self.body(), "the next one's")

    def test_a_transaction(self):
        former = self.former_holder()
        self.assertEqual(self.late(former, "pg-many", "in time").returncode, 0)
        self.assertEqual(self.late(former, "pg-many", "again").returncode, 0)
        self.assertEqual(self.holder("pg-many", "the next one's").code, 0)
        r = self.late(former, "pg-many", "too late")
        self.assertNotEqual(r.returncode, 0)
        self.assertIn(f"token {former['CLAVE_TOKEN']} of {self.path} is stale", r.stderr)
        self.assertEqual(self.body(), "the next one's")

    def test_a_transaction_that_sleeps(self):
        """The next holder waits for it, and its writes come before: none comes after."""
        sleeper = spawn(["psql", "-qAtX"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                        env=environment(**self.more()))
        sleeper.stdin.write("BEGIN; SELECT fence('/asleep', 1); SELECT 'fenced';\n")
        sleeper.stdin.flush()
        self.assertEqual([sleeper.stdout.readline() for _ in range(2)], ["\n", "fenced\n"])
        after = spawn(["psql", "-qAtX"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                      env=environment(**self.more()))
        after.stdin.write("SELECT fence('/asleep', 2); SELECT 'next';\n")
        after.stdin.close()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while self.sql(waits) != "1":
            self.assertIsNone(after.poll(), "it does not wait for the transaction before")
        sleeper.stdin.write("COMMIT; SELECT fence('/asleep', 1);\n")
        sleeper.stdin.close()
        self.assertEqual(after.stdout.read(), "\nnext\n")
        sleeper.wait(PATIENCE)
        self.assertEqual(self.sql("SELECT token FROM fence WHERE lock = '/asleep'"), "2")
        sleeper.stdout.close()
        after.stdout.close()


class Store(http.server.BaseHTTPRequestHandler):
    """Objects, as S3 keeps them: the conditions of a PUT are checked in the step that writes."""
    protocol_version = "HTTP/1.1"
    objects = {}
    lock = threading.Lock()
    between = None  # called once, after an object was read
    refused = 0

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", etag=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if etag:
            self.send_header("ETag", etag)
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def etag(body):
        return f'"{hashlib.md5(body).hexdigest()}"'

    def do_GET(self):
        body = self.objects.get(self.path)
        hook, Store.between = Store.between, None
        if hook:
            hook()
        if body is None:
            return self.answer(404)
        last = re.fullmatch(r"bytes=0-(\d+)", self.headers.get("Range", ""))
        return self.answer(206 if last else 200, body[:int(last[1]) + 1] if last else body, self.etag(body))

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            there = self.objects.get(self.path)
            match, none = self.headers.get("If-Match"), self.headers.get("If-None-Match")
            if match and there is None:
                return self.answer(404)
            if (match and match != self.etag(there)) or (none and there is not None):
                Store.refused += 1
                return self.answer(412)
            self.objects[self.path] = body
        return self.answer(200, etag=self.etag(body))


def serve(case, handler):
    there = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=there.serve_forever)
    thread.start()
    case.addCleanup(thread.join)
    case.addCleanup(there.server_close)
    case.addCleanup(there.shutdown)
    return f"http://127.0.0.1:{there.server_address[1]}"


class ObjectStore(Fence):
    def setUp(self):
        Store.objects, Store.between, Store.refused = {}, None, 0
        self.url = serve(self, Store) + "/bucket/report"

    def file(self, text):
        path = scratch("body")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def content(self):
        return Store.objects["/bucket/report"].decode()

    def test_a_late_write(self):
        former = self.former_holder()
        self.assertEqual(self.late(former, "s3-put", self.url, self.file("in time")).returncode, 0)
        self.assertEqual(self.holder("s3-put", self.url, self.file("the next one's")).code, 0)
        r = self.late(former, "s3-put", self.url, self.file("too late"))
        self.assertEqual((r.returncode, r.stderr), (STALE, f"token {former['CLAVE_TOKEN']} is stale\n"))
        self.assertTrue(self.content().endswith("\nthe next one's"))

    def asleep_between(self, next_ones):
        """The former holder sleeps between its reading and its writing."""
        former = self.former_holder()
        self.assertEqual(self.late(former, "s3-put", self.url, self.file("the same")).returncode, 0)
        Store.between = lambda: self.assertEqual(self.holder("s3-put", self.url, self.file(next_ones)).code, 0)
        r = self.late(former, "s3-put", self.url, self.file("too late"))
        self.assertEqual((r.returncode, Store.refused), (STALE, 1))
        self.assertTrue(self.content().endswith("\n" + next_ones))

    def test_a_write_between_reading_and_writing(self):
        self.asleep_between("another")

    def test_a_write_of_the_same_between_reading_and_writing(self):
        self.asleep_between("the same")

    def test_a_first_write_between_reading_and_writing(self):
        former = self.former_holder()
        Store.between = lambda: self.assertEqual(self.holder("s3-put", self.url, self.file("first")).code, 0)
        r = self.late(former, "s3-put", self.url, self.file("too late"))
        self.assertEqual((r.returncode, Store.refused), (STALE, 1))
        self.assertTrue(self.content().endswith("\nfirst"))


class File(Fence):
    def test_a_late_write(self):
        former, path = self.former_holder(), scratch("report")
        self.assertEqual(self.late(former, "file-put", path, stdin="in time\n").returncode, 0)
        self.assertEqual(self.holder("file-put", path, stdin="the next one's\n").code, 0)
        r = self.late(former, "file-put", path, stdin="too late\n")
        self.assertEqual((r.returncode, r.stderr), (STALE, f"token {former['CLAVE_TOKEN']} is stale\n"))
        with open(path, encoding="utf-8") as f:
            self.assertRegex(f.read(), r"\Atoken \d+\nthe next one's\n\Z")
        self.assertEqual(sorted(os.listdir(os.path.dirname(path))), ["report", "report.lock"])

    def test_a_write_behind_another(self):
        """It waits for the flock of a later holder, and looks only then."""
        former, path = self.former_holder(), scratch("report")
        with open(f"{path}.lock", "w", encoding="utf-8") as held:
            flock = subprocess.run(["flock", str(held.fileno())], pass_fds=[held.fileno()], timeout=PATIENCE)
            self.assertEqual(flock.returncode, 0)
            p = spawn(self.script("file-put") + [path], env=former, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                      text=True)
            p.stdin.write("too late\n")
            p.stdin.close()
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"token {int(former['CLAVE_TOKEN']) + 1}\nthe next one's\n")
        self.assertIn("is stale", p.stderr.read())
        self.assertEqual(p.wait(PATIENCE), STALE)
        p.stderr.close()


class Rest(Fence):
    def setUp(self):
        database = scratch("reports.db")
        with sqlite3.connect(database) as db:
            db.execute("CREATE TABLE report (id TEXT PRIMARY KEY, body BLOB, token INTEGER NOT NULL)")
        self.database = database
        names = {"http": http, "sqlite3": sqlite3, "DATABASE": database}
        exec(compile(blocks("python")[0], "fencing.md", "exec"), names)  # the page's service
        names["Reports"].log_message = lambda *_: None
        self.url = serve(self, names["Reports"]) + "/nightly"

    def body(self):
        with sqlite3.connect(self.database) as db:
            return db.execute("SELECT body FROM report").fetchone()[0].decode()

    def test_a_late_write(self):
        former = self.former_holder()
        self.assertEqual(self.late(former, "rest-put", self.url, "in time").returncode, 0)
        self.assertEqual(self.holder("rest-put", self.url, "the next one's").code, 0)
        self.assertEqual(self.late(former, "rest-put", self.url, "too late").returncode, 22)  # curl -f: 412
        self.assertEqual(self.body(), "the next one's")

    def test_a_write_without_a_token(self):
        self.assertEqual(self.holder("rest-put", self.url, "fenced").code, 0)
        r = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "PUT", self.url, "-d", "x"],
                           capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((r.stdout, self.body()), ("428", "fenced"))


class ZooKeeperData(Fence):
    def test_a_late_write(self):
        self.assertEqual(clave("create", "--parents", "/fenced/report", "", connect=self.server.connect).code, 0)
        write = [CLAVE, "set", "--guard", "/fenced/report"]
        former = self.former_holder()
        self.assertEqual(clave("lock", self.path, "--", *write, "the next one's", connect=self.server.connect).code, 0)
        r = subprocess.run(write + ["too late"], env=former, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, STALE, r)
        self.assertEqual(clave("get", "/fenced/report", connect=self.server.connect).out, "the next one's")


if __name__ == "__main__":
    unittest.main()
