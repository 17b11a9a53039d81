/* place.js - a PLACE of a queue (a holder, a waiter, a candidate) in words. */
import { h } from "../lib/dom.js";

export function whoText(place) {
    if (!place) return "nobody";
    if (place.unreadable) return "a client whose node may not be read";
    const where = [place.host, place.pid ? `pid ${place.pid}` : null].filter(Boolean).join(" ");
    return where || place.name || place.text || (place.session ? `session ${place.session}` : place.node || "unknown");
}

/* Line 1: host and pid, and the name; line 2: the command. */
export function who(place, more = 0) {
    if (!place) return h("span.none", {}, "nobody");
    const first = place.host
        ? [h("b", {}, place.host), place.pid ? ` · ${place.pid}` : ""]
        : [h("b", {}, whoText(place))];
    const named = place.host && place.name ? ` · ${place.name}` : "";
    return h("span.who.cut", { title: whoText(place) }, first, named, more > 0 ? h("span.sub", {}, `  + ${more} more`) : null);
}

export function commandOf(place) {
    if (place?.command) return place.text ? `${place.command}: ${place.text}` : place.command;
    if (whoText(place) !== place?.text) return place?.text || (place?.host ? null : place?.node) || null;
    return null;
}

export function command(place) {
    const text = commandOf(place);
    return h("span.sub.mono.cut", { title: text }, text || "\u00a0");
}

const CLIENTS = { clave: "clave", curator: "Curator", kazoo: "kazoo", other: "other client" };

export const clientName = (client) => CLIENTS[client] || client || "–";

export function pathText(path) {
    const i = path.lastIndexOf("/");
    return h("span.path.cut", { title: path }, h("span.dir", {}, path.slice(0, i + 1)), h("span.last", {}, path.slice(i + 1)));
}

const KINDS = { lock: "lock", rw: "read-write", semaphore: "semaphore", election: "election", mixed: "mixed" };

export function kindBadge(lock) {
    const limit = lock.kind === "semaphore" && lock.limit ? ` of ${lock.limit}` : "";
    return h("span.badge", {}, (KINDS[lock.kind] || lock.kind) + limit);
}

const TONES = { holder: "accent", lease: "accent", leader: "green", writer: "accent", reader: "accent" };

export function roleBadge(place, holds) {
    const tone = holds ? TONES[place.role] || "accent" : "amber";
    const text = holds || !["reader", "writer"].includes(place.role) ? place.role : `to ${place.role === "reader" ? "read" : "write"}`;
    return h(`span.badge.${tone}`, {}, text);
}
