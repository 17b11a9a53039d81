/* empty.js - what a screen shows when it has nothing to show: why, and what to do; or that it may not. */
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";

export function empty(iconName, title, text, commandLine) {
    return h("div.empty", { "data-key": `empty ${title}` }, icon(iconName), h("h2", {}, title), h("p", {}, text),
        commandLine ? h("pre", { tabindex: "0", "aria-label": "Example" }, commandLine) : null);
}

/* The screen of an address that names none. */
export function unknown() {
    return h("div", { "data-key": "unknown" }, h("div.head", {}, h("h1", { tabindex: "-1" }, "No such page")),
        h("section.panel", {}, h("div.empty", {}, icon("search"), h("h2", {}, "This address leads nowhere"), h("p", { style: { "overflow-wrap": "anywhere" } }, "There is no page ", h("code", {}, location.hash), "."),
            h("a.button", { href: "#/locks" }, "All locks"))));
}

export function refused(problem, iconName = "key") {
    if (problem.status === 403) {
        return empty(iconName, "Not for this role", `${problem.message} Enter a token that allows it, or ask the gate's operator.`);
    }
    if (problem.status === 404) return empty(iconName, "Not here", problem.message);
    return empty(iconName, "The gate refused this", problem.message);
}
