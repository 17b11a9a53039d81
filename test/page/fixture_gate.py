"""A gate that says what a test wants: states that are hard to make with a real one, as 5 000 locks, a
deadlock, a server that is gone. It serves src/page as the gate does, and the answers of /v1/ that the page
asks for, of the shapes in src/web/api/openapi.json."""
import email.utils
import http.server
import json
import os
import queue
import select
import socket
import socketserver
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cmd"))
from harness import free_port  # noqa: E402

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "page")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
CSP = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def rfc3339(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


# Of an answer from the copy of the tree.
COPY = {"source": "copy", "current": True, "age_ms": 40}


class FixtureGate:
    """Its state is plain dicts in the shapes of the API; change them, then publish()."""

    def __init__(self, role="admin", cluster="zk1:2181,zk2:2181,zk3:2181", token=None, knows=None):
        self.role, self.cluster = role, cluster
        self.token = token  # without it nothing is answered; None: nobody needs one
        self.grants = None  # instead of the role on /
        self.knows = knows  # then: other tokens are refused; None: any will do
        self.locks, self.elections, self.sessions, self.nodes = {}, {}, [], {}
        self.deadlocks, self.history = [], []
        self.began = time.time()  # nothing is missing in the history since then
        self.figures = {"uptime_ms": 3000, "current": True, "age_ms": 40, "latency_ms": 1, "sessions": 0, "waiting": 1, "requests": 9}
        self.server_figures = None  # as at clave gate
        self.samples = {"every_ms": 10000, "at": rfc3339(self.began), "gate": {}, "server": {}}
        self.epoch, self.sent, self.ring = "f1", 0, []
        self.got = []  # the target of every GET below /v1/
        self.asked = []  # (method, path, body) of every change somebody asked for
        self.refuse = {}  # path -> (status, body): what is refused
        self.hold_back = threading.Event()  # cleared: answers are held back
        self.hold_back.set()
        self.held = 0  # answers held back
        self.streams, self.sockets = set(), set()
        self.lock = threading.RLock()
        self.port, self.server = free_port(), None  # it is ours while the gate is gone
        self.start()

    url = property(lambda self: f"http://127.0.0.1:{self.port}/ui/")

    def start(self):
        gate = self

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 64

            def handle_error(self, request, address):
                pass  # browsers hang up as they like

        class Handler(FixtureHandler):
            pass

        Handler.gate = gate
        self.server = Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
        """Gone: every connection is cut, the port refuses."""
        self.server.shutdown()
        self.server.server_close()
        with self.lock:
            for s in list(self.sockets):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            for q in list(self.streams):
                q.put(None)

    def publish(self, name, data):
        with self.lock:
            self.sent += 1
            event = (f"{self.epoch}-{self.sent}", name, json.dumps(data))
            self.ring.append(event)
            for q in self.streams:
                q.put(event)

    def put_lock(self, lock):
        self.locks[lock["path"]] = lock
        self.publish("lock", lock)

    def drop_lock(self, path):
        lock = dict(self.locks.pop(path), holders=[], waiters=[], nholders=0, nwaiters=0, oldest_wait_ms=0, held_since=None, held_since_by=None)
        self.publish("lock", lock)

    def put_election(self, election, name="leader"):
        self.elections[election["path"]] = election
        self.publish(name, election)

    def log(self, entry):
        entry.setdefault("deed", None)
        entry["n"] = str(len(self.history) + 1)
        self.history.append(entry)


class FixtureHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer leaves as one piece: head and body apart would wait for an acknowledgement
    gate = None

    def setup(self):
        super().setup()
        with self.gate.lock:
            self.gate.sockets.add(self.connection)

    def finish(self):
        with self.gate.lock:
            self.gate.sockets.discard(self.connection)
        super().finish()

    def log_message(self, *_):
        pass

    def send(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def json(self, value, status=200, headers=()):
        body = json.dumps(value).encode()  # of now, however late it arrives
        with self.gate.lock:
            self.gate.held += not self.gate.hold_back.is_set()
        self.gate.hold_back.wait()
        self.send(status, body, [("Content-Type", "application/json"), *headers])

    def problem(self, status, title, detail=None, **more):
        body = json.dumps({"title": title, "status": status, "detail": detail or title, "code": "EINVAL", "class": "final", **more}).encode()
        self.send(status, body, [("Content-Type", "application/problem+json")])

    def asset(self, path):
        name = os.path.normpath(path[len("/ui/"):] or "index.html")
        file = os.path.join(PAGE, name)
        if name.startswith("..") or not os.path.isfile(file):
            return self.problem(404, "There is no such file.")
        with open(file, "rb") as f:
            body = f.read()
        self.send(200, body, [("Content-Type", TYPES[os.path.splitext(name)[1]]), ("Content-Security-Policy", CSP),
                              ("Cache-Control", "no-cache")])

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        if path.startswith("/ui/"):
            return self.asset(path)
        if not path.startswith("/v1/"):
            return self.problem(404, "There is no such path.")
        self.gate.got.append(self.path)
        sent = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if (self.gate.token and sent != self.gate.token) or (self.gate.knows is not None and sent and sent not in self.gate.knows):
            return self.problem(401, "A token is needed.")
        if path == "/v1/events":
            return self.events()
        if path in self.gate.refuse:
            status, body = self.gate.refuse[path]
            return self.problem(status, **body)
        return self.answer(path, query)

    def answer(self, path, query):
        g = self.gate
        if path == "/v1/whoami":
            return self.json({"name": "ops", "grants": g.grants or [{"role": g.role, "prefix": "/"}]})
        if path == "/v1/server":
            return self.json(server_facts(g, "samples" in query))
        if path == "/v1/deadlocks":
            return self.json({"deadlocks": g.deadlocks, **COPY})
        if path == "/v1/sessions":
            return self.json({"sessions": g.sessions, "next": None})
        if path == "/v1/history":
            return self.json({"from": rfc3339(g.began), "entries": history(g, query), **COPY})
        for family in ("locks", "elections"):
            have = getattr(g, family)
            if path == f"/v1/{family}":
                return self.json({**COPY, **page_of(have, family, query)})
            if path.startswith(f"/v1/{family}/"):
                one = have.get(path[len(f"/v1/{family}"):])
                return self.json({**COPY, **one}) if one else self.problem(404, "Nobody is in a queue at this path.")
        if path.startswith("/v1/znodes"):
            return self.znode(path[len("/v1/znodes"):] or "/", query)
        return self.problem(404, "There is no such path.")

    def znode(self, path, query):
        nodes, path = self.gate.nodes, path.rstrip("/") or "/"
        if path not in nodes:
            return self.problem(404, "Not Found", detail=f"cannot get {path}: no such node")
        prefix = "/" if path == "/" else path + "/"
        names = sorted({p[len(prefix):].split("/")[0] for p in nodes if p != "/" and p.startswith(prefix)})
        stat = {"czxid": "4294967301", "mzxid": "4294967399", "pzxid": "4294967400", "ctime": 1795426519120, "mtime": 1795430519120,
                "version": 3, "cversion": len(names), "aversion": 0, "ephemeral_owner": "72057594037927937" if "lock-" in path else "0",
                "data_length": len(nodes[path]), "num_children": len(names)}
        if "children" in query:
            at, limit = sum(n <= query.get("after", "") for n in names), int(query.get("limit", 100))
            more = names[at + limit - 1] if len(names) > at + limit else None
            return self.json({"path": path, "children": names[at:at + limit], "next": more, "stat": stat})
        if "acl" in query:
            return self.json({"path": path, "acl": [{"perms": "cdrwa", "scheme": "world", "id": "anyone"}], "stat": stat})
        return self.send(200, nodes[path], [("Content-Type", "application/octet-stream"), ("ETag", '"3-4294967301"')])

    def events(self):
        g, last, mine = self.gate, self.headers.get("Last-Event-ID"), queue.Queue()
        with g.lock:
            g.streams.add(mine)
            ids = [e[0] for e in g.ring]
            if last in ids:
                for e in g.ring[ids.index(last) + 1:]:
                    mine.put(e)
            else:
                mine.put((f"{g.epoch}-{g.sent}", "reset", "{}"))
                for one in g.locks.values():
                    mine.put((f"{g.epoch}-{g.sent}", "lock", json.dumps(one)))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            while True:
                try:
                    event = mine.get(timeout=0.05)
                except queue.Empty:
                    if self.hung_up():
                        return
                    continue
                if event is None:
                    return
                self.wfile.write("id: {}\nevent: {}\ndata: {}\n\n".format(*event).encode())
                self.wfile.flush()
        except OSError:
            pass
        finally:
            self.close_connection = True
            with g.lock:
                g.streams.discard(mine)

    def hung_up(self):
        readable = select.select([self.connection], [], [], 0)[0]
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def change(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"null")
        path = urllib.parse.unquote(self.path)
        if path in self.gate.refuse:
            status, answer = self.gate.refuse[path]
            return self.problem(status, **answer)
        self.gate.asked.append((self.command, path, body))
        self.json({"path": path})

    do_POST = do_PUT = do_DELETE = change


def page_of(have, family, query):
    paths = sorted(p for p in have if p > query.get("after", ""))
    limit = int(query.get("limit", 100))
    more = paths[limit - 1] if len(paths) > limit else None
    return {family: [have[p] for p in paths[:limit]], "next": more, "zxid": "4294967400"}


def history(g, query):
    entries = [e for e in g.history if query.get("path") in (None, e["path"])]
    if "since" in query:
        return [e for e in entries if int(e["n"]) > int(query["since"])][:int(query.get("limit", 100))]
    return entries[-int(query.get("limit", 100)):]


def server_facts(g, samples):
    facts = {"version": "0.1.0", "role": "read-write", "connected": True, "servers": g.cluster, "connect": g.cluster, "state": "CONNECTED",
             "session_id": "72057594037927937", "max_body": 2097152, "gate": g.figures, "server": g.server_figures}
    return {**facts, "samples": g.samples} if samples and g.samples else facts


def place(i, role="holder", since=0.0, **more):
    """Somebody in a queue; `i` makes the numbers."""
    hosts = ["build", "web", "batch", "db", "cron"]
    names = ["deploy", None, "import", "backup", None]
    commands = ["./deploy.sh --stage production", "/usr/bin/rsync -a /srv/data/ backup:/srv/data/", "python3 import.py --all",
                "pg_dump --format=custom orders", "./nightly-report --since yesterday --mail team@example.org"]
    return {"node": f"_c_{i:08x}-lock-{i:010d}", "token": str(4294967296 + i), "session": str(0x100000a5f2b0000 + i), "role": role,
            "client": ["clave", "curator", "clave", "kazoo", "clave"][i % 5], "host": f"{hosts[i % 5]}-{i % 97:02d}", "pid": 1000 + i * 7 % 60000,
            "name": names[i % 5], "command": commands[i % 5], "text": None, "revocable": None, "asked": False, "since": rfc3339(time.time() - since), **more}


def lock(path, i=1, held=10.0, waits=(), kind="lock", **more):
    """A lock held for `held` seconds, with waiters for each of `waits` seconds."""
    holders = [place(i, "holder", held)] if held is not None else []
    waiters = [place(i * 31 + k + 1, "waiting", w) for k, w in enumerate(waits)]
    return {"path": path, "kind": kind, "holders": holders, "waiters": waiters, "left_over": [], "nholders": len(holders), "nwaiters": len(waiters),
            "nleft_over": 0, "outside": False,
            "oldest_wait_ms": int(max(waits, default=0) * 1000), "held_since": holders[0]["since"] if holders else None,
            "held_since_by": "gate" if holders else None, **more}

