"""What screenshots and tests show: a cluster at work, made of the same numbers each time."""
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


def election(path, terms, leads=True, candidates=2, value=None, start=30, over=False):
    """terms: (seconds ago, seconds long, seconds of gap, cause); the last has no end when somebody leads."""
    now, done = time.time(), []
    for k, (ago, long, cause) in enumerate(terms):
        last = leads and k == len(terms) - 1
        done.append({"token": str(4294970000 + 13 * k), "from": rfc3339(now - ago), "to": None if last else rfc3339(now - ago + long),
                     "cause": None if last else cause, "text": f"{['db', 'web', 'cron'][k % 3]}-0{1 + k % 3}"})
    leader = place(start + 3, "leader", terms[-1][0], host=done[-1]["text"], name="scheduler", command="schedulerd --cluster eu-1") if leads else None
    return {"path": path, "leader": leader, "term": done[-1]["token"], "since": done[-1]["from"] if leads else None, "value": value, "over": over,
            "candidates": [place(start + 10 + k, "candidate", 5000 + k, command="schedulerd --cluster eu-1") for k in range(candidates)], "terms": done}


def some_elections(gate):
    for e in [election("/services/scheduler", [(10400, 5100, "expired"), (5290, 1900, "released"), (3388, 1600, "expired"), (1740, 0, None)], value="10.0.4.17:7400"),
              election("/services/mailer", [(9000, 8200, "released"), (799, 0, None)], candidates=1, start=50),
              election("/services/indexer", [(7000, 3000, "closed"), (3995, 3600, "expired")], leads=False, candidates=1),
              election("/services/importer", [(6900, 3000, "closed"), (3000, 2500, "expired")], leads=False, candidates=0),
              election("/demo/leader", [(6500, 600, "released")], leads=False, candidates=0, over=True),
              election("/services/billing", [(6600, 0, None)], candidates=3, start=80)]:
        gate.elections[e["path"]] = e


def some_history(gate, n=120):
    dice = random.Random(3)
    now = time.time()
    paths = sorted(gate.locks)[:40] or ["/jobs/nightly"]
    for i in range(n):
        what = "asked" if i % 30 == 7 else ["queued", "granted", "ended"][i % 3]
        cause = dice.choice(["released", "released", "released", "closed", "expired"]) if what == "ended" else None
        path = paths[(i // 3) % len(paths)]
        gate.log({"zxid": str(4294967400 + i), "time": rfc3339(now - (n - i) * 7.3), "path": path, "kind": "lock", "what": what, "cause": cause,
                  "place": place(i // 3, "holder", (n - i) * 7)})


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
    some_nodes(gate)
    return gate


__all__ = ["cluster", "deadlock_of", "election", "some_elections", "some_history", "some_locks", "some_sessions"]
