"""clave serve --admin and --metrics: Apache's admin commands and Prometheus' metrics over HTTP, held
against the four-letter words; who is slow, wrong or many; and what it costs when it is off."""
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import unittest

from certificates import Authority
from harness import (APACHE, CLAVE, JARS, PATIENCE, ClaveServer, Running, ask, clave, environment,
                     free_port, has_apache, scratch, spawn)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conform"))
import wire  # noqa: E402

NAMES = {  # as Apache 3.8 has them; a test below asks it
    "configuration": ["conf", "config"], "connection_stat_reset": ["crst"], "connections": ["cons"],
    "dirs": [], "dump": [], "environment": ["env", "envi"], "is_read_only": ["isro"],
    "last_snapshot": ["lsnp"], "leader": ["lead"], "monitor": ["mntr"], "ruok": [],
    "server_stats": ["srvr"], "stat_reset": ["srst"], "stats": ["stat"], "voting_view": [],
    "watch_summary": ["wchs"], "watches": ["wchc"], "watches_by_path": ["wchp"], "zabstate": [],
}
ABSENT = ["hash", "get_trace_mask", "gtmk", "set_trace_mask", "observers", "system_properties",
          "initial_configuration", "snapshot", "restore", "nonsense", "ruok/", "RUOK"]


IDLE = 5  # seconds until one who says nothing is cut off
LONG_MS = 600 * 1000  # of sessions that nobody keeps alive


class Admin(ClaveServer):
    def __init__(self, *flags, address="127.0.0.1:0"):
        super().__init__(["--words", "*", "--max-session-timeout", f"{LONG_MS}ms", "--admin", address]
                         + list(flags))

    def start(self):
        super().start()
        self.http = int(re.search(r"admin \S+:(\d+)", self.ready)[1])
        return self

    def get(self, path, method="GET", body=None, headers={}):
        c = http.client.HTTPConnection("127.0.0.1", self.http, timeout=PATIENCE)
        try:
            c.request(method, path, body, headers)
            r = c.getresponse()
            return r.status, dict(r.getheaders()), r.read().decode()
        finally:
            c.close()

    def command(self, name):
        """Apache takes GET for all of them."""
        resets = self.name == "clave" and name in ("connection_stat_reset", "crst", "stat_reset", "srst")
        status, headers, body = self.get("/commands/" + name, "POST" if resets else "GET")
        if (status, headers["Content-Type"]) != (200, "application/json"):
            raise AssertionError((name, status, headers, body))
        return json.loads(body)

    def word(self, word):
        return ask(self.port, word.encode()).decode()

    def metrics(self, port=None):
        c = http.client.HTTPConnection("127.0.0.1", port or self.http, timeout=PATIENCE)
        c.request("GET", "/metrics")
        r = c.getresponse()
        if r.getheader("Content-Type") != "text/plain; version=0.0.4; charset=utf-8":
            raise AssertionError(r.getheaders())
        return parse(r.read().decode())


def parse(text):
    """The text format 0.0.4, strictly: {(name, labels): value}, and the types by family."""
    name = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
    label = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
    samples, types, helped, done, family = {}, {}, set(), set(), None
    if not text.endswith("\n"):
        raise AssertionError("the last line has no end")
    for line in text[:-1].split("\n"):
        head = re.fullmatch(rf"# (HELP|TYPE) ({name}) (.*)", line)
        if head and head[1] == "HELP":
            if head[2] in helped or not head[3]:
                raise AssertionError(line)
            helped.add(head[2])
            continue
        if head:
            if head[2] in types or head[2] not in helped or \
                    head[3] not in ("counter", "gauge", "summary", "histogram"):
                raise AssertionError(line)
            types[head[2]], family = head[3], head[2]
            continue
        sample = re.fullmatch(rf"({name})(?:\{{({label}(?:,{label})*)\}})? (?P<value>-?[0-9.]+|NaN)", line)
        own = [family + suffix for suffix in
               {"summary": ["", "_sum", "_count"],
                "histogram": ["_bucket", "_sum", "_count"]}.get(types[family], [""])]
        if not sample or sample[1] not in own:
            raise AssertionError(f"{family}: {line!r}")
        labels = tuple(sorted((k, v) for k, v in re.findall(label, sample[2] or "")))
        if (sample[1], labels) in samples:
            raise AssertionError(f"twice: {line!r}")
        samples[sample[1], labels] = float(sample["value"])
        done.add(family)
    if done != set(types):
        raise AssertionError(set(types) - done)
    return samples, types


class Client:
    """A session with what is to be seen of it."""

    def __init__(self, port):
        self.c = wire.Connection(port)
        self.id = self.c.shake(timeout=LONG_MS)["session"]

    def call(self, op, body, expected=0):
        self.c.send_frame(self.c.request(op, body))
        _, _, _, _, err, answer, _ = self.c.message()
        if err != expected:
            raise AssertionError((op, err))
        return answer


def pairs(text, sep):
    return dict(l.split(sep, 1) for l in text.splitlines() if sep in l)


def resident(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def cpu(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listening(pid):
    """Its sockets of TCP that listen."""
    own = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        own.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    found = []
    for table in ("tcp", "tcp6"):
        with open("/proc/net/" + table) as f:
            fields = [line.split() for line in f][1:]
        found += [x[1] for x in fields if x[3] == "0A" and f"socket:[{x[9]}]" in own]
    return found


class Rig(unittest.TestCase):
    def started(self, *flags, **named):
        s = Admin(*flags, **named)
        s.start()
        self.addCleanup(lambda: s.process.poll() is None and s.stop(signal.SIGKILL))
        return s

    def dial(self, port):
        c = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.addCleanup(c.close)
        return c

    def exchange(self, port, raw):
        """What comes until the server closes."""
        c = self.dial(port)
        c.sendall(raw)
        got = b""
        try:
            while more := c.recv(65536):
                got += more
        except ConnectionResetError:
            pass
        c.close()
        return got


class Populated(Rig):
    """Two sessions, with nodes, ephemerals and watches."""

    @classmethod
    def setUpClass(cls):
        cls.s = Admin().start()
        cls.a, cls.b = Client(cls.s.port), Client(cls.s.port)
        cls.a.call(wire.CREATE, wire.create("/app", b"x" * 100))
        cls.a.call(wire.CREATE, wire.create('/app/"odd\\é', b"", 1))
        cls.b.call(wire.CREATE, wire.create("/mine", b"", 1))
        cls.a.call(wire.GET, wire.read("/app", True))
        cls.b.call(wire.GET, wire.read("/app", True))
        cls.b.call(wire.EXISTS, wire.read("/none", True), -101)
        cls.b.call(wire.CHILDREN, wire.read("/", True))

    @classmethod
    def tearDownClass(cls):
        cls.a.c.close()
        cls.b.c.close()
        if cls.s.stop() != 0:
            raise AssertionError("it did not end well")

    def test_every_command_by_every_name(self):
        status, headers, body = self.s.get("/commands")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertEqual(re.findall('href="/commands/(.*?)"', body), sorted(NAMES))
        self.assertEqual(self.s.get("/commands/")[2], body)
        fresh = self.started()  # two of them count anew
        for name, others in NAMES.items():
            for alias in [name] + others:
                with self.subTest(alias):
                    answer = fresh.command(alias)
                    self.assertEqual(answer["command"], name)
                    error = "server is not initialized" if name == "leader" else None
                    self.assertEqual(answer["error"], error)

    def test_what_is_not_there(self):
        for name in ABSENT:
            with self.subTest(name):
                status, headers, body = self.s.get("/commands/" + name)
                self.assertEqual((status, headers["Content-Type"]), (404, "application/json"))
                self.assertEqual(json.loads(body), {"command": name, "error": "Unknown command"})
        for path in ("/", "/commandsx", "/metrics/", "/metric", "/x/commands", "//commands"):
            with self.subTest(path):
                status, _, body = self.s.get(path)
                self.assertEqual((status, body), (404, "there are /metrics and /commands\n"))
        odd = self.s.get("/commands/%22%5C%0a%ff?x=1")
        self.assertEqual(json.loads(odd[2])["command"], '"\\\n�')

    def test_values_are_those_of_the_words(self):
        monitor = self.s.command("monitor")
        mntr = pairs(self.s.word("mntr"), "\t")  # behind it: a word is a packet too
        for key in ("version", "server_state", "znode_count", "watch_count", "ephemerals_count",
                    "approximate_data_size", "num_alive_connections", "global_sessions",
                    "outstanding_requests", "packets_sent", "packets_received", "max_latency",
                    "local_sessions", "digest_mismatches_count", "min_latency", "avg_latency"):
            if key != "num_alive_connections":  # the word is one itself
                self.assertEqual(str(monitor[key]), mntr["zk_" + key], key)
        self.assertEqual((monitor["znode_count"], monitor["ephemerals_count"],
                          monitor["watch_count"], monitor["num_alive_connections"]), (8, 2, 4, 2))
        with open(f"/proc/{self.s.process.pid}/limits") as f:
            most = next(l.split()[3] for l in f if l.startswith("Max open files"))
        self.assertEqual(monitor["max_file_descriptor_count"], int(most))
        conf = pairs(self.s.word("conf"), "=")
        for key, name in (("client_port", "clientPort"), ("data_dir", "dataDir"),
                          ("data_log_dir", "dataLogDir"), ("tick_time", "tickTime"),
                          ("max_client_cnxns", "maxClientCnxns"), ("server_id", "serverId"),
                          ("min_session_timeout", "minSessionTimeout"),
                          ("max_session_timeout", "maxSessionTimeout"),
                          ("client_port_listen_backlog", "clientPortListenBacklog")):
            self.assertEqual(str(self.s.command("conf")[key]), conf[name])
        dirs = pairs(self.s.word("dirs"), ": ")
        self.assertEqual({k: int(v) for k, v in dirs.items()},
                         {k: self.s.command("dirs")[k] for k in dirs})
        envi = pairs(self.s.word("envi"), "=")
        for key in ("zookeeper.version", "host.name", "os.name", "os.arch", "os.version"):
            self.assertTrue(envi[key])
            self.assertEqual(self.s.command("env")[key], envi[key])
        self.assertEqual(envi["os.name"], os.uname().sysname)
        srvr = pairs(self.s.word("srvr"), ": ")
        stats = self.s.command("srvr")
        self.assertEqual(stats["node_count"], int(srvr["Node count"]))
        self.assertEqual(stats["server_stats"]["last_processed_zxid"], int(srvr["Zxid"], 16))
        self.assertFalse(self.s.command("isro")["read_only"])

    def test_connections(self):
        answer = self.s.command("connections")
        self.assertEqual(answer["secure_connections"], [])
        told = {c["session_id"]: c for c in answer["connections"]}
        self.assertEqual(sorted(told), sorted([self.a.id, self.b.id]))
        line = next(l for l in self.s.word("cons").splitlines() if f"{self.b.id:x}" in l)
        cons = pairs(re.search(r"\((.*)\)", line)[1].replace(",", "\n"), "=")
        b = told[self.b.id]
        self.assertEqual(b["remote_socket_address"], "%s:%d" % self.b.c.socket.getsockname())
        for key, name in (("packets_received", "recved"), ("packets_sent", "sent"),
                          ("last_operation", "lop"), ("session_timeout", "to"),
                          ("last_latency", "llat"), ("max_latency", "maxlat"),
                          ("last_response_time", "lresp")):
            self.assertEqual(str(b[key]), cons[name], key)
        self.assertEqual(b["last_cxid"], int(cons["lcxid"], 16))
        self.assertEqual(b["last_zxid"], int(cons["lzxid"], 16))
        short = self.s.command("stats")["connections"]
        self.assertEqual([sorted(c) for c in short],
                         [["interest_ops", "outstanding_requests", "packets_received",
                           "packets_sent", "remote_socket_address"]] * 2)

    def test_sessions_and_watches(self):
        a, b = str(self.a.id), str(self.b.id)
        dump = self.s.command("dump")
        self.assertEqual(dump["session_id_to_ephemeral_paths"],
                         {a: ['/app/"odd\\é'], b: ["/mine"]})
        sessions = [i for ids in dump["expiry_time_to_session_ids"].values() for i in ids]
        self.assertEqual(sorted(sessions), sorted([self.a.id, self.b.id]))
        told = re.findall(r"expire at (\d+):", self.s.word("dump"))
        for at in dump["expiry_time_to_session_ids"]:  # two readings of two clocks
            self.assertTrue(any(abs(int(at) - int(t)) < LONG_MS // 100 for t in told), (at, told))
        watches = self.s.command("wchc")["session_id_to_watched_paths"]
        self.assertEqual({k: sorted(v) for k, v in watches.items()},
                         {a: ["/app"], b: ["/app", "/none"]})
        by_path = self.s.command("wchp")["path_to_session_ids"]
        self.assertEqual({k: sorted(v) for k, v in by_path.items()},
                         {"/app": sorted([self.a.id, self.b.id]), "/none": [self.b.id]})
        summary = self.s.command("wchs")
        self.assertEqual((summary["num_connections"], summary["num_paths"],
                          summary["num_total_watches"]), (2, 2, 3))

    def test_metrics(self):
        samples, types = self.s.metrics()
        mntr = pairs(self.s.word("mntr"), "\t")
        for key in ("znode_count", "watch_count", "ephemerals_count", "approximate_data_size",
                    "global_sessions", "outstanding_requests", "packets_sent", "packets_received",
                    "avg_latency", "max_latency", "min_latency", "local_sessions",
                    "digest_mismatches_count"):
            self.assertEqual(samples[key, ()], float(mntr["zk_" + key]), key)
        self.assertEqual(samples["num_alive_connections", ()], 2)
        self.assertEqual(samples["requests_total", (("op", "create"),)], 3)
        self.assertEqual(samples["requests_total", (("op", "getData"),)], 2)
        self.assertEqual(types["requests_total"], "counter")
        self.assertGreaterEqual(samples["request_latency_ms_count", ()], 7)
        self.assertEqual(samples["zookeeper_info", (("server_state", "standalone"),
                                                    ("version", mntr["zk_version"]))], 1)
        pid = self.s.process.pid
        self.assertAlmostEqual(samples["process_resident_memory_bytes", ()], resident(pid),
                               delta=resident(pid) / 4)
        self.assertAlmostEqual(samples["process_cpu_seconds_total", ()], cpu(pid), delta=1)

    def test_openmetrics_on_request(self):
        """What Prometheus asks for: the same samples, but counters' families have no _total."""
        asked = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
        status, headers, page = self.s.get("/metrics", headers={"Accept": asked})
        self.assertEqual((status, headers["Content-Type"]),
                         (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
        self.assertTrue(page.endswith("\n# EOF\n"))
        samples, types = self.s.metrics()
        own = dict(line.split(" ")[2:] for line in page.splitlines() if line.startswith("# TYPE"))
        for name, kind in own.items():
            if kind == "counter":
                self.assertEqual(types[name + "_total"], "counter")
                self.assertNotIn(name, types)
            else:
                self.assertEqual(types[name], "counter" if kind == "unknown" else kind)
        self.assertEqual(len(own), len(types))
        named = [re.split("[ {]", line)[0] for line in page.splitlines() if line[0] != "#"]
        self.assertEqual(sorted(named), sorted(name for name, _ in samples))

    def test_open_files_are_measured_every_two_seconds(self):
        clients = [self.dial(self.s.port) for _ in range(20)]
        files = f"/proc/{self.s.process.pid}/fd"
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            told = self.s.metrics()[0]["open_file_descriptor_count", ()]
            if abs(told - len(os.listdir(files))) <= 2:  # a request for it may be open
                break
        self.assertLess(time.monotonic(), until, told)
        for c in clients:
            c.close()

    def test_methods(self):
        status, headers, body = self.s.get("/commands/ruok", "HEAD")
        self.assertEqual((status, body, headers["Content-Length"]), (200, "", "35"))
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            with self.subTest(method):
                status, headers, _ = self.s.get("/commands/stats", method, "body")
                self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        for path in "/commands/stat_reset", "/commands/crst":  # an image of a page from elsewhere would do it
            for method in ("GET", "HEAD", "PUT"):
                status, headers, _ = self.s.get(path, method)
                self.assertEqual((status, headers["Allow"]), (405, "POST"))
        self.assertEqual(self.s.get("/commands/ruok", "NONSENSE")[0], 501)
        self.assertEqual(self.s.get("/commands/ruok", "GET", "a body")[0], 200)
        self.assertGreater(self.s.command("srvr")["server_stats"]["packets_sent"], 0)

    def test_pages_from_elsewhere(self):
        """A name that is not the server's own is how a page reaches it by DNS rebinding."""
        name = os.uname().nodename
        s = self.started("--http-host", "zk1.example,zk1")
        for host, status in (("127.0.0.1:80", 200), ("[::1]", 200), ("localhost:8080", 200), (name, 200),
                             ("zk1", 200), ("ZK1.example:80", 200), ("evil.example", 421), ("zk1.evil.example", 421),
                             ("localhost.evil.example:80", 421), ("", 421)):
            with self.subTest(host):
                for path in "/commands", "/commands/dump":
                    self.assertEqual(s.get(path, headers={"Host": host})[0], status)
                self.assertEqual(s.get("/commands/stat_reset", "POST", headers={"Host": host})[0], status)
                self.assertEqual(s.get("/metrics", headers={"Host": host})[0], 200)  # for any scraper
        for path, method in ("/commands/stat_reset", "POST"), ("/commands/dump", "GET"):
            self.assertEqual(s.get(path, method, headers={"Origin": "http://localhost"})[0], 403)

    def test_what_is_no_http(self):
        for raw in (b"\0" * 1000, b"ruok\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\r\n\r\n",
                    b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n",
                    b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 20000 + b"\r\n",
                    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"):
            with self.subTest(raw[:20]):
                c = self.dial(self.s.http)
                try:
                    c.sendall(raw)
                    c.shutdown(socket.SHUT_WR)
                    answer = c.recv(100)
                except OSError:  # it has hung up already: reset, broken pipe, not connected
                    answer = b""
                self.assertNotIn(b" 200 ", answer)
                c.close()
        self.assertEqual(self.s.command("ruok")["error"], None)


class Served(Rig):
    def test_times_and_sessions(self):
        s = self.started()
        before, types = s.metrics()
        closed = "clave_session_ends_total", (("cause", "closed"),)
        c = Client(s.port)
        c.call(wire.CREATE, wire.create("/timed", b"", 1))
        c.call(wire.GET, wire.read("/timed", False))
        c.call(wire.CLOSE, b"")
        c.c.close()
        after, _ = s.metrics()
        grown = {key: after[key] - before[key] for key in before}
        self.assertEqual(types["updatelatency"], "summary")
        self.assertEqual(types["clave_session_slack_seconds"], "histogram")
        self.assertEqual(grown["updatelatency_count", ()], 2)
        self.assertEqual(grown["readlatency_count", ()], 1)
        self.assertEqual(grown["commit_count", ()], 3)  # the session, the node, the end
        self.assertEqual(grown["proposal_count_total", ()], 3)
        self.assertEqual(grown[closed], 1)
        self.assertEqual(grown["connection_request_count", ()], 1)
        self.assertEqual(grown["connection_drop_count", ()], 0)
        self.assertGreater(grown["bytes_received_count", ()], 100)
        self.assertGreaterEqual(grown["fsynctime_count", ()], 1)
        self.assertGreater(after["fsynctime", (("quantile", "0.5"),)], 0)
        self.assertGreaterEqual(after["updatelatency", (("quantile", "0.99"),)],
                                after["updatelatency", (("quantile", "0.5"),)])
        Client(s.port).c.close()  # and its session stays
        until = time.monotonic() + PATIENCE
        while s.metrics()[0]["connection_drop_count", ()] == before["connection_drop_count", ()]:
            self.assertLess(time.monotonic(), until)

    def test_resets(self):
        s = self.started()
        c = Client(s.port)
        c.call(wire.EXISTS, wire.read("/x"), -101)
        self.assertEqual(s.command("cons")["connections"][0]["packets_sent"], 2)
        s.command("connection_stat_reset")
        self.assertEqual(s.command("cons")["connections"][0]["packets_sent"], 0)
        self.assertEqual(s.command("mntr")["packets_sent"], 2)
        s.command("stat_reset")
        self.assertEqual(s.command("mntr")["packets_sent"], 0)
        c.c.close()

    def test_the_newest_snapshot(self):
        s = self.started("--snap-count", "2")
        self.assertEqual(s.command("lsnp")["zxid"], "0")
        c = Client(s.port)
        until = time.monotonic() + PATIENCE
        while s.command("lsnp")["zxid"] == "0" and time.monotonic() < until:
            c.call(wire.CREATE, wire.create("/n-", b"", 2))
        told = s.command("lsnp")
        names = [n for n in os.listdir(s.data + "/version-2") if n.startswith("snapshot.")]
        self.assertIn("snapshot." + told["zxid"], names)
        self.assertLess(abs(told["timestamp"] - time.time()), PATIENCE)
        c.c.close()

    def test_sizes_through_rolls_and_purges(self):
        s = self.started("--snap-count", "2")
        c = Client(s.port)
        directory = s.data + "/version-2"
        until = time.monotonic() + PATIENCE
        while "snapshot.0" in os.listdir(directory) and time.monotonic() < until:
            c.call(wire.CREATE, wire.create("/n-", b"x" * 50000, 2))
        while time.monotonic() < until:  # a snapshot may still be under way
            sizes = {kind: sum(e.stat().st_size for e in os.scandir(directory)
                               if e.name.startswith(kind)) for kind in ("snapshot.", "log.")}
            told = s.command("dirs")
            if (told["datadir_size"], told["logdir_size"]) == tuple(sizes.values()):
                break
        self.assertLess(time.monotonic(), until, (told, sizes))
        self.assertIn(f"datadir_size: {sizes['snapshot.']}\n", s.word("dirs"))
        c.c.close()

    def test_a_hundred_at_once_and_none_for_nothing(self):
        """More than are let in at a time wait for their turn."""
        s = self.started()
        many = [self.dial(s.http) for _ in range(100)]
        for c in many:
            c.sendall(b"GET /commands/ruok HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for c in many:
            self.assertIn(b"200 OK", c.recv(4096))
        silent = [self.dial(s.http) for _ in range(40)]
        before = cpu(s.process.pid)
        self.assertEqual(clave("create", "/while", connect=s.connect).code, 0)
        begin = time.monotonic()
        self.assertEqual(s.command("ruok")["error"], None)  # once the first ones are cut off
        self.assertLess(time.monotonic() - begin, 25)
        self.assertLess(cpu(s.process.pid) - before, 1)  # nobody turns in circles meanwhile
        self.assertEqual(silent[0].recv(10), b"")

    def test_slow_ones_are_cut_off(self):
        s = self.started()
        half, drip = self.dial(s.http), self.dial(s.http)
        half.sendall(b"GET /commands/ru")
        begin = time.monotonic()
        drip.sendall(b"GET / HTTP/1.1\r\nx: ")
        ended = {}
        while len(ended) < 2 and time.monotonic() < begin + 2 * PATIENCE:
            for c in select.select([x for x in (half, drip) if x not in ended], [], [], 1)[0]:
                try:
                    c.recv(1000)
                except ConnectionError:
                    pass
                ended[c] = time.monotonic() - begin
            if drip not in ended:
                try:
                    drip.sendall(b"x")
                except ConnectionError:
                    ended[drip] = time.monotonic() - begin
        self.assertTrue(3 < ended[half] < 15, ended)
        self.assertTrue(15 < ended[drip] < 40, ended)

    def test_who_does_not_read(self):
        """Answers that are not taken do not hold up others, nor the end."""
        s = self.started()
        c = Client(s.port)
        for i in range(300):
            c.call(wire.EXISTS, wire.read("/%d%s" % (i, "x" * 10000), True), -101)
        deaf = []
        for _ in range(12):
            d = socket.socket()
            self.addCleanup(d.close)
            d.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            d.connect(("127.0.0.1", s.http))
            d.sendall(b"GET /commands/wchc HTTP/1.1\r\nHost: x\r\n\r\n")
            deaf.append(d)
        paths = s.command("wchc")["session_id_to_watched_paths"][str(c.id)]
        self.assertEqual(len(paths), 300)
        self.assertEqual(clave("create", "/while", connect=s.connect).code, 0)
        begin = time.monotonic()
        self.assertEqual(s.stop(), 0)
        self.assertLess(time.monotonic() - begin, IDLE)
        c.c.close()

    def test_the_end_waits_for_nobody(self):
        s = self.started()
        half = self.dial(s.http)
        half.sendall(b"GET /")
        begin = time.monotonic()
        self.assertEqual(s.stop(), 0)
        self.assertLess(time.monotonic() - begin, IDLE)
        try:
            self.assertEqual(half.recv(10), b"")
        except ConnectionResetError:
            pass

    def test_its_keys_and_what_a_reload_leaves(self):
        config = scratch("serve.conf")
        port, http_port = free_port(), free_port()
        text = f"data = {scratch('data')}\nlisten = 127.0.0.1:{port}\nadmin = 127.0.0.1:{http_port}\n"
        with open(config, "w") as f:
            f.write(text + "admin-url = /zk/admin\n")
        p = spawn([CLAVE, "serve", "--config", config], stdin=subprocess.DEVNULL, text=True,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        self.assertIn("serving on", p.stdout.readline())
        c = http.client.HTTPConnection("127.0.0.1", http_port, timeout=PATIENCE)
        c.request("GET", "/zk/admin/ruok")
        self.assertEqual(json.loads(c.getresponse().read())["command"], "ruok")
        c.request("GET", "/commands/ruok")
        self.assertEqual(c.getresponse().status, 404)
        with open(config, "w") as f:
            f.write(text.replace("admin = ", "metrics = "))
        p.send_signal(signal.SIGHUP)
        told = [p.stderr.readline() for _ in range(3)]
        for name in ("admin", "admin-url", "metrics"):
            self.assertIn(f" clave: serve: {name} does not change until the next start\n",
                          [line[line.index(" "):] for line in told])
        c.close()
        p.terminate()
        self.assertEqual(p.wait(PATIENCE), 0)
        p.stdout.close()
        p.stderr.close()


class Addresses(Rig):
    def refused(self, flags, text, code):
        r = clave("serve", "--data", scratch("data"), "--listen", "127.0.0.1:0", *flags)
        self.assertEqual(r.code, code, r)
        self.assertIn(text, r.err)

    def test_addresses_that_are_not_served(self):
        s = self.started()
        self.refused(["--admin", f"127.0.0.1:{s.http}"], f"127.0.0.1:{s.http} is in use", 74)
        self.refused(["--metrics", f"127.0.0.1:{s.http}"], f"127.0.0.1:{s.http} is in use", 74)
        for address in ("tls:localhost:8080", "localhost", "8080", "[::1]", "localhost:", ""):
            with self.subTest(address):
                self.refused(["--admin", address], "--admin", 64)
        self.refused(["--admin", "localhost:x"], "localhost:x", 64)
        self.refused(["--admin-url", "/x"], "--admin-url needs --admin", 64)
        for url in ("x", "/", "/x/", "/a b", "/metrics", "/" + "x" * 200, '/"'):
            with self.subTest(url):
                self.refused(["--admin", "localhost:0", "--admin-url", url], "expected a path", 64)
        r = clave("serve", "--local", scratch("local"), "--admin", "localhost:0")
        self.assertEqual(r.code, 64, r)
        self.assertIn("does not serve HTTP", r.err)

    def test_metrics_alone(self):
        port = free_port()
        s = self.started("--metrics", f"127.0.0.1:{port}")
        self.assertIn(f"metrics 127.0.0.1:{port}", s.ready)
        samples, _ = s.metrics(port)
        self.assertEqual(samples["num_alive_connections", ()], 0)
        got = self.exchange(port, b"GET /commands/ruok HTTP/1.0\r\n\r\n")
        self.assertIn(b" 404 ", got)
        self.assertTrue(got.endswith(b"there is /metrics\n"), got)

    def test_a_unix_socket(self):
        """Whom the file lets in may ask."""
        path = scratch("admin.sock")
        s = ClaveServer(["--admin", "unix:" + path]).start()
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with socket.socket(socket.AF_UNIX) as c:
            c.settimeout(PATIENCE)
            c.connect(path)
            c.sendall(b"GET /commands/ruok HTTP/1.0\r\n\r\n")
            got = b""
            while more := c.recv(65536):
                got += more
        self.assertIn(b'"command": "ruok"', got)
        self.assertEqual(s.stop(), 0)
        self.assertFalse(os.path.exists(path))

    def test_the_ready_line_as_json(self):
        p = spawn([CLAVE, "--json", "serve", "--data", scratch("data"), "--listen", "127.0.0.1:0",
                   "--admin", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  env=environment())
        self.assertRegex(json.loads(p.stdout.readline())["admin"], r"^127\.0\.0\.1:\d+$")
        p.terminate()
        self.assertEqual(p.wait(PATIENCE), 0)
        p.stdout.close()

    def test_off_it_costs_nothing(self):
        for flags, loaded, sockets in (([], False, 1), (["--admin", "127.0.0.1:0"], True, 2)):
            with self.subTest(flags):
                s = ClaveServer(flags).start()
                with open(f"/proc/{s.process.pid}/maps") as f:
                    self.assertEqual("libhttp_parser" in f.read(), loaded)
                self.assertEqual(len(listening(s.process.pid)), sockets)
                self.assertEqual(s.stop(), 0)

    def test_without_the_library(self):
        """Told, with what is missing; and who does not ask for it needs none."""
        folder = os.path.dirname(scratch("x"))
        with open(os.path.join(folder, "libhttp_parser.so.2.9"), "w") as f:
            f.write("no library")
        env = environment(LD_LIBRARY_PATH=folder)
        for flags in ([], ["--admin", "127.0.0.1:0"]):
            p = spawn([CLAVE, "serve", "--data", scratch("data"), "--listen", "127.0.0.1:0"] + flags,
                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                      text=True, env=env)
            if p.stdout.readline():
                p.terminate()
            _, err = p.communicate(timeout=PATIENCE)
            self.assertEqual(p.returncode, 74 if flags else 0, err)
            self.assertEqual("cannot load libhttp_parser.so.2.9, which HTTP needs" in err, bool(flags), err)

    def test_who_came_through_tls(self):
        ca = Authority("ca")
        of_server, of_client, port = ca.server(), ca.client(), free_port()
        s = self.started("--listen", f"tls:127.0.0.1:{port}", "--tls-cert", of_server.cert,
                         "--tls-key", of_server.key, "--tls-ca", ca.cert)
        plain = Client(s.port)
        w = Running("--tls-ca", ca.cert, "--tls-cert", of_client.cert, "--tls-key", of_client.key,
                    "watch", "/", connect=f"tls:localhost:{port}")
        until = time.monotonic() + PATIENCE
        while not s.command("cons")["secure_connections"] and time.monotonic() < until:
            time.sleep(0.01)
        answer = s.command("cons")
        self.assertEqual([c["session_id"] for c in answer["connections"]], [plain.id])
        self.assertEqual(len(answer["secure_connections"]), 1)
        self.assertEqual(s.command("conf")["secure_client_port"], port)
        self.assertNotIn("CN=", json.dumps([s.command(n) for n in NAMES]))
        w.end(signal.SIGTERM)
        plain.c.close()


class ZooCfg(Rig):
    def start(self, lines, code=None):
        self.port = free_port()
        path = scratch("zoo.cfg")
        with open(path, "w") as f:
            f.write(f"dataDir={scratch('data')}\nclientPort={self.port}\n"
                    f"clientPortAddress=127.0.0.1\n{lines}")
        p = spawn([CLAVE, "serve", "--config", path], stdin=subprocess.DEVNULL, text=True,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        ready = p.stdout.readline()
        if ready:
            p.terminate()
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 0 if ready else 64, err)
        return ready, err

    def test_what_opens(self):
        http_port, metrics = free_port(), free_port()
        prometheus = ("metricsProvider.className=org.apache.zookeeper.metrics.prometheus."
                      "PrometheusMetricsProvider\n")
        for lines, expected in (
                ("", r"sessions$"),
                ("admin.enableServer=false\nadmin.serverPort=1\n", r"sessions$"),
                (f"admin.serverPort={http_port}\n", rf"admin \[::\]:{http_port}$|0\.0\.0\.0:{http_port}$"),
                (f"admin.enableServer=TRUE\nadmin.serverAddress=127.0.0.1\nadmin.serverPort={http_port}\n",
                 rf"admin 127\.0\.0\.1:{http_port}$"),
                (f"admin.serverAddress=127.0.0.1\nadmin.serverPort={http_port}\n"
                 "admin.commandURL=/x\nadmin.forceHttps=false\n", rf"admin 127\.0\.0\.1:{http_port}$"),
                (f"{prometheus}metricsProvider.httpHost=127.0.0.1\nmetricsProvider.httpPort={metrics}\n",
                 rf"sessions, metrics 127\.0\.0\.1:{metrics}$")):
            with self.subTest(lines):
                ready, err = self.start(lines)
                self.assertRegex(ready, expected)
                self.assertEqual(err, "")

    def test_what_is_told_or_refused(self):
        for lines, told in (
                ("metricsProvider.httpPort=7000\n", "metricsProvider: no effect without"),
                ("metricsProvider.className=x.Y\n", "metricsProvider: no effect without"),
                ("metricsProvider.exportJvmInfo=true\n", "no effect in clave"),
                ("admin.commandURL=/x\n", "admin.commandURL: no effect without"),
                ("admin.idleTimeout=1\n", "five seconds")):
            with self.subTest(lines):
                ready, err = self.start(lines)
                self.assertRegex(ready, "sessions$")
                self.assertIn(told, err)
        for lines, told in (
                ("admin.forceHttps=true\n", ":4: admin.forceHttps: clave serves HTTP without TLS"),
                ("admin.needClientAuth=true\n", "without TLS"),
                ("admin.portUnification=true\n", "without TLS"),
                ("metricsProvider.httpsPort=7001\n", "without TLS"),
                ("admin.something=x\n", ":4: admin.something: clave does not know this key"),
                ("admin.serverPort=x\n", ":4: admin.serverPort 'x': not a port"),
                ("admin.serverPort=1\nadmin.commandURL=x\n", ":5: admin.commandURL 'x': expected a path")):
            with self.subTest(lines):
                ready, err = self.start(lines)
                self.assertEqual(ready, "")
                self.assertIn(told, err)


JETTY = ["servlet-api", "jackson-annotations", "jackson-core",
         "jackson-databind", "commons-cli"] + \
    ["jetty9-" + n for n in ("server", "http", "io", "util", "util-ajax", "servlet", "security")]


@unittest.skipUnless(has_apache() and all(os.path.exists(f"{JARS}{j}.jar") for j in JETTY),
                     "Apache ZooKeeper or Jetty is not installed")
class AsApache(Rig):
    """Every field of ours is one of Apache's, of the same kind."""

    def alike(self, ours, theirs, where):
        if isinstance(ours, dict) and where.split("/")[-1] not in (
                "expiry_time_to_session_ids", "session_id_to_ephemeral_paths", "path_to_session_ids",
                "session_id_to_watched_paths"):
            for key in ours:
                self.assertIn(key, theirs, where)
                self.alike(ours[key], theirs[key], f"{where}/{key}")
        elif isinstance(ours, list) and ours:
            self.alike(ours[0], theirs[0], where + "/[]")
        elif isinstance(ours, dict):
            # Apache keeps the times from which the end of sessions was put off, with nobody.
            theirs = {k: v for k, v in theirs.items() if v}
            self.assertEqual(len(ours), len(theirs), where)
            for (k, v), (key, value) in zip(ours.items(), theirs.items()):
                self.assertEqual(k.isdigit(), key.isdigit(), where)
                self.alike(v, value, where + "/*")
        else:
            self.assertIs(type(ours), type(theirs), where)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ours, cls.theirs = Admin().start(), cls.apache()
        cls.clients = [Client(s.port) for s in (cls.ours, cls.theirs)]
        for c in cls.clients:
            c.call(wire.CREATE, wire.create("/e", b"", 1))
            c.call(wire.GET, wire.read("/e", True))

    @classmethod
    def tearDownClass(cls):
        for c in cls.clients:
            c.c.close()
        cls.ours.stop()
        super().tearDownClass()

    @staticmethod
    def apache():
        s, cfg = Admin(), scratch("zoo.cfg")
        s.name = "apache"
        s.http = free_port()
        with open(cfg, "w") as f:
            f.write(f"tickTime=2000\ndataDir={scratch('data')}\nclientPort={s.port}\n"
                    "clientPortAddress=127.0.0.1\nadmin.serverAddress=127.0.0.1\n"
                    f"admin.serverPort={s.http}\n4lw.commands.whitelist=*\n")
        spawn(["java", "-Xmx256m", "-cp", ":".join([APACHE] + [f"{JARS}{j}.jar" for j in JETTY]),
               "org.apache.zookeeper.server.ZooKeeperServerMain", cfg], stdin=subprocess.DEVNULL,
              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 2 * PATIENCE
        while "standalone" not in s.word("srvr") and time.monotonic() < until:
            time.sleep(0.1)
        return s

    def absent(self):
        """Of docs/evidence/conformance.md: names and patterns of what Apache's mntr has and clave's has not."""
        with open(os.path.join(os.environ["CLAVE_SOURCE"], "docs", "evidence", "conformance.md")) as f:
            rows = re.search(r"not in `mntr`.*?\n\n\|.*?\n\|---.*?\n(.*?)\n\n", f.read(), re.S)[1]
        names = [n for row in rows.split("\n") for n in re.findall(r"`([^`]+)`", row.split("|")[1])]
        return [re.escape(n).replace(r"\*", ".*") for n in names]

    def test_figures_that_apache_has(self):
        """Each is here, or named with the reason. A pattern names those of its names that are not here."""
        theirs, ours = ({l.split("\t")[0].removeprefix("zk_") for l in s.word("mntr").splitlines()}
                        for s in (self.theirs, self.ours))
        self.assertGreater(len(theirs), 100)
        absent = self.absent()
        self.assertEqual([n for n in theirs - ours if not any(re.fullmatch(a, n) for a in absent)], [])
        for a in absent:
            self.assertTrue(any(re.fullmatch(a, n) for n in theirs - ours), a)
            self.assertNotIn(a, ours)
        # in mntr alone: what no figure of Apache tells
        self.assertEqual(ours - theirs, {"data_dir_free_bytes", "data_dir_total_bytes"})
        monitor = set(self.ours.command("monitor")) - {"command", "error"}
        self.assertEqual(ours - monitor, ours - theirs)

    def test_words_have_apaches_keys(self):
        for word, key in (("conf", r"(?m)^(\w+)="), ("srvr", r"(?m)^([^:]+):"), ("stat", r"(?m)^([A-Z][^:]+):"),
                          ("stat", r"[(,](\w+)="), ("cons", r"[(,](\w+)="), ("dirs", r"(?m)^(\w+):"),
                          ("wchs", r"(\d+ \w+ \w+ \d+ \w+|Total watches)"), ("isro", "(.*)"), ("ruok", "(.*)")):
            with self.subTest(word):
                theirs, ours = (set(re.findall(key, s.word(word))) for s in (self.theirs, self.ours))
                self.assertTrue(theirs)
                self.assertEqual(ours, theirs)
        theirs, ours = (set(re.findall(r"(?m)^([\w.]+)=", s.word("envi"))) for s in (self.theirs, self.ours))
        self.assertEqual({n for n in theirs - ours if not n.startswith(("java.", "user.", "os.memory."))}, set())

    def test_commands_have_apaches_fields(self):
        own = {"server_stats": {"client_response"}, "stats": {"client_response"}}
        for name in set(NAMES) - {"monitor", "environment"}:
            with self.subTest(name):
                theirs, ours = (set(s.command(name)) for s in (self.theirs, self.ours))
                self.assertEqual(theirs - ours, own.get(name, set()))
        listed = set(re.findall(r">(\w+)<", self.theirs.get("/commands")[2]))
        self.assertEqual({n for n in listed if n not in NAMES},
                         {"get_trace_mask", "hash", "initial_configuration", "observer_connection_stat_reset",
                          "observers", "set_trace_mask", "system_properties"})

    def test_fields(self):
        ours, theirs = self.ours, self.theirs
        for name in NAMES:
            with self.subTest(name):
                a, b = ours.command(name), theirs.command(name)
                self.alike(a, b, name)
        for name, others in NAMES.items():
            for alias in others:
                self.assertEqual(theirs.command(alias)["command"], name)
        own = {"zookeeper_info", "request_latency_ms", "requests_total", "limit_refused_total", "undelivered_bytes",
               "last_zxid", "data_dir_size", "log_dir_size", "data_dir_free_bytes",
               "data_dir_total_bytes", "log_append_ms", "clave_session_slack_seconds",
               "clave_session_ends_total"}  # the others have Apache's names
        types, monitor = ours.metrics()[1], set(theirs.command("monitor"))
        names = {n for n in types if not n.startswith("process_") and
                 n.removesuffix("_total") not in set(types) - {n}}
        names = {"cnt_" + n if types[n] == "summary" and "cnt_" + n in monitor else n for n in names}
        self.assertEqual(names - monitor, own)


if __name__ == "__main__":
    unittest.main()
