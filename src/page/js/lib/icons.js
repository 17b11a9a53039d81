/* icons.js - the icons, as strokes on a grid of 24. They are decoration: the text beside says it. */
import { svg } from "./dom.js";

const STROKES = {
    key: ["M15.5 4a4.5 4.5 0 1 1-4.2 6.1L4 17.4V20h3v-2h2v-2h2l1.6-1.6", "M16.6 7.6h.01"],
    locks: ["M6 11h12v9H6z", "M8.5 11V8a3.5 3.5 0 0 1 7 0v3"],
    deadlocks: ["M7 7.5A6.5 6.5 0 0 1 18.4 11", "M18.8 6.5v4.7h-4.6", "M17 16.5A6.5 6.5 0 0 1 5.6 13", "M5.2 17.5v-4.7h4.6"],
    elections: ["M4 19h16", "M5 16 4 7l5 4 3-6 3 6 5-4-1 9z"],
    sessions: ["M4 6h16v10H4z", "M9 20h6", "M12 16v4"],
    tree: ["M5 4h5v4H5z", "M14 10h5v4h-5z", "M14 17h5v4h-5z", "M7.5 8v11H14", "M7.5 12H14"],
    events: ["M5 6h14", "M5 12h14", "M5 18h9"],
    server: ["M4 5h16v6H4z", "M4 13h16v6H4z", "M8 8h.01", "M8 16h.01"],
    more: ["M6 12h.01", "M12 12h.01", "M18 12h.01"],
    search: ["M10.5 4.5a6 6 0 1 1 0 12 6 6 0 0 1 0-12z", "M15 15l5 5"],
    folder: ["M4 6h6l2 2h8v10H4z"],
    check: ["M5 12.5l4.5 4.5L19 7"],
    copy: ["M9 9h10v11H9z", "M5 15V4h10"],
    link: ["M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1 1", "M14 10a4 4 0 0 0-5.7 0l-3 3a4 4 0 0 0 5.7 5.7l1-1"],
};

export function icon(name) {
    return svg("svg", { viewBox: "0 0 24 24", fill: "none", stroke: "currentColor", "stroke-width": name === "more" ? 2.6 : 1.7,
        "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true", focusable: "false" },
        STROKES[name].map((d) => svg("path", { d })));
}
