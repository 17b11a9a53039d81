"""One contender of bench/python/run in a process of its own: prints its figures as JSON.

  worker.py clave|aio|clave.kazoo|kazoo CONNECT MEASURE [N]
"""
import json
import os
import signal
import sys
import threading
import time

WHO, CONNECT, MEASURE = sys.argv[1:4]
N = int(sys.argv[4]) if len(sys.argv) > 4 else 0
SESSION = 4  # seconds


def resident():
    """Private bytes of this process: what its libraries share with others is not counted."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("Private")) * 1024


def threads():
    return len(os.listdir("/proc/self/task"))


def connect():
    if WHO == "clave":
        import clave
        client = clave.Client(CONNECT, session_timeout=SESSION)
        client.wait(30)
        return client
    if WHO == "kazoo":
        from kazoo.client import KazooClient
    else:
        from clave.kazoo import KazooClient
    client = KazooClient(CONNECT, timeout=SESSION)
    client.start(30)
    return client


def turn(c):
    """An acquire and a release, which waits for its answer in kazoo, and in clave where it is asked to."""
    if MEASURE == "confirmed":
        c.lock("/bench/cycle").acquire().release(confirm=True)
        return
    with c.lock("/bench/cycle") if WHO == "clave" else c.Lock("/bench/cycle"):
        pass


def cycles():
    c = connect()
    us, cpu = [], time.process_time()
    for i in range(-N // 10, N):
        start = time.perf_counter()
        turn(c)
        if i >= 0:
            us.append((time.perf_counter() - start) * 1e6)
    return {"p50_us": sorted(us)[N // 2], "cpu_us": (time.process_time() - cpu) / (1.1 * N) * 1e6}


async def cycles_aio():
    import clave.aio
    us = []
    async with clave.aio.Client(CONNECT, session_timeout=SESSION) as c:
        cpu = time.process_time()
        for i in range(-N // 10, N):
            start = time.perf_counter()
            async with c.lock("/bench/cycle"):
                pass
            if i >= 0:
                us.append((time.perf_counter() - start) * 1e6)
    return {"p50_us": sorted(us)[N // 2], "cpu_us": (time.process_time() - cpu) / (1.1 * N) * 1e6}


def clients():
    """What N clients take, beside the first: it loads the libraries."""
    bare = resident()
    first = connect()
    before, threads_before = resident(), threads()
    more = [connect() for _ in range(N)]
    return {"kb_a_client": (resident() - before) / 1024 / len(more), "threads_a_client": (threads() - threads_before) / N,
            "kb_the_first": (before - bare) / 1024, "first": bool(first)}


def loss():
    """Says that it holds a lock; then the server stands still, and it says when it is told of what."""
    told, began = {}, []
    event = threading.Event()

    def tell(state):
        if began and state not in told:
            told[state] = (time.monotonic() - began[0]) * 1000
        if state == "LOST":
            event.set()

    if WHO == "clave":
        import clave
        c = clave.Client(CONNECT, session_timeout=SESSION, on_state=lambda state, why: tell(state))
        hold = c.lock("/bench/loss", on_lost=lambda hold: tell("LOST")).acquire()
        assert hold.valid_for(0)
    else:
        c = connect()
        c.Lock("/bench/loss").acquire()
        c.add_listener(tell)
    print("held", flush=True)
    sys.stdin.readline()
    began.append(time.monotonic())
    event.wait(3 * SESSION)
    return {"suspended_ms": told["SUSPENDED"], "lost_ms": told.get("LOST")}


def jobs():
    """Runs each job, and counts its lines."""
    import inspect
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import jobs_clave
    import jobs_kazoo
    c = connect()
    create = c.create if WHO == "clave" else c.ensure_path
    for path in "/jobs", "/jobs/result", "/jobs/settings", "/jobs/settings/colour":
        if not c.exists(path):
            create(path)
    lines = {}
    for name, job in inspect.getmembers(jobs_clave if WHO == "clave" else jobs_kazoo, inspect.isfunction):
        done = []
        job(c, lambda *args: done.append(args) or b"done")
        if not done:
            raise SystemExit(f"{name} did not run")
        lines[name] = sum(1 for line in inspect.getsource(job).splitlines() if line.strip())
    return lines


signal.signal(signal.SIGTERM, signal.SIG_DFL)
if WHO == "aio":
    import asyncio
    result = asyncio.run(cycles_aio())
else:
    result = {"cycles": cycles, "confirmed": cycles, "clients": clients, "loss": loss, "jobs": jobs}[MEASURE]()
print(json.dumps(result), flush=True)
os._exit(0)
