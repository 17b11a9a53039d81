#!/usr/bin/env python3
"""The double leaders and double owners that Curator's users have published, played on Curator as it
is installed and then on clave, on one server of Apache ZooKeeper and through a proxy that loses or
holds messages.

  timelines.py [NUMBER...]     460, 498 ...: of the tickets

Says for each ticket what was seen of each: two at once, nobody for good, or neither. Fails when
that is seen of clave. CLAVE and CLAVE_REAL_HOLDER name the programs."""
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cmd")]
from harness import (ApacheServer, JARS, PATIENCE, clave, environment, has_apache,  # noqa: E402
                     scratch, spawn)
from history import History  # noqa: E402
from proxy import CREATE, DELETE, GET_CHILDREN, GET_DATA, REPLY, REQUEST, Proxy  # noqa: E402

HOLDER = os.environ.get("CLAVE_REAL_HOLDER", "real_holder")
SESSION_S, HOUR_MS = 4, 3600000
JARS_USED = ("curator-recipes", "curator-framework", "curator-client", "zookeeper")


class Curator:
    """Its LeaderLatch and InterProcessMutex, all in one process."""
    classes = None

    def __init__(self, proxies, policy):
        words = [w for n, proxy in proxies.items() for w in (n, proxy.connect)]
        self.java = spawn(["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
                           f"{JARS}curator-recipes.jar:{JARS}slf4j-nop.jar:{self.classes}",
                           "Candidates", policy, str(SESSION_S * 1000)] + words,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, *words):
        self.java.stdin.write(" ".join(words) + "\n")
        self.java.stdin.flush()
        return self.java.stdout.readline().split()[1:]

    def who(self):
        return self.say("who")

    def end(self):
        self.java.kill()
        self.java.wait()


class Clave:
    """clave_async_latch and clave_mutex, a process each."""

    def __init__(self, proxies, policy):
        latch = "session-latch" if policy == "session" else "latch"
        self.kinds = {"lead": (latch, "/election"), "acquire": ("lock", "/lock")}
        self.proxies, self.log = proxies, scratch("log")
        self.stops, self.processes = {}, []
        open(self.log, "w").close()
        self.history = History(open(self.log))

    def say(self, what, name):
        if what not in self.kinds:
            open(self.stops[name], "w").close()
            return
        kind, path = self.kinds[what]
        self.stops[name] = scratch("stop")
        self.processes.append(spawn(
            [HOLDER, kind, self.proxies[name].connect, path, self.log, name, self.stops[name],
             str(SESSION_S * 1000), str(HOUR_MS)], stdin=subprocess.DEVNULL, env=environment()))

    def who(self):
        """The newest, if it was sure of it a moment ago, and whoever was when that had begun."""
        holds = self.history.refresh().in_order()
        lately = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - 300000000
        newest = [h for h in holds[-1:] if h.newest > lately and not h.heard()]
        return [h.name for h in newest
                + [h for h in holds[:-1] if h.newest > holds[-1].begin]]

    def end(self):
        for p in self.processes:
            p.kill()
            p.wait()


class Stage:
    """A server, and candidates with a proxy each."""

    def __init__(self, cast, names, policy):
        self.server = ApacheServer().start()
        self.proxies = {n: Proxy(self.server.port) for n in names}
        self.cast = cast(self.proxies, policy)
        self.say, self.who = self.cast.say, self.cast.who

    def lead(self, *names):
        for n in names:
            before = len(self.queue())
            self.say("lead", n)
            self.until(f"{n} in the queue", lambda b=before: len(self.queue()) > b)
        self.until("a leader", lambda: len(self.who()) == 1)

    def queue(self, path="/election"):
        result = clave("ls", path, connect=self.server.connect)
        return result.out.split() if result.code == 0 else []

    def until(self, what, condition, patience=PATIENCE):
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not in {patience} s")
            time.sleep(0.01)

    def restart(self, down_s, fresh=False):
        """kill -9; sessions it knew have their whole time anew. `fresh`: with an empty disk."""
        self.server.stop(signal.SIGKILL)
        time.sleep(down_s)
        if fresh:
            shutil.rmtree(self.server.data)
        self.server.start()

    def seen(self, seconds):
        """Watches: for how long there were two at once, and since when there is nobody."""
        now = since = time.monotonic()
        end, both = now + seconds, 0.0
        while now < end:
            who, before, now = self.who(), now, time.monotonic()
            both += now - before if len(who) > 1 else 0
            since = now if who else since
            time.sleep(0.01)
        if both:
            return f"shown: two at once for {both:.1f} s of the {seconds} s watched" + (
                ", and at their end" if len(who) > 1 else "")
        if now - since > SESSION_S:
            return f"shown: nobody in the last {now - since:.0f} s of the {seconds} s watched"
        return "not shown: never two, and one in the end"

    def end(self):
        self.cast.end()
        self.server.stop(signal.SIGKILL)


def CURATOR_460(stage):
    """Packets to and from the leader vanish. Session policy: LOST, and with it the end of the
    leadership, is due a session after the client noticed; the server counts from the last
    contact."""
    stage.lead("a", "b")
    stage.proxies["a"].hold()
    return stage.seen(3 * SESSION_S)


def CURATOR_498(stage):
    """The create's answer is lost, and its session: the search for the protected node must not
    find the one of the old session."""
    stage.lead("b")
    lost = stage.proxies["a"].rule(REPLY, CREATE, "lose")
    stage.say("lead", "a")
    lost.struck.wait(PATIENCE)
    stage.proxies["a"].refuse()
    stage.say("leave", "b")
    stage.restart(SESSION_S + 1)
    stage.proxies["a"].refuse(False)
    stage.say("lead", "b")
    return stage.seen(4 * SESSION_S)


def CURATOR_504_644(stage):
    """Connections of two of three are cut, in turns."""
    stage.lead("a", "b", "c")
    for n in range(6):
        for i, proxy in enumerate(stage.proxies.values()):
            if i != n % 3:
                proxy.cut()
        time.sleep(0.7)
    return stage.seen(3 * SESSION_S)


def CURATOR_604(stage):
    """The session changes between the create of a lock node and its listing: the listing shows
    the node of the old session as the first."""
    stage.say("acquire", "b")  # so that the path is there
    stage.until("the lock", lambda: stage.who() == ["b"])
    stage.say("release", "b")
    stage.until("the release", lambda: not stage.queue("/lock"))
    held = stage.proxies["a"].rule(REQUEST, GET_CHILDREN, "hold")
    stage.say("acquire", "a")
    held.struck.wait(PATIENCE)
    stage.proxies["a"].refuse()
    stage.restart(SESSION_S + 1)
    stage.proxies["a"].clear()
    stage.proxies["a"].refuse(False)
    stage.until("an owner", lambda: stage.who() == ["a"])
    stage.say("acquire", "b")
    return stage.seen(4 * SESSION_S)


def CURATOR_620(stage):
    """Reconnected, and at once again, while what the first brought is under way."""
    stage.lead("a", "b")
    for _ in range(4):
        for ops in (DELETE, CREATE, GET_CHILDREN):
            stage.proxies["a"].rule(REPLY, ops, "lose")
        stage.proxies["a"].cut()
        time.sleep(0.7)
    stage.proxies["a"].clear()
    return stage.seen(3 * SESSION_S)


def CURATOR_645(stage):
    """The predecessor goes between the listing and the watch on it."""
    stage.lead("a")
    held = stage.proxies["b"].rule(REQUEST, GET_DATA, "hold")
    stage.say("lead", "b")
    held.struck.wait(PATIENCE)
    stage.say("leave", "a")
    stage.proxies["b"].clear()
    stage.until("b leads", lambda: stage.who() == ["b"], 10)
    return stage.seen(SESSION_S)


def CURATOR_653(stage):
    """The server is away for a moment: all are suspended, and come back."""
    stage.lead("a", "b", "c")
    stage.restart(0.5)
    return stage.seen(4 * SESSION_S)


def CURATOR_678(stage):
    """A release meets a lost connection, and Curator's gives up; the owner wants the lock again
    when it is connected again."""
    stage.say("acquire", "a")
    stage.until("the lock", lambda: stage.who() == ["a"])
    lost = stage.proxies["a"].rule(REQUEST, DELETE, "lose")
    stage.say("release", "a")
    lost.struck.wait(PATIENCE)
    stage.proxies["a"].refuse()
    time.sleep(SESSION_S / 2)
    stage.proxies["a"].refuse(False)
    stage.say("acquire", "a")
    return stage.seen(2 * SESSION_S)


def CURATOR_696(stage):
    """The server is away until the leader's session must have ended, and comes back before it has
    ended it: the leader finds its old node first."""
    stage.lead("a", "b")
    stage.restart(SESSION_S + 1)
    return stage.seen(5 * SESSION_S)


def CURATOR_724(stage):
    """The server comes back empty."""
    stage.lead("a", "b")
    stage.restart(0.5, fresh=True)
    return stage.seen(5 * SESSION_S)


TIMELINES = {name: f for name, f in list(globals().items()) if name.startswith("CURATOR_")}


def version():
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libcurator-recipes-java"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return shown.stdout or "of unknown version"


def play(cast, name):
    policy = {"460": "session", "678": "impatient"}.get(name[-3:], "standard")
    stage = Stage(cast, "abc" if name[-3:] in ("644", "653") else "ab", policy)
    try:
        return TIMELINES[name](stage)
    except AssertionError as e:
        return f"stuck: {e}"
    finally:
        stage.end()


def main():
    if not has_apache() or not os.path.exists(f"{JARS}curator-recipes.jar") \
            or not shutil.which("javac"):
        print("timelines: SKIPPED, nothing was tested: ZooKeeper, Curator and javac are needed")
        return 77
    Curator.classes = scratch("classes")
    subprocess.run(["javac", "-nowarn", "-cp", ":".join(f"{JARS}{j}.jar" for j in JARS_USED), "-d",
                    Curator.classes, os.path.join(HERE, "Candidates.java")], check=True)
    print(f"Curator {version()}, sessions of {SESSION_S} s", flush=True)
    wanted = [n for n in TIMELINES if not sys.argv[1:] or any(t in n for t in sys.argv[1:])]
    found = False
    for name in wanted:
        title = name.replace("_", "-", 1).replace("_", "/")
        for cast in (Curator, Clave):
            result = play(cast, name)
            found |= cast is Clave and result.startswith("shown")
            print(f"{title:18} {cast.__name__.lower():8} {result}", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
