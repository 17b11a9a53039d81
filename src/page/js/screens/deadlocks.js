/* deadlocks.js - owners that wait for each other: each cycle as a picture and in words, certain ones first. */
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { count, hexSession, plural, urlPath } from "../lib/format.js";
import { store, certainDeadlocks } from "../model/store.js";
import { waitGraph } from "../parts/waitgraph.js";
import { narrow } from "../parts/table.js";
import { clientName, namedText, whoText } from "../parts/participant.js";
import { pathText } from "../parts/lock_text.js";
import { empty, refused } from "../parts/empty.js";

export const title = () => "Deadlocks";

/* Of the place for a picture; the same before anything is drawn. */
function room() {
    const main = document.getElementById("main").clientWidth || innerWidth;
    return Math.min(1320, main) - (narrow.matches ? 60 : 100);
}

/* What is known of a member: its place in the queue says more than its identity's text. */
function membersOf(deadlock) {
    const inside = new Set(deadlock.members.map((m) => m.node));
    const full = (path, p) => (p.node.startsWith("/") ? p.node : `${path}/${p.node}`);
    return deadlock.members.map((m) => {
        const lock = store.locks.get(m.path);
        const place = [...(lock?.waiters || []), ...(lock?.holders || [])].find((p) => full(m.path, p) === m.node || p.node === m.node);
        const strangers = lock ? lock.waiters.filter((p) => !inside.has(full(m.path, p)) && !inside.has(p.node)).length : 0;
        const more = lock ? strangers + lock.nwaiters - lock.waiters.length : 0;
        /* Without a blocker it waits for no lock: it waits for the end of the next, a part of itself. */
        const named = place && namedText(place);
        return { path: m.blocker ? m.path : null, who: place ? whoText(place) : m.identity, more, victim: m.node === deadlock.victim,
            /* The end of a session's number tells it from others. */
            title: !place || named ? null : clientName(place.client), sub: !place || named ? place?.name || place?.command || "" : `session ${hexSession(place.session)}`,
            waited: lock ? plural(lock.nwaiters, "waits", "wait") : "lock" };
    });
}

function steps(members) {
    return h("ol.steps", {}, members.map((m, i) => {
        const next = members[(i + 1) % members.length].who;
        return h("li", {}, h("b", {}, m.who), m.path ? [" waits for ", h("a", { href: `#/locks${urlPath(m.path)}` }, pathText(m.path)), ", held by ", h("b", {}, next)]
            : [" runs ", h("b", {}, next), ", and waits for its end"], m.victim ? [" ", h("span.badge.amber", {}, "gives up")] : null);
    }));
}

function card(deadlock, i) {
    const members = membersOf(deadlock);
    return h("section.panel.data", { "data-key": deadlock.members.map((m) => m.node).join(" "), "aria-labelledby": `deadlock-${i}` },
        h("header", {}, h("h2", { id: `deadlock-${i}` }, `${deadlock.certain ? "Deadlock" : "Possible deadlock"} of ${deadlock.members.length}`),
            deadlock.certain ? h("span.badge.red", {}, "none of them can go on") : h("span.badge.amber", {}, "perhaps one of them can go on")),
        h(`div.body.deadlock${deadlock.certain ? "" : ".possible"}`, {}, h("div.picture", {}, waitGraph(deadlock.text, members, room(), deadlock.certain ? "red" : "amber")), steps(members),
            deadlock.certain ? null : h("p.note", {}, "A session of Curator or kazoo does not tell which of its threads waits. If the thread that holds a lock is another one, it goes on, and this is no deadlock."),
            h("p.note", {}, deadlock.certain ? "It ends" : "If it is one, it ends", " when a member gives up: open a lock and break a place in its queue, or end a process. ",
                h("code", {}, "clave lock --detect-deadlock"), " gives up by itself.")));
}

function body() {
    if (store.failed.deadlocks) return h("section.panel", {}, refused(store.failed.deadlocks, "deadlocks"));
    if (!store.loaded.deadlocks) return h("section.panel", { "aria-busy": "true" }, h("div.empty", {}, icon("deadlocks"), h("h2", {}, "\u00a0"), h("p", {}, "\u00a0")));
    if (store.deadlocks.length === 0) {
        return h("section.panel.data", {}, empty("check", "No deadlock", "The gate looks for owners that wait for each other, among all locks of clave, Curator and kazoo, whenever somebody begins to wait. A cycle of them is drawn here."));
    }
    return [...store.deadlocks].sort((a, b) => b.certain - a.certain).map(card);
}

function summary() {
    const certain = certainDeadlocks().length;
    const possible = store.deadlocks.length - certain;
    return [certain ? plural(certain, "deadlock") : "", possible ? `${count(possible)} possible` : ""].filter(Boolean).join(", ");
}

export function view() {
    return h("div", { "data-key": "deadlocks" }, h("div.head", {}, h("h1", { tabindex: "-1" }, "Deadlocks"),
        h("p.aside", { role: "status" }, summary())), body());
}
