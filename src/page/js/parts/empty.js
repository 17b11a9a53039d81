/* empty.js - what a screen shows when it has nothing to show: why, and what to do; or that it may not. */
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";

export function empty(iconName, title, text, commandLine) {
    return h("div.empty", { "data-key": `empty ${title}` }, icon(iconName), h("h2", {}, title), h("p", {}, text),
        commandLine ? h("pre", { tabindex: "0", "aria-label": "Example" }, commandLine) : null);
}

export function refused(problem, iconName = "key") {
    if (problem.status === 403) {
        return empty(iconName, "Not for this role", `${problem.message} Enter a token that allows it, or ask the gate's operator.`);
    }
    if (problem.status === 404) return empty(iconName, "Not here", problem.message);
    return empty(iconName, "The gate refused this", problem.message);
}
