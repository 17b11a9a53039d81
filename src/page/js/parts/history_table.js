/* history_table.js - entries of /v1/history as a table: on the screen of events, and of one lock. */
import { h } from "../lib/dom.js";
import { clockTime, dateTime, instant, urlPath } from "../lib/format.js";
import { table } from "./table.js";
import { empty, refused } from "./empty.js";
import { arrange } from "./order.js";
import { who, whoText, askedText, command, sideText } from "./participant.js";
import { deedText, pathText } from "./lock_text.js";

const MOST_ROWS = 20; /* of one lock */
const TONES = { granted: "accent", asked: "amber" };

/* "granted", and of a read-write lock "granted to read"; "queued, granted" if both were in one second. */
export function whatText(e) {
    if (e.what === "asked") return askedText(isElection(e) ? "leader" : "");
    return [e.queued ? "queued, granted" : e.what, e.what === "ended" ? "" : sideText(e.place)].filter(Boolean).join(" ");
}

function what(e) {
    const tone = e.what === "ended" && (e.cause === "expired" || e.cause === "broken") ? "red" : TONES[e.what] || "";
    return h(`span.badge${tone ? `.${tone}` : ""}`, {}, whatText(e));
}

const isElection = (e) => e.kind === "election";

function columns(withPath) {
    const list = [
        { id: "time", title: "Time", width: "96px", sort: (e) => Number(e.n), down: true, cell: (e) => {
            const ms = instant(e.time);
            return h("td", {}, h("a.main", { href: `#/events/${encodeURIComponent(e.n)}`, title: ms === null ? "" : dateTime(ms) },
                h("time", ms === null ? {} : { datetime: new Date(ms).toISOString() }, ms === null ? "–" : clockTime(ms))));
        } },
        { id: "what", title: "What", width: "184px", sort: whatText, cell: (e) => h("td.right", {}, what(e), deedText(e) ? h("span.label", {}, ` ${deedText(e)}`) : null) },
    ];
    if (withPath) list.push({ id: "path", title: "Where", width: "24%", sort: (e) => e.path, cell: (e) => h("td.wide", {}, h("a.plain", {
        href: `#/${isElection(e) ? "elections" : "locks"}${urlPath(e.path)}` }, pathText(e.path))) });
    list.push(
        { id: "who", title: "Who", sort: (e) => whoText(e.place), cell: (e) => h("td.wide", {}, h("div.lines", {}, who(e.place), withPath ? null : command({ ...e.place, asked: false }))) },
        { id: "cause", title: "Why", width: withPath ? "21%" : "240px", sort: (e) => deedText(e) || null, cell: (e) => h("td.off", {}, deedText(e) ? h("div.cut", { title: deedText(e) }, deedText(e)) : h("span.none", {}, "–")) });
    return withPath ? list : list.map((column) => ({ ...column, sort: null }));
}

/* Why a hold ended is known a moment after the event that it has. */
export const SETTLED_MS = 150;

const second = (e) => Math.floor(instant(e.time) / 1000);

/* Most locks are free: who queues is granted it in the same second, and that is one row, the grant's, with the
 * queueing in `queued`. Of entries with the newest first. */
export function folded(entries) {
    const grants = new Map();
    return entries.map((e) => ({ ...e })).filter((e) => {
        const key = `${e.path} ${e.place?.node} ${second(e)}`;
        if (e.what === "granted" && e.place) grants.set(key, e);
        if (e.what !== "queued" || !grants.has(key)) return true;
        grants.get(key).queued = e;
        return false;
    });
}

/* {id, label, kept, path?}: of one path, or of all. */
export function entryTable({ id, label, kept, path, items, current }) {
    if (kept.problem) return refused(kept.problem, "events");
    const entries = items || folded(kept.value?.entries || []).slice(0, MOST_ROWS);
    if (kept.value && entries.length === 0) {
        return empty("events", "Nothing yet", path ? "Nothing has happened at this path as far back as the gate remembers."
            : "Each time somebody queues, is granted a lock or lets it go, it appears here.");
    }
    const list = columns(!path);
    return table({ id, label, columns: list, items: path ? entries : arrange([...entries], list, () => 0), key: (e) => `${e.n}`, href: true, loading: !kept.value,
        height: path ? 54 : 40, phoneHeight: path ? 72 : 76, current });
}
