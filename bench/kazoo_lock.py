"""kazoo's Lock: the same two measurements as clave_mutex.c."""
import json
import sys
import threading
import time

from kazoo.client import KazooClient


def client(connect):
    c = KazooClient(hosts=connect, timeout=10)
    c.start()
    return c


def report(us):
    us.sort()
    print(json.dumps({"p50_us": us[len(us) // 2], "p99_us": us[len(us) * 99 // 100]}))


def cycle(connect, cycles, pause_us):
    c = client(connect)
    lock = c.Lock("/bench/kazoo")
    us = []
    for i in range(-cycles // 10, cycles):
        start = time.perf_counter()
        lock.acquire()
        lock.release()
        if i >= 0:
            us.append((time.perf_counter() - start) * 1e6)
        if pause_us:
            time.sleep(pause_us / 1e6)
    report(us)
    c.stop()


def handoff(connect, n, cycles):
    us, released, end = [], [0.0], threading.Event()

    def runner():
        lock = client(connect).Lock("/bench/kazoo-handoff")
        while not end.is_set():
            lock.acquire()
            at = time.perf_counter()
            if released[0]:
                us.append((at - released[0]) * 1e6)
            if len(us) >= cycles:
                end.set()
            released[0] = time.perf_counter()
            lock.release()

    for _ in range(n):
        threading.Thread(target=runner, daemon=True).start()
    end.wait()
    report(us[:cycles])
    sys.stdout.flush()
    import os
    os._exit(0)


if sys.argv[1] == "cycle":
    cycle(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    handoff(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
