"""clave serve: connections are counted by the IPv6 network of 64 bits, in a network of its own."""
import ctypes
import fcntl
import os
import socket
import struct
import unittest

from harness import PATIENCE, ClaveServer

NEW_NETWORK = 0x40000000  # CLONE_NEWNET
SET_FLAGS, SET_ADDRESS = 0x8914, 0x8916  # SIOCSIF...
UP = 1
ONE, SAME, OTHER = "fd00:0:0:1::1", "fd00:0:0:1:ffff::2", "fd00:0:0:2::1"
MOST = 2


def setUpModule():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NETWORK) != 0:
        raise unittest.SkipTest("no network of its own: " + os.strerror(ctypes.get_errno()))
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
            fcntl.ioctl(s, SET_FLAGS, struct.pack("16sH22x", b"lo", UP))
            for address in (ONE, SAME, OTHER):
                fcntl.ioctl(s, SET_ADDRESS, socket.inet_pton(socket.AF_INET6, address)
                            + struct.pack("=Ii", 128, socket.if_nametoindex("lo")))
    except OSError as e:
        raise unittest.SkipTest(f"no IPv6 here: {e}") from e


class Server(ClaveServer):
    @property
    def connect(self):
        return f"[::]:{self.port}"


class Networks(unittest.TestCase):
    def connect(self, server, by, to=ONE):
        """A connection, or None if the server has closed it."""
        s = socket.create_connection((to, server.port), PATIENCE, source_address=(by, 0))
        self.addCleanup(s.close)
        s.sendall(struct.pack(">iiqiqi", 44, 0, 0, 30000, 0, 16) + bytes(16))
        try:
            return s if s.recv(1) else None
        except ConnectionResetError:
            return None

    def test_addresses_of_one_network_are_counted_together(self):
        server = Server(["--max-connections", str(MOST)]).start()
        self.assertTrue(self.connect(server, ONE))
        self.assertTrue(self.connect(server, SAME))
        self.assertIsNone(self.connect(server, SAME))
        self.assertIsNone(self.connect(server, ONE))
        self.assertTrue(self.connect(server, OTHER))
        server.stop()

    def test_an_ipv4_address_is_counted_by_itself(self):
        server = Server(["--max-connections", str(MOST)]).start()
        for i in range(2 * MOST):  # it comes as ::ffff:127.0.0.1
            self.assertTrue(self.connect(server, f"127.0.0.{1 + i // MOST}", "127.0.0.1"))
        server.stop()


if __name__ == "__main__":
    unittest.main()
