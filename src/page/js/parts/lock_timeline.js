/* lock_timeline.js - who waited for a lock and held it, along time: a row a client, thin and hatched while it waits,
 * thick while it holds, and a mark for how it ended. The same as a table, for those who do not see the picture. */
import { h } from "../lib/dom.js";
import { clockTime, count, dateTime, duration, plural } from "../lib/format.js";
import { age } from "../lib/redraw.js";
import { asked, show } from "../lib/address.js";
import * as clock from "../lib/clock.js";
import { covered, knownSince, spansOf, staysOf } from "../model/lock_history.js";
import { choice } from "./choice.js";
import { commandOf, sideText, who, whoText, command } from "./participant.js";
import { causeText, deedText } from "./lock_text.js";
import { axis, SPANS_MS } from "./election_timeline.js";
import { table } from "./table.js";

const MOST_ROWS = 12;
const FITTED = 12; /* stays that are seen without being asked for more */
const LEAST_PERCENT = 0.5;
const NEAR_PERCENT = 1.6; /* marks that are closer would lie on each other */
const SPANS = [["", "Fit"], ["10m", "10 min"], ["1h", "1 h"], ["1d", "1 day"]];
const CHOSEN_MS = { "10m": 600e3, "1h": 3600e3, "1d": 86400e3 };
const MARKS = { released: "✓", expired: "✕", closed: "○", broken: "!", unknown: "?" };

function fitted(stays, begin, now) {
    const first = stays.slice(-FITTED).reduce((least, s) => Math.min(least, s.queued ?? s.granted ?? begin), now);
    return [30e3, 60e3, ...SPANS_MS].find((s) => s >= now - first) || SPANS_MS.at(-1);
}

/* One clock for all of a picture. */
function scaleOf(stays, begin) {
    const now = clock.now();
    const span = CHOSEN_MS[asked("span")] || fitted(stays, begin, now);
    return { now, span, start: now - span, begin };
}

/* A job that runs again and again is a new process each time: who it is but for its pid. */
function jobOf(place) {
    return place.host ? [place.host, place.name, commandOf(place)].join(" ") : whoText(place);
}

/* A row has stays that do not overlap, as far as that can be seen: of one job, one after the other. Those who are
 * there now come first, as they stand in the queue; then by when they left. */
function rowsOf(stays, scale) {
    const rows = [];
    for (const stay of stays) {
        if ((stay.ended ?? scale.now) < scale.start) continue;
        const job = jobOf(stay.place);
        const { wait, hold, maybe } = spansOf(stay, scale.begin, scale.now);
        let row = rows.find((r) => r.job === job && r.left <= (wait || maybe || hold)[0] + scale.span / 200);
        if (!row) rows.push(row = { job, stays: [], left: 0 });
        row.stays.push(stay);
        row.left = stay.ended ?? Infinity;
    }
    const rank = (r) => (r.left < Infinity ? 2 : r.stays.at(-1).held ? 0 : 1);
    return rows.sort((a, b) => rank(a) - rank(b) || (rank(a) === 2 ? b.left - a.left : a.stays.at(-1).queued - b.stays.at(-1).queued));
}

function nameOf(row) {
    const { place } = row.stays.at(-1);
    return who({ ...place, name: place.name || commandOf(place), pid: row.stays.every((s) => s.place.pid === place.pid) ? place.pid : null });
}

function bar(kind, [from, to], scale, title) {
    const percent = (t) => ((t - scale.start) / scale.span) * 100;
    const right = Math.min(100, percent(to));
    if (right <= 0) return null;
    const width = Math.max(LEAST_PERCENT, right - Math.max(0, percent(from)));
    return h(`i.${kind}`, { title, style: { left: `${Math.min(100 - width, Math.max(0, percent(from)))}%`, width: `${width}%` } });
}

const endText = (stay) => (stay.ended ? `until ${dateTime(stay.ended)}, ${deedText(stay)}` : "until now");

function stayTexts(stay) {
    const side = sideText(stay.place);
    const to = stay.ended ?? clock.now();
    const since = stay.granted === null && stay.held ? ", already when the history began" : "";
    const held = stay.granted ?? stay.queued;
    return { wait: `waited ${side} ${stay.queued === null ? "since before the history began" : `from ${dateTime(stay.queued)}`} ${stay.held ? "" : endText(stay)}`.replace(/ +/g, " ").trim(),
        hold: `held ${side}${held === null ? "" : ` ${duration(to - held)}, from ${dateTime(held)}`}${since}, ${endText(stay)}`.replace(/ +/g, " ") };
}

function barsOf(stay, scale) {
    const { wait, hold, maybe } = spansOf(stay, scale.begin, scale.now);
    const text = stayTexts(stay);
    return [wait ? bar("wait", wait, scale, text.wait) : null, maybe ? bar("maybe", maybe, scale, stay.held ? text.hold : `held, or ${text.wait}`) : null,
        hold ? bar("hold", hold, scale, text.hold) : null];
}

/* Of marks that would lie on each other the worst is seen. */
function marksOf(stays, scale) {
    const worst = ["broken", "expired", "closed", "unknown", "released"];
    const marks = [];
    for (const stay of stays) {
        const at = ((stay.ended - scale.start) / scale.span) * 100;
        if (!stay.ended || at < 0) continue;
        const last = marks.at(-1);
        if (last && at - last.at < NEAR_PERCENT) {
            if (worst.indexOf(stay.cause) < worst.indexOf(last.stay.cause)) last.stay = stay;
        } else {
            marks.push({ at, stay });
        }
    }
    return marks.map(({ at, stay }) => h(`b.mark.${stay.cause}`, { title: deedText(stay), style: { left: `${Math.min(at, 98.5)}%` } }, MARKS[stay.cause] || "?"));
}

function row(r, scale) {
    return [h("div.name", {}, nameOf(r)), h("div.track", {},
        scale.begin > scale.start ? bar("dark", [scale.start, Math.min(scale.begin, scale.now)], scale, "before the history began") : null,
        r.stays.map((s) => barsOf(s, scale)), marksOf(r.stays, scale))];
}

/* Of the time that is known. */
function summary(stays, scale) {
    const from = Math.max(scale.start, scale.begin);
    const holds = stays.map((s) => [spansOf(s, scale.begin, scale.now).hold, whoText(s.place)]).filter(([hold]) => hold && hold[1] > from);
    const part = covered(holds.map(([[a, b]]) => [Math.max(a, from), b])) / Math.max(1, scale.now - from);
    const percent = part > 0 && part < 0.01 ? "less than 1" : Math.round(part * 100);
    return `Held ${percent} % of the time, ${plural(holds.length, "hold")} by ${plural(new Set(holds.map(([, name]) => name)).size, "client")}`;
}

function legend(stays, scale, rows) {
    const causes = new Set(stays.filter((s) => s.ended && s.ended >= scale.start).map((s) => s.cause));
    const item = (sample, text) => h("span", {}, sample, text);
    return h("p.legend", { "aria-hidden": "true" }, item(h("i.wait"), "waits"), item(h("i.hold"), "holds"),
        rows.some((r) => r.stays.some((s) => s.held !== false && s.granted === null)) ? item(h("i.maybe"), "held already, or waited") : null,
        scale.begin > scale.start ? item(h("i.dark"), `not known: before ${clockTime(scale.begin)}`) : null,
        Object.keys(MARKS).filter((c) => causes.has(c)).map((c) => item(h(`b.mark.${c}`, {}, MARKS[c]), causeText(c))));
}

function picture(path, stays, scale) {
    const rows = rowsOf(stays, scale);
    const seen = rows.slice(0, MOST_ROWS);
    const words = summary(stays, scale);
    return h("div.body", {}, h("p.note", {}, `${words}.`, rows.length > MOST_ROWS ? ` ${plural(rows.length - MOST_ROWS, "more row is", "more rows are")} in the table only.` : ""),
        h("div.timeline", { role: "img", "aria-label": `Who held ${path} in the last ${duration(scale.span)}. ${words}. The button Table shows it in words.` },
            seen.map((r) => row(r, scale)), h("div"), axis(scale.span)), legend(stays, scale, seen));
}

const FAR_MS = 12 * 3600e3; /* beyond this the day is told, too */

const whenText = (ms, far) => h("td.off", {}, ms === null ? h("span.none", {}, "not known") : h("span", { title: dateTime(ms) }, (far ? dateTime : clockTime)(ms)));

function words(stays, scale) {
    const items = stays.filter((s) => (s.ended ?? scale.now) >= scale.start).reverse();
    const far = scale.span > FAR_MS;
    const width = far ? "116px" : "100px";
    const waited = (s) => {
        if (s.queued === null || (s.held !== false && s.granted === null)) return h("span.none", {}, "not known");
        const to = s.granted ?? s.ended;
        return to === null ? age(s.queued) : duration(to - s.queued);
    };
    return table({ id: "stays", label: "Who waited and held, newest first", items, key: (s) => s.key, height: 54, phoneHeight: 100, columns: [
        { id: "who", title: "Who", cell: (s) => h("td.wide.top", {}, h("div.lines", {}, who(s.place), command({ ...s.place, asked: false }))) },
        { id: "queued", title: "Queued", width, cell: (s) => whenText(s.queued, far) },
        { id: "waited", title: "Waited", width: "100px", num: true, cell: (s) => h("td.under", {}, h("span.label", {}, "waited "), waited(s)) },
        { id: "granted", title: "Held from", width, cell: (s) => (s.held !== false ? whenText(s.granted, far) : h("td.off", {}, h("span.none", {}, "–"))) },
        { id: "for", title: "Held for", width: "110px", num: true, cell: (s) => h("td.under.right", {}, h("span.label", {}, "held "), s.granted === null ? h("span.none", {}, s.held === false ? "–" : "not known")
            : s.ended === null ? age(s.granted) : duration(s.ended - s.granted)) },
        { id: "cause", title: "Ended by", width: "212px", cell: (s) => h("td.wide.last", {}, s.ended ? h("span.label", {}, "ended: ") : null, s.ended ? deedText(s) : h("span.badge.accent", {}, s.held ? "holds" : "waits")) },
    ] });
}

/* The panel: `past` is what Kept has of /v1/history, `lock` what /v1/locks says, or null. */
export function timeline(path, past, lock) {
    const begin = past.value ? Math.min(knownSince(past.value) ?? clock.now(), clock.now()) : null;
    const stays = past.value ? staysOf(past.value.entries, lock) : [];
    if (past.value && stays.length === 0) return null;
    const scale = past.value ? scaleOf(stays, begin) : null;
    const inWords = asked("as") === "table";
    return h("section.panel.data", { "aria-labelledby": "held-title", "data-key": "held" },
        h("header", {}, h("h2", { id: "held-title" }, "Who held it when"), scale ? h("span.note", {}, `the last ${duration(scale.span)}${past.value.full ? `, ${count(past.value.entries.length)} events at most` : ""}`) : null,
            h("span.aside", {}, choice("Time", SPANS, asked("span"), (span) => show({ span })),
                choice("Shown as", [["", "Picture"], ["table", "Table"]], asked("as"), (as) => show({ as })))),
        !scale ? h("div.body.chart", {}) : inWords ? words(stays, scale) : picture(path, stays, scale));
}
