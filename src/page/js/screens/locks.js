/* locks.js - the first screen: every lock with its holder and who waits, worst first. */
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { age, soon } from "../lib/schedule.js";
import { count, urlPath } from "../lib/format.js";
import * as clock from "../lib/clock.js";
import { store } from "../model/store.js";
import { table } from "../parts/table.js";
import { who, whoText, command, pathText, kindBadge } from "../parts/place.js";
import { empty, refused } from "../parts/empty.js";
import { choice } from "../parts/choice.js";

const LATE_MS = 60000; /* a wait this long is marked */
const state = { filter: "", kind: "all", waited: false, order: { by: "wait", down: true }, held: false };
let shown = { mark: null, asked: null, items: [] };

const KINDS = [["all", "All kinds"], ["lock", "Locks"], ["rw", "Read-write"], ["semaphore", "Semaphores"]];

export const title = () => "Locks";

/* -1, 0, 1; nothing sorts last in either direction. */
function compare(a, b, down) {
    if (a === b) return 0;
    if (a === null) return 1;
    if (b === null) return -1;
    return (a < b ? -1 : 1) * (down ? -1 : 1);
}

/* By times, not ages: the order changes with events only, never as time passes. */
const ORDERS = {
    path: (a, b, down) => compare(a.path, b.path, down),
    holder: (a, b, down) => compare(whoText(a.holders[0]), whoText(b.holders[0]), down),
    held: (a, b, down) => compare(a.heldSince, b.heldSince, !down),
    waiters: (a, b, down) => compare(a.nwaiters, b.nwaiters, down),
    wait: (a, b, down) => compare(a.waitingSince, b.waitingSince, !down),
};

function worst(a, b) {
    return ORDERS.wait(a, b, true) || ORDERS.waiters(a, b, true) || ORDERS.held(a, b, true) || ORDERS.path(a, b, false);
}

const placesMatch = (places, word) => places.some((p) => [p.host, p.pid, p.name, p.command, p.text, p.token, p.session]
    .some((x) => x !== null && x !== undefined && String(x).toLowerCase().includes(word)));

function matches(lock, words) {
    if (lock.kind === "election") return false;
    if (state.kind !== "all" && lock.kind !== state.kind) return false;
    if (state.waited && lock.nwaiters === 0) return false;
    return words.every((w) => lock.path.toLowerCase().includes(w) || placesMatch(lock.holders, w) || placesMatch(lock.waiters, w));
}

/* While somebody points at the list or has the focus in it, rows keep their places; new ones come last. */
function keepPlaces(items) {
    const place = new Map(shown.items.map((l, i) => [l.path, i]));
    return items.sort((a, b) => (place.get(a.path) ?? Infinity) - (place.get(b.path) ?? Infinity) || worst(a, b));
}

function isHeld() {
    return state.held || Boolean(document.activeElement?.closest("#locks tbody"));
}

function visible() {
    const asked = JSON.stringify([state.filter, state.kind, state.waited, state.order]);
    const mark = `${store.version} ${isHeld()} ${asked}`;
    if (shown.mark === mark) return shown.items;
    const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const items = [...store.locks.values()].filter((l) => matches(l, words));
    const order = ORDERS[state.order.by];
    if (isHeld() && shown.asked === asked) keepPlaces(items);
    else items.sort((a, b) => order(a, b, state.order.down) || worst(a, b));
    shown = { mark, asked, items };
    return items;
}

function waitCell(lock, oldest) {
    if (lock.waitingSince === null) return h("td.right", {}, h("span.none", {}, "–"));
    const part = (clock.now() - lock.waitingSince) / Math.max(1000, clock.now() - oldest);
    return h("td.right", {}, h("span.label", {}, "waits "), age(lock.waitingSince),
        h("div.meter", { "aria-hidden": "true" }, h("i", { style: { width: `${Math.round(100 * Math.min(1, Math.max(0, part)))}%` } })));
}

function columns(stuck, oldest) {
    return [
        { id: "path", title: "Lock", sort: true, cell: (l) => {
            const late = l.waitingSince !== null && clock.now() - l.waitingSince > LATE_MS;
            return h(`td${stuck.has(l.path) ? ".bad" : late ? ".late" : ""}`, {}, h("div.lines", {},
                h("a.main.cut", { href: `#/locks${urlPath(l.path)}` }, pathText(l.path)),
                h(`span.sub.cut${l.kind === "lock" && !l.waiters.length ? ".blank" : ""}`, {}, stuck.has(l.path) ? [h("span.badge.red", {}, "deadlock"), " "] : null,
                    l.kind === "lock" ? null : [kindBadge(l), " "], l.waiters.length ? ["next ", whoText(l.waiters[0])] : "\u00a0")));
        } },
        { id: "holder", title: "Holder", sort: true, width: "34%", cell: (l) => h("td.wide", {}, h("div.lines", {},
            who(l.holders[0], l.nholders - 1), command(l.holders[0]))) },
        { id: "held", title: "Held for", sort: true, num: true, width: "112px", cell: (l) => h("td.off", {}, age(l.heldSince)) },
        { id: "waiters", title: "Waiting", sort: true, num: true, width: "96px", cell: (l) => h("td.off", {},
            l.nwaiters ? count(l.nwaiters) : h("span.none", {}, "–")) },
        { id: "wait", title: "Oldest wait", sort: true, num: true, width: "128px", cell: (l) => waitCell(l, oldest) },
    ];
}

function tiles(locks, oldest) {
    let held = 0;
    let waiting = 0;
    for (const l of locks) {
        held += l.nholders > 0;
        waiting += l.nwaiters;
    }
    const known = store.loaded.locks;
    const dead = store.deadlocks.length;
    const tile = (name, value, tone = "") => h("div.tile", {}, h("dt", {}, name), h("dd", { class: tone }, known ? value : "\u00a0"));
    return h("dl.tiles.data", { "aria-label": "Summary" }, tile("Held", count(held)), tile("Waiting", count(waiting)),
        tile("Oldest wait", oldest === Infinity ? "–" : age(oldest), oldest !== Infinity && clock.now() - oldest > LATE_MS ? "amber" : ""),
        h("div.tile", {}, h("dt", {}, "Deadlocks"), h("dd", {}, !store.loaded.deadlocks ? "\u00a0" : dead
            ? h("a.red", { href: "#/deadlocks" }, count(dead)) : "0")));
}

function tools() {
    const set = (change) => () => {
        Object.assign(state, change);
        soon();
    };
    return h("div.tools", { role: "search", "aria-label": "Filter locks" },
        h("div.search", {}, icon("search"), h("input", { id: "filter", type: "search", "aria-label": "Filter by path, host, command or token",
            placeholder: "Path, host, command, token", autocomplete: "off", spellcheck: "false",
            oninput: (e) => set({ filter: e.target.value })() })),
        h("div.strip", {}, choice("Kind", KINDS, state.kind, (kind) => set({ kind })()),
            choice("Waiters", [[false, "All"], [true, "With waiters"]], state.waited, (waited) => set({ waited })())));
}

function sortBy(by) {
    state.order = { by, down: state.order.by === by ? !state.order.down : by !== "path" && by !== "holder" };
    soon();
}

function body(items, total, oldest) {
    if (store.failed.locks) return refused(store.failed.locks);
    if (store.loaded.locks && total === 0) {
        return empty("locks", store.unreadable ? "No lock is seen" : "No lock is held", "Locks of clave, Curator and kazoo appear here as soon as somebody takes one. Try it in a terminal:",
            "clave lock /demo/first -- sleep 60");
    }
    if (store.loaded.locks && items.length === 0) {
        return empty("search", "Nothing matches", `${count(total)} locks are there, none of them fits the filter. Escape in the filter clears it.`);
    }
    const stuck = new Set(store.deadlocks.flatMap((d) => d.members.map((m) => m.path)));
    return table({ id: "locks", label: "Locks, worst first", columns: columns(stuck, oldest), items, key: (l) => l.path, href: true,
        height: 54, phoneHeight: 92, order: state.order, onSort: sortBy, loading: !store.loaded.locks, hold: (held) => {
            state.held = held;
            soon();
        } });
}

const unseen = () => (store.unreadable ? `, and whatever is below ${count(store.unreadable)} nodes that the gate may not read` : "");

export function view() {
    const locks = [...store.locks.values()].filter((l) => l.kind !== "election");
    const oldest = locks.reduce((least, l) => Math.min(least, l.waitingSince ?? Infinity), Infinity);
    const items = visible();
    return h("div", { "data-key": "locks" },
        h("div.head", {}, h("h1", { tabindex: "-1" }, "Locks"), h("p.aside", { role: "status" }, !store.loaded.locks ? ""
            : (items.length === locks.length ? `${count(locks.length)} in all` : `${count(items.length)} of ${count(locks.length)}`) + unseen())),
        tiles(locks, oldest), tools(),
        h("section.panel.data", { "aria-label": "All locks" }, body(items, locks.length, oldest)));
}

