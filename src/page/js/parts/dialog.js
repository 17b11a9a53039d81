/* dialog.js - modal dialogs: asking for a reason before something is done to others, the token, help. The
 * platform's <dialog> keeps the focus and hears Escape. */
import { h } from "../lib/dom.js";
import { checkToken } from "../net/api.js";
import { commandToCopy } from "./command_line.js";

/* The form's fields are `parts`; submit(values) may throw, which is shown. locked: there is no way around an answer.
 * plain: there is nothing to cancel. */
export function openForm({ id, title, parts, action, danger, submit, locked, plain }) {
    document.getElementById(id)?.remove();
    const problem = h("p.problem", { role: "alert", hidden: true });
    const send = h(`button.button.first${danger ? ".danger" : ""}`, { type: "submit" }, action);
    const dialog = h("dialog", { id, "aria-labelledby": `${id}-title`, "data-locked": Boolean(locked) });
    const form = h("form", { method: "dialog" }, h("h2", { id: `${id}-title` }, title), parts, problem,
        h("div.buttons", {}, locked || plain ? null : h("button.button", { type: "button", onclick: () => dialog.close() }, "Cancel"), send));
    let done = false;
    form.onsubmit = async (e) => {
        e.preventDefault();
        send.disabled = true;
        problem.hidden = true;
        try {
            await submit(new FormData(form));
            done = true;
            dialog.close();
        } catch (error) {
            problem.textContent = error.message;
            problem.hidden = false;
        }
        send.disabled = false;
    };
    /* A browser lets a second Escape through, whatever is said to `cancel`. */
    dialog.onkeydown = (e) => { if (locked && e.key === "Escape") e.preventDefault(); };
    dialog.oncancel = (e) => { if (locked) e.preventDefault(); };
    dialog.onclose = () => (locked && !done ? dialog.showModal() : dialog.remove());
    dialog.append(form);
    document.body.append(dialog);
    dialog.showModal();
    return dialog;
}

/* What a dialog is about is no longer on the screen. */
export function closeDialogs() {
    for (const dialog of document.querySelectorAll("dialog[open]")) if (!dialog.hasAttribute("data-locked")) dialog.close();
}

/* Asks why, and has it confirmed, before others lose something. facts: [name, value]... of what it is about; command:
 * the same for a terminal. */
export function askReason({ id, title, text, facts, command, confirm, action, submit }) {
    openForm({ id, title, action, danger: true, parts: [
        h("dl.facts", {}, facts.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
        h("p", {}, text),
        h("div", {}, h("label", { for: `${id}-reason` }, "Reason"),
            h("input.field", { id: `${id}-reason`, name: "reason", required: true, maxlength: 200, autocomplete: "off", autofocus: true, "aria-describedby": `${id}-kept` }),
            h("p.note", { id: `${id}-kept` }, "Shown with the event while the gate remembers it, and written to the gate's audit log if it has one.")),
        confirm ? h("label.check", {}, h("input", { type: "checkbox", required: true, name: "confirmed" }), confirm) : null,
        command ? h("div", {}, h("p.note", {}, "The same in a terminal:"), commandToCopy(command)) : null,
    ], submit: (values) => submit(values.get("reason").trim()) });
}

/* must: the gate answers nothing without one. refused: not with the one it was given so far. Otherwise an
 * empty field forgets the token. What the gate does not know is not kept. */
export function askToken({ must, refused }, done) {
    const field = h("input.field", { id: "token-field", name: "token", type: "password", required: must, autocomplete: "off", autofocus: true, spellcheck: "false" });
    openForm({ id: "token", title: must ? "This gate asks for a token" : "Token", action: "Continue", locked: must || refused, parts: [
        refused ? h("p.problem", { role: "alert" }, "The gate no longer accepts this tab's token.") : null,
        h("p", {}, "The gate's operator gives out tokens. The page keeps yours until you close this tab.",
            must ? null : " Leave the field empty to go on without one."),
        h("div", {}, h("label", { for: "token-field" }, "Token"), field),
    ], submit: async (values) => {
        const value = values.get("token").trim();
        field.value = "";
        if (value) await checkToken(value);
        done(value);
    } });
}
