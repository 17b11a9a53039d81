/* sessions.js - the HTTP sessions of the gate: who, how much of the ttl is left, what they hold; and those of
 * the servers that hold or wait, as far as the queues tell. */
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { asked, show } from "../lib/address.js";
import { gateUrl } from "../lib/gate_url.js";
import { count, duration, hexSession, urlPath } from "../lib/format.js";
import { getAll } from "../net/api.js";
import { onEvent, store } from "../model/store.js";
import { Kept } from "../net/cached_answer.js";
import { clientName, namedText } from "../parts/participant.js";
import { pathText } from "../parts/lock_text.js";
import { table } from "../parts/table.js";
import { arrange } from "../parts/order.js";
import { empty, refused } from "../parts/empty.js";

const all = new Kept(async (path, options) => ({ sessions: await getAll(path, "sessions", options) }));
let seen = { mark: null, http: null, items: [] };
let stopListening = null;
let timer = null;

export const title = () => "Sessions";

export function enter() {
    all.ask("/v1/sessions");
    stopListening = onEvent(({ name }) => (name === "session" || name === "reset") && all.askSoon());
    timer = setInterval(() => document.visibilityState === "visible" && all.askSoon(0), 2000); /* slack has no events */
}

export function leave() {
    clearInterval(timer);
    stopListening?.();
    all.forget();
}

const slackOf = (s) => (s.idle_ms === undefined || s.idle_ms === null ? null : Math.max(0, s.ttl_ms - s.idle_ms));
const partOf = (s) => (slackOf(s) === null ? 2 : slackOf(s) / s.ttl_ms);

/* What is left of the timeout since it was heard of; a session that is near the end is marked. */
function slackCell(s) {
    const slack = slackOf(s);
    if (slack === null) return h("td.right", {}, h("span.none", {}, "–"));
    const tone = partOf(s) < 0.2 ? ".low" : partOf(s) < 0.4 ? ".mid" : "";
    return h("td.right", {}, `${(slack / 1000).toFixed(1)} s`, h("span.sub", {}, ` of ${(s.ttl_ms / 1000).toFixed(0)} s`),
        h(`div.meter.slack${tone}`, { "aria-hidden": "true" }, h("i", { style: { width: `${Math.round(partOf(s) * 100)}%` } })));
}

const TONES = { held: ".accent", suspended: ".amber", lost: ".red" };

function holdsCell(s) {
    if (s.claims.length === 0) return h("td.wide", {}, h("span.none", {}, "nothing"));
    const [first] = s.claims;
    return h("td.wide", {}, h("div.holds", {}, h(`span.badge${TONES[first.state] || ""}`, {}, first.state),
        h("a.plain", { href: `#/${first.kind === "election" ? "elections" : "locks"}${urlPath(first.path)}` }, pathText(first.path)),
        s.claims.length > 1 ? h("span.sub", {}, `+ ${s.claims.length - 1} more`) : null));
}

/* Of sessions that are not of this gate, age and slack are not known. */
function columns(items) {
    const has = (value) => items.some((s) => value(s) !== null && value(s) !== undefined);
    return [
        { id: "who", title: "Session", sort: (s) => s.name || hexSession(s.id), cell: (s) => h("td", {}, h("div.lines", {}, h("span.cut", {}, h("b", {}, s.name || "no name")), h("span.sub.mono.cut", {}, hexSession(s.id), s.client ? ` · ${s.client}` : null))) },
        has((s) => s.address || null) && { id: "address", title: "Address", width: "18%", sort: (s) => s.address || null, cell: (s) => h("td.off.mono", {}, s.address || "–") },
        { id: "holds", title: "Holds and waits for", width: "40%", sort: (s) => s.claims.length, down: true, cell: holdsCell },
        has((s) => s.age_ms) && { id: "age", title: "Age", width: "110px", num: true, sort: (s) => s.age_ms, down: true, cell: (s) => h("td.off", {}, s.age_ms === undefined || s.age_ms === null ? h("span.none", {}, "–") : duration(s.age_ms)) },
        has(slackOf) && { id: "slack", title: "Slack", num: true, width: "170px", sort: slackOf, cell: slackCell },
    ].filter(Boolean);
}

/* Sessions that are not of this gate: a node in a queue names its own. The gate tells the first places of each lock. */
function inQueues(http) {
    if (seen.mark === store.version && seen.http === http) return seen.items;
    const known = new Set(http.map((s) => s.id));
    const found = new Map();
    const add = (path, kind, state, places) => {
        for (const p of places) {
            if (!p.session || known.has(p.session)) continue;
            if (!found.has(p.session)) found.set(p.session, { id: p.session, name: namedText(p), client: clientName(p.client), claims: [] });
            found.get(p.session).claims.push({ path, kind, state });
        }
    };
    for (const l of store.locks.values()) {
        if (l.kind === "election") continue;
        add(l.path, l.kind, "held", l.holders);
        add(l.path, l.kind, "waiting", l.waiters);
    }
    for (const e of store.elections.values()) {
        add(e.path, "election", "held", e.leader ? [e.leader] : []);
        add(e.path, "election", "waiting", e.candidates);
    }
    seen = { mark: store.version, http, items: [...found.values()] };
    return seen.items;
}

const NONE = [];

function everyone() {
    const http = all.value?.sessions || NONE;
    return [...http, ...(all.value || all.problem ? inQueues(http) : NONE)];
}

function shown(everybody) {
    const words = asked("filter").toLowerCase().split(/\s+/).filter(Boolean);
    const text = (s) => [hexSession(s.id), s.id, s.name, s.address, ...s.claims.map((c) => c.path)].join(" ").toLowerCase();
    return everybody.filter((s) => words.every((w) => text(s).includes(w)));
}

function body(items, everybody) {
    if (all.problem && everybody.length === 0) return refused(all.problem, "sessions");
    if (all.value && everybody.length === 0) return empty("sessions", "No session", "An HTTP client appears here from POST /v1/sessions until it ends its session, or is silent for its ttl; any other client while it holds a lock or waits for one. The command clave sessions lists all of them.", `curl --json '{"ttl_ms": 15000, "name": "first"}' ${gateUrl("/v1/sessions")}`);
    if (!all.waiting && items.length === 0) return empty("search", "Nothing matches", "No session matches the filter. Press Escape in the field to clear it.");
    const list = columns(items);
    return table({ id: "sessions", label: "Sessions", columns: list, items: arrange(items, list, (a, b) => partOf(a) - partOf(b)), key: (s) => s.id, height: 50, phoneHeight: 88, loading: all.waiting });
}

/* The server has others that neither hold nor wait, of which the queues do not tell. */
function countText(n, known) {
    const all = store.server?.server?.sessions ?? 0;
    if (n < known) return `${count(n)} of ${count(known)}`;
    return all > known ? `${count(known)} of ${count(all)}: those that hold or wait, and those of HTTP clients` : `${count(known)} in all`;
}

export function view() {
    const everybody = everyone();
    const items = shown(everybody);
    return h("div", { "data-key": "sessions" }, h("div.head", {}, h("h1", { tabindex: "-1" }, "Sessions"),
        h("p.aside", { role: "status" }, all.waiting ? "" : countText(items.length, everybody.length))),
        everybody.length === 0 && all.problem ? null : h("div.tools", { role: "search", "aria-label": "Filter sessions" }, h("div.search", {}, icon("search"), h("input", { type: "search",
            "aria-label": "Filter by session, address or lock", placeholder: "Session, address, lock", autocomplete: "off", spellcheck: "false", value: asked("filter"),
            oninput: (e) => show({ filter: e.target.value }) }))),
        everybody.length > 0 && all.problem ? h("p.note", { "data-key": "refused" }, `Without the HTTP sessions: ${all.problem.message}`) : null,
        h("section.panel.data", { "aria-label": "All sessions" }, body(items, everybody)));
}

