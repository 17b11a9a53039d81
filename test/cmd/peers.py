"""In the place of a server: what says something else, or nothing, or only a part."""
import socket
import threading


class Peer:
    """A listener that says `answer` to whoever comes; None: it says nothing."""

    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.sockets.append(s)
            if self.answer is not None:
                try:
                    s.recv(1024)
                    s.sendall(self.answer)
                    s.close()
                except OSError:
                    pass

    def close(self):
        self.listener.close()
        for s in self.sockets:
            s.close()


class Proxy(Peer):
    """Passes on what client and server say, of the server's only `frames` messages."""

    def __init__(self, to, frames):
        self.to, self.frames = to, frames
        super().__init__(None)

    def serve(self):
        client, _ = self.listener.accept()
        server_side = socket.create_connection(("127.0.0.1", self.to))
        self.sockets += [client, server_side]
        threading.Thread(target=self.pass_on, args=(client, server_side), daemon=True).start()
        answers = server_side.makefile("rb")
        for _ in range(self.frames):
            length = answers.read(4)
            client.sendall(length + answers.read(int.from_bytes(length, "big")))

    @staticmethod
    def pass_on(client, server_side):
        while data := client.recv(65536):
            server_side.sendall(data)
