/* keys.js - the keyboard's shortcuts, and the dialog that lists them and turns them off. */
import { h } from "../lib/dom.js";
import { openForm } from "./dialog.js";
import { stepRow } from "./table.js";
import { addressOf } from "../lib/address.js";
import { keptAs } from "../lib/gate_url.js";

const OFF = keptAs("clave-keys-off");
const LIST = [[["1", "…", "7"], "the screens, from Locks to Server"], [["/"], "the filter"], [["j", "k"], "the next and the previous row; in the list also ↓ and ↑"],
    [["Enter"], "open the row"], [["u"], "up: from one lock to all"], [["Esc"], "close a dialog or a menu, leave the filter or the list, then up"], [["?"], "this list"]];

export function help() {
    const off = localStorage.getItem(OFF) !== null;
    openForm({ id: "help", title: "Keyboard", action: "Close", plain: true, parts: [
        h("dl.facts", {}, LIST.map(([keys, text]) => [h("dt", {}, keys.map((key) => [key === "…" ? key : h("kbd", {}, key), " "])), h("dd", {}, text)])),
        h("label.check", {}, h("input", { type: "checkbox", name: "on", checked: !off }), "Shortcuts of one key are on"),
    ], submit: async (values) => {
        if (values.has("on")) localStorage.removeItem(OFF);
        else localStorage.setItem(OFF, "1");
    } });
}

function filterField() {
    return document.querySelector("main input[type=search]");
}

/* True if the key did something. */
function act(key, screens) {
    if (key >= "1" && key <= String(screens.length)) location.hash = addressOf(screens[Number(key) - 1]);
    else if (key === "/" && filterField()) filterField().focus();
    else if (key === "j" || key === "ArrowDown") return stepRow(1);
    else if (key === "k" || key === "ArrowUp") return stepRow(-1);
    else if (key === "u") document.querySelector("main .crumbs a:last-of-type")?.click();
    else if (key === "?") help();
    else return false;
    return true;
}

/* The innermost thing that is open or has the focus; with nothing of that, up. */
function escape(closeMenu) {
    if (closeMenu()) return;
    if (document.activeElement?.matches("main tr a.main")) document.activeElement.blur();
    else if (localStorage.getItem(OFF) === null) act("u", []);
}

function leaveFilter(field) {
    if (field.value) {
        field.value = "";
        field.dispatchEvent(new Event("input", { bubbles: true }));
    } else {
        field.blur();
    }
}

/* closeMenu: true if there was one. */
export function listenToKeys(screens, closeMenu) {
    addEventListener("keydown", (e) => {
        if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || document.querySelector("dialog[open]")) return;
        const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);
        if (typing && e.key === "Escape" && e.target === filterField()) leaveFilter(e.target);
        if (typing && !(e.target === filterField() && e.key === "ArrowDown")) return;
        if (e.key === "Escape") return escape(closeMenu);
        const arrow = e.key.startsWith("Arrow");
        if (arrow && !typing && !e.target.closest?.("main tr")) return; /* arrows scroll elsewhere */
        if (!arrow && localStorage.getItem(OFF) !== null) return;
        if (act(e.key, screens)) e.preventDefault();
    });
}
