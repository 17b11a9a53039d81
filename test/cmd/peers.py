"""In the place of a server: what says something else, or nothing, or only a part."""
import socket
import struct
import threading

EXISTS, PING, ENONODE, EEXPIRED = 3, 11, -101, -112


class Peer:
    """A listener that says `answer` to whoever comes; None: it says nothing."""

    def __init__(self, answer, backlog=None):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.port = self.listener.getsockname()[1]
        self.connect = f"127.0.0.1:{self.port}"
        self.sockets, self.threads = [self.listener], []
        self.run(self.serve)

    def run(self, what, *args):
        def until_closed():
            try:
                what(*args)
            except OSError:
                pass
        thread = threading.Thread(target=until_closed, daemon=True)
        self.threads.append(thread)
        thread.start()

    def serve(self):
        while True:
            s, _ = self.listener.accept()
            self.sockets.append(s)
            try:
                self.talk(s)
            except OSError:  # it has hung up
                pass

    def talk(self, s):
        if self.answer is not None:
            s.recv(1024)
            s.sendall(self.answer)
            s.shutdown(socket.SHUT_RDWR)

    def close(self):
        """Its threads before its sockets: a descriptor that one of them is about to use would be
        that of the next test's socket."""
        while any(thread.is_alive() for thread in self.threads):
            for s in self.sockets:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            for thread in self.threads:
                thread.join(0.01)
        for s in self.sockets:
            s.close()


class Nonsense(Peer):
    """Gives everybody a session, and answers every request with bytes."""

    def __init__(self):
        super().__init__(b"bytes")

    def talk(self, s):
        session = struct.pack(">iiqi16s?", 0, 10000, 7, 16, b"p" * 16, False)
        for answer in session, self.answer:
            s.recv(4096)
            s.sendall(struct.pack(">i", len(answer)) + answer)
        s.shutdown(socket.SHUT_RDWR)


class Expiring(Peer):
    """A server without nodes. Of the first session it says at an exists that it has expired."""

    def __init__(self):
        self.sessions = 0
        super().__init__(None)

    def talk(self, s):
        self.sessions += 1
        session = struct.pack(">iiqi16s?", 0, 10000, self.sessions, 16, b"p" * 16, False)
        with s.makefile("rb") as requests:
            answer = session
            while length := requests.read(4):
                request = requests.read(int.from_bytes(length, "big"))
                if answer is None:
                    xid, op = struct.unpack(">ii", request[:8])
                    expired = op == EXISTS and self.sessions == 1
                    err = 0 if op == PING else EEXPIRED if expired else ENONODE
                    answer = struct.pack(">iqi", xid, 1, err)
                s.sendall(struct.pack(">i", len(answer)) + answer)
                answer = None


class Proxy(Peer):
    """Passes on what client and server say, of the server's only `frames` messages."""

    def __init__(self, to, frames):
        self.to, self.frames = to, frames
        super().__init__(None)

    def serve(self):
        client, _ = self.listener.accept()
        server_side = socket.create_connection(("127.0.0.1", self.to))
        self.sockets += [client, server_side]
        self.run(self.pass_on, client, server_side)
        with server_side.makefile("rb") as answers:
            for _ in range(self.frames):
                length = answers.read(4)
                client.sendall(length + answers.read(int.from_bytes(length, "big")))

    @staticmethod
    def pass_on(client, server_side):
        while data := client.recv(65536):
            server_side.sendall(data)
