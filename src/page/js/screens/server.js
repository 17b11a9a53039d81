/* server.js - what an operator asks first: is it well, how much is there, how fast, how long will the disk last;
 * of the server in the gate's process, and of the gate itself; as numbers, and as lines over the last hour. */
import { h } from "../lib/dom.js";
import { bytes, clockTime, count, dateTime, duration, hexSession, instant, milliseconds } from "../lib/format.js";
import { may, store } from "../model/store.js";
import * as clock from "../lib/clock.js";
import { refused } from "../parts/empty.js";
import { Kept } from "../net/cached_answer.js";
import { plot, rates } from "../parts/line_chart.js";

const EVERY_MS = 5000;
const LEAST_SAMPLES = 12; /* of a gate that has just started: two minutes */
const LITTLE = 0.1; /* of a disk */
const SLOW_US = 100000; /* an fsync that everybody feels */

const all = new Kept();
let timer = null;

export const title = () => "Server";

export function enter() {
    all.ask("/v1/server?samples");
    timer = setInterval(() => document.visibilityState === "visible" && all.askSoon(0), EVERY_MS);
}

export function leave() {
    clearInterval(timer);
    all.forget();
}

const unknown = () => h("span.none", {}, "not known");
const known = (v, format) => (v === null || v === undefined ? unknown() : format(v));
const perSecond = (v) => `${v < 10 ? v.toFixed(1).replace(/\.0$/, "") : count(Math.round(v))}/s`;
const micros = (us) => milliseconds(us / 1000);

/* The worst there is to say, in words. */
function health(told) {
    const s = told.server;
    if (!told.connected) return { tone: "red", text: "No server answers the gate." };
    if (s?.quiet_ms > 0) return { tone: "amber", text: `Restored from a backup: no lock is granted for ${duration(s.quiet_ms)}, because clients from before may still believe that they hold one.` };
    if (told.role === "read-only") return { tone: "amber", text: "The server is read-only: it has lost the others, and nothing is granted." };
    if (s && s.free_bytes !== null && s.disk_bytes && s.free_bytes / s.disk_bytes < LITTLE) return { tone: "amber", text: `The disk is nearly full: ${bytes(s.free_bytes)} are free. When it is full, the server ends.` };
    if (s?.fsync_us > SLOW_US) return { tone: "amber", text: `The disk is slow: it takes ${micros(s.fsync_us)} to write a batch, and every grant waits for that.` };
    if (!told.gate.current) return { tone: "amber", text: "The gate's copy of the locks is not up to date." };
    return { tone: "green", text: "The servers answer, and locks are granted." };
}

const samplesOf = ({ samples }) => Math.max(LEAST_SAMPLES, ...Object.values(samples?.gate || {}).map((series) => series.length));

/* They begin with the gate. */
function spanText(told) {
    if (!told.samples) return "now";
    const ms = samplesOf(told) * told.samples.every_ms;
    return ms >= 3600e3 ? "in the last hour" : `in the last ${duration(ms)}`;
}

function figuresOf(told, owner, list) {
    const samples = told.samples;
    const series = samples?.[owner] || {};
    const common = samples && { samples: samplesOf(told), everyMs: samples.every_ms, at: instant(samples.at) ?? clock.now() };
    return h("dl.figures", {}, list.map(({ id, name, format, rate, tone, least }) => {
        const values = rate && series[id] ? rates(series[id], samples.every_ms) : series[id];
        const value = rate ? values?.at(-1) : told[owner]?.[id];
        return plot({ name, value: known(value, format), tone: value === null || value === undefined ? null : tone, series: values || null, format, least, now: rate ? null : value, ...common });
    }));
}

function serverFigures(told) {
    const s = told.server;
    const part = s.free_bytes !== null && s.disk_bytes ? `of ${bytes(s.disk_bytes)}` : null;
    return figuresOf(told, "server", [
        { id: "sessions", name: "Sessions", format: count }, { id: "connections", name: "Connections", format: count },
        { id: "requests", name: "Requests", format: perSecond, rate: true }, { id: "outstanding", name: "Waiting for the disk", format: count },
        { id: "write_ms", name: "Writes, 99 of 100 within", format: milliseconds }, { id: "read_ms", name: "Reads, 99 of 100 within", format: milliseconds },
        { id: "fsync_us", name: "fsync, 99 of 100 within", format: micros, tone: s.fsync_us > SLOW_US ? "amber" : null },
        { id: "free_bytes", name: part ? `Disk free, ${part}` : "Disk free", format: bytes, least: true, tone: s.disk_bytes && s.free_bytes / s.disk_bytes < LITTLE ? "amber" : null },
        { id: "znodes", name: "Znodes", format: count }, { id: "data_bytes", name: "Paths and data", format: bytes },
        { id: "memory_bytes", name: "Memory", format: bytes }]);
}

const gateFigures = (told) => figuresOf(told, "gate", [
    { id: "latency_ms", name: "Latency to the servers", format: milliseconds }, { id: "requests", name: "Requests", format: perSecond, rate: true },
    { id: "sessions", name: "HTTP sessions", format: count }, { id: "waiting", name: "Waits and streams", format: count }]);

function facts(rows) {
    return h("dl.facts", {}, rows.filter(Boolean).map(([k, v]) => [h("dt", {}, k), h("dd", {}, v === null || v === undefined || v === "" ? unknown() : v)]));
}

function panel(id, heading, inside, note) {
    return h("section.panel.data", { "aria-labelledby": id }, h("header", {}, h("h2", { id }, heading), note ? h("span.note", {}, note) : null), h("div.body", {}, inside));
}

function snapshotText(s) {
    if (s.snapshot_seconds === null) return "none yet";
    return `${dateTime(s.snapshot_seconds * 1000)}${s.snapshot_behind === null ? "" : `, ${count(s.snapshot_behind)} transactions ago`}`;
}

const ROLES = { "read-write": "read-write", "read-only": "read-only", none: "no server answers" };

function serverFacts(told) {
    const s = told.server;
    return facts([["Clients connect to", told.connect.replace(/,/g, ",\u200b")], told.servers !== told.connect && !s ? ["The gate connects to", told.servers.replace(/,/g, ",\u200b")] : null, ["Serves", ROLES[told.role]],
        s ? ["Mode", "standalone, with clave's own server"] : null, ["Version", s ? told.version : null], s ? ["Serving for", known(s.uptime_ms, duration)] : null,
        s ? ["Last snapshot", snapshotText(s)] : null, s ? ["Snapshots and logs", known(s.files_bytes, bytes)] : null, s ? ["Watches", known(s.watches, count)] : null,
        s ? ["After a restore", s.quiet_ms > 0 ? `no lock is granted for ${duration(s.quiet_ms)}` : "nothing is held back"] : null]);
}

const gateFacts = (told) => facts([["Version", told.version], ["Running for", duration(told.gate.uptime_ms)], ["Its copy of the locks", told.gate.current ? "up to date" : "not up to date"],
    ["Its session", `${hexSession(told.session_id)}, ${told.state}`], ["Largest body", bytes(told.max_body)]]);

const youFacts = () => facts([["Name", store.who?.name || "no name: the gate was given no token"], ["You may", (store.who?.grants || []).map((g) => `${g.role} below ${g.prefix}`).join(", ")],
    ["What you see", store.asOf === null ? null : `as of ${clockTime(store.asOf)}`]]);

const NOT_ALL = "To see what the server tells of itself, and the last hour, takes the role read on /.";
const ELSEWHERE = "This gate runs apart from the servers, so it knows nothing of their sessions, disks and memory. Ask the servers themselves: the admin command monitor, or the four-letter word mntr.";

function body() {
    const told = all.value;
    if (all.problem) return h("section.panel", {}, refused(all.problem, "server"));
    if (!told) return panel("server-title", "Server", h("div.waiting", {}));
    const well = health(told);
    return [h(`p.health.${well.tone}`, { role: "status" }, h("b", {}, { green: "Healthy", amber: "Needs attention", red: "Down" }[well.tone]), " ", well.text),
        told.server ? panel("figures-title", `The server ${spanText(told)}`, serverFigures(told)) : null,
        panel("gate-title", `The gate ${spanText(told)}`, gateFigures(told)),
        h("div.columns", {}, panel("server-title", "Server", [serverFacts(told), told.server ? null : h("p.note.below", {}, store.who && !may("read", "/") ? NOT_ALL : ELSEWHERE)]), panel("gate-facts-title", "Gate", gateFacts(told)), panel("you-title", "You", youFacts()))];
}

export function view() {
    return h("div", { "data-key": "server" }, h("div.head", {}, h("h1", { tabindex: "-1" }, "Server")), body());
}
