/* tree.js - the nodes as they are: children, data, access list and stat of one node at a time. */
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { asked, show } from "../lib/address.js";
import { bytes, count, dateTime, hexSession, urlPath } from "../lib/format.js";
import { readable } from "../lib/content.js";
import { get, getPages } from "../net/api.js";
import { Kept } from "../net/cached_answer.js";
import { table } from "../parts/table.js";
import { empty, refused } from "../parts/empty.js";
import { store } from "../model/store.js";
import { pathText } from "../parts/lock_text.js";

const MOST_PAGES = 20; /* of 1000 children: beyond, nobody looks for one in a list */

async function loadNode(url, options) {
    const [children, acl, data] = await Promise.all([getPages(`${url}?children`, "children", options, MOST_PAGES), get(`${url}?acl`, options).catch((e) => ({ problem: e })),
        get(url, { ...options, raw: true }).then(async (answer) => readable(new Uint8Array(await answer.arrayBuffer())), (e) => ({ problem: e }))]);
    children.all.sort((a, b) => (a < b ? -1 : 1));
    return { children: children.all, more: children.more, stat: children.last.stat, acl, data };
}

const node = new Kept(loadNode);

export const title = ({ path }) => path || "Tree";

export function enter({ path }) {
    node.ask(`/v1/znodes${urlPath(path || "/")}`);
}

export function leave() {
    node.forget();
}

function crumbs(path) {
    const parts = path.split("/").filter(Boolean);
    return h("nav.crumbs", { "aria-label": "Where" }, h("a", { href: "#/tree" }, "/"), parts.slice(0, -1).map((part, i) =>
        [h("a", { href: `#/tree${urlPath(`/${parts.slice(0, i + 1).join("/")}`)}` }, part), "/"]));
}

function children(path) {
    const all = node.value?.children || [];
    const word = asked("filter").toLowerCase();
    const items = word ? all.filter((c) => c.toLowerCase().includes(word)) : all;
    const base = path === "/" ? "" : path;
    const inside = node.value && all.length === 0 ? h("p.body.note", {}, "No children.")
        : table({ id: "children", label: "Children", items, key: (c) => c, href: true, height: 38, phoneHeight: 44, loading: node.waiting, columns: [
            { id: "name", title: "Name", cell: (c) => h("td.wide", {}, h("a.main.child", { href: `#/tree${urlPath(`${base}/${c}`)}` }, icon("folder"), pathText(c))) }] });
    return h("section.panel.data", { "aria-labelledby": "children-title" },
        h("header", {}, h("h2", { id: "children-title" }, "Children"), h("span.note", {}, !node.value ? "" : node.value.more ? `the first ${count(all.length)} of ${count(node.value.stat.num_children)}` : count(all.length)),
            all.length > 12 ? h("div.aside.find", {}, h("input.field", { type: "search", "aria-label": "Filter children", placeholder: "Filter", autocomplete: "off", spellcheck: "false",
                value: asked("filter"), oninput: (e) => show({ filter: e.target.value }) })) : null), inside);
}

function panel(id, heading, note, inside) {
    return h("section.panel.data", { "aria-labelledby": id }, h("header", {}, h("h2", { id }, heading), note ? h("span.note", {}, note) : null), h("div.body", {}, inside));
}

function dataPanel(v) {
    if (v.data.problem) return panel("data-title", "Data", null, h("p.note", {}, v.data.problem.message));
    const cut = v.data.cut ? `, the first ${bytes(v.data.cut)}` : "";
    const size = `${bytes(v.stat.data_length)}${v.stat.data_length ? `, ${v.data.kind}${cut}` : ""}`;
    return panel("data-title", "Data", size, v.stat.data_length ? h("pre.node-data", { tabindex: "0", "aria-labelledby": "data-title" }, v.data.text) : h("p.note", {}, "No data."));
}

function aclPanel(v) {
    if (v.acl.problem) return panel("acl-title", "Access list", null, h("p.note", {}, v.acl.problem.message));
    return panel("acl-title", "Access list", null, h("dl.facts", {}, v.acl.acl.map((a) => [h("dt.mono", {}, a.perms), h("dd", {}, `${a.scheme}:${a.id}`)])));
}

/* Containers and nodes with a TTL have marks in the place of a session. */
function typeText(owner) {
    const id = hexSession(owner || "0");
    if (id === "0x0") return "persistent";
    if (id === "0x8000000000000000") return "container: the server deletes it once its last child is gone";
    if (/^0xff.{14}$/.test(id)) return "with a TTL: the server deletes it when it has no children and has not been written for that long";
    return `ephemeral: it goes when session ${id} ends`;
}

function statPanel({ stat }) {
    const rows = [["Type", typeText(stat.ephemeral_owner)], ["Version", `${stat.version} (children ${stat.cversion}, access list ${stat.aversion})`], ["Created", `${dateTime(stat.ctime)}, zxid ${stat.czxid}`],
        ["Changed", `${dateTime(stat.mtime)}, zxid ${stat.mzxid}`], ["Children changed", `zxid ${stat.pzxid}`]];

    return panel("stat-title", "Stat", null, h("dl.facts", {}, rows.map(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])));
}

function details() {
    const v = node.value;
    if (!v) return h("div.details", {}, panel("data-title", "Data", null, h("div.waiting", {})));
    return h("div.details", {}, dataPanel(v), aclPanel(v), statPanel(v));
}

function body(path) {
    if (node.problem?.status === 404) return h("section.panel", {}, empty("tree", "This node does not exist", "It was deleted, or it never existed. The links above lead to the nodes around it."));
    if (node.problem) return h("section.panel", {}, refused(node.problem, "tree"));
    return h("div.split", {}, children(path), details());
}

export function view({ path: given }) {
    const path = given || "/";
    const lock = store.locks.get(path) || store.elections.get(path);
    return h("div", { "data-key": `tree ${path}` }, crumbs(path),
        h("div.head", {}, h("h1", { tabindex: "-1" }, given ? pathText(path.slice(path.lastIndexOf("/") + 1)) : "Tree"),
            h("div.aside", {}, lock ? h("a.button", { href: `#/${store.elections.has(path) ? "elections" : "locks"}${urlPath(path)}` }, "Show the queue") : null,
                h("button.button", { type: "button", onclick: () => node.askSoon(0) }, "Reload"))),
        body(path));
}

