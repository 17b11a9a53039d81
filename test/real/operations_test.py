"""The checker of operations is checked: histories that must not be, and that may."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import operations  # noqa: E402

FINE = """1 ask a 0 acquire
2 grant a 10 lock
3 held a 10 4
4 write a 10 0
5 wrote a 10 0
6 release a 10 7
7 released a 10 ok
5 ask b 0 acquire
8 grant b 20 lock
9 held b 20 10
11 write b 20 0
12 unsure b 20 0
13 write b 20 1
20 gone b 20 -
21 refused b 20 1
14 grant c 30 latch
15 held c 30 16
17 ask d 0 acquire
""".splitlines()
NODES = ["a.10.0-0000000001", "b.20.0-0000000002"]

SLOTS = """1 ask a 0 take
2 took a 5 -
3 ask a 0 look
4 seen a 5 -
2 ask b 0 take
3 took b 0 -
5 ask a 0 give
6 unsure a 0 give
7 ask a 0 give
8 given a 5 ok
9 ask a 0 look
10 seen a 0 -
7 ask c 0 take
9 took c 9 -
10 ask d 0 take
11 no d 0 take
12 ask d 0 take
""".splitlines()


def says(lines, **final):
    ops = operations.read_log(lines, "/x")
    op, more = ("limit", final) if "limit" in final else ("written", {"result": NODES, **final})
    return operations.faults(ops + [{"process": "storm", "op": op, "object": "/x", "call": 99, "answer": None, "result": "ok",
                                     **more}])


class Checker(unittest.TestCase):
    def finds(self, found, *words):
        self.assertEqual(len(found), len(words), found)
        for what, word in zip(found, words):
            self.assertIn(word, what)

    def test_fine(self):
        self.assertEqual(says(FINE), [])
        self.assertEqual(says(SLOTS, limit=2), [])

    def test_operations(self):
        ops = operations.read_log(FINE, "/x")
        self.assertEqual([(o["op"], o["process"], o["call"], o["answer"], o["result"]) for o in ops if o["process"] != "a"], [
            ("acquire", "c", 0, 14, "ok"), ("acquire", "b", 5, 8, "ok"), ("check", "b", 9, 10, True),
            ("write", "b", 11, 12, None), ("write", "b", 13, 21, "refused"), ("check", "b", 13, 20, False),
            ("check", "c", 15, 16, True), ("acquire", "d", 17, None, None)])
        self.assertEqual(operations.summary(ops), {
            "grants": 3, "lost or of commands": 2, "writes": 1, "writes refused": 1, "writes unknown": 1, "slots taken": 0,
            "takes unknown": 0})

    def test_two_holders(self):
        self.finds(says(FINE + ["9 held a 10 10"]), "b was granted token 20 0.0 ms before a called check")

    def test_an_older_token_later(self):
        self.finds(says(FINE + ["17 ask e 0 acquire", "18 grant e 15 lock"]), "b was granted token 20 0.0 ms before e called acquire", "c was")

    def test_a_token_twice(self):
        self.finds(says(FINE + ["17 ask e 0 acquire", "18 grant e 30 lock"]), "token 30 was granted twice, to c and e")

    def test_writes(self):
        self.finds(says(FINE, result=NODES[::-1]), "a.10.0-0000000001 was written after a write of token 20")
        self.finds(says(FINE, result=NODES[1:]), "a.10.0- was ok, which is not so")
        self.assertEqual(says(FINE, result=NODES[1:], lost=["a.10.0-"]), [])
        self.finds(says(FINE, result=NODES + ["b.20.1-0000000003"]), "b.20.1- was refused")

    def test_slots(self):
        self.finds(says(SLOTS, limit=1), "2 own slots, and 1 may: a, b", "2 own slots, and 1 may: b, c")
        self.finds(says(SLOTS + ["13 ask c 0 look", "14 seen c 0 -"], limit=2), "c took token 9, gave nothing back, and was told of no")
        self.finds(says(SLOTS + ["13 ask c 0 take", "14 took c 11 -"], limit=2), "c took token 11 and had not given 9")
        self.finds(says(SLOTS + ["13 ask a 0 look", "14 seen a 15 -"], limit=2), "a had given its slot back, took none since")


if __name__ == "__main__":
    unittest.main()
