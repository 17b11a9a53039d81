"""Processes that take turns, each of which it writes to one log: "+ NAME ..." and "- NAME ..."."""
import sys
import time


class Contest:
    """Over `living`, name -> process, and `log`, a path; `what` is how its faults are told."""

    def turns(self):
        with open(self.log) as f:
            return sum(line.startswith("+") for line in f)

    def watch(self):
        for name, p in self.living.items():
            if p.poll() is not None:
                sys.exit(f"{self.what}: {name} ended by itself with {p.returncode}")

    def wait_for(self, turns, patience):
        last, since = -1, time.monotonic()
        while True:
            now = self.turns()
            if now >= turns:
                return
            if now != last:
                last, since = now, time.monotonic()
            self.watch()
            if time.monotonic() - since > patience:
                sys.exit(f"{self.what}: it stands still after {now} turns; "
                         f"newest lines:\n{open(self.log).read()[-500:]}")
            time.sleep(0.02)

    def wait_for_everybody(self, patience):
        """Until each has had a turn; how many there have been then. A Java process may be the last
        by far."""
        since = time.monotonic()
        while True:
            with open(self.log) as f:
                seen = {line.split()[1] for line in f if line.endswith("\n")}
            if seen >= set(self.living):
                return self.turns()
            if time.monotonic() - since > patience:
                sys.exit(f"{self.what}: no turn for {set(self.living) - seen}")
            self.watch()
            time.sleep(0.1)
