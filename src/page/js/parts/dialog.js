/* dialog.js - modal dialogs: asking for a reason before something is done to others, the token, help. The
 * platform's <dialog> keeps the focus and hears Escape. */
import { h } from "../lib/dom.js";
import { checkToken } from "../net/api.js";

/* The form's fields are `parts`; submit(values) may throw, which is shown. */
export function openForm({ id, title, parts, action, danger, submit, locked }) {
    document.getElementById(id)?.remove();
    const problem = h("p.problem", { role: "alert", hidden: true });
    const send = h(`button.button.first${danger ? ".danger" : ""}`, { type: "submit" }, action);
    const dialog = h("dialog", { id, "aria-labelledby": `${id}-title` });
    const form = h("form", { method: "dialog" }, h("h2", { id: `${id}-title` }, title), parts, problem,
        h("div.buttons", {}, locked ? null : h("button.button", { type: "button", onclick: () => dialog.close() }, "Cancel"), send));
    form.onsubmit = async (e) => {
        e.preventDefault();
        send.disabled = true;
        problem.hidden = true;
        try {
            await submit(new FormData(form));
            dialog.close();
        } catch (error) {
            problem.textContent = error.message;
            problem.hidden = false;
        }
        send.disabled = false;
    };
    dialog.oncancel = (e) => locked && e.preventDefault();
    dialog.onclose = () => dialog.remove();
    dialog.append(form);
    document.body.append(dialog);
    dialog.showModal();
    return dialog;
}

/* Asks why, and has it confirmed, before others lose something. */
export function askReason({ id, title, text, confirm, action, submit }) {
    openForm({ id, title, action, danger: true, parts: [
        h("p", {}, text),
        h("div", {}, h("label", { for: `${id}-reason` }, "Reason"),
            h("input.field", { id: `${id}-reason`, name: "reason", required: true, maxlength: 200, autocomplete: "off",
                autofocus: true, placeholder: "Kept with who did it, in the audit log" })),
        confirm ? h("label.check", {}, h("input", { type: "checkbox", required: true, name: "confirmed" }), confirm) : null,
    ], submit: (values) => submit(values.get("reason").trim()) });
}

/* must: the gate answers nothing without one. refused: not with the one it was given so far. Otherwise an
 * empty field forgets the token. What the gate does not know is not kept. */
export function askToken({ must, refused }, done) {
    const field = h("input.field", { id: "token-field", name: "token", type: "password", required: must, autocomplete: "off", autofocus: true, spellcheck: "false" });
    openForm({ id: "token", title: must ? "This gate asks for a token" : "Token", action: "Continue", locked: must || refused, parts: [
        refused ? h("p.problem", { role: "alert" }, "The gate does not accept the token of this tab any more.") : null,
        h("p", {}, "Tokens are in the gate's tokens file; its operator can give you one. It is kept in this tab until the tab is closed.",
            must ? null : " Leave the field empty to go on without one."),
        h("div", {}, h("label", { for: "token-field" }, "Token"), field),
    ], submit: async (values) => {
        const value = values.get("token").trim();
        field.value = "";
        if (value) await checkToken(value);
        done(value);
    } });
}
