/* line_chart.js - a figure and its last hour: the number, a line below it, and the largest value of that time in words.
 * No axis but the frame: the number tells how much, the line tells when. */
import { h, svg } from "../lib/dom.js";
import { clockTime } from "../lib/format.js";

const WIDTH = 240;
const HEIGHT = 44;

/* What a counter grew by each second; a counter that fell began anew. */
export function rates(series, everyMs) {
    return series.slice(1).map((v, i) => (v === null || series[i] === null || v < series[i] ? null : ((v - series[i]) * 1000) / everyMs));
}

/* The lines between unknown values, right-aligned: the newest is at the right, an hour ago at the left. */
function paths(series, samples, top) {
    const x = (i) => (WIDTH * (i + samples - series.length)) / Math.max(1, samples - 1);
    const y = (v) => HEIGHT - 2 - ((HEIGHT - 6) * v) / top;
    const pieces = [];
    let piece = null;
    series.forEach((v, i) => {
        if (v === null) {
            piece = null;
            return;
        }
        if (!piece) pieces.push(piece = []);
        piece.push(`${x(i).toFixed(1)} ${y(v).toFixed(1)}`);
    });
    /* A sample alone is a dot. */
    return pieces.map((p) => `M${(p.length === 1 ? [p[0], p[0]] : p).join("L")}`);
}

function picture(series, { samples, everyMs, at, format, name, least, now = null }) {
    const known = series.filter((v) => v !== null);
    if (known.length < 2) return h("p.note.plot-note", {}, "No samples yet.");
    if (now !== null) known.push(now);
    const top = Math.max(...known);
    const bottom = Math.min(...known);
    const told = least ? bottom : top;
    const when = told === now ? "now" : `at ${clockTime(at - (series.length - 1 - series.lastIndexOf(told)) * everyMs).replace(/:\d\d$/, "")}`;
    const label = `${name}: ${format(bottom)} to ${format(top)}`;
    return [svg("svg.plot", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
        svg("path.base", { d: `M0 ${HEIGHT - 1}L${WIDTH} ${HEIGHT - 1}` }), paths(series, samples, Math.max(top, 1e-9)).map((d) => svg("path.line", { d }))),
        h("p.note.plot-note", {}, bottom === top ? "unchanged" : `${least ? "least" : "most"} ${format(told)}, ${when}`)];
}

/* f: {name, value (text), tone, least (is told, not the most), series, samples, everyMs, at, format, now (a value that is
 * newer than the series)} */
export function plot(f) {
    return h("div.figure", { "data-key": f.name }, h("dt", {}, f.name), h("dd", {}, h(`b${f.tone ? `.${f.tone}` : ""}`, {}, f.value),
        f.series ? picture(f.series, f) : null));
}
