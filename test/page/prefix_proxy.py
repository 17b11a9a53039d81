"""A proxy that serves a gate below a path of its own and knows nothing else of it, as nginx does with
`location /clave/ { proxy_pass http://gate/; }`. It remembers what was asked for and how it was answered."""
import re
import socket
import threading

HEAD_MAX = 64 * 1024


class PrefixProxy:
    def __init__(self, port, prefix):
        self.gate, self.prefix = ("127.0.0.1", port), prefix
        self.answered = []  # (target, status)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def stop(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        """One request a connection: its answer is whatever comes until the gate closes."""
        with client:
            try:
                self.pass_on(client)
            except OSError:
                pass  # one of both hung up

    def pass_on(self, client):
        head, body = read_head(client)
        if not head:
            return
        method, target = head.split(b"\r\n", 1)[0].decode().split(" ")[:2]
        if not target.startswith(self.prefix + "/"):
            self.answered.append((target, 404))
            client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        fields = [line for line in head.split(b"\r\n")[1:] if not re.match(rb"(?i)host:|connection:", line)]
        sent = [f"{method} {target[len(self.prefix):]} HTTP/1.1".encode(), f"Host: 127.0.0.1:{self.gate[1]}".encode(), b"Connection: close", *fields]
        with socket.create_connection(self.gate) as gate:
            gate.sendall(b"\r\n".join(sent) + b"\r\n\r\n" + body)
            head, rest = read_head(gate)
            self.answered.append((target, int(head.split(b" ", 2)[1])))
            client.sendall(head + b"\r\n\r\n" + rest)
            while piece := gate.recv(65536):
                client.sendall(piece)


def read_head(peer):
    got = b""
    while b"\r\n\r\n" not in got and len(got) < HEAD_MAX:
        piece = peer.recv(65536)
        if not piece:
            return b"", b""
        got += piece
    head, _, rest = got.partition(b"\r\n\r\n")
    return head, rest
