"""What a client of the soak tells its driver (see run), and how it takes a lost connection.

  WORKER CONNECT ROOT PAUSE_MS SESSION_MS     until its standard input ends

Its lines, times being those of CLOCK_MONOTONIC:

  ready                       the work begins
  ops N                       so many so far, once a second
  lost TIME OPERATION KIND    an error that a server which goes away may give
  fault TIME OPERATION TEXT   one that it may not, or a wrong answer; the worker ends with it
  count OPERATION N           at the end
  left PATH VERSION DATA      a node that is there at the end, its data in hex, "-" for none
  done"""
import collections
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback

PATIENCE = 90  # seconds for something that has to happen, a restart of the server included


class Wrong(Exception):
    """An answer that is not what it has to be."""


class Lost(Exception):
    """No answer: what was asked for was done, or was not."""


class Worker:
    def __init__(self):
        faulthandler.register(signal.SIGUSR1)  # says where it stands
        self.connect, self.root, pause, session = sys.argv[1:5]
        self.pause, self.session_s = float(pause) / 1000, float(session) / 1000
        self.counts = collections.Counter()
        self.losses = 0  # what went on while this grew may have been done twice, or not
        self.stopping = threading.Event()
        self.mutex = threading.Lock()
        self.operation = collections.defaultdict(lambda: "start")  # by thread

    # ---- what the driver is told ----------------------------------------------------------

    def say(self, *words):
        with self.mutex:
            print(*words, flush=True)

    def count(self, operation):
        self.operation[threading.get_ident()] = operation
        with self.mutex:
            self.counts[operation] += 1

    def lose(self, operation, kind):
        with self.mutex:
            self.losses += 1
        self.say("lost", f"{time.monotonic():.3f}", operation, kind)

    def fail(self, text):
        operation = self.operation[threading.get_ident()]
        self.say("fault", f"{time.monotonic():.3f}", operation, " ".join(text.split()))
        os._exit(1)

    # ---- operations ------------------------------------------------------------------------

    def attempt(self, operation, call, *arguments, **keywords):
        """One request; Lost when there is no answer."""
        raise NotImplementedError

    def surely(self, operation, call, *arguments, **keywords):
        """The answer to a request that may be made twice."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return self.attempt(operation, call, *arguments, **keywords)
            except Lost:
                if time.monotonic() > until:
                    raise Wrong(f"no answer in {PATIENCE} s") from None

    def write(self, operation, done, call, *arguments, **keywords):
        """The answer to a request that must not be made twice: without one, done() looks whether it
        was, and returns what stands for the answer, or None."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return self.attempt(operation, call, *arguments, **keywords)
            except Lost:
                found = done()
                if found is not None:
                    return found
                if time.monotonic() > until:
                    raise Wrong(f"no answer in {PATIENCE} s") from None

    def same(self, what, is_, should):
        if is_ != should:
            raise Wrong(f"{what} is {is_!r}, not {should!r}")

    def wait(self, what, condition):
        """Waits until a condition holds that events or the server's own time bring about."""
        until = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > until:
                raise Wrong(f"{what} did not come in {PATIENCE} s")
            time.sleep(0.02)

    # ---- the run ---------------------------------------------------------------------------

    def guarded(self, work):
        """Runs it; whatever it throws is a fault."""
        try:
            work()
        except Wrong as e:
            place = traceback.extract_tb(e.__traceback__)
            chore = next((f.name for f in place if f.name not in ("guarded", "rounds")), "")
            self.fail(f"{chore}: {e}")
        except BaseException:  # noqa: B902  a worker never ends without a word
            self.fail(traceback.format_exc()[-1500:])

    def rounds(self, chores):
        while not self.stopping.is_set():
            for chore in chores:
                if not self.stopping.is_set():
                    chore()

    def pulse(self):
        while not self.stopping.wait(1):
            self.say("ops", sum(self.counts.values()))

    def run(self, *threads):
        """Each thread is a list of chores, gone through again and again until the input ends."""
        threading.Thread(target=self.pulse, daemon=True).start()
        workers = [threading.Thread(target=self.guarded, args=(lambda c=c: self.rounds(c),))
                   for c in threads]
        for w in workers:
            w.start()
        self.say("ready")
        sys.stdin.read()
        self.stopping.set()
        for w in workers:
            w.join()

    def end(self, left):
        """Tells the counts, and what is left: pairs of a path and (version, data)."""
        for operation, n in sorted(self.counts.items()):
            self.say("count", operation, n)
        for path, (version, data) in sorted(left.items()):
            self.say("left", path, version, data.hex() or "-")
        self.say("done")
