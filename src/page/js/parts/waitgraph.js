/* waitgraph.js - a deadlock as a picture: owners are boxes, locks are pills. An owner's arrow goes to the
 * lock it waits for, a lock's to the owner that holds it; the cycle is red, or amber if it is only
 * possible; those who wait outside it are grey. Wide: two rows, clockwise. Narrow: one column, with the way back
 * beside it. */
import { svg } from "../lib/dom.js";
import { elided } from "../lib/format.js";

const W = 196;
const H = 56;
const GAP_X = 44;
const GAP_Y = 64;

/* Owner, lock it waits for, its owner, ...: the cycle in order. */
function nodesOf(members) {
    return members.flatMap((m) => {
        const owner = { kind: "owner", title: m.title || m.who, sub: m.victim ? "is to give up" : m.runs ? `runs ${m.runs}` : m.sub };
        if (!m.path) return [owner];
        return [owner, { kind: "lock", title: m.path, sub: m.waited, more: m.more }];
    });
}

function placeRing(nodes) {
    const top = Math.ceil(nodes.length / 2);
    const above = nodes.some((n, i) => n.more && i < top) ? 44 : 2;
    const under = nodes.some((n, i) => n.more && i >= top) ? 44 : 2;
    nodes.forEach((n, i) => {
        const below = i >= top;
        n.x = (below ? nodes.length - 1 - i : i) * (W + GAP_X) + 2;
        n.y = above + (below ? H + GAP_Y : 0);
    });
    return { width: top * (W + GAP_X) - GAP_X + 4, height: above + 2 * H + GAP_Y + under, middle: above + H + GAP_Y / 2 };
}

function placeColumn(nodes, width) {
    nodes.forEach((n, i) => {
        n.x = 34;
        n.y = i * (H + 34) + 4;
        n.w = Math.min(260, width - 40);
    });
    return { width: Math.min(300, width), height: nodes.length * (H + 34) - 26 };
}

const box = (n) => ({ cx: n.x + (n.w || W) / 2, cy: n.y + H / 2, w: n.w || W });

/* From the edge of one box to the edge of the next: straight along a row, a column, or a bend at the end. */
function edge(a, b) {
    const p = box(a);
    const q = box(b);
    if (a.y === b.y) {
        const right = q.cx > p.cx;
        return `M${p.cx + (right ? p.w / 2 : -p.w / 2)} ${p.cy}H${q.cx + (right ? -q.w / 2 - 7 : q.w / 2 + 7)}`;
    }
    const down = q.cy > p.cy;
    const y1 = p.cy + (down ? H / 2 : -H / 2);
    const y2 = q.cy + (down ? -H / 2 - 7 : H / 2 + 7);
    return p.cx === q.cx ? `M${p.cx} ${y1}V${y2}` : `M${p.cx} ${y1}C${p.cx} ${(y1 + y2) / 2} ${q.cx} ${(y1 + y2) / 2} ${q.cx} ${y2}`;
}

function wayBack(last, first) {
    return `M${last.x} ${last.y + H / 2}H14a8 8 0 0 1 -8 -8V${first.y + H / 2 + 8}a8 8 0 0 1 8 -8H${first.x - 7}`;
}

/* Of a path both ends say more than its middle; of a command the beginning does. */
function cut(text, width, size, atEnd) {
    const most = Math.floor(width / size);
    return atEnd && text.length > most ? `${text.slice(0, most - 1)}…` : elided(text, most);
}

function node(n) {
    const { cx, w } = box(n);
    return svg(`g.${n.kind}`, {}, svg("title", {}, n.title),
        svg("rect", { x: n.x, y: n.y, width: w, height: H, rx: n.kind === "lock" ? H / 2 : 8 }),
        svg("text.name", { x: cx, y: n.y + 24, "text-anchor": "middle" }, cut(n.title, w - 28, n.kind === "lock" ? 7.6 : 7.4, n.kind === "owner")),
        svg("text.sub", { x: cx, y: n.y + 42, "text-anchor": "middle" }, cut(n.sub, w - 28, 6.2, true)));
}

/* "+ 3 wait" at a lock, outside the cycle. */
function outside(n, size, column) {
    if (!n.more) return null;
    const { cx, w } = box(n);
    const text = `+ ${n.more} wait`;
    if (column) return svg("text.outside", { x: n.x + w - 8, y: n.y - 6, "text-anchor": "end" }, text);
    const above = n.y < size.middle;
    const y = above ? 14 : n.y + H + 36;
    return svg("g.outside", {}, svg("text", { x: cx, y: above ? 12 : y + 4, "text-anchor": "middle" }, text),
        svg("path", { d: above ? `M${cx} 20V${n.y - 7}` : `M${cx} ${y - 10}V${n.y + H + 7}`, "marker-end": "url(#grey-arrow)" }));
}

const marker = (id) => svg("marker", { id, viewBox: "0 0 8 8", refX: 4, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto", markerUnits: "userSpaceOnUse" },
    svg("path", { d: "M0 0L8 4L0 8z" }));

/* A member is {who, title, sub, victim, path, waited, more}: more wait at its path outside the cycle. tone: red, amber. */
export function waitGraph(text, members, width, tone) {
    const nodes = nodesOf(members);
    const ring = Math.ceil(nodes.length / 2) * (W + GAP_X) - GAP_X + 4 <= width;
    const size = ring ? placeRing(nodes) : placeColumn(nodes, width);
    const edges = nodes.map((n, i) => {
        const last = i === nodes.length - 1;
        return svg("path.edge", { d: !ring && last ? wayBack(n, nodes[0]) : edge(n, nodes[(i + 1) % nodes.length]), "marker-end": `url(#${tone}-arrow)` });
    });
    return svg("svg.waitgraph", { width: size.width, height: size.height, viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": text },
        svg("defs", {}, marker(`${tone}-arrow`), marker("grey-arrow")), edges, nodes.map((n) => outside(n, size, !ring)), nodes.map(node));
}
