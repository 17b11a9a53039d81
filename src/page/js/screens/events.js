/* events.js - the log: who queued, who was granted a lock, how it ended; newest first, live. Each entry has
 * an address of its own, #/events/N, which shows all that is known of it. */
import { h } from "../lib/dom.js";
import { asked, addressOf, show } from "../lib/address.js";
import { count, dateTime, duration, hexSession, instant, urlPath } from "../lib/format.js";
import { onEvent } from "../model/store.js";
import { Kept } from "../net/cached_answer.js";
import { choice, filters } from "../parts/choice.js";
import { entryTable, folded, whatText, SETTLED_MS } from "../parts/history_table.js";
import { newest } from "../model/lock_history.js";
import { icon } from "../lib/icons.js";
import { fullText, clientName } from "../parts/participant.js";
import { causeText, pathText } from "../parts/lock_text.js";
import { copy } from "../parts/command_line.js";

const log = new Kept(newest(1000));
let stopListening = null;

const WHATS = [["", "All"], ["queued", "Queued"], ["granted", "Granted"], ["asked", "Asked"], ["ended", "Ended"]];

export const title = ({ path }) => (path ? `Event ${path.slice(1)}` : "Events");

export function enter() {
    log.ask("/v1/history");
    stopListening = onEvent(({ name }) => {
        if (name === "reset") log.doubt();
        log.askSoon(SETTLED_MS);
    });
}

export function leave() {
    stopListening?.();
    log.forget();
}

function shown() {
    const words = asked("filter").toLowerCase().split(/\s+/).filter(Boolean);
    const what = asked("what");
    const text = (e) => [e.path, e.cause && causeText(e.cause), e.deed?.by, e.deed?.reason, e.place?.host, e.place?.pid, e.place?.name, e.place?.command, e.place?.token].join(" ").toLowerCase();
    const entries = log.value?.entries || [];
    return (what ? entries : folded(entries)).filter((e) => (!what || e.what === what) && words.every((w) => text(e).includes(w)));
}

/* How long it waited, and the entry of when it queued, which may have no row of its own. */
function queuedBefore(e) {
    if (e.what !== "granted") return null;
    const all = log.value.entries;
    const queued = all.find((q) => q.what === "queued" && q.path === e.path && q.place?.node === e.place?.node && instant(q.time) <= instant(e.time));
    if (!queued) return null;
    const ms = instant(e.time) - instant(queued.time);
    const waited = ms < 50 ? "less than 0.1 s" : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms);
    return [`${waited}, since `, h("a.plain", { href: `#/events/${encodeURIComponent(queued.n)}` }, `event ${queued.n}`)];
}

function entryFacts(e) {
    const rows = [["What", [whatText(e), e.cause === "broken" && e.deed?.by ? "broken" : e.cause && causeText(e.cause)].filter(Boolean).join(", ")], ["When", `${dateTime(instant(e.time))} (${e.time})`], ["Waited", queuedBefore(e)],
        ["Where", h("a.plain", { href: `#/${e.kind === "election" ? "elections" : "locks"}${urlPath(e.path)}` }, pathText(e.path))], ["Who", fullText(e.place)],
        ["Done by", e.deed?.by], ["Reason", e.deed?.reason],
        ["Command", e.place?.command || e.place?.text], ["Client", e.place ? clientName(e.place.client) : null], ["Token", e.place?.token],
        ["Session", hexSession(e.place?.session)], ["Node", e.place?.node], ["zxid", e.zxid], ["Number", e.n]];
    return h("dl.facts", {}, rows.filter(([, v]) => v !== null && v !== undefined && v !== "").map(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]));
}

function detail(n) {
    const e = log.value?.entries.find((x) => String(x.n) === n);
    return h("section.panel.data", { "aria-labelledby": "one-event" },
        h("header", {}, h("h2", { id: "one-event" }, `Event ${n}`), h("span.aside", {},
            h("button.button", { type: "button", onclick: () => copy(location.href, "Link") }, icon("link"), "Copy link"), h("a.button", { href: addressOf("events") }, "All events"))),
        h("div.body.one-event", {}, e ? entryFacts(e) : log.value ? h("p.note", {}, "The gate does not have this event: it keeps only the latest.") : null));
}

export function view({ path }) {
    const items = shown();
    return h("div", { "data-key": "events" },
        h("div.head", {}, h("h1", { tabindex: "-1" }, "Events"), h("p.aside", {}, log.value ? `${count(items.length)} shown` : "")),
        path ? detail(path.slice(1)) : null,
        h("div.tools", { role: "search", "aria-label": "Filter events" },
            h("div.search", {}, icon("search"), h("input", { type: "search", "aria-label": "Filter by path, host, command, cause or token", placeholder: "Path, host, reason …",
                autocomplete: "off", spellcheck: "false", value: asked("filter"), oninput: (e) => show({ filter: e.target.value }) })),
            filters(Boolean(asked("what")), choice("What", WHATS, asked("what"), (what) => show({ what })))),
        h("section.panel.data", { "aria-label": "The log" }, log.value?.entries.length && items.length === 0 ? h("p.body.note", {}, "Nothing matches the filter.")
            : entryTable({ id: "log", label: "Events, newest first", kept: log, items })));
}
