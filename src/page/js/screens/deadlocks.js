/* deadlocks.js - owners that wait for each other: each cycle as a picture, and in words with what can be done about
 * it; certain ones first. */
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { age } from "../lib/redraw.js";
import { count, hexSession, instant, plural, urlPath } from "../lib/format.js";
import { store, certainDeadlocks, lockAt } from "../model/store.js";
import { waitGraph } from "../parts/waitgraph.js";
import { narrow } from "../parts/table.js";
import { clientName, fullText, namedText, whoText } from "../parts/participant.js";
import { pathText } from "../parts/lock_text.js";
import { commandToCopy } from "../parts/command_line.js";
import { actions, breakCommand, mayRevoke, revokeCommand } from "../parts/lock_actions.js";
import { empty, refused } from "../parts/empty.js";

export const title = () => "Deadlocks";

/* Of the place for a picture; the same before anything is drawn. */
function room() {
    const main = document.getElementById("main").clientWidth || innerWidth;
    return Math.min(1320, main) - (narrow.matches ? 60 : 100);
}

const full = (path, p) => (p.node.startsWith("/") ? p.node : `${path}/${p.node}`);

/* A place of this lock by the path of its node, which is below `path`; null: the page does not know it. */
function placeOf(lock, path, node) {
    return [...(lock?.waiters || []), ...(lock?.holders || [])].find((p) => full(path, p) === node || p.node === node) ?? null;
}

/* A `clave lock` and what it runs are one owner: the outer one waits for no lock but for the end of the inner one, which
 * is the next member. Returns [{member, outer}]. */
function owners(deadlock) {
    const list = [];
    let outer = null;
    const first = deadlock.members.findIndex((m) => m.blocker);
    const inOrder = [...deadlock.members.slice(first + 1), ...deadlock.members.slice(0, first + 1)];
    for (const m of inOrder) {
        if (m.blocker) list.push({ member: m, outer });
        outer = m.blocker ? null : outer ?? m;
    }
    return [...list.slice(-1), ...list.slice(0, -1)]; /* the first member first */
}

/* What is known of an owner: its place in the queue says more than its identity's text. It holds what the owner before
 * it waits for. */
function membersOf(deadlock) {
    const inside = new Set(deadlock.members.map((m) => m.node));
    const all = owners(deadlock);
    return all.map(({ member: m, outer }, i) => {
        const lock = lockAt(m.path);
        const place = placeOf(lock, m.path, m.node);
        const { path, blocker } = all[(i + all.length - 1) % all.length].member;
        const held = lockAt(path);
        const holder = held?.holders.find((p) => full(path, p) === blocker || p.node === blocker) ?? null;
        const strangers = lock ? lock.waiters.filter((p) => !inside.has(full(m.path, p)) && !inside.has(p.node)).length : 0;
        const shown = outer && holder ? holder : place;
        const named = shown && namedText(shown);
        return { path: m.path, waitsSince: instant(place?.since), who: shown ? whoText(shown) : (outer ?? m).identity, runs: outer ? (place ? whoText(place) : m.identity) : null,
            heldPath: path, held, holder, victim: [m.node, outer?.node].includes(deadlock.victim), more: lock ? strangers + lock.nwaiters - lock.waiters.length : 0,
            /* The end of a session's number tells it from others. */
            title: !shown || named ? null : clientName(shown.client), sub: !shown || named ? shown?.name || shown?.command || "" : `session ${hexSession(shown.session)}`,
            waited: lock ? plural(lock.nwaiters, "waits", "wait") : "lock" };
    });
}

const lockLink = (path) => h("a", { href: `#/locks${urlPath(lockAt(path)?.path ?? path)}` }, pathText(path));

/* The gentler command, where the holder is known to obey it. */
const commandFor = ({ held, holder }) => (holder.revocable === true && mayRevoke(held, holder, true) ? revokeCommand : breakCommand)(held, holder);

function step(m) {
    return h("li.member", {},
        h("p.first", {}, h("b.cut", {}, m.holder && !m.runs ? fullText(m.holder) : m.who), m.victim ? h("span.badge.amber", {}, "gives up") : null),
        m.holder ? actions(m.held, m.holder, true) : null,
        h("p", {}, h("span.sub", {}, "holds"), lockLink(m.heldPath)),
        h("p", {}, h("span.sub", {}, m.runs ? `runs ${m.runs}, which waits for` : "waits for"), lockLink(m.path), m.waitsSince === null ? null : h("span.sub", {}, "for ", age(m.waitsSince))),
        m.holder ? commandToCopy(commandFor(m)) : null);
}

const sentence = (members) => members.map((m) => `${m.who} waits for ${m.path}`).join(", ");

function card(deadlock, i) {
    const members = membersOf(deadlock);
    const { certain } = deadlock;
    return h("section.panel.data", { "data-key": deadlock.members.map((m) => m.node).join(" "), "aria-labelledby": `deadlock-${i}` },
        h("header", {}, h("h2", { id: `deadlock-${i}` }, `${certain ? "Deadlock" : "Possible deadlock"} of ${members.length}`),
            certain ? h("span.badge.red", {}, "none of them can go on") : h("span.badge.amber", {}, "perhaps one of them can go on")),
        h(`div.body.deadlock${certain ? "" : ".possible"}`, {}, h("div.picture", {}, waitGraph(`${sentence(members)}.`, members, room(), certain ? "red" : "amber")),
            certain ? null : h("p.note", {}, "Curator and kazoo do not say which thread of a session waits. If another thread holds the lock, that thread goes on and will release it: then this is no deadlock."),
            h("ol.members", {}, members.map(step)),
            h("p.note", {}, certain ? "The others go on as soon as one of them lets go" : "If it is one, the others go on as soon as one of them lets go",
                ": revoke what it holds, break it, or end the process. ", h("code", {}, "clave lock --detect-deadlock"), " gives up by itself.")));
}

function body() {
    if (store.failed.deadlocks) return h("section.panel", {}, refused(store.failed.deadlocks, "deadlocks"));
    if (!store.loaded.deadlocks) return h("section.panel", { "aria-busy": "true" }, h("div.empty", {}, icon("deadlocks"), h("h2", {}, "\u00a0"), h("p", {}, "\u00a0")));
    if (store.deadlocks.length === 0) {
        return h("section.panel.data", {}, empty("check", "No deadlock", "Whenever somebody begins to wait, the gate looks for owners that wait for each other, across all locks of clave, Curator and kazoo. It would draw them here."));
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
