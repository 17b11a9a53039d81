"""The holders' logs as operations, for anybody's checker, and a checker of our own.

An operation is a line of JSON: `process`, `op`, `object`, its arguments, `call` and `answer` (CLOCK_BOOTTIME of the one
machine, in ns; `answer` is null when none came), and `result`, null where nobody knows. docs/evidence/real-faults.md
says which operations there are and what has to be true of them; `faults` says what is not.

  operations.py FILE...      judges files of such lines: one line for each rule that is broken, exit code 1"""
import collections
import json
import sys


def read_log(lines, obj):
    """The operations of one lock, election or group of slots, in the order of their calls."""
    made, open_asks, writes, releases = [], {}, {}, {}
    last = {}  # of each process: when it was last heard of

    def op(process, what, call, answer, result, **more):
        made.append({"process": process, "op": what, "object": obj, **more, "call": call, "answer": answer,
                     "result": result})
        return made[-1]

    for line in lines:
        text, what, process, token, detail = line.split()
        ns, token = int(text), int(token)
        asked = open_asks.get(process)
        if what == "ask":
            if asked:  # killed before the answer
                op(process, asked[1], asked[0], None, None)
            open_asks[process] = (ns, detail)
        elif what == "grant":
            # A latch asks once, and is a candidate again from the end of its last term on.
            call = asked[0] if asked else last.get(process, 0)
            open_asks.pop(process, None)
            op(process, "acquire", call, ns, "ok", token=token)
        elif what == "held":
            op(process, "check", ns, int(detail), True, token=token)
        elif what == "gone":
            op(process, "check", last.get(process, ns), ns, False, token=token)
        elif what == "release":
            releases[process, token] = op(process, "release", ns, None, None, token=token)
        elif what == "released" and (process, token) in releases:
            releases.pop((process, token))["answer"] = ns
        elif what == "write":
            writes[process, token, detail] = op(process, "write", ns, None, None, token=token,
                                                node=f"{process}.{token}.{detail}-")
        elif what in ("wrote", "refused", "unsure") and (process, token, detail) in writes:
            begun = writes.pop((process, token, detail))
            begun["answer"] = ns
            begun["result"] = {"wrote": "ok", "refused": "refused", "unsure": None}[what]
        elif what in ("took", "seen", "given", "no", "unsure") and asked:
            open_asks.pop(process)
            result = {"took": "ok", "seen": token, "no": "refused", "unsure": None, "given": detail}[what]
            more = {} if what in ("no", "unsure", "seen") else {"token": token}
            op(process, asked[1], asked[0], ns, result, **more)
        last[process] = ns
    for process, (ns, detail) in open_asks.items():
        op(process, detail, ns, None, None)
    return sorted(made, key=lambda o: o["call"])


def ms(ns):
    return f"{ns / 1e6:.1f} ms"


def lock_faults(ops, order, lost):
    """One holder: each hold has a moment when it was granted, not after its answer; what is known to have happened
    under an older token cannot have begun after that. `order`: the nodes that were written, in the server's order; `lost`:
    those that the servers acknowledged and have lost since, by a fault of theirs."""
    sure = collections.defaultdict(lambda: (0, ""))  # by token: the latest call of something done under it
    granted = {}
    for o in ops:
        if o["op"] in ("acquire", "check", "write") and o["result"] in ("ok", True):
            sure[o["token"]] = max(sure[o["token"]], (o["call"], o["op"]))
        if o["op"] == "acquire" and o["result"] == "ok":
            if o["token"] in granted:
                yield f"token {o['token']} was granted twice, to {granted[o['token']]['process']} and {o['process']}"
            granted[o["token"]] = o
    newest, whose = (0, ""), None
    for token in sorted(granted):
        if newest[0] > granted[token]["answer"]:
            yield (f"{granted[token]['process']} was granted token {token} {ms(newest[0] - granted[token]['answer'])} before "
                   f"{granted[whose]['process']} called {newest[1]} with success under token {whose}")
        if sure[token] > newest:
            newest, whose = sure[token], token
    tokens = [int(node.rsplit(".", 2)[1]) for node in order]
    for before, node, token in zip(tokens, order[1:], tokens[1:]):
        if token < before:
            yield f"{node} was written after a write of token {before}"
    there = {node[:-10] for node in order} | set(lost)
    for o in ops:
        if o["op"] == "write" and o["result"] is not None and (o["result"] == "ok") != (o["node"] in there):
            yield f"{o['process']}: the write of {o['node']} was {o['result']}, which is not so"


def slot_faults(ops, limit):
    """An id owns from the answer of its take until it calls give: never more than `limit` at once. What it is told in
    between is the slot that it took, and nothing once a give was answered: nothing older takes effect then."""
    edges, owned, gave = [], {}, set()  # owned: the token of each process; FleetLock's is 0
    for o in ops:  # those of one process do not overlap
        who, certain = o["process"], o["result"] not in (None, "refused")
        if o["op"] == "take":
            gave.discard(who)
            if certain and owned.get(who, o["token"]) != o["token"]:
                yield f"{who} took token {o['token']} and had not given {owned[who]}"
            if certain and who not in owned:
                edges.append((o["answer"], 1, who))
            if certain:
                owned[who] = o["token"]
        elif o["op"] == "give":
            if who in owned:
                edges.append((o["call"], -1, who))
                del owned[who]
            if certain:
                gave.add(who)
        elif certain and who in owned and o["result"] != owned[who]:
            yield f"{who} took token {owned[who]}, gave nothing back, and was told of {o['result'] or 'no slot'}"
        elif certain and who in gave and o["result"] != 0:
            yield f"{who} had given its slot back, took none since, and was told of {o['result']}"
    now = set()
    for ns, step, who in sorted(edges):
        (now.add if step > 0 else now.discard)(who)
        if len(now) > limit:
            yield f"at {ns} {len(now)} own slots, and {limit} may: {', '.join(sorted(now))}"


def faults(ops):
    """What is not true of these operations, in words."""
    by_object = collections.defaultdict(list)
    for o in ops:
        by_object[o["object"]].append(o)
    found = []
    for obj, its in sorted(by_object.items()):
        final = next((o for o in its if o["op"] == "written"), {"result": []})
        limit = next((o["limit"] for o in its if o["op"] == "limit"), None)
        its = sorted((o for o in its if o["op"] not in ("written", "limit")), key=lambda o: o["call"])
        found += [f"{obj}: {text}"
                  for text in (lock_faults(its, final["result"], final.get("lost", [])) if limit is None else slot_faults(its, limit))]
    return found


def summary(ops):
    """Counts of what the history has, to tell whether it says anything."""
    released = {(o["process"], o["token"]) for o in ops if o["op"] == "release"}
    granted = {(o["process"], o["token"]) for o in ops if o["op"] == "acquire" and o["result"] == "ok"}
    count = collections.Counter((o["op"], o["result"]) for o in ops if o["op"] in ("write", "take"))
    return {"grants": len(granted), "lost or of commands": len(granted - released), "writes": count["write", "ok"],
            "writes refused": count["write", "refused"], "writes unknown": count["write", None],
            "slots taken": count["take", "ok"], "takes unknown": count["take", None]}


def main():
    found = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            found += faults([json.loads(line) for line in f])
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
