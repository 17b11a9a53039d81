"""zkCli.sh, the shell of ZooKeeper's Java client, at its usual work (see worker.py): in each round a
new shell runs its commands one by one, and what each of them prints is read."""
import os
import queue
import re
import subprocess
import threading

from worker import PATIENCE, Lost, Worker, Wrong

ZKCLI = "/usr/share/zookeeper/bin/zkCli.sh"
SMALL = "-Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# deleteall does not say what its requests failed for.
LOSS = re.compile(r"ConnectionLoss|Not connected|rc=-4\b|Failed to delete some node")
END = "ZooKeeper CLI version"  # what "version" prints: sent after each command, it ends its output
WHOAMI = "Auth scheme: User"  # what whoami prints first
KEYS = 5
JOE = "digest:joe:oesAybBun9icKJjQSTRN8OBueSc="


class Shell:
    """One zkCli.sh, and so one session."""

    def __init__(self, worker):
        self.worker, self.lines, self.events = worker, queue.Queue(), queue.Queue()
        self.connected = threading.Event()
        worker.count("session")
        self.process = subprocess.Popen(
            [ZKCLI, "-timeout", str(int(worker.session_s * 1000)), "-waitforconnection", "-server",
             worker.connect], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=dict(os.environ, JVMFLAGS=SMALL))
        threading.Thread(target=self.read, daemon=True).start()
        self.ask("version")

    def read(self):
        for line in self.process.stdout:
            line = line.strip()
            event = re.match(r"WatchedEvent state:(\w+) type:(\w+) path:(\S+)$", line)
            if event:
                self.on_event(*event.groups())
            elif line and line != "WATCHER::":
                self.lines.put(line)
        self.lines.put(None)

    def on_event(self, state, kind, path):
        if kind != "None":
            self.events.put((kind, path))
        elif state == "SyncConnected":
            self.connected.set()
        elif state == "Disconnected":
            self.connected.clear()
            self.worker.lose("connection", state)
        elif state != "Closed":
            self.worker.fail(f"the session is {state}")

    def answer(self):
        lines = []
        while True:
            try:
                line = self.lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise Wrong(f"no answer in {PATIENCE} s; so far {lines}") from None
            if line is None:
                raise Wrong(f"the shell ended: {lines}")
            if line.startswith(END):
                return lines
            lines.append(line)

    def ask(self, command):
        """What a command prints, a list of lines."""
        self.process.stdin.write(f"{command}\nversion\n" if command != "version" else "version\n")
        self.process.stdin.flush()
        return self.answer()

    def quit(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        self.worker.same("the exit code of the shell", self.process.wait(PATIENCE), 0)


class CliWorker(Worker):
    def __init__(self):
        super().__init__()
        self.model = {}  # path -> (version, data)
        self.serial = self.sequential = 0
        self.own, self.scratch = f"{self.root}/own", f"{self.root}/scratch"
        self.shell = Shell(self)
        for path in (self.root, self.own, self.scratch, f"{self.own}/seq"):
            self.make(path, "x")

    # ---- commands --------------------------------------------------------------------------

    def attempt(self, operation, call, *arguments):
        self.count(operation)
        self.stopping.wait(self.pause)
        lines = call(f"{operation} {' '.join(arguments)}")
        losses = [LOSS.search(line).group() for line in lines if LOSS.search(line)]
        if lines == [WHOAMI]:  # which does not tell of a lost connection
            losses = ["ConnectionLoss"]
        if not losses:
            return lines
        self.lose(operation, losses[0].replace(" ", "-"))
        if not self.shell.connected.wait(PATIENCE):
            raise Wrong(f"no connection in {PATIENCE} s")
        raise Lost

    def tell(self, command, *arguments):
        """A command that may be run twice."""
        return self.surely(command, self.shell.ask, *arguments)

    def prints(self, due, command, *arguments):
        """It has to print this: no more, and no less."""
        self.same(f"the output of {command}", self.tell(command, *arguments), due)

    def stat(self, path):
        """The fields, or None."""
        return self.fields(self.tell("stat", path), path)

    def fields(self, lines, path):
        if lines == [f"Node does not exist: {path}"]:
            return None
        fields = dict(line.split(" = ", 1) for line in lines if " = " in line)
        if len(fields) != 11:
            raise Wrong(f"this is no stat of {path}: {lines}")
        return fields

    def fresh(self):
        self.serial += 1
        return f"value-{self.serial}-" + "x" * (self.serial % 50)

    def run_once(self, done, due, command, *arguments):
        """A command that must not be run twice: done() looks whether it was when nobody knows."""
        got = self.write(command, lambda: due if done() else None, self.shell.ask, *arguments)
        self.same(f"the output of {command}", got, due)

    def make(self, path, data):
        self.run_once(lambda: self.stat(path), [f"Created {path}"], "create", path, data)
        if path.startswith(self.own):
            self.model[path] = (0, data.encode())

    def is_version(self, path, version):
        return int(self.stat(path)["dataVersion"]) == version

    # ---- chores: each begins with what an earlier one, cut off, may have left ------------------

    def nodes(self):
        path, data = f"{self.own}/k{self.serial % KEYS}", self.fresh()
        if path not in self.model:
            self.prints([f"Node does not exist: {path}"], "get", path)
            self.make(path, data)
        self.prints([f"Node already exists: {path}"], "create", path)
        self.prints([f"Node not empty: {self.own}"], "delete", self.own)
        for words in (["-v", str(self.model[path][0])], []):
            version, data = self.model[path][0], self.fresh()
            self.run_once(lambda: self.is_version(path, version + 1), [], "set", *words, path, data)
            self.model[path] = (version + 1, data.encode())
        lines = self.tell("get", "-s", path)
        self.same(path, lines[0], data)
        fields = self.fields(lines[1:], path)
        self.same("its version and length", (fields["dataVersion"], fields["dataLength"]),
                  (str(version + 1), str(len(data))))
        self.prints([f"version No is not valid : {path}"], "set", "-v", str(version), path, "y")
        self.prints([f"version No is not valid : {path}"], "delete", "-v", str(version), path)
        if self.serial % 2:
            self.run_once(lambda: self.stat(path) is None, [], "delete", "-v", str(version + 1), path)
            del self.model[path]

    def sequences(self):
        parent, data = f"{self.own}/seq", self.fresh()
        path = f"{parent}/s-{self.sequential:010d}"
        self.run_once(lambda: self.stat(path), [f"Created {path}"], "create", "-s", f"{parent}/s-", data)
        self.sequential += 1
        self.model[path] = (0, data.encode())
        old = sorted(p for p in self.model if p.startswith(parent + "/"))[:-3]
        for path in old:
            self.run_once(lambda: self.stat(path) is None, [], "delete", path)
            del self.model[path]

    def lists(self):
        paths = sorted(self.model)
        self.same("ls -R", sorted(self.tell("ls", "-R", self.own)), paths)
        names = sorted(p[len(self.own) + 1:] for p in paths if p.count("/") == self.own.count("/") + 1)
        self.prints([f"[{', '.join(names)}]"], "ls", self.own)
        self.prints([str(len(paths) - 1)], "getAllChildrenNumber", self.own)
        self.prints(["Sync is OK"], "sync", self.own)
        self.prints([], "config")
        self.same("numChildren", self.stat(self.own)["numChildren"], str(len(names)))
        self.same("history", self.tell("history")[-1].split(" - ")[1], "history")

    def kinds(self):
        """Ephemeral nodes, containers, and nodes with a time to live."""
        path = f"{self.scratch}/kinds"
        self.clear(path)
        before = self.losses
        for words, tail in (([], ""), (["-e"], "/e"), (["-e", "-s"], "/s"), (["-c"], "/c"),
                            (["-t", "3600000"], "/t"), (["-s", "-t", "3600000"], "/u")):
            made = path + tail + ("" if "-s" not in words else f"{1 if tail == '/s' else 4:010d}")
            got = self.attempt("create", self.shell.ask, *words, path + tail)
            self.same("what was created", got, [f"Created {made}"])
        for words in ([path], []):
            got = sorted(self.tell("getEphemerals", *words)[0].strip("[]").split(", "))
            if self.losses == before:
                self.same("our nodes", got, [f"{path}/e", f"{path}/s0000000001"])
        owner = self.stat(f"{path}/e")["ephemeralOwner"]
        self.same("one owner", owner, self.stat(f"{path}/s0000000001")["ephemeralOwner"])
        self.ephemeral = (f"{path}/e", owner)

    def access(self):
        path = f"{self.scratch}/locked"
        self.prints([], "addauth", "digest", "joe:secret")
        self.clear(path)
        self.attempt("create", self.shell.ask, path, "x", f"{JOE}:cdrwa")
        self.prints([f"'digest,'{JOE[7:]}", ": cdrwa"], "getAcl", path)
        self.prints([], "setAcl", path, "auth:joe:rwa")
        self.prints([f"'digest,'{JOE[7:]}", ": rwa"], "getAcl", path)
        self.same("aclVersion", self.stat(path)["aclVersion"], "1")
        self.same("who we are", sorted(self.tell("whoami")),
                  [WHOAMI, "digest: joe", "ip: 127.0.0.1"])
        self.prints(["x"], "get", path)

    def quotas(self):
        path = f"{self.scratch}/quota"
        self.tell("delquota", path)
        self.clear(path)
        for tail in ("", "/a", "/b"):
            self.attempt("create", self.shell.ask, path + tail, "four")
        self.attempt("setquota", self.shell.ask, "-n", "5", path)
        self.attempt("setquota", self.shell.ask, "-b", "100", path)
        self.same("listquota", self.tell("listquota", path)[-2:], [
            f"Output quota for {path} count=5,bytes=100=;byteHardLimit=-1;countHardLimit=-1",
            f"Output stat for {path} count=3,bytes=12"])
        self.attempt("delquota", self.shell.ask, path)
        self.same("listquota", self.tell("listquota", path)[-1], f"quota for {path} does not exist.")

    def watches(self):
        path = f"{self.scratch}/watched"
        self.clear(path)
        while not self.shell.events.empty():
            self.shell.events.get()
        self.attempt("create", self.shell.ask, path)
        self.attempt("get", self.shell.ask, "-w", path)
        self.attempt("set", self.shell.ask, path, "y")
        self.event("NodeDataChanged", path)
        self.attempt("ls", self.shell.ask, "-w", path)
        self.attempt("create", self.shell.ask, f"{path}/c")
        self.event("NodeChildrenChanged", path)
        self.attempt("stat", self.shell.ask, "-w", f"{path}/c")
        self.attempt("delete", self.shell.ask, f"{path}/c")
        self.event("NodeDeleted", f"{path}/c")
        before = self.losses
        self.attempt("addWatch", self.shell.ask, "-m", "PERSISTENT_RECURSIVE", path)
        self.attempt("create", self.shell.ask, f"{path}/c")
        self.attempt("set", self.shell.ask, f"{path}/c", "z")
        if self.losses == before:
            self.event("NodeCreated", f"{path}/c")
            self.event("NodeDataChanged", f"{path}/c")
        self.attempt("removewatches", self.shell.ask, path)
        if self.losses == before:
            self.event("PersistentWatchRemoved", path)
            self.attempt("set", self.shell.ask, f"{path}/c", "z")
            self.same("events after that", self.shell.events.qsize(), 0)

    def event(self, kind, path):
        try:
            event = self.shell.events.get(timeout=PATIENCE)
        except queue.Empty:
            raise Wrong(f"no event {kind} of {path}") from None
        self.same("the event", event, (kind, path))

    def clear(self, path):
        if self.stat(path):
            self.tell("deleteall", path)
            self.same("what deleteall left", self.stat(path), None)

    def alone(self):
        """A shell for one command; its exit code tells. With an error it ends without closing its
        session, which goes in its time."""
        for words, code, due in ((["get", self.own], 0, "x"),
                                 (["get", f"{self.own}/none"], 1, "Node does not exist: ")):
            self.count("zkCli.sh")
            p = subprocess.run([ZKCLI, "-timeout", "10000", "-waitforconnection", "-server",
                                self.connect] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
                               env=dict(os.environ, JVMFLAGS=SMALL))
            if LOSS.search(p.stdout):
                self.lose("zkCli.sh", "ConnectionLoss")
                continue
            self.same("its exit code", p.returncode, code)
            if not any(line.startswith(due) for line in p.stdout.splitlines()):
                raise Wrong(f"zkCli.sh printed {p.stdout!r}")

    # ---- the run ---------------------------------------------------------------------------

    def begin(self):
        self.shell = self.shell or Shell(self)
        self.ephemeral = None

    def cease(self):
        """The session is the one of the beginning; its nodes go with it."""
        if self.ephemeral:
            self.same("the owner", self.stat(self.ephemeral[0])["ephemeralOwner"], self.ephemeral[1])
        self.shell.connected.wait(PATIENCE)
        self.shell.quit()
        self.shell = None

    def may_be_cut_off(self, chore):
        def wrapped():
            try:
                chore()
            except Lost:
                pass
        return wrapped

    def chores(self):
        parts = [self.nodes, self.kinds, self.sequences, self.lists, self.access, self.nodes,
                 self.watches, self.quotas, self.lists]
        return [self.begin] + [self.may_be_cut_off(p) for p in parts] + [self.cease, self.alone]


def main():
    worker = CliWorker()

    def work():
        worker.run(worker.chores())
        if worker.shell:
            worker.shell.connected.wait(PATIENCE)
            worker.shell.quit()
        worker.end(worker.model)
    worker.guarded(work)


main()
