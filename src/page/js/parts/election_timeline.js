/* election_timeline.js - the terms of an election along time: a bar each, hatched where nobody led. All elections of a
 * screen share the span of time, so that bars compare. */
import { h } from "../lib/dom.js";
import { clockTime, dateTime, duration, instant } from "../lib/format.js";
import * as clock from "../lib/clock.js";
import { causeText } from "./lock_text.js";

export const SPANS_MS = [2 * 60e3, 10 * 60e3, 30 * 60e3, 3600e3, 3 * 3600e3, 6 * 3600e3, 12 * 3600e3, 24 * 3600e3, 3 * 24 * 3600e3, 7 * 24 * 3600e3, 30 * 24 * 3600e3];
const LEAST_PERCENT = 0.8; /* a term of a second is seen all the same */

/* The span that shows the last ten terms of the liveliest. */
export function spanOf(elections) {
    let longest = 0;
    for (const e of elections) {
        const terms = e.terms || [];
        const first = instant(terms[Math.max(0, terms.length - 10)]?.from);
        if (first !== null) longest = Math.max(longest, clock.now() - first);
    }
    return SPANS_MS.find((s) => s >= longest) || SPANS_MS[SPANS_MS.length - 1];
}

/* What an election without a leader is; rank: how soon somebody should look at it. Its node goes when nobody
 * uses it any more: then it is over. */
export function leaderless(e) {
    if (e.leader) return { rank: 2 };
    if (e.left_over?.length) return { rank: 0, text: "left over", tone: "red" };
    if (e.candidates?.length) return { rank: 0, text: "nobody leads", tone: "red" };
    return e.over ? { rank: 3, text: "over", tone: "off" } : { rank: 1, text: "no candidates", tone: "amber" };
}

export const leaderText = (term) => term.text || `token ${term.token}`;

export function termWords(term, next) {
    const from = instant(term.from);
    const to = term.to ? instant(term.to) : null;
    const end = to === null ? "now" : dateTime(to);
    const gap = to !== null && next ? instant(next.from) - to : 0; /* none before one that nobody saw begin */
    return `${leaderText(term)}: ${from === null ? "from an unknown time" : dateTime(from)} to ${end}${term.cause ? `, ${causeText(term.cause)}` : ""}${gap > 999 ? `; then nobody for ${duration(gap)}` : ""}`;
}

function bar(kind, from, to, { start, span }, title, text) {
    const begin = Math.max(0, ((from - start) / span) * 100);
    const right = Math.min(100, ((to - start) / span) * 100);
    if (right <= 0) return null;
    const width = Math.max(LEAST_PERCENT, right - begin);
    const left = Math.min(begin, 100 - width);
    return h(`i.${kind}`, { title, style: { left: `${left}%`, width: `${width}%` } }, text && width > 9 ? h("span.cut", {}, text) : null);
}

export function termBars(election, span) {
    const now = clock.now();
    const scale = { start: now - span, span };
    const terms = election.terms || [];
    const bars = terms.map((t, i) => {
        const to = t.to ? instant(t.to) : now;
        return bar(t.to ? "term" : "term.now", instant(t.from), to, scale, termWords(t, terms[i + 1]), leaderText(t));
    });
    terms.forEach((t, i) => {
        if (!t.to) return;
        if (!terms[i + 1] && election.over) return;
        const until = terms[i + 1] ? instant(terms[i + 1].from) : now;
        if (until > instant(t.to)) bars.push(bar(!terms[i + 1] && !election.candidates?.length ? "idle" : "gap", instant(t.to), until, scale, `nobody led for ${duration(until - instant(t.to))}${t.cause ? ` (${causeText(t.cause)})` : ""}`));
    });
    const label = election.leader ? "" : ` ${leaderless(election).text}.`;
    return h("div.terms", { role: "img", "aria-label": `${terms.length} terms in the last ${duration(span)}.${label}` }, bars);
}

export function axis(span) {
    const now = clock.now();
    const text = span > 24 * 3600e3 ? dateTime : clockTime;
    const seconds = span > 10 * 60e3 ? /:\d\d$/ : ""; /* that would only be in the way */
    return h("div.axis", { "aria-hidden": "true" }, [1, 0.75, 0.5, 0.25].map((part) => h("span", {}, text(now - span * part).replace(seconds, ""))), h("span", {}, "now"));
}
