"""kazoo at its usual work (see worker.py): nodes, transactions, access lists, sequences, watches and
sessions here, its recipes in kazoo_recipes.py."""
import logging
import os
import queue
import random

from kazoo.client import KazooClient
from kazoo.exceptions import (BadVersionError, ConnectionLoss, NoAuthError, NodeExistsError,
                              NoNodeError, NotEmptyError, OperationTimeoutError,
                              RuntimeInconsistency)
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl
from kazoo_recipes import recipes
from worker import PATIENCE, Lost, Worker, Wrong

LOSSES = (ConnectionLoss, OperationTimeoutError)
KEYS = 8


class Client:
    """A session: its loss is a fault, that of its connection is told."""

    def __init__(self, worker, name, **keywords):
        self.worker, self.name, self.closing = worker, name, False
        keywords.setdefault("timeout", worker.session_s)
        patient = KazooRetry(max_tries=-1, delay=0.1, max_delay=0.5)
        self.zk = KazooClient(worker.connect, connection_retry=patient, command_retry=patient,
                              **keywords)
        self.zk.add_listener(self.on_state)
        self.zk.start(timeout=PATIENCE)
        worker.count("session")
        self.id = self.zk.client_id[0]

    def on_state(self, state):
        if state == KazooState.SUSPENDED:
            self.worker.lose("connection", "SUSPENDED")
        elif state == KazooState.LOST and not self.closing:
            self.worker.fail(f"the session of {self.name} is lost")

    def close(self):
        self.closing = True
        self.zk.stop()
        self.zk.close()


class KazooWorker(Worker):
    def __init__(self):
        super().__init__()
        self.dice = random.Random(os.getpid())
        self.model = {}  # path -> (version, data)
        self.serial = 0
        self.main, self.other = Client(self, "main"), Client(self, "other")
        self.zk = self.main.zk
        self.own, self.scratch = f"{self.root}/own", f"{self.root}/scratch"
        for path in (self.root, self.own, self.scratch):
            self.make(path)
        self.made = {}  # parent -> how many sequential nodes were ever made below it
        self.watched_data, self.watched_children = self.long_watches()

    # ---- operations ------------------------------------------------------------------------

    def attempt(self, operation, call, *arguments, **keywords):
        self.count(operation)
        self.stopping.wait(self.pause)
        try:
            return call(*arguments, **keywords)
        except LOSSES as e:
            self.lose(operation, type(e).__name__)
        # What is asked without a connection waits for one; so does this, not to ask again at once.
        self.zk.retry(self.zk.exists, "/")
        raise Lost

    def refused(self, error, operation, call, *arguments, **keywords):
        """The request has to be answered with this error."""
        try:
            answer = self.surely(operation, call, *arguments, **keywords)
        except error:
            return
        raise Wrong(f"{operation} is answered with {answer!r}, not {error.__name__}")

    def stat(self, path):
        return self.surely("exists", self.zk.exists, path)

    def fresh(self):
        self.serial += 1
        return f"value {self.serial} ".encode() + b"x" * self.dice.randrange(100)

    def make(self, path, data=b"", **keywords):
        """Creates what is not there, in the model when it is below own."""
        def there():
            return path if self.stat(path) else None
        if there():
            raise Wrong(f"{path} is there already")
        got = self.write("create", there, self.zk.create, path, data, **keywords)
        self.same("the path created", got, path)
        if path.startswith(self.own):
            self.model[path] = (0, data)

    def change(self, path):
        version, data = self.model[path][0], self.fresh()

        def there():
            stat = self.stat(path)
            return stat if stat.version == version + 1 else None
        stat = self.write("set", there, self.zk.set, path, data, version=version)
        self.same("the version", stat.version, version + 1)
        self.model[path] = (version + 1, data)

    def remove(self, path):
        self.write("delete", lambda: True if self.stat(path) is None else None, self.zk.delete,
                   path, version=self.model[path][0])
        del self.model[path]

    def clear(self, path):
        """Removes what is left of an earlier round."""
        self.surely("delete", self.zk.delete, path, recursive=True)

    # ---- chores ----------------------------------------------------------------------------

    def nodes(self):
        path = f"{self.own}/k{self.dice.randrange(KEYS)}"
        if path not in self.model:
            self.refused(NoNodeError, "get", self.zk.get, path)
            self.refused(NoNodeError, "set", self.zk.set, path, b"")
            self.same("exists", self.stat(path), None)
            self.make(path, self.fresh())
        self.refused(NodeExistsError, "create", self.zk.create, path)
        self.refused(NotEmptyError, "delete", self.zk.delete, self.own)
        for _ in range(3):
            self.change(path)
            data, stat = self.surely("get", self.zk.get, path)
            self.same(path, (stat.version, data), self.model[path])
            self.same("its length", stat.dataLength, len(data))
        self.refused(BadVersionError, "set", self.zk.set, path, b"", version=stat.version + 1)
        self.refused(BadVersionError, "delete", self.zk.delete, path, version=stat.version + 1)
        if self.dice.randrange(2):
            self.remove(path)
        names = self.surely("children", self.zk.get_children, self.own)
        self.same("children", sorted(names), sorted(self.names(self.own)))

    def names(self, parent):
        return [p[len(parent) + 1:] for p in self.model
                if p.startswith(parent + "/") and "/" not in p[len(parent) + 1:]]

    def sequences(self):
        parent = f"{self.own}/seq"
        if parent not in self.model:
            self.make(parent)
        for _ in range(3):
            path = f"{parent}/s-{self.made.get(parent, 0):010d}"
            data = self.fresh()

            def there(path=path):
                return path if self.stat(path) else None
            got = self.write("create", there, self.zk.create, f"{parent}/s-", data, sequence=True)
            self.same("the sequential node", got, path)
            self.made[parent] = self.made.get(parent, 0) + 1
            self.model[path] = (0, data)
        names = sorted(self.names(parent))
        self.same("children", sorted(self.surely("children", self.zk.get_children, parent)), names)
        for name in names[:-4]:
            self.remove(f"{parent}/{name}")

    def transactions(self):
        path = f"{self.own}/multi"
        if path not in self.model:
            self.make(path, b"")
        version, data = self.model[path][0], self.fresh()
        child = f"{path}/c"

        def commit(wrong):
            t = self.zk.transaction()
            t.check(path, version + wrong)
            t.set_data(path, data)
            t.create(child, data)
            t.delete(child)
            t.create(child + "2", data)
            t.delete(child + "2", version=0)
            return t.commit()

        kinds = [type(r) for r in self.surely("transaction", commit, 1)]
        self.same("a transaction in vain", kinds, [BadVersionError] + [RuntimeInconsistency] * 5)

        def there():
            stat = self.stat(path)
            return [True, stat, child, True, child + "2", True] \
                if stat.version == version + 1 else None
        got = self.write("transaction", there, commit, 0)
        self.same("a transaction", [got[0], got[1].version] + got[2:],
                  [True, version + 1, child, True, child + "2", True])
        self.model[path] = (version + 1, data)
        self.same(path, self.surely("get", self.zk.get, path)[0], data)

    def access(self):
        path = f"{self.scratch}/locked"
        self.clear(path)
        user = f"user{self.serial}"
        owner = Client(self, "owner", timeout=self.session_s / 2,
                       auth_data=[("digest", f"{user}:secret")])
        self.surely("sync", owner.zk.sync, "/")
        theirs = [make_digest_acl(user, "secret", all=True)]
        self.make(path, b"secret", acl=theirs)
        self.same("acl", self.surely("getACL", owner.zk.get_acls, path)[0], theirs)
        self.refused(NoAuthError, "get", self.zk.get, path)
        self.refused(NoAuthError, "set", self.zk.set, path, b"")
        self.same(path, self.surely("get", owner.zk.get, path)[0], b"secret")
        self.refused(BadVersionError, "setACL", owner.zk.set_acls, path, OPEN_ACL_UNSAFE, version=3)
        self.surely("setACL", owner.zk.set_acls, path, OPEN_ACL_UNSAFE)
        self.same(path, self.surely("get", self.zk.get, path)[0], b"secret")
        owner.close()

    def watches(self):
        path = f"{self.scratch}/watched"
        self.clear(path)
        zk, other = self.zk, self.other.zk

        def fires(kind, where, arm, change, *arguments):
            """False: the connection was lost, and kazoo gave the watch up."""
            events = queue.Queue()
            self.surely(arm.__name__, arm, where, watch=events.put)
            try:
                self.surely(change.__name__, change, *arguments)
            except (NodeExistsError, NoNodeError):  # done by the first of two attempts
                pass
            try:
                event = events.get(timeout=PATIENCE)
            except queue.Empty:
                raise Wrong(f"no event {kind} of {where}") from None
            if event.type == "NONE":
                return False
            self.same("the event", (event.type, event.path), (kind, where))
            return True

        child = f"{path}/c"
        return (fires("CREATED", path, zk.exists, other.create, path)
                and fires("CHANGED", path, zk.get, other.set, path, self.fresh())
                and fires("CHILD", path, zk.get_children, other.create, child)
                and fires("CHANGED", child, zk.exists, other.set, child, self.fresh())
                and fires("DELETED", child, zk.get, other.delete, child)
                and fires("DELETED", path, zk.get_children, other.delete, path))

    def long_watches(self):
        """A DataWatch and a ChildrenWatch for as long as the worker lives."""
        path, seen_data, seen_children = f"{self.own}/long", [], []
        self.make(path)
        self.zk.DataWatch(path, lambda data, stat: seen_data.append((stat.version, data)))
        self.zk.ChildrenWatch(path, lambda names: seen_children.append(sorted(names)))
        return seen_data, seen_children

    def long_watches_see(self):
        path = f"{self.own}/long"
        self.change(path)
        self.wait("the DataWatch", lambda: self.watched_data[-1] == self.model[path])
        child = f"{path}/{self.dice.randrange(4)}"
        if child in self.model:
            self.remove(child)
        else:
            self.make(child, self.fresh())
        names = sorted(self.names(path))
        self.wait("the ChildrenWatch", lambda: self.watched_children[-1] == names)
        versions = [version for version, _ in self.watched_data]
        self.same("the DataWatch", versions, sorted(versions))
        del self.watched_data[:-1], self.watched_children[:-1]

    def sessions(self):
        path = f"{self.scratch}/ephemeral"
        self.wait("the end of an ephemeral node", lambda: self.stat(path) is None)
        client = Client(self, "ephemeral", timeout=self.session_s / 2)

        def there():
            return path if self.stat(path) else None
        self.write("create", there, client.zk.create, path, b"mine", ephemeral=True)
        self.same("its owner", self.stat(path).ephemeralOwner, client.id)
        self.refused(NodeExistsError, "create", self.zk.create, path)
        before = self.losses
        client.close()
        if self.losses == before:
            self.wait("the end of an ephemeral node", lambda: self.stat(path) is None)

    def asynchronous(self):
        """Many requests at once, of which each sees what those before it did."""
        path, order = f"{self.scratch}/many", []
        self.clear(path)
        self.make(path)

        def burst():
            futures = []
            for n in range(1, 21):
                futures.append(self.zk.set_async(path, b"%d" % n) if n % 2
                               else self.zk.get_async(path))
                futures[-1].rawlink(lambda _, n=n: order.append(n))
            return [f.get(timeout=PATIENCE) for f in futures]
        try:
            answers = self.attempt("burst", burst)
        except Lost:
            return
        self.same("versions", [a.version for a in answers[::2]], list(range(1, 11)))
        self.same("data", [a[0] for a in answers[1::2]], [b"%d" % n for n in range(1, 21, 2)])
        self.wait("the completions", lambda: len(order) == 20)
        self.same("the order of answers", order, list(range(1, 21)))

    def chores(self):
        return [self.nodes, self.sequences, self.transactions, self.watches, self.long_watches_see,
                self.sessions, self.nodes, self.access, self.asynchronous]


def main():
    logging.disable()
    worker = KazooWorker()

    def work():
        clients, threads = recipes(worker, Client)
        worker.run(worker.chores(), *threads)
        for client in [worker.main, worker.other] + clients:
            worker.same("the session", client.zk.client_id[0], client.id)
        worker.end(worker.model)
        for client in [worker.main, worker.other] + clients:
            client.close()
    worker.guarded(work)


main()
