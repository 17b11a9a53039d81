/* table.js - a table of rows of one height. Only rows in sight, and some around, are elements; the rest is
 * two spacers: 5 000 locks scroll like 20. The document scrolls, the table does not.
 *
 * A column is {id, title, width, num, sort, down, cell(item) -> td}; order.js has the last two. Rows have a link
 * `a.main`; arrows, j and k go from one to the next. */
import { h } from "../lib/dom.js";
import { soon } from "../lib/redraw.js";
import { show } from "../lib/address.js";
import { orderOf, sortBy } from "./order.js";

const AROUND = 10;
const ALL_BELOW = 60;

export const narrow = matchMedia("(max-width: 820px)");
narrow.addEventListener("change", soon);
addEventListener("scroll", soon, { passive: true });
addEventListener("resize", soon);

/* Where the rows of a table begin in the document: as it was drawn last, or else about where they will. */
function rowsTop(id) {
    const body = document.querySelector(`#${id} tbody`);
    return body ? body.getBoundingClientRect().top : 300;
}

function slice(id, n, height) {
    if (n <= ALL_BELOW) return [0, n];
    const first = Math.floor(-rowsTop(id) / height);
    const shown = Math.ceil(innerHeight / height);
    const from = Math.max(0, Math.min(n - shown, first) - AROUND);
    return [from, Math.min(n, Math.max(first, 0) + shown + AROUND)];
}

const space = (key, height, columns) => h("tr.space", { "data-key": key, "aria-hidden": "true", role: "presentation" },
    h("td", { colspan: columns, style: { height: `${height}px` } }));

function header(columns, column) {
    const order = orderOf(columns);
    const sorted = order && order.by === column.id ? (order.down ? "descending" : "ascending") : null;
    return h(`th${column.num ? ".num" : ""}`, { scope: "col", role: "columnheader", "aria-sort": sorted,
        style: { width: column.width || "auto" } },
        column.sort ? h("button", { type: "button", onclick: () => sortBy(columns, column.id) }, column.title) : column.title);
}

function row(t, item, index) {
    const tr = h(`tr${t.href ? ".go" : ""}`, { role: "row", "data-key": t.key(item), "aria-rowindex": index + 2 });
    for (const column of t.columns) {
        const td = column.cell(item, index);
        td.setAttribute("role", "cell");
        if (column.num) td.classList.add("num");
        tr.append(td);
    }
    return tr;
}

/* Rows of grey where data will be, of the same height. */
function bones(t, height) {
    return Array.from({ length: 8 }, (_, i) => h("tr", { role: "row", "data-key": `bone ${i}` }, t.columns.map((c, j) =>
        h(`td${j === 0 ? "" : ".off"}`, { role: "cell", style: { height: `${height}px` } },
            h("span.bone", { style: { width: `${30 + ((i * 37 + j * 23) % 50)}%` } })))));
}

/* On a phone there are no titles to click. */
function sorter(columns) {
    const sortable = columns.filter((c) => c.sort);
    if (!narrow.matches || sortable.length < 2) return null;
    const order = orderOf(columns);
    const options = [["", "usual order"], ...sortable.flatMap((c) => (c.down ? ["-", ""] : ["", "-"]).map((sign) =>
        [sign + c.id, `${c.name || c.title} ${sign ? "\u2193" : "\u2191"}`]))];
    const chosen = order ? `${order.down ? "-" : ""}${order.by}` : "";
    return h("label.sorter", {}, "Sorted by ", h("select", { onchange: (e) => show({ sort: e.target.value }) },
        options.map(([value, text]) => h("option", { value, selected: value === chosen }, text))));
}

/* t: {id, label, columns, items, key, href, height, phoneHeight, loading, hold} */
export function table(t) {
    const height = narrow.matches ? t.phoneHeight : t.height;
    const n = t.items.length;
    const [from, to] = t.loading ? [0, 0] : slice(t.id, n, height);
    const rows = t.loading ? bones(t, height) : t.items.slice(from, to).map((item, i) => row(t, item, from + i));
    return [sorter(t.columns), h("table.table", { id: t.id, role: "table", "aria-label": t.label, "aria-rowcount": t.loading ? -1 : n + 1,
        "aria-busy": t.loading ? "true" : null, style: { "--row": `${height}px` }, onpointerenter: () => t.hold?.(true),
        onpointerleave: () => t.hold?.(false) },
        h("thead", { role: "rowgroup" }, h("tr", { role: "row", "aria-rowindex": 1 }, t.columns.map((c) => header(t.columns, c)))),
        h("tbody", { role: "rowgroup" }, from > 0 ? space("above", from * height, t.columns.length) : null, rows,
            to < n && !t.loading ? space("below", (n - to) * height, t.columns.length) : null))];
}

/* The link of the next or the former row takes the focus; true if there is one. */
export function stepRow(step) {
    const links = [...document.querySelectorAll("main tr a.main")];
    if (!links.length) return false;
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (step > 0 ? links.findIndex((l) => l.getBoundingClientRect().top > 60) : -1) : at + step];
    if (!next) return false;
    next.focus({ preventScroll: true });
    next.closest("tr").scrollIntoView({ block: "nearest" });
    return true;
}
