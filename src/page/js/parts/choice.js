/* choice.js - a few choices side by side, one of them pressed. */
import { h } from "../lib/dom.js";

/* choices: [value, text]... */
export function choice(label, choices, chosen, choose) {
    return h("div.choice", { role: "group", "aria-label": label }, choices.map(([value, text]) =>
        h("button", { type: "button", "aria-pressed": String(chosen === value), onclick: () => choose(value) }, text)));
}
