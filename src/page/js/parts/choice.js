/* choice.js - a few choices side by side, one of them pressed; and the filters made of them. */
import { h } from "../lib/dom.js";
import { soon } from "../lib/redraw.js";

let open = false; /* the filters of a phone */

function toggle() {
    open = !open;
    soon();
}

/* On a phone they are behind a button that says how many are not as usual: `n`. */
export function filters(n, ...choices) {
    return [h("button.button.fold", { type: "button", "aria-expanded": String(open), "aria-controls": "filters", onclick: toggle },
        "Filters", n > 0 ? h("span.badge.accent", {}, n) : null), h(`div.strip${open ? ".open" : ""}`, { id: "filters" }, choices)];
}

/* choices: [value, text]... */
export function choice(label, choices, chosen, choose) {
    return h("div.choice", { role: "group", "aria-label": label }, choices.map(([value, text]) =>
        h("button", { type: "button", "aria-pressed": String(chosen === value), onclick: () => choose(value) }, text)));
}
