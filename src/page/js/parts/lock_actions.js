/* lock_actions.js - what a user may do to a place in a queue: revoke (asks its owner to let go) and break (deletes its
 * node), wherever that place is shown. Each dialog names what it is about, says what will happen, and has the command
 * that does the same in a terminal. */
import { h } from "../lib/dom.js";
import { age, heldFor } from "../lib/redraw.js";
import { instant, urlPath } from "../lib/format.js";
import { call } from "../net/api.js";
import { may } from "../model/store.js";
import { commandLine } from "./command_line.js";
import { askReason } from "./dialog.js";
import { toast } from "./toast.js";
import { fullText, whoText } from "./participant.js";

/* Of a holder that is the first, since it was granted; of any other, since it queued. */
function ageFact(lock, place, holds) {
    if (place.role === "slot") return ["Kept for", age(instant(place.since))];
    if (holds && place.node === lock.holders[0]?.node) return ["Held for", heldFor(lock)];
    return ["In queue for", age(instant(place.since))];
}

function factsOf(lock, place, holds) {
    const next = lock.waiters.find((p) => p.node !== place.node && p.role !== "outside");
    return [["Lock", h("span.mono", {}, lock.path)], [place.left_over ? "Node" : holds ? "Holder" : "Waiter", place.left_over ? place.node : fullText(place)],
        ageFact(lock, place, holds), place.token ? ["Token", h("span.mono", {}, place.token)] : null,
        ["Next in line", next ? fullText(next) : "nobody"]];
}

/* The names of the nodes of slots are not those of its queue. */
const dirOf = (lock, place) => (lock.kind === "slot" && place.role !== "slot" ? `${lock.path}/queue` : lock.path);

export function breakCommand(lock, place) {
    if (place.role === "slot") return commandLine("slot break", lock.path, place.name, "--reason", "…");
    return commandLine("locks break", ...(place.left_over ? [] : ["--force"]), dirOf(lock, place), place.node);
}

export const revokeCommand = (lock, place) => commandLine("locks revoke", dirOf(lock, place), place.node);

function askRevoke(lock, place) {
    askReason({ id: "revoke", title: `Ask ${whoText(place)} to let go?`, action: "Revoke", facts: factsOf(lock, place, true), command: revokeCommand(lock, place),
        text: "Its node gets a request, as Curator's Revoker sends one. A clave lock --revocable ends its command and releases the lock; a program that does not listen for requests carries on.",
        submit: async (reason) => {
            await call("POST", `/v1/locks${urlPath(lock.path)}/revoke`, { body: { node: place.node, reason } });
            toast(`${whoText(place)} was asked to let go.`);
        } });
}

function breakTexts(lock, place, holds) {
    const who = whoText(place);
    if (place.role === "slot") {
        return { title: `Take the slot from ${who}?`, action: "Break", done: `${who} no longer owns a slot.`,
            text: `The slot goes to the next in line. Who broke it, and why, is recorded in ${lock.path}/broken; ${who} is not told.`,
            confirm: "It does no harm if the owner carries on as if it still had the slot." };
    }
    if (place.left_over) {
        return { title: "Delete the left-over node?", action: "Delete", done: `${place.node} is deleted.`,
            text: "No session owns this node, so nobody holds the lock by it. Once it is gone, the next in line goes on." };
    }
    if (!holds) return { title: `Remove ${who} from the queue?`, action: "Remove", done: `${who} has lost its place.`, text: "Its node is deleted, and it loses its place." };
    return { title: `Break the lock of ${who}?`, action: "Break", done: `${who} has lost the lock.`,
        text: "Its node is deleted, and the next in line is granted the lock at once. A holder that hangs or is cut off carries on as if it still had the lock: only the token can stop what it writes.",
        confirm: "The holder is gone, or what it does can do no harm." };
}

function askBreak(lock, place, holds) {
    const { title, text, action, confirm, done } = breakTexts(lock, place, holds);
    askReason({ id: "break", title, text, action, confirm, facts: factsOf(lock, place, holds), command: breakCommand(lock, place), submit: async (reason) => {
        if (place.role === "slot") await call("POST", `/v1/slots${urlPath(lock.path)}/break`, { body: { owner: place.name, token: place.token, reason } });
        else await call("POST", `/v1/locks${urlPath(lock.path)}/break`, { body: { node: place.node, reason, ...(place.left_over ? {} : { force: true }) } });
        toast(done);
    } });
}

export const mayRevoke = (lock, place, holds) => holds && may("lock", lock.path) && place.revocable !== false && place.role !== "slot";

/* The buttons for this place, as far as this user may. */
export function actions(lock, place, holds) {
    return h("div.actions", {},
        mayRevoke(lock, place, holds) ? h("button.button", { type: "button", onclick: () => askRevoke(lock, place) }, "Revoke …") : null,
        may("admin", lock.path) ? h("button.button.danger", { type: "button", onclick: () => askBreak(lock, place, holds) },
            place.left_over ? "Delete …" : holds ? "Break …" : "Remove …") : null);
}
