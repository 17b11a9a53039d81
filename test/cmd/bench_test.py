"""clave bench herd: what a change of leaders costs grows with the candidates of an unfair election,
and does not with those of a fair one."""
import json
import unittest

from harness import clave, server


class Herd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def herd(self, *words):
        r = clave("bench", "herd", *words, connect=self.server.connect)
        self.assertEqual(r.code, 0, r)
        return r.out

    def figures(self, candidates):
        out = json.loads(self.herd("--json", "-n", str(candidates), "--rounds=3"))
        self.assertEqual((out["candidates"], out["rounds"]), (candidates, 3))
        for kind in ("unfair", "fair"):
            self.assertGreater(out[kind]["new_leader_us"], 0)
            self.assertGreaterEqual(out[kind]["new_leader_us_most"], out[kind]["new_leader_us"])
        return out

    def test_the_unfair_one_costs_more_with_each_candidate(self):
        for n in (4, 8, 16):
            unfair = self.figures(n)["unfair"]
            # The delete; of each of the others a create, and a look at the new node.
            self.assertEqual(unfair["requests"], 2 * n - 1)
            self.assertEqual(unfair["events"], n)

    def test_the_fair_one_costs_the_same_with_any_number(self):
        few, many = self.figures(4)["fair"], self.figures(20)["fair"]
        self.assertEqual(few["requests"], 2)
        self.assertEqual(many["requests"], 2)
        self.assertEqual(few["events"], many["events"])
        self.assertLessEqual(few["events"], 3)

    def test_it_is_told_as_a_table_and_nothing_is_left(self):
        out = self.herd("--candidates", "3", "-r", "2")
        self.assertIn("3 candidates", out)
        rows = {line.split()[0]: line.split() for line in out.splitlines()[-2:]}
        self.assertEqual(rows["unfair"][1], "5")
        self.assertEqual(rows["fair"][1], "2")
        self.assertNotIn("clave-bench", clave("ls", "/", connect=self.server.connect).out)

    def test_a_server_that_takes_too_few_connections_is_told(self):
        few = server(flags=["--max-connections", "3"])
        r = clave("--timeout", "5s", "bench", "herd", "-n", "5", connect=few.connect)
        few.stop()
        self.assertEqual(r.code, 69, r)
        self.assertIn("3 of 5 sessions", r.err)

    def test_what_there_is_not_is_refused(self):
        for words in (("bench",), ("bench", "cattle"), ("bench", "herd", "-n", "1"),
                      ("bench", "herd", "--rounds", "0"), ("bench", "herd", "x")):
            self.assertEqual(clave(*words, connect=self.server.connect).code, 64, words)


if __name__ == "__main__":
    unittest.main()
