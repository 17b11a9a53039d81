/* participant.js - a PLACE of a queue (a holder, a waiter, a candidate) in words. */
import { h } from "../lib/dom.js";
import { hexSession, instant } from "../lib/format.js";
import { commandLine, commandToCopy } from "./command_line.js";
import { isLate } from "./lock_text.js";

/* "" if its node names nobody. */
export function namedText(place) {
    const where = [place.host, place.pid ? `pid ${place.pid}` : null].filter(Boolean).join(" ");
    return where || place.name || place.text || "";
}

export function whoText(place) {
    if (!place) return "nobody";
    if (place.role === "slot" && place.name) return place.name;
    if (place.unreadable) return "a client whose node may not be read";
    const session = [place.client === "other" ? null : clientName(place.client), `session ${hexSession(place.session)}`].filter(Boolean).join(" ");
    return namedText(place) || (place.session ? session : place.node || "unknown");
}

/* What follows the host, or the text in its place: " pid 47 · nightly". */
function whoRest(place) {
    if (place.role === "slot") return place.host && place.host !== place.name ? ` · ${place.host}` : "";
    if (!place.host) return "";
    return `${place.pid ? ` pid ${place.pid}` : ""}${place.name ? ` · ${place.name}` : ""}`;
}

const whoFirst = (place) => (place.role !== "slot" && place.host) || whoText(place);

/* Everybody in a queue is named in this form, holders and waiters alike; as text, or with the host emphasised. */
export const fullText = (place) => (place ? whoFirst(place) + whoRest(place) : "nobody");

export function who(place, more = 0) {
    if (!place) return h("span.none", {}, "nobody");
    return h("span.who.cut", { title: fullText(place) }, h("b", {}, whoFirst(place)), whoRest(place), more > 0 ? h("span.sub", {}, `  + ${more} more`) : null);
}

export function commandOf(place) {
    if (place?.role === "slot") return [place.reason, place.by ? `by ${place.by}` : null].filter(Boolean).join(", ") || null;
    if (place?.command) return place.text ? `${place.command}: ${place.text}` : place.command;
    if (whoText(place) !== place?.text) return place?.text || (place?.host ? null : place?.node) || null;
    return null;
}

export const askedText = (role) => (role === "leader" ? "asked to resign" : "asked to release");

/* The command, behind the request that its owner has not met yet. */
export function command(place) {
    const text = commandOf(place);
    return h("span.sub.cut", { title: text }, place?.asked ? [h("span.badge.amber", {}, askedText(place.role)), " "] : null,
        h("span.mono", {}, text || "\u00a0"));
}

const CLIENTS = { clave: "clave", curator: "Curator", kazoo: "kazoo", other: "other client" };

export const clientName = (client) => CLIENTS[client] || client || "–";

/* "to write": what somebody in a read-write lock waits for, or "" in any other. */
export function sideText(place) {
    return place?.role === "reader" ? "to read" : place?.role === "writer" ? "to write" : "";
}

const TONES = { holder: "accent", lease: "accent", slot: "accent", leader: "green", writer: "accent", reader: "accent" };

export function roleBadge(place, holds) {
    if (place.role === "outside") return h("span.badge.red", {}, "may hold too");
    const late = place.left_over || (place.role !== "candidate" && isLate(instant(place.since)));
    const tone = holds ? TONES[place.role] || "accent" : late ? "amber" : "";
    return h(`span.badge${tone ? `.${tone}` : ""}`, {}, holds ? place.role : sideText(place) || place.role);
}

/* Two may hold the lock at once: the worst that this page has to say, in one sentence. */
export function outsideNote(lock) {
    if (!lock.outside) return null;
    const place = lock.waiters.find((p) => p.role === "outside");
    return h("p.body.note.danger", { role: "alert" }, h("b", {}, place ? fullText(place) : "A kazoo client further back"),
        " may hold this lock at the same time: a kazoo Lock with its default name does not see the clave and Curator clients ahead of it, unless its ",
        h("code", {}, "extra_lock_patterns"), " names them.");
}

/* What to do about a node that no session owns: a queue behind it waits until somebody deletes it. */
export function leftOverNote({ path, kind, left_over: [first] = [] }) {
    if (!first) return null;
    return h("div.body.note.left-over", {}, h("p", {}, h("span.badge.amber", {}, "left over"),
        ` No session owns ${first.node}, so it never goes away by itself, and everybody behind it waits. To delete it:`),
        commandToCopy(commandLine("locks break", kind === "slot" ? `${path}/queue` : path, first.node)));
}
