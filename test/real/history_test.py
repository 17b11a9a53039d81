"""The judge of the real faults is judged: histories that must not be, and that may."""
import io
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from history import History  # noqa: E402

FINE = """1 grant a 10 lock
2 held a 10 -
3 wrote a 10 0
4 release a 10 -
5 grant b 20 lock
6 held b 20 -
7 unsure b 20 0
8 lost b 20 EEXPIRED
9 gone b 20 -
9 refused b 20 1
12 grant c 30 command
13 held c 30 -
15 grant a 40 latch
16 lost a 40 ECONNLOSS
17 grant a 40 latch
18 release a 40 -
"""
NODES = ["a.10.0-0000000001", "b.20.0-0000000002"]


class Judge(unittest.TestCase):
    def history(self, text):
        return History(io.StringIO(text)).refresh()

    def says(self, text, nodes, *words):
        found = self.history(text).faults(nodes)
        self.assertEqual(len(found), len(words), found)
        for what, word in zip(found, words):
            self.assertIn(word, what)

    def test_fine(self):
        self.says(FINE, NODES)
        self.says(FINE, NODES[:1])  # nobody knows whether b's first write was done
        self.assertEqual(self.history(FINE).served_since(11), {"a", "c"})

    def test_overlap(self):
        self.says(FINE.replace("2 held a", "6 held a"), NODES, "held on")
        self.says(FINE.replace("13 held c", "15 held c"), NODES, "held on")
        self.says(FINE.replace("4 release a", "14 release a"), NODES,
                  "held on", "held on", "had not heard")

    def test_tokens(self):
        self.says(FINE.replace(" b 20", " b 9"), [NODES[0]], "came after")
        self.says(FINE.replace("c 30", "c 20"), NODES, "came after")

    def test_loss_unheard(self):
        deaf = FINE.replace("8 lost b", "14 lost b").replace("9 gone b", "14 gone b")
        self.says(deaf, NODES, "had not heard")
        for excuse in ("killed", "asleep"):
            history = self.history(deaf)
            if excuse == "killed":
                history.killed.append(("b", 7))
            else:
                history.asleep.append(("b", 7, 13))
            self.assertEqual(history.faults(NODES), [])
        self.says(deaf + "14 late b 0 7\n", NODES)
        self.says(deaf + "14 late a 0 7\n", NODES, "had not heard")
        history.asleep[:] = [("b", 7, 11)]  # awake again, and silent
        self.assertEqual(len(history.faults(NODES)), 1)

    def test_writes(self):
        self.says(FINE, [], "wrote, which is not so")
        self.says(FINE, NODES + ["b.20.1-0000000003"], "refused, which is not so")
        self.says(FINE, ["b.20.0-0000000001", "a.10.0-0000000002"], "written after a write of 20")
        history = self.history(FINE)
        self.assertEqual(history.faults([], ["a.10.0-"]), [])
        self.assertEqual(len(history.faults(NODES + ["b.20.1-0000000003"], ["a.10.0-"])), 1)


if __name__ == "__main__":
    unittest.main()
