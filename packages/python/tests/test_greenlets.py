"""gevent and eventlet: in a process whose threads they have replaced, a greenlet that waits does not stop the others."""
import importlib.util
import subprocess
import sys
import unittest

from rig import PATIENCE, Case

# Each runs in a process of its own: what has been replaced stays so. `spawn` starts a greenlet, `join` waits for it,
# `kill` ends it where it waits.
BEGIN = {
    "gevent": """
from gevent import monkey; monkey.patch_all()
import gevent
from gevent import spawn, sleep
join, kill, Timeout = gevent.Greenlet.get, gevent.kill, gevent.Timeout
""",
    "eventlet": """
import eventlet; eventlet.monkey_patch()
from eventlet import spawn, sleep, kill, Timeout
def join(greenlet): return greenlet.wait()
"""}
COMMON = """
import os, sys, threading, time
import clave
c = clave.Client(sys.argv[1], session_timeout=10)
c.wait(20)
def queue(path):
    c.sync(path)
    return c.children(path)
def until(condition):
    while not condition():
        sleep(0.005)
"""


class Greenlets:
    library = ""

    def setUp(self):
        if not importlib.util.find_spec(self.library):
            self.skipTest(f"{self.library} is not installed")

    def run_there(self, program, first=""):
        """What a program prints, in a process whose threads are greenlets."""
        done = subprocess.run([sys.executable, "-c", first + BEGIN[self.library] + COMMON + program, self.server.connect],
                              capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Traceback", done.stderr)  # of a callback, or a greenlet that nobody waits for
        return done.stdout.split()

    def test_turns(self):
        """Of twenty greenlets one is inside, while all share a client; each is an owner of its own."""
        said = self.run_there("""
inside, seen, lock = [], [], c.lock("/turns", timeout=20)
def turn():
    for _ in range(3):
        with lock as outer, lock as inner:
            inside.append(1)
            seen.append(len(inside))
            assert outer.token == inner.token
            sleep(0.002)
            inside.pop()
for greenlet in [spawn(turn) for _ in range(20)]:
    join(greenlet)
print(max(seen), len(seen), len(queue("/turns")))
""")
        self.assertEqual(said, ["1", "60", "0"])

    def test_the_others_go_on(self):
        """While one waits for a lock, while one waits for a server, and while a client is closed."""
        said = self.run_there("""
ticks = []
def tick():
    while True:
        ticks.append(1)
        sleep(0.001)
def more():
    now = len(ticks)
    until(lambda: len(ticks) > now + 5)
spawn(tick)
with c.lock("/held"):
    waiting = spawn(lambda: c.lock("/held").acquire(20).token)
    until(lambda: len(queue("/held")) == 2)
    more()
print(join(waiting) > 0)
def busy():
    try:
        c.lock("/held").acquire(0.05)
    except clave.Busy:
        return "busy"
with c.lock("/held"):
    print(join(spawn(busy)))
d = clave.Client("127.0.0.1:1", connect_timeout=0.5)
before = len(ticks)
try:
    d.__enter__()
except clave.Unreachable:
    print(len(ticks) > before)
d.close()
c.close()
""")
        self.assertEqual(said, ["True", "busy", "True"])

    def test_one_that_is_ended_while_it_waits_leaves_nothing(self):
        said = self.run_there("""
hold = c.lock("/ended").acquire()
waiting = spawn(c.lock("/ended").acquire)
until(lambda: len(queue("/ended")) == 2)
kill(waiting)
until(lambda: len(queue("/ended")) == 1)
try:
    with Timeout(0.1):
        c.lock("/ended").acquire()
except Timeout:
    print("timeout", len(queue("/ended")))
hold.release(confirm=True)
print(len(queue("/ended")))
""")
        self.assertEqual(said, ["timeout", "1", "0"])

    def test_callbacks_may_wait(self):
        """One that asks the server, and one that sleeps, which ends after the block has noticed the loss."""
        said = self.run_there("""
told = []
def lost(hold):
    told.append(c.exists("/lost") is not None)
    sleep(0.05)
    told.append("slept")
hold = c.lock("/lost", on_lost=lost).acquire()
waiter = spawn(lambda: hold.lost.wait(10))
c.delete(hold.node)
print(join(waiter))
until(lambda: len(told) == 2)
print(*told)
""")
        self.assertEqual(said, ["True", "True", "slept"])

    def test_the_other_nouns(self):
        said = self.run_there("""
with c.semaphore("/pool", 1) as lease, c.election("/lead") as term, c.multilock("/a", "/b") as both:
    for held in lease, term, both:
        held.check()
    term.publish(b"me")
    print(c.election("/lead").leader().node == term.node.split("/")[-1] or c.election("/lead").leader().node)
print(c.once("/job", "key", lambda hold: "ran").value)
c.create("/tree/a", b"1", parents=True)
with c.cache("/tree") as cache:
    c.set("/tree/a", b"2")
    until(lambda: cache.get("/tree/a") == b"2")
events = []
watcher = c.watch("/tree", lambda event, path: events.append(event))
until(lambda: clave.WatchEvent.ARMED in events)
c.slots("/slots", 1).take("me")
waiting = spawn(c.slots("/slots", 1).take, "you")
sleep(0.05)
c.slots("/slots").give("me")
print(join(waiting).id)
""")
        self.assertEqual(said[1:], ["ran", "you"])

    def test_a_client_that_is_closed_or_forgotten(self):
        said = self.run_there("""
hold = c.lock("/closed").acquire()
d = clave.Client(sys.argv[1]); d.wait(20)
def wait():
    try:
        d.lock("/closed").acquire()
    except clave.Closed:
        return "closed"
waiting = spawn(wait)
until(lambda: len(queue("/closed")) == 2)
d.close()
print(join(waiting), len(queue("/closed")))
files = len(os.listdir("/proc/self/fd"))
for _ in range(5):
    e = clave.Client(sys.argv[1]); e.wait(20)
    e.lock("/forgotten").acquire(20)
    del e
    assert queue("/forgotten") == []
print(len(os.listdir("/proc/self/fd")) <= files + 1)
""")
        self.assertEqual(said, ["closed", "1", "True"])

    def test_a_native_thread_and_a_child(self):
        said = self.run_there(f"""
if {self.library == "gevent"}:
    native = lambda f: gevent.get_hub().threadpool.apply(f)
else:
    from eventlet import tpool
    native = tpool.execute
with c.lock("/native") as hold:
    def busy():
        try:
            c.lock("/native").acquire(0.1)
        except clave.Busy:
            return "busy"
    print(native(busy))
    pid = os.fork()
    if pid == 0:
        try:
            c.sync()
        except clave.Forked:
            with clave.Client(sys.argv[1]) as own:
                os._exit(len(own.children("/native")))
        os._exit(9)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    hold.check()
    print(len(queue("/native")))
""")
        self.assertEqual(said, ["busy", "1", "1"])

    def test_a_client_from_before(self):
        """Its locks would take all greenlets for one owner."""
        said = self.run_there("""
try:
    old.lock("/old").acquire()
except RuntimeError as e:
    print("replace them first" in str(e), flush=True)
os._exit(0)  # threading would complain of the thread of its callbacks, which has another number now
""", first="import sys, clave\nold = clave.Client(sys.argv[1])\n")
        self.assertEqual(said, ["True"])


class Gevent(Greenlets, Case):
    library = "gevent"


class Eventlet(Greenlets, Case):
    library = "eventlet"


if __name__ == "__main__":
    unittest.main()
