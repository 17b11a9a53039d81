/* command_line.js - commands of clave for a terminal, to copy. */
import { elidable, h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { store } from "../model/store.js";
import { toast } from "./toast.js";

/* What `clave --connect` takes. A server that listens on all addresses has that of the gate, which is in the
 * same process. */
export function clusterName() {
    return store.server?.connect.replace(/^(tls:)?(0\.0\.0\.0|\*|\[::\])(?=:\d+$)/, `$1${location.hostname}`) ?? null;
}

/* As a word of a shell. */
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);

/* A command for a terminal, with the servers that this page shows. */
export function commandLine(verb, ...words) {
    const cluster = clusterName();
    return ["clave", verb, "-c", cluster ? quoted(cluster) : "…", ...words.map(quoted)].join(" ");
}

/* Not every page has a clipboard: over plain HTTP only that of localhost does. */
export async function copy(text, what) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        const field = h("textarea.hidden-text", { readonly: true });
        (document.querySelector("dialog[open]") || document.body).append(field);
        field.value = text;
        field.select();
        const done = document.execCommand("copy");
        field.remove();
        if (!done) return toast(`The browser does not let this page copy. ${what}: ${text}`);
    }
    toast(`${what} copied.`);
}

const TAIL = 14; /* characters of its end that are always seen */

/* A command with the button that copies it. */
export function commandToCopy(text) {
    return h("div.command-line", {}, elidable("code", { title: text }, text.slice(0, -TAIL), text.slice(-TAIL)),
        h("button.button.quiet", { type: "button", "aria-label": `Copy ${text}`, onclick: () => copy(text, "Command") }, icon("copy"), "Copy"));
}
