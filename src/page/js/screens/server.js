/* server.js - the gate and the servers behind it, as /v1/server tells; and who one is. */
import { h } from "../lib/dom.js";
import { bytes, count, duration, hexSession } from "../lib/format.js";
import { store } from "../model/store.js";
import { refused } from "../parts/empty.js";
import { clockTime } from "../lib/format.js";

export const title = () => "Server";

const LABELS = { servers: "The gate connects to", connect: "Clients connect to", role: "The server is", state: "The gate's session", max_body: "Largest body" };

const words = (name) => LABELS[name] || name.replace(/_ms$/, "").replace(/_/g, " ").replace(/^./, (c) => c.toUpperCase());

function value(name, v) {
    if (v === null || v === undefined || v === "") return "–";
    if (name === "session_id") return hexSession(v);
    if (name === "max_body") return bytes(v);
    if (typeof v === "boolean") return v ? "yes" : "no";
    if (typeof v === "number") return name.endsWith("_ms") ? duration(v) : count(v);
    if (Array.isArray(v)) return v.map((x) => (typeof x === "object" ? JSON.stringify(x) : x)).join(", ") || "–";
    return typeof v === "object" ? JSON.stringify(v) : String(v);
}

function facts(object) {
    return h("dl.facts", {}, Object.entries(object).filter(([, v]) => typeof v !== "object" || v === null || Array.isArray(v))
        .map(([k, v]) => [h("dt", {}, words(k)), h("dd", {}, value(k, v))]));
}

function panel(id, heading, inside) {
    return h("section.panel.data", { "aria-labelledby": id }, h("header", {}, h("h2", { id }, heading)), h("div.body", {}, inside));
}

function body() {
    if (store.failed.server) return h("section.panel", {}, refused(store.failed.server, "server"));
    if (!store.server) return panel("server-title", "Gate", h("div.waiting", {}));
    const groups = Object.entries(store.server).filter(([, v]) => v && typeof v === "object" && !Array.isArray(v));
    return h("div.columns", {}, panel("server-title", "Gate", facts(store.server)), groups.map(([name, v]) => panel(`${name}-title`, words(name), facts(v))),
        panel("you-title", "You", facts({ name: store.who?.name || "no name: the gate was given no token", may: (store.who?.grants || []).map((g) => `${g.role} below ${g.prefix}`), connection: store.link.state === "live" ? "live" : `${store.link.state} since ${clockTime(store.link.since || Date.now())}` })));
}

export function view() {
    return h("div", { "data-key": "server" }, h("div.head", {}, h("h1", { tabindex: "-1" }, "Server")), body());
}
