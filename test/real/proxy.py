"""A proxy between one client and its server that knows where frames begin and what they are, to
lose or hold a chosen message."""
import socket
import struct
import threading

REQUEST, REPLY = "request", "reply"
CREATE, DELETE, GET_DATA, GET_CHILDREN = {1, 15}, {2}, {4}, {8, 12}


class Rule:
    """The next message this way of these operations (a reply: to them) is not passed on: it is
    held with all after it until `Proxy.clear`, or the connection is cut in its place."""

    def __init__(self, way, ops, fate):
        self.way, self.ops, self.fate = way, ops, fate
        self.struck = threading.Event()


class Connection:
    def __init__(self, proxy, client):
        self.proxy, self.client, self.ops = proxy, client, {}
        self.server = socket.create_connection(("127.0.0.1", proxy.server_port))
        for pump in (self.pump_up, self.pump_down):
            threading.Thread(target=pump, daemon=True).start()

    def close(self):
        for s in (self.client, self.server):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def pump_up(self):
        first = True
        for frame in frames(self.client):
            op = None
            if not first:
                xid, op = struct.unpack(">ii", frame[4:12])
                self.ops[xid] = op
            first = False
            if not self.pass_on(REQUEST, op, frame, self.server):
                break
        self.close()

    def pump_down(self):
        first = True
        for frame in frames(self.server):
            op = None if first else self.ops.pop(struct.unpack(">i", frame[4:8])[0], None)
            first = False
            if not self.pass_on(REPLY, op, frame, self.client):
                break
        self.close()

    def pass_on(self, way, op, frame, to):
        if self.proxy.fate(way, op) == "lose":
            return False
        self.proxy.gates[way].wait()
        try:
            to.sendall(frame)
        except OSError:
            return False
        return True


def frames(s):
    def exactly(n):
        data = b""
        while len(data) < n:
            more = s.recv(n - len(data))
            if not more:
                raise OSError("end")
            data += more
        return data

    try:
        while True:
            head = exactly(4)
            yield head + exactly(struct.unpack(">i", head)[0])
    except OSError:
        return


class Proxy:
    def __init__(self, server_port):
        self.server_port, self.rules, self.connections = server_port, [], []
        self.gates = {REQUEST: threading.Event(), REPLY: threading.Event()}
        self.clear()
        self.refusing = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.connect = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            try:
                if self.refusing:
                    raise OSError("refused")
                self.connections.append(Connection(self, client))
            except OSError:
                client.close()

    def fate(self, way, op):
        for rule in self.rules:
            if rule.way == way and op in rule.ops:
                self.rules.remove(rule)
                if rule.fate == "hold":
                    self.gates[way].clear()
                rule.struck.set()
                return rule.fate
        return "pass"

    def rule(self, way, ops, fate):
        self.rules.append(Rule(way, ops, fate))
        return self.rules[-1]

    def hold(self):
        """Nothing passes any more, and nobody hears of that."""
        for gate in self.gates.values():
            gate.clear()

    def clear(self):
        self.rules = []
        for gate in self.gates.values():
            gate.set()

    def refuse(self, refuse=True):
        self.refusing = refuse
        if refuse:
            self.cut()

    def cut(self):
        for c in self.connections:
            c.close()
        self.connections = []
