"""What screenshots and tests show: a cluster at work, made of the same numbers each time."""
import calendar
import math
import random
import time

from fixture_gate import lock, place, rfc3339

JOBS = ["nightly", "deploy", "import", "etl"]
THINGS = ["orders", "users", "mail", "invoices", "search"]


def some_locks(gate, n):
    dice = random.Random(7)
    for i in range(n):
        path = f"/jobs/{JOBS[i % 4]}/{THINGS[i % 5]}-{i:04d}" if n > 10 else f"/jobs/{JOBS[i % 4]}/{THINGS[i % 5]}"
        waits = [dice.expovariate(1 / 14) for _ in range(dice.choice([0, 0, 1, 2, 4]))] if i % 3 == 0 else []
        one = lock(path, i, dice.expovariate(1 / 900), waits)
        if i % 11 == 4:
            one.update(kind="semaphore", limit=8, nholders=3, holders=[place(i * 5 + k, "lease", 40 + k) for k in range(3)])
        elif i % 7 == 3:
            one.update(kind="rw", nholders=2, holders=[place(i * 5 + k, "reader", 33 + k) for k in range(2)])
            for p in one["waiters"]:
                p["role"] = "writer"
        gate.locks[path] = one


def deadlock_of(gate, paths, start=70, certain=True):
    """Owner k holds paths[k] and waits for paths[k + 1]."""
    n = len(paths)
    owners = [place(start + k, "holder", 300 - 20 * k) for k in range(n)]
    members = []
    for k, path in enumerate(paths):
        held = lock(path, 1, None)
        waiter = dict(owners[(k - 1) % n], role="waiting", node=f"_c_{k:08x}-lock-{900 + k:010d}", token=str(4294968000 + k),
                      since=rfc3339(time.time() - 95 + k))
        extra = [place(500 + 10 * k + j, "waiting", 30 - j) for j in range(3 * (k == 0))]
        held.update(holders=[owners[k]], waiters=[waiter] + extra, nholders=1, nwaiters=1 + len(extra), oldest_wait_ms=95000 - 1000 * k,
                    held_since=owners[k]["since"])
        gate.locks[path] = held
    for k in range(n):
        path = paths[(k + 1) % n]
        members.append({"path": path, "node": f"{path}/{gate.locks[path]['waiters'][0]['node']}", "token": gate.locks[path]["waiters"][0]["token"],
                        "blocker": f"{path}/{gate.locks[path]['holders'][0]['node']}", "identity": f"{owners[k]['host']} pid {owners[k]['pid']}"})
    text = ", who".join(f" {m['identity']} waits for {m['path']}" for m in members).strip()
    gate.deadlocks.append({"text": text, "certain": certain, "members": members, "victim": None})


def nested_deadlock(gate):
    """Two `clave lock`s, each of which runs another one: the outer ones hold, the inner ones wait."""
    members = []
    for k, (path, other) in enumerate((("/d/a", "/d/b"), ("/d/b", "/d/a"))):
        one = lock(path, 10 + k, 60)
        one["waiters"] = [place(30 + k, "waiting", 20, command="true")]
        gate.locks[path] = {**one, "nwaiters": 1}
    for path, other in ("/d/a", "/d/b"), ("/d/b", "/d/a"):
        outer, inner = gate.locks[path]["holders"][0], gate.locks[other]["waiters"][0]
        for at, p, blocker in (path, outer, None), (other, inner, gate.locks[other]["holders"][0]):
            members.append({"path": at, "node": f"{at}/{p['node']}", "token": p["token"], "blocker": blocker and f"{at}/{blocker['node']}",
                            "identity": f"{p['host']} pid {p['pid']}"})
    gate.deadlocks.append({"text": "two of them", "certain": True, "members": members, "victim": None})


def held_twice(gate, path="/jobs/deploy"):
    """A clave lock and, behind it in the queue, a kazoo Lock with its default name, which does not see it."""
    one = lock(path, 2, 700, [90, 15])
    one["waiters"][0].update(role="outside", client="kazoo", host="db-63", pid=1441, name=None, node="0123456789abcdef0123456789abcdef__lock__0000000001")
    gate.locks[path] = {**one, "outside": True}


def election(path, terms, leads=True, candidates=2, value=None, start=30, over=False):
    """terms: (seconds ago, seconds long, seconds of gap, cause); the last has no end when somebody leads."""
    now, done = time.time(), []
    for k, (ago, long, cause) in enumerate(terms):
        last = leads and k == len(terms) - 1
        done.append({"token": str(4294970000 + 13 * k), "from": rfc3339(now - ago), "to": None if last else rfc3339(now - ago + long),
                     "cause": None if last else cause, "text": f"{['db', 'web', 'cron'][k % 3]}-0{1 + k % 3}"})
    leader = place(start + 3, "leader", terms[-1][0], host=done[-1]["text"], name="scheduler", command="schedulerd --cluster eu-1") if leads else None
    return {"path": path, "leader": leader, "term": done[-1]["token"], "since": done[-1]["from"] if leads else None, "value": value, "over": over,
            "candidates": [place(start + 10 + k, "candidate", 5000 + k, command="schedulerd --cluster eu-1") for k in range(candidates)], "left_over": [],
            "terms": done}


def some_elections(gate):
    for e in [election("/services/scheduler", [(10400, 5100, "expired"), (5290, 1900, "released"), (3388, 1600, "expired"), (1740, 0, None)], value="10.0.4.17:7400"),
              election("/services/mailer", [(9000, 8200, "released"), (799, 0, None)], candidates=1, start=50),
              election("/services/indexer", [(7000, 3000, "closed"), (3995, 3600, "expired")], leads=False, candidates=1),
              election("/services/importer", [(6900, 3000, "closed"), (3000, 2500, "expired")], leads=False, candidates=0),
              election("/demo/leader", [(6500, 600, "released")], leads=False, candidates=0, over=True),
              election("/services/billing", [(6600, 0, None)], candidates=3, start=80)]:
        gate.elections[e["path"]] = e


def stay(path, who, queued, granted, ended=None, cause="released"):
    """Entries of one place; times are seconds ago, None for what did not happen. `who`: a place, or a number that makes one."""
    p = who if isinstance(who, dict) else place(who, "holder" if granted is not None else "waiting", node=f"_c_{who:08x}-lock-{int(queued * 1000):010d}")
    steps = [("queued", queued, None), ("granted", granted, None), ("ended", ended, cause)]
    return [{"zxid": None, "at": time.time() - ago, "path": path, "kind": "lock", "what": what, "cause": why, "place": p} for what, ago, why in steps if ago is not None]


def remember(gate, entries):
    """In the order of their times; the history has all since an hour and a half ago, or since the first."""
    for i, e in enumerate(sorted(entries, key=lambda e: e["at"])):
        at = e.pop("at")
        gate.began = min(gate.began, at)
        gate.log({**e, "zxid": str(4294967400 + i) if e["what"] == "queued" else None, "time": rfc3339(at)})


def age_of(p):
    return time.time() - calendar.timegm(time.strptime(p["since"][:19], "%Y-%m-%dT%H:%M:%S"))


def some_history(gate):
    """Of some locks: three clients in turns until the present holder came, who queued as long as its waiters do."""
    dice = random.Random(3)
    entries = []
    for k, path in enumerate(sorted(gate.locks)[:40]):
        lock_of = gate.locks[path]
        for p in lock_of["holders"] + lock_of["waiters"]:
            ago = age_of(p)
            entries += stay(path, p, ago + dice.choice([0, 0, 20]) if p in lock_of["holders"] else ago, ago if p in lock_of["holders"] else None)
        at = max([age_of(p) for p in lock_of["holders"]] + [0]) + dice.uniform(1, 200)
        for i in range(12):
            long, waited = dice.expovariate(1 / 120) + 2, dice.choice([0, 0.2, dice.expovariate(1 / 60)])
            cause = dice.choice(["released"] * 8 + ["closed", "expired", "broken", "unknown"])
            if at + long + waited > 5400:
                break
            entries += stay(path, 900 + 10 * k + i % 3 * 5, at + long + waited, at + long, at, cause)
            if i % 4 == 1:
                entries += stay(path, 905 + 10 * k, at + long / 2 + 30, None, at + long / 2, "closed")
            at += long + dice.choice([0.1, 0.1, 60])
    asked = sorted(gate.locks)[0]
    entries += [{"zxid": None, "at": time.time() - 40, "path": asked, "kind": "lock", "what": "asked", "cause": None, "place": gate.locks[asked]["holders"][0],
                 "deed": {"by": "ops", "reason": "maintenance of its disk"}}]
    remember(gate, entries)


def some_sessions(gate, n=24):
    dice = random.Random(5)
    paths = sorted(gate.locks)
    for i in range(n):
        timeout = [10000, 30000, 6000][i % 3]
        claims = [{"id": f"c{i}.{k}", "path": p, "kind": "lock", "state": "held" if k else "waiting", "token": None, "valid_ms": None}
                  for k, p in enumerate(paths[i:i + (i % 4)])]
        gate.sessions.append({"id": str(0x100000A5F2B0000 + i), "name": [None, "nightly backup", "billing"][i % 3], "ttl_ms": timeout,
                              "idle_ms": int(timeout * (0.88 if i == 7 else dice.uniform(0.02, 0.5))), "age_ms": 1000 * (i + 2) ** 4,
                              "state": "live", "claims": claims})


def some_nodes(gate, n=30):
    config = b'{"listen": "0.0.0.0:7400", "peers": ["10.0.4.17", "10.0.4.18"], "drain": true}'
    gate.nodes.update({"/": b"", "/config": config, "/config/blob": bytes(range(256)) * 2, "/jobs": b"", "/services": b"", "/zookeeper": b""})
    for i in range(n):
        gate.nodes[f"/jobs/job-{i:03d}"] = f"run {i}\n".encode()
    for path in list(gate.locks)[:40]:
        gate.nodes[path] = b""
        gate.nodes[f"{path}/{gate.locks[path]['holders'][0]['node']}"] = b"build-00 1000 ./deploy.sh"


def busy_server(gate):
    """An hour of figures, with a slow disk in the middle of it."""
    dice = random.Random(11)
    n = 360
    wave = [math.sin(i / 40) for i in range(n)]
    slow = [20 if 150 < i < 170 else 1 for i in range(n)]
    count, answered, requests, http = 81000, 4000, [], []
    for i in range(n):
        count += int(1000 + 700 * wave[i] + dice.uniform(0, 100))
        answered += int(60 + 30 * wave[i])
        requests.append(count)
        http.append(answered)
    gate.figures = {"uptime_ms": 190000000, "current": True, "age_ms": 40, "latency_ms": 1, "sessions": len(gate.sessions), "waiting": 7, "requests": answered}
    gate.server_figures = {"uptime_ms": 190000000, "sessions": 214, "connections": 209, "requests": count, "outstanding": 2, "znodes": 48231, "watches": 512,
                           "data_bytes": 13100000, "read_ms": 1, "write_ms": 4, "fsync_us": 2100, "files_bytes": 912000000, "free_bytes": 61200000000, "disk_bytes": 107000000000,
                           "memory_bytes": 48200000, "snapshot_seconds": int(time.time()) - 4100, "snapshot_behind": 48211, "quiet_ms": 0}
    gate.samples = {"every_ms": 10000, "at": rfc3339(time.time() - 3), "gate": {
        "latency_ms": [int(s / 4) + dice.choice([0, 1]) for s in slow], "sessions": [int(24 + 6 * w) for w in wave], "waiting": [int(7 + 4 * w) for w in wave], "requests": http},
        "server": {"sessions": [int(205 + 9 * w) for w in wave], "connections": [int(200 + 9 * w) for w in wave], "requests": requests, "outstanding": [s * dice.choice([0, 1, 2]) for s in slow],
                   "znodes": [48000 + i for i in range(n)], "data_bytes": [13000000 + 300 * i for i in range(n)], "read_ms": [dice.choice([0, 1]) for _ in slow], "write_ms": [s * 2 + dice.choice([1, 2]) for s in slow],
                   "fsync_us": [int(s * dice.uniform(1500, 2600)) for s in slow], "free_bytes": [62000000000 - 2200000 * i for i in range(n)], "memory_bytes": [48000000 + 600 * i for i in range(n)]}}


def cluster(gate, locks=5, deadlock=False):
    some_locks(gate, locks)
    if deadlock:
        deadlock_of(gate, ["/accounts/alice", "/accounts/bob"])
        deadlock_of(gate, ["/stock/north", "/stock/south", "/stock/west"], start=90)
        deadlock_of(gate, ["/mail/in", "/mail/out"], start=60, certain=False)
    if locks or deadlock:
        some_elections(gate)
        some_sessions(gate)
        some_history(gate)
        busy_server(gate)
    some_nodes(gate)
    return gate


__all__ = ["busy_server", "cluster", "deadlock_of", "election", "held_twice", "nested_deadlock", "remember", "some_elections", "some_history", "some_locks", "some_sessions", "stay"]
