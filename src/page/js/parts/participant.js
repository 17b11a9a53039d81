/* participant.js - a PLACE of a queue (a holder, a waiter, a candidate) in words. */
import { h } from "../lib/dom.js";
import { hexSession, instant } from "../lib/format.js";
import { commandLine } from "./command_line.js";
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

/* Line 1: host and pid, and the name; line 2: the command. */
export function who(place, more = 0) {
    if (!place) return h("span.none", {}, "nobody");
    if (place.role === "slot") {
        return h("span.who.cut", { title: whoText(place) }, h("b", {}, whoText(place)), place.host && place.host !== place.name ? ` · ${place.host}` : "",
            more > 0 ? h("span.sub", {}, `  + ${more} more`) : null);
    }
    const first = place.host
        ? [h("b", {}, place.host), place.pid ? ` · ${place.pid}` : ""]
        : [h("b", {}, whoText(place))];
    const named = place.host && place.name ? ` · ${place.name}` : "";
    return h("span.who.cut", { title: whoText(place) }, first, named, more > 0 ? h("span.sub", {}, `  + ${more} more`) : null);
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
    const late = place.left_over || (place.role !== "candidate" && isLate(instant(place.since)));
    const tone = holds ? TONES[place.role] || "accent" : late ? "amber" : "";
    return h(`span.badge${tone ? `.${tone}` : ""}`, {}, holds ? place.role : sideText(place) || place.role);
}

/* What to do about a node that no session owns: a queue behind it waits until somebody deletes it. */
export function leftOverNote({ path, kind, left_over: [first] = [] }) {
    if (!first) return null;
    const dir = kind === "slot" ? `${path}/queue` : path;
    return h("p.body.note.left-over", {}, h("span.badge.amber", {}, "left over"),
        ` No session owns ${first.node}; it never ends by itself. To delete it: `, h("code.mono", {}, commandLine("locks break", `${dir} ${first.node}`)));
}
