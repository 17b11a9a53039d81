/* entries.js - entries of /v1/history as a table: on the screen of events, and of one lock. */
import { h } from "../lib/dom.js";
import { clockTime, dateTime, instant, urlPath } from "../lib/format.js";
import { get } from "../net/api.js";
import { table } from "./table.js";
import { empty, refused } from "./empty.js";
import { who, command, pathText } from "./place.js";

const TONES = { granted: "accent", queued: "", ended: "", expired: "red", broken: "red" };
const CAUSES = { released: "released", expired: "session expired", closed: "session closed", broken: "broken", unknown: "cause unknown" };

function what(e) {
    const tone = e.what === "ended" && (e.cause === "expired" || e.cause === "broken") ? "red" : TONES[e.what] || "";
    return h(`span.badge${tone ? `.${tone}` : ""}`, {}, e.what);
}

const isElection = (e) => e.kind === "election";

function columns(withPath) {
    const list = [
        { id: "time", title: "Time", width: "116px", cell: (e) => {
            const ms = instant(e.time);
            return h("td", {}, h("a.main", { href: `#/events/${encodeURIComponent(e.n)}`, title: ms === null ? "" : dateTime(ms) },
                h("time", ms === null ? {} : { datetime: new Date(ms).toISOString() }, ms === null ? "–" : clockTime(ms))));
        } },
        { id: "what", title: "What", width: "104px", cell: (e) => h("td.right", {}, what(e)) },
    ];
    if (withPath) list.push({ id: "path", title: "Where", width: "34%", cell: (e) => h("td.wide", {}, h("a.plain", {
        href: `#/${isElection(e) ? "elections" : "locks"}${urlPath(e.path)}` }, pathText(e.path))) });
    list.push(
        { id: "who", title: "Who", cell: (e) => h("td.wide", {}, h("div.lines", {}, who(e.place), withPath ? null : command(e.place))) },
        { id: "cause", title: "Cause", width: "150px", cell: (e) => h("td.off", {}, e.cause ? CAUSES[e.cause] || e.cause : h("span.none", {}, "–")) });
    return list;
}

/* The gate tells the oldest first. */
export async function newestFirst(path, options) {
    const { entries } = await get(path, options);
    return { entries: entries.reverse() };
}

/* {id, label, kept, path?}: of one path, or of all. */
export function entryTable({ id, label, kept, path, items, current }) {
    if (kept.problem) return refused(kept.problem, "events");
    const entries = items || kept.value?.entries || [];
    if (kept.value && entries.length === 0) {
        return empty("events", "Nothing yet", path ? "Nothing has happened at this path, as far back as the gate knows."
            : "Who queues, who is granted a lock and how it ends appears here, as it happens.");
    }
    return table({ id, label, columns: columns(!path), items: entries, key: (e) => `${e.n}`, href: true, loading: !kept.value,
        height: path ? 54 : 40, phoneHeight: path ? 72 : 76, current });
}
