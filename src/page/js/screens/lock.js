/* lock.js - one lock: its holders and its queue with tokens, who held it when, and what happened to it last; for those
 * who may, with what can be done about a place (parts/lock_actions.js). */
import { h } from "../lib/dom.js";
import { age, heldFor } from "../lib/redraw.js";
import { count, hexSession, instant, urlPath } from "../lib/format.js";
import { store, may, onEvent, deadlockedPaths } from "../model/store.js";
import { Kept } from "../net/cached_answer.js";
import { table } from "../parts/table.js";
import { actions } from "../parts/lock_actions.js";
import { empty, refused } from "../parts/empty.js";
import { entryTable, SETTLED_MS } from "../parts/history_table.js";
import { timeline } from "../parts/lock_timeline.js";
import { newest } from "../model/lock_history.js";
import { who, command, clientName, roleBadge, leftOverNote, outsideNote } from "../parts/participant.js";
import { pathText, kindBadge, isLate, oldBadge } from "../parts/lock_text.js";
import { addressOf } from "../lib/address.js";

const one = new Kept();
const MOST_ENTRIES = 300; /* of the timeline */
const LONG_PATH = 60; /* may be elided in the heading: then it is below, too, whole */
const past = new Kept(newest(MOST_ENTRIES));
let stopListening = null;

export const title = (route) => route.path;

export function enter({ path }) {
    one.ask(`/v1/locks${urlPath(path)}`);
    past.ask(`/v1/history?path=${encodeURIComponent(path)}`);
    stopListening = onEvent(({ name, data }) => {
        if (name === "reset") past.doubt();
        else if (data?.path !== path) return;
        past.askSoon(SETTLED_MS);
        if (name === "reset" || shown(data).length < all(data)) one.askSoon();
        else one.put(data);
    });
}

export function leave() {
    stopListening?.();
    one.forget();
    past.forget();
}

/* The places that are known, of all there are. */
const shown = ({ holders, left_over: left, waiters }) => [...holders, ...left, ...waiters];
const all = ({ nholders, nleft_over: left, nwaiters }) => nholders + left + nwaiters;

/* Whether its owner takes requests to release it, where its node says so. */
function clientText(place) {
    const takes = place.holds ? { true: ", revocable", false: ", not revocable" }[place.revocable] : null;
    return clientName(place.client) + (takes || "");
}

function columns(lock) {
    const list = [
        { id: "at", title: "#", width: "52px", num: true, cell: (p) => h("td.off", {}, p.at) },
        { id: "role", title: "Role", width: "118px", cell: (p) => h("td.right", {}, roleBadge(p, p.holds)) },
        { id: "who", title: "Who", cell: (p) => h("td.wide.lead", {}, h("div.lines", {}, who(p), command(p))) },
        { id: "since", title: lock?.kind === "slot" ? "Kept or waiting for" : "In queue for", width: "112px", num: true, cell: (p) => h("td", {}, age(instant(p.since))) },
        { id: "token", title: "Token", width: "124px", num: true, cell: (p) => h("td.off.mono", {}, p.token ?? "–") },
        { id: "session", title: "Session", width: "170px", cell: (p) => h("td.off", {}, h("div.lines", {},
            h("span.mono.cut", { title: hexSession(p.session) }, hexSession(p.session) || "–"), h("span.sub.cut", {}, clientText(p)))) },
    ];
    if (lock && may("lock", lock.path)) list.push({ id: "do", title: h("span.hidden-text", {}, "Actions"), width: "196px", cell: (p) => h("td.wide.do", {}, actions(lock, p, p.holds)) });
    return list;
}

function queue(lock) {
    const items = shown(lock).map((p, i) => ({ ...p, holds: i < lock.holders.length }));
    items.forEach((p, i) => { p.at = i + 1; }); /* as positions in claims */
    const left = all(lock) - items.length;
    return h("section.panel.data", { "aria-labelledby": "queue-title" },
        h("header", {}, h("h2", { id: "queue-title" }, "Queue"), h("span.note", {}, `${count(lock.nholders)} holding, ${count(lock.nwaiters)} waiting${lock.nleft_over ? `, ${count(lock.nleft_over)} left over` : ""}`),
            h("span.aside.note", {}, may("lock", lock.path) ? null : "Read-only: to revoke takes the role lock, to break the role admin.")),
        outsideNote(lock), leftOverNote(lock),
        table({ id: "queue", label: "Queue", columns: columns(lock), items, key: (p) => p.node, height: 54, phoneHeight: may("lock", lock.path) ? 116 : 68 }),
        left > 0 ? h("p.body.note", {}, `${count(left)} more wait further back.`) : null);
}

const NOBODY = { holders: [], waiters: [], left_over: [], nholders: 0, nwaiters: 0, nleft_over: 0, held_since: null };

function tiles(lock) {
    const tile = (name, value, tone = "") => h("div.tile", {}, h("dt", {}, name), h("dd", { class: tone }, value));
    const holder = lock?.holders[0];
    const waiting = lock?.path ? store.locks.get(lock.path)?.waitingSince ?? null : null;
    return h("dl.tiles.data", { "aria-label": "Summary" }, tile("Held for", lock ? heldFor(lock) : "\u00a0"),
        tile("Waiting", lock ? count(lock.nwaiters) : "\u00a0"), tile("Oldest wait", lock ? age(waiting) : "\u00a0", isLate(waiting) ? "amber" : ""),
        tile("Token", holder?.token ?? (lock ? "–" : "\u00a0"), "long mono"));
}

const gone = () => empty("locks", "Nobody holds this lock or waits for it", "Its queue appears here as soon as somebody takes the lock. What happened before is below.");

function body(lock) {
    if (one.problem && one.problem.status !== 404) return h("section.panel", {}, refused(one.problem));
    if (one.problem || (lock && all(lock) === 0)) return h("section.panel.data.short", {}, gone());
    if (lock) return queue(lock);
    return h("section.panel", {}, h("header", {}, h("h2", {}, "Queue")),
        table({ id: "queue", label: "Queue", columns: columns(null), items: [], key: (p) => p.node, height: 54, phoneHeight: 68, loading: true }));
}

function deadlockBadge(path) {
    const certain = deadlockedPaths().get(path);
    if (certain === undefined) return null;
    return h(`a.badge.${certain ? "red" : "amber"}`, { href: "#/deadlocks" }, certain ? "deadlock" : "possible deadlock");
}

export function view({ path }) {
    const lock = one.value;
    return h("div", { "data-key": `lock ${path}` },
        h("nav.crumbs", { "aria-label": "Where" }, h("a", { href: addressOf("locks") }, "Locks")),
        h("div.head", {}, h("h1", { tabindex: "-1" }, pathText(path)), lock && lock.kind !== "lock" ? kindBadge(lock) : null,
            deadlockBadge(path), lock?.outside ? h("span.badge.red", {}, "may be held twice") : null, oldBadge(lock),
            h("div.aside", {}, h("a.button", { href: `#/tree${urlPath(path)}` }, "Show in the tree"))),
        path.length > LONG_PATH ? h("p.full-path.mono", {}, path) : null,
        tiles(lock || (one.problem?.status === 404 ? NOBODY : null)), body(lock), past.problem ? null : timeline(path, past, lock),
        h("section.panel.data", { "aria-labelledby": "past-title" }, h("header", {}, h("h2", { id: "past-title" }, "What happened here"),
            h("span.aside", {}, h("a.button", { href: `#/events?filter=${encodeURIComponent(path)}` }, "All events"))),
            entryTable({ id: "past", label: "What happened here", kept: past, path })));
}

