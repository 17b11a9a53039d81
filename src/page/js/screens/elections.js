/* elections.js - every election: who leads since when, who else stands, and its terms as bars. */
import { h } from "../lib/dom.js";
import { age } from "../lib/schedule.js";
import { count, instant, plural, urlPath } from "../lib/format.js";
import { store } from "../model/store.js";
import { table } from "../parts/table.js";
import { who, command, pathText } from "../parts/place.js";
import { spanOf, termBars, axis } from "../parts/terms.js";
import { empty, refused } from "../parts/empty.js";

export const title = () => "Elections";

/* Those without a leader first; then by path. */
function sorted() {
    return [...store.elections.values()].sort((a, b) => Boolean(a.leader) - Boolean(b.leader) || (a.path < b.path ? -1 : 1));
}

function leaderCell(e) {
    if (!e.leader) return h("td.wide", {}, h("div.lines", {}, h("span", {}, h("span.badge.red", {}, "nobody leads")), h("span.sub", {}, "for ", age(instant(e.terms?.at(-1)?.to)))));
    return h("td.wide", {}, h("div.lines", {}, who(e.leader), command(e.leader)));
}

function columns(span) {
    return [
        { id: "path", title: "Election", width: "24%", cell: (e) => h(`td${e.leader ? "" : ".bad"}`, {}, h("div.lines", {},
            h("a.main.cut", { href: `#/elections${urlPath(e.path)}` }, pathText(e.path)),
            h("span.sub.cut", {}, `term ${e.term ?? "–"} · ${plural(e.candidates?.length || 0, "candidate")}`))) },
        { id: "leader", title: "Leader", width: "26%", cell: leaderCell },
        { id: "since", title: "Leads for", num: true, width: "110px", cell: (e) => h("td.right", {}, age(e.leader ? instant(e.since) : null)) },
        { id: "terms", title: h("span", {}, h("span.hidden-text", {}, "Terms"), axis(span)), cell: (e) => h("td.wide", {}, termBars(e, span)) },
    ];
}

function body(items) {
    if (store.failed.elections) return refused(store.failed.elections, "elections");
    if (store.loaded.elections && items.length === 0) {
        return empty("elections", "No election", "Leaders and candidates of clave, Curator's LeaderLatch and kazoo's Election appear here. Try it in a terminal:", "clave elect /demo/leader -- sleep 60");
    }
    const span = spanOf(items);
    return table({ id: "elections", label: "Elections", columns: columns(span), items, key: (e) => e.path, href: true, height: 64, phoneHeight: 118, loading: !store.loaded.elections });
}

export function view() {
    const items = sorted();
    return h("div", { "data-key": "elections" }, h("div.head", {}, h("h1", { tabindex: "-1" }, "Elections"),
        h("p.aside", { role: "status" }, store.loaded.elections ? `${count(items.length)} in all` : "")),
        h("section.panel.data", { "aria-label": "All elections" }, body(items)));
}
