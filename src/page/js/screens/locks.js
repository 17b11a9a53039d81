/* locks.js - the first screen: every lock with its holder and who waits, worst first: those that two may hold, then
 * deadlocks, then the longest wait, then the longest hold. */
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { age, heldFor, soon } from "../lib/redraw.js";
import { count, plural, urlPath } from "../lib/format.js";
import { asked, show } from "../lib/address.js";
import * as clock from "../lib/clock.js";
import { store, certainDeadlocks, deadlockedPaths, doubtful, onEvent } from "../model/store.js";
import { commandLine } from "../parts/command_line.js";
import { table } from "../parts/table.js";
import { arrange, compare } from "../parts/order.js";
import { who, whoText, fullText, command, sideText } from "../parts/participant.js";
import { pathText, kindBadge, isLate } from "../parts/lock_text.js";
import { empty, refused } from "../parts/empty.js";
import { choice, filters } from "../parts/choice.js";
import { hourBar } from "../parts/lock_last_hour.js";
import { Kept } from "../net/cached_answer.js";
import { newest } from "../model/lock_history.js";

const state = { held: false };
let shown = { mark: null, asked: null, items: [] };

const KINDS = [["", "All kinds"], ["lock", "Locks"], ["rw", "Read-write"], ["semaphore", "Semaphores"], ["slot", "Slots"]];

/* Of all locks together: of very many, only the last minutes are known. */
const past = new Kept(newest(1000));
const PAST_MS = 2000;
let stopListening = null;

export const title = () => "Locks";

export function enter() {
    past.ask("/v1/history");
    stopListening = onEvent(({ name }) => {
        if (name === "reset") past.doubt();
        past.askSoon(PAST_MS);
    });
}

export function leave() {
    stopListening?.();
    past.forget();
}

const rankOf = (deadlocked, lock) => (lock.outside ? 0 : ({ true: 1, false: 2 })[deadlocked.get(lock.path)] ?? 3);

/* By times, not ages: the order changes with events only, never as time passes. */
const worst = (deadlocked) => (a, b) => compare(rankOf(deadlocked, a), rankOf(deadlocked, b)) || compare(a.waitingSince, b.waitingSince) ||
    compare(a.nwaiters, b.nwaiters, true) || compare(a.heldSince, b.heldSince) || compare(a.path, b.path);

const placesMatch = (places, word) => places.some((p) => [p.host, p.pid, p.name, p.command, p.text, p.by, p.reason, p.token, p.session]
    .some((x) => x !== null && x !== undefined && String(x).toLowerCase().includes(word)));

function matches(lock, words, kind, waited) {
    if (lock.kind === "election") return false;
    if (kind && lock.kind !== kind) return false;
    if (waited && lock.nwaiters === 0) return false;
    return words.every((w) => lock.path.toLowerCase().includes(w) || placesMatch(lock.holders, w) || placesMatch(lock.waiters, w));
}

/* While somebody points at the list or has the focus in it, rows keep their places; new ones come last. */
function keepPlaces(items, usual) {
    const place = new Map(shown.items.map((l, i) => [l.path, i]));
    return items.sort((a, b) => (place.get(a.path) ?? Infinity) - (place.get(b.path) ?? Infinity) || usual(a, b));
}

function isHeld() {
    return state.held || Boolean(document.activeElement?.closest("#locks tbody") && document.activeElement.matches(":focus-visible"));
}

function visible(list, deadlocked) {
    const question = location.hash;
    const mark = `${store.version} ${isHeld()} ${question}`;
    if (shown.mark === mark) return shown.items;
    const words = asked("filter").toLowerCase().split(/\s+/).filter(Boolean);
    const items = [...store.locks.values()].filter((l) => matches(l, words, asked("kind"), asked("waiters")));
    const usual = worst(deadlocked);
    if (isHeld() && shown.asked === question) keepPlaces(items, usual);
    else arrange(items, list, usual);
    shown = { mark, asked: question, items };
    return items;
}

function waitCell(lock, oldest) {
    if (lock.nwaiters === 0) return h("td.right.under", {}, h("span.none", {}, "–"));
    const waiting = h("span.label", {}, `${count(lock.nwaiters)} waiting, oldest `);
    if (lock.waitingSince === null) return h("td.right.under", {}, waiting, h("span.none", {}, "–"));
    const part = (clock.now() - lock.waitingSince) / Math.max(1000, clock.now() - oldest);
    return h("td.right.under", {}, waiting, age(lock.waitingSince), h(`div.meter${isLate(lock.waitingSince) ? ".late" : ""}`, { "aria-hidden": "true" },
        h("i", { style: { width: `${Math.round(100 * Math.min(1, Math.max(0, part)))}%` } })));
}

function pathCell(lock, deadlock) {
    const next = lock.waiters.find((p) => p.role !== "outside");
    const late = deadlock === false || lock.nleft_over || isLate(lock.waitingSince);
    const mark = deadlock || lock.outside ? ".bad" : late ? ".late" : "";
    const plain = lock.kind === "lock" && !next && deadlock === undefined && !lock.nleft_over;
    return h(`td.wide.top${mark}`, {}, h("div.lines", {},
        h("a.main.cut", { href: `#/locks${urlPath(lock.path)}` }, pathText(lock.path)),
        h(`span.sub.cut${plain ? ".blank" : ""}`, {},
            lock.outside ? [h("span.badge.red", { title: "A kazoo Lock with its default name does not see the others in this queue, and may hold the lock at the same time." }, "may be held twice"), " "] : null,
            deadlock === undefined ? null : [h(`span.badge.${deadlock ? "red" : "amber"}`, {}, deadlock ? "deadlock" : "possible deadlock"), " "],
            lock.nleft_over ? [h("span.badge.amber", { title: "No session owns a node of its queue, so that node never goes away by itself." }, "left over"), " "] : null,
            lock.kind === "lock" ? null : [kindBadge(lock), " "], next ? ["next ", fullText(next), " ", sideText(next)] : "\u00a0")));
}

function columns(deadlocked, oldest) {
    return [
        { id: "path", title: "Lock", sort: (l) => l.path, cell: (l) => pathCell(l, deadlocked.get(l.path)) },
        { id: "holder", title: "Holder", sort: (l) => whoText(l.holders[0]), width: "27%", cell: (l) => h("td.wide", {}, h("div.lines", {},
            who(l.holders[0], l.nholders - 1), command(l.holders[0]))) },
        { id: "held", title: "Held for", sort: (l) => l.heldSince && -l.heldSince, down: true, num: true, width: "104px",
            cell: (l) => h("td.under", {}, h("span.label", {}, l.nholders ? "held " : "not held"), l.nholders ? heldFor(l) : h("span.none", {}, "–")) },
        { id: "waiters", title: "Waiting", sort: (l) => l.nwaiters, down: true, num: true, width: "84px", cell: (l) => h("td.off", {},
            l.nwaiters ? count(l.nwaiters) : h("span.none", {}, "–")) },
        { id: "wait", title: "Oldest wait", sort: (l) => l.waitingSince && -l.waitingSince, down: true, num: true, width: "112px", cell: (l) => waitCell(l, oldest) },
        { id: "hour", title: "Last hour", width: "150px", cell: (l) => h("td.wide.last", {}, hourBar(past.value, l)) },
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
    const dead = certainDeadlocks().length;
    const possible = store.deadlocks.length - dead;
    const tile = (name, value, tone = "") => h("div.tile", {}, h("dt", {}, name), h("dd", { class: tone }, known ? value : "\u00a0"));
    const twice = doubtful().length;
    return h("dl.tiles.data", { "aria-label": "Summary" }, tile("Held", [count(held), twice ? h("span.sub.red", {}, ` ${count(twice)} perhaps twice`) : null]), tile("Waiting", count(waiting)),
        tile("Oldest wait", oldest === Infinity ? "–" : age(oldest), oldest !== Infinity && isLate(oldest) ? "amber" : ""),
        h("div.tile", {}, h("dt", {}, "Deadlocks"), h("dd", {}, !store.loaded.deadlocks ? "\u00a0" : [dead
            ? h("a.red", { href: "#/deadlocks" }, count(dead)) : "0", possible ? h("a.sub", { href: "#/deadlocks" }, ` + ${count(possible)} possible`) : null])));
}

function tools() {
    return h("div.tools", { role: "search", "aria-label": "Filter locks" },
        h("div.search", {}, icon("search"), h("input", { id: "filter", type: "search", "aria-label": "Filter by path, host, command or token",
            placeholder: "Path, host, command …", autocomplete: "off", spellcheck: "false", value: asked("filter"),
            oninput: (e) => show({ filter: e.target.value }) })),
        filters(Boolean(asked("kind")) + Boolean(asked("waiters")), choice("Kind", KINDS, asked("kind"), (kind) => show({ kind })),
            choice("Waiters", [["", "All"], ["1", "With waiters"]], asked("waiters"), (waiters) => show({ waiters }))));
}

function body(list, items, total) {
    if (store.failed.locks) return refused(store.failed.locks);
    if (store.loaded.locks && total === 0) {
        return empty("locks", store.unreadable ? "No lock that the gate may read" : "No lock is held",
            "Locks of clave, Curator and kazoo appear here as soon as somebody takes one. Try it in a terminal:", commandLine("lock", "/demo/first", "--", "sleep", "60"));
    }
    if (store.loaded.locks && items.length === 0) {
        return empty("search", "Nothing matches", `None of the ${count(total)} locks matches the filter. Press Escape in the field to clear it.`);
    }
    return table({ id: "locks", label: "Locks", columns: list, items, key: (l) => l.path, href: true,
        height: 54, phoneHeight: 140, loading: !store.loaded.locks, hold: (held) => {
            state.held = held;
            soon();
        } });
}

const unseen = () => (store.unreadable ? `, not counting what is below ${plural(store.unreadable, "node")} that the gate may not read` : "");

export function view() {
    const locks = [...store.locks.values()].filter((l) => l.kind !== "election");
    const oldest = locks.reduce((least, l) => Math.min(least, l.waitingSince ?? Infinity), Infinity);
    const deadlocked = deadlockedPaths();
    const list = columns(deadlocked, oldest);
    const items = visible(list, deadlocked);
    return h("div", { "data-key": "locks" },
        h("div.head", {}, h("h1", { tabindex: "-1" }, "Locks"), h("p.aside", { role: "status" }, !store.loaded.locks ? ""
            : (items.length === locks.length ? `${count(locks.length)} in all` : `${count(items.length)} of ${count(locks.length)}`) + unseen())),
        tiles(locks, oldest), tools(),
        h("section.panel.data", { "aria-label": "All locks" }, body(list, items, locks.length)));
}
