/* elections.js - every election: who leads since when, who else stands, and its terms as bars. */
import { h } from "../lib/dom.js";
import { age } from "../lib/redraw.js";
import { count, instant, plural, urlPath } from "../lib/format.js";
import { store } from "../model/store.js";
import { commandLine } from "../parts/command_line.js";
import { table } from "../parts/table.js";
import { who, whoText, command } from "../parts/participant.js";
import { pathText } from "../parts/lock_text.js";
import { arrange, compare } from "../parts/order.js";
import { leaderless, spanOf, termBars, axis } from "../parts/election_timeline.js";
import { empty, refused } from "../parts/empty.js";

export const title = () => "Elections";

/* Those that lack a leader first, those that are over last; then by path. */
const usual = (a, b) => compare(leaderless(a).rank, leaderless(b).rank) || compare(a.path, b.path);

function leaderCell(e) {
    const { text, tone } = leaderless(e);
    if (text) return h("td.wide", {}, h("div.lines", {}, h("span", {}, h(`span.badge.${tone}`, {}, text)), e.terms?.at(-1)?.to ? h("span.sub", {}, "for ", age(instant(e.terms.at(-1).to))) : null));
    return h("td.wide", {}, h("div.lines", {}, who(e.leader), command(e.leader)));
}

function columns(span) {
    return [
        { id: "path", title: "Election", width: "24%", sort: (e) => e.path, cell: (e) => h(`td.${{ red: "bad", amber: "late" }[leaderless(e).tone] || "fine"}`, {}, h("div.lines", {},
            h("a.main.cut", { href: `#/elections${urlPath(e.path)}` }, pathText(e.path)),
            h("span.sub.cut", {}, `${plural(e.terms?.length || 0, "term")} · ${plural(e.candidates?.length || 0, "candidate")}`))) },
        { id: "leader", title: "Leader", width: "26%", sort: (e) => (e.leader ? whoText(e.leader) : null), cell: leaderCell },
        { id: "since", title: "Leads for", num: true, width: "110px", sort: (e) => (e.leader ? -instant(e.since) : null), down: true, cell: (e) => h("td.right", {}, e.leader ? age(instant(e.since)) : h("span.none.blank", {}, "–")) },
        { id: "terms", title: h("span", {}, h("span.hidden-text", {}, "Terms"), axis(span)), cell: (e) => h("td.wide", {}, termBars(e, span)) },
    ];
}

function body(items) {
    if (store.failed.elections) return refused(store.failed.elections, "elections");
    if (store.loaded.elections && items.length === 0) {
        return empty("elections", "No election", "Leaders and candidates of clave and of Curator's LeaderLatch appear here. kazoo's Election is a lock, and so among the locks. Try it in a terminal:", commandLine("elect", "/demo/leader", "--", "sleep", "60"));
    }
    const list = columns(spanOf(items));
    return table({ id: "elections", label: "Elections", columns: list, items: arrange(items, list, usual), key: (e) => e.path, href: true, height: 64, phoneHeight: 118, loading: !store.loaded.elections });
}

export function view() {
    const items = [...store.elections.values()];
    return h("div", { "data-key": "elections" }, h("div.head", {}, h("h1", { tabindex: "-1" }, "Elections"),
        h("p.aside", { role: "status" }, store.loaded.elections ? `${count(items.length)} in all` : "")),
        h("section.panel.data", { "aria-label": "All elections" }, body(items)));
}
