/* shell.js - what is around every screen: navigation, cluster, role, whether the gate answers. */
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { soon } from "../lib/redraw.js";
import { clockTime, count } from "../lib/format.js";
import { addressOf } from "../lib/address.js";
import { store, connect, bestGrant, certainDeadlocks, isOld, isSilent } from "../model/store.js";
import { setToken, token } from "../net/api.js";
import { askToken } from "./dialog.js";
import { help } from "./keys.js";
import { clusterName } from "./command_line.js";

const NAMES = { locks: "Locks", deadlocks: "Deadlocks", elections: "Elections", events: "Events", sessions: "Sessions", tree: "Tree", server: "Server" };
const FIRST = ["locks", "deadlocks", "elections", "events"];
const REST = ["sessions", "tree", "server"];
let open = false;

/* Told by the last answer, not by whether a connection seems to be there. */
function linkState() {
    const { state } = store.link;
    const silent = state === "live" && isSilent();
    const word = { connecting: "Connecting", gone: "No connection", denied: token() ? "Token refused" : "No token" }[state] || (silent ? "No answer" : "Live");
    const asOf = store.asOf === null || state === "denied" ? null : clockTime(store.asOf);
    return h(`span.link-state.${silent ? "silent" : state}`, { title: silent ? `The gate has said nothing since ${asOf}.` : null },
        h("span.word", {}, word), asOf ? h("span.as-of", {}, `as of ${asOf}`) : null);
}

function role() {
    if (!store.who) return h("span.badge", {}, "\u2007\u2007\u2007\u2007");
    const { role: name, prefix } = bestGrant();
    const title = (store.who.grants || []).map((g) => `${g.role} below ${g.prefix}`).join(", ");
    if (name === "read" || name === "none") return h("span.badge", { title }, name === "read" ? "read-only" : "no role");
    return h("span.badge.accent", { title }, prefix === "/" ? name : `${name} ${prefix}`);
}

function numbers() {
    let locks = 0;
    for (const l of store.locks.values()) locks += l.kind !== "election";
    return { locks: store.loaded.locks ? locks : null, elections: store.loaded.elections ? store.elections.size : null,
        deadlocks: certainDeadlocks().length || null };
}

/* True if the menu of a phone was open. */
export function closeMenu() {
    const was = open;
    open = false;
    if (was) {
        document.querySelector(".nav .more")?.focus();
        soon();
    }
    return was;
}

function link(name, current, n) {
    return h("a", { href: addressOf(name), "aria-current": current === name ? "page" : null, onclick: () => { open = false; } },
        icon(name), NAMES[name], n === null || n === undefined ? null
            : h(`span.count${name === "deadlocks" ? ".alarm" : ""}`, {}, count(n)));
}

function enterToken() {
    askToken({ must: false }, (value) => {
        setToken(value);
        connect();
    });
}

const tokenText = () => (token() ? "Change token" : "Enter a token");
const brand = () => h("div.brand", {}, icon("key"), "clave");

export function side(current) {
    const n = numbers();
    const toggle = () => {
        open = !open;
        soon();
    };
    return h("div.side-inner", {}, brand(),
        h("dl.cluster", {}, h("dt", {}, "Cluster"), h("dd", {}, clusterName()?.replace(/,/g, ",\u200b") || "\u00a0")),
        h("nav.nav", { "aria-label": "Screens" }, FIRST.map((name) => link(name, current, n[name])),
            h("button.more", { type: "button", "aria-expanded": String(open), "aria-controls": "rest",
                "aria-current": REST.includes(current) ? "true" : null, onclick: toggle }, icon("more"), "More"),
            h(`div.rest${open ? ".open" : ""}`, { id: "rest" }, REST.map((name) => link(name, current)),
                h("button", { type: "button", onclick: enterToken }, icon("key"), tokenText()))),
        h("div.foot", {}, linkState(),
            h("div", {}, "Role ", role(), store.who?.name ? ` ${store.who.name}` : ""),
            h("button", { type: "button", onclick: enterToken }, tokenText()),
            h("button", { type: "button", onclick: help }, "Keyboard")));
}

export function topbar() {
    return h("div.topbar", {}, brand(), h("span.name.cut", {}, clusterName() || "\u00a0"), role(), linkState());
}

const LONG_SILENCE_MS = 10000; /* a short one is told by the colour alone */

/* By this machine's clock, which is the one on its user's wall. */
export function banner() {
    const asOf = store.asOf === null ? null : `What you see is how things were at ${clockTime(store.asOf)}.`;
    if (store.link.state === "gone") {
        return h("div", {}, h("strong", {}, "The gate does not answer."), h("span", {}, [asOf, "The page keeps trying to reach it."].filter(Boolean).join(" ")));
    }
    if (isOld()) return h("div.old", {}, h("strong", {}, "The gate has lost its servers."), h("span", {}, asOf || "What you see may be out of date."));
    if (store.link.state !== "live" || !isSilent() || Date.now() - store.asOf < LONG_SILENCE_MS) return h("div", { hidden: true });
    return h("div.old", {}, h("strong", {}, "The gate has not answered for a while."), h("span", {}, asOf));
}
