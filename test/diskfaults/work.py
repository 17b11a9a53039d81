"""What a client does on a disk that fails, and what it may rely on."""
from failed import Failed, require
from harness import PATIENCE, UNSAFE
from zk import Client, NODE_EXISTS


class Work:
    """Nodes that are created, and a counter that is set: what was acknowledged, and how far the
    counter may be."""

    def __init__(self, rounds, times=20):
        self.rounds, self.round, self.times = rounds, 0, times
        self.created, self.counter = set(), -1

    def go_on(self, path):
        """Whether all of it is done; otherwise the connection has ended."""
        try:
            c = Client(path, PATIENCE)
            if self.counter < 0:
                c.send_create("/counter", "0")
                require(c.answer()[0] in (0, NODE_EXISTS), "the counter is refused")
                self.counter = 0
            while self.round < self.rounds:
                self.one_round(c)
            c.close()
            return True
        except TimeoutError as e:
            raise Failed("the server hangs: no answer") from e
        except (ConnectionError, BrokenPipeError):
            return False

    def one_round(self, c):
        n = self.round + 1
        c.send_create(f"/n{n}", f"n{n}" * self.times)
        c.send_set("/counter", str(n))
        error = c.answer()[0]
        require(error in (0, NODE_EXISTS), f"create: {error}")
        self.created.add(n)
        require(c.answer()[0] == 0, "set is refused")
        self.counter = n
        self.round = n

    def acknowledged(self):
        """So far, while it goes on in another thread."""
        return self.created.copy(), self.counter

    def check(self, path, acknowledged=None):
        """All of it, or what was acknowledged until then."""
        created, counter = acknowledged or (self.created, self.counter)
        c = Client(path, PATIENCE)
        for n in created:
            require(c.get(f"/n{n}") == f"n{n}" * self.times, f"{UNSAFE}: /n{n} is lost")
        if counter >= 0:
            now = int(c.get("/counter") or -1)
            require(counter <= now <= self.counter + 1,
                    f"{UNSAFE}: the counter is {now}, and was {counter} to {self.counter}")
        c.close()
