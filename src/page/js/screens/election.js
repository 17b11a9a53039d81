/* election.js - one election: leader, value, candidates, terms; transfer and a new value for those who may. */
import { h } from "../lib/dom.js";
import { age } from "../lib/redraw.js";
import { count, dateTime, duration, instant, urlPath } from "../lib/format.js";
import { call } from "../net/api.js";
import { may, onEvent } from "../model/store.js";
import { Kept } from "../net/cached_answer.js";
import { table } from "../parts/table.js";
import { askReason } from "../parts/dialog.js";
import { commandLine } from "../parts/command_line.js";
import { toast } from "../parts/toast.js";
import { empty, refused } from "../parts/empty.js";
import { who, whoText, fullText, command, roleBadge, clientName, leftOverNote } from "../parts/participant.js";
import { pathText, causeText, oldBadge } from "../parts/lock_text.js";
import { addressOf } from "../lib/address.js";
import { leaderless, spanOf, termBars, axis, leaderText } from "../parts/election_timeline.js";

const one = new Kept();
let stopListening = null;

export const title = (route) => route.path;

export function enter({ path }) {
    one.ask(`/v1/elections${urlPath(path)}`);
    stopListening = onEvent(({ name, data }) => {
        if (name === "reset" || data?.path === path) one.askSoon();
    });
}

export function leave() {
    stopListening?.();
    one.forget();
}

function askTransfer(e, place) {
    askReason({ id: "transfer", title: `Let ${whoText(place)} lead?`, action: "Transfer",
        facts: [["Election", h("span.mono", {}, e.path)], ["Leader", fullText(e.leader)], ["Leads for", age(e.leader ? instant(e.since) : null)], ["To lead", fullText(place)]],
        command: commandLine("transfer", e.path, place.node),
        text: `${e.leader ? `${whoText(e.leader)} is asked to resign, and ` : ""}${whoText(place)} moves to the front of the queue. Nobody leads for a moment.`,
        submit: async (reason) => {
            await call("POST", `/v1/elections${urlPath(e.path)}/transfer`, { body: { to: place.node, reason } });
            toast(`${whoText(place)} is to lead.`);
        } });
}

function candidateTable(e) {
    const columns = [
        { id: "at", title: "#", width: "52px", num: true, cell: (p, i) => h("td.off", {}, i + 1) },
        { id: "role", title: "Role", width: "104px", cell: (p) => h("td.right", {}, roleBadge(p, p.role === "leader")) },
        { id: "who", title: "Who", cell: (p) => h("td.wide.lead", {}, h("div.lines", {}, who(p), command(p))) },
        { id: "since", title: "In queue for", width: "124px", num: true, cell: (p) => h("td", {}, age(instant(p.since))) },
        { id: "token", title: "Token", width: "140px", num: true, cell: (p) => h("td.off.mono", {}, p.token ?? "–") },
        { id: "client", title: "Client", width: "120px", cell: (p) => h("td.off", {}, clientName(p.client)) },
    ];
    if (may("lock", e.path)) columns.push({ id: "do", title: h("span.hidden-text", {}, "Actions"), width: "130px", cell: (p) => h("td.wide.do", {}, p.role === "leader" || p.left_over ? null
        : h("button.button", { type: "button", onclick: () => askTransfer(e, p) }, "Transfer …")) });
    const all = [...(e.leader ? [{ ...e.leader, role: "leader" }] : []), ...(e.left_over || []), ...(e.candidates || []).filter((p) => p.node !== e.leader?.node)];
    if (all.length === 0) return empty("elections", "No candidates", "The next one leads at once.");
    return table({ id: "candidates", label: "Candidates", columns, items: all, key: (p) => p.node, height: 54, phoneHeight: may("lock", e.path) ? 116 : 68 });
}

function termTable(e) {
    const items = (e.terms || []).map((t, i, all) => ({ ...t, next: all[i + 1] })).reverse();
    const gap = (t) => (t.to && t.next ? instant(t.next.from) : null);
    const from = (t, show) => (instant(t.from) === null ? h("span.none", {}, "–") : show(instant(t.from)));
    return table({ id: "terms", label: "Terms", items, key: (t) => t.token ?? t.from, height: 40, phoneHeight: 66, columns: [
        { id: "who", title: "Leader", cell: (t) => h("td", {}, h("div.cut", {}, leaderText(t))) },
        { id: "from", title: "From", width: "176px", cell: (t) => h("td.off", {}, from(t, dateTime)) },
        { id: "for", title: "Led for", width: "110px", num: true, cell: (t) => h("td.right", {}, from(t, (since) => (t.to ? duration(instant(t.to) - since) : age(since)))) },
        { id: "cause", title: "Ended by", width: "196px", cell: (t) => h("td", {}, t.to ? causeText(t.cause || "unknown") : h("span.badge.green", {}, "leads")) },
        { id: "gap", title: "Then nobody for", width: "140px", num: true, cell: (t) => h("td.right", {}, gap(t) === null ? h("span.none.blank", {}, "–") : [h("span.label", {}, "then nobody for "), duration(gap(t) - instant(t.to))]) },
    ] });
}

function facts(e) {
    const tile = (name, value, tone = "") => h("div.tile", {}, h("dt", {}, name), h("dd", { class: tone }, e ? value : "\u00a0"));
    return h("dl.tiles.data", { "aria-label": "Summary" }, tile("Leader", e?.leader ? h("span.cut", {}, whoText(e.leader)) : h("span.none", {}, "nobody"), "long cut"),
        tile("Leads for", age(e?.leader ? instant(e.since) : null)), tile("Term", e?.term ?? "–", "long mono"),
        tile("Value", e?.value ?? (e?.value_base64 ? "not text" : "–"), "long mono cut"));
}

function panel(id, heading, note, inside, aside) {
    return h("section.panel.data", { "aria-labelledby": id }, h("header", {}, h("h2", { id }, heading), note ? h("span.note", {}, note) : null,
        aside ? h("span.aside", {}, aside) : null), inside);
}

function body(e) {
    if (one.problem) return h("section.panel", {}, refused(one.problem, "elections"));
    if (!e) return panel("terms-title", "Terms", null, h("div.body.chart", {}));
    const span = spanOf([e]);
    return [panel("terms-title", "Terms", `the last ${duration(span)}`, [h("div.body.chart", {}, termBars(e, span), axis(span)), termTable(e)]),
        panel("candidates-title", "Candidates", `${count(e.candidates?.length || 0)} behind the leader`, [leftOverNote(e), candidateTable(e)])];
}

export function view({ path }) {
    const e = one.value;
    return h("div", { "data-key": `election ${path}` },
        h("nav.crumbs", { "aria-label": "Where" }, h("a", { href: addressOf("elections") }, "Elections")),
        h("div.head", {}, h("h1", { tabindex: "-1" }, pathText(path)), e && !e.leader ? h(`span.badge.${leaderless(e).tone}`, {}, leaderless(e).text) : null, oldBadge(e),
            h("div.aside", {}, h("a.button", { href: `#/tree${urlPath(path)}` }, "Show in the tree"))),
        facts(e), body(e));
}
