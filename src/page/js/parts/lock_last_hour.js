/* lock_last_hour.js - the last hour of a lock in one line: above, when it was held, with a gap at each hand-over; below,
 * when somebody waited, the higher the more. Hatched where nothing is known. */
import { h } from "../lib/dom.js";
import { duration, plural } from "../lib/format.js";
import * as clock from "../lib/clock.js";
import { covered, knownSince, spansOf, staysOf } from "../model/lock_history.js";

const HOUR_MS = 3600e3;
const LEAST_PERCENT = 0.8;
const HIGHEST = 4; /* waiters: more are not higher */

let index = { of: null, paths: null };

function entriesOf(past, path) {
    if (index.of !== past) {
        index = { of: past, paths: new Map() };
        for (const e of past.entries) {
            if (!index.paths.has(e.path)) index.paths.set(e.path, []);
            index.paths.get(e.path).push(e);
        }
    }
    return index.paths.get(path) || [];
}

function piece(kind, from, to, start) {
    const left = Math.max(0, ((from - start) / HOUR_MS) * 100);
    const width = Math.max(LEAST_PERCENT, Math.min(100, ((to - start) / HOUR_MS) * 100) - left);
    return h(`i.${kind}`, { style: { left: `${Math.min(left, 100 - width)}%`, width: `${width}%` } });
}

/* Those that are too short to be seen one by one are one: there are never more pieces than can be seen. */
function joined(spans) {
    const all = [];
    const short = ([from, to]) => to - from < (HOUR_MS * LEAST_PERCENT) / 100;
    for (const span of spans) {
        const last = all.at(-1);
        if (last && span[0] - last[1] < HOUR_MS / 1000 && (short(last) || short(span))) last[1] = Math.max(last[1], span[1]);
        else all.push([...span]);
    }
    return all;
}

/* [from, to, how many] of times when some waited. */
function crowds(waits) {
    const steps = waits.flatMap(([from, to]) => [[from, 1], [to, -1]]).sort((a, b) => a[0] - b[0]);
    const all = [];
    let n = 0;
    steps.forEach(([at, step], i) => {
        n += step;
        const to = steps[i + 1]?.[0];
        if (n > 0 && to > at) all.push([at, to, n]);
    });
    return all;
}

export function hourBar(past, lock) {
    const now = clock.now();
    const start = now - HOUR_MS;
    if (!past) return h("div.hour", { "aria-hidden": "true" });
    const begin = Math.min(knownSince(past) ?? now, now);
    const recent = entriesOf(past, lock.path);
    const spans = staysOf(recent, lock).map((s) => spansOf(s, begin, now));
    /* What is drawn of the time before the history is what is certain: nothing. */
    const inHour = (all) => all.filter((x) => x && x[1] > Math.max(begin, start)).map(([from, to]) => [Math.max(from, begin, start), to]).sort((a, b) => a[0] - b[0]);
    const holds = inHour(spans.map((s) => s.hold));
    const maybe = inHour(spans.map((s) => s.maybe));
    const crowd = crowds(inHour(spans.map((s) => s.wait)));
    const notFree = covered([...holds, ...maybe]);
    const held = covered(holds);
    const most = crowd.reduce((n, c) => Math.max(n, c[2]), 0);
    const known = Math.min(HOUR_MS, now - Math.max(begin, start));
    const words = `In the last ${known < HOUR_MS ? duration(known) : "hour"}: held for ${duration(held)}, free for ${duration(Math.max(0, known - notFree))}, ${most ? `at most ${plural(most, "client", "clients")} waited` : "nobody waited"}`;
    return h("div.hour", { role: "img", "aria-label": words, title: words }, begin > start ? piece("dark", start, begin, start) : null,
        joined(maybe).map(([from, to]) => piece("maybe", from, to, start)), joined(holds).map(([from, to]) => piece("hold", from, to, start)),
        crowd.filter(([from, to]) => to - from > HOUR_MS / 2000).slice(-200).map(([from, to, n]) => piece(`wait.n${Math.min(n, HIGHEST)}`, from, to, start)));
}
