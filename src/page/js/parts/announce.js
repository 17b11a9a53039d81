/* announce.js - says to a screen reader what the eye would see: the gate is gone or back, a deadlock came
 * or ended. Not every change of a lock: nobody could listen to that. */
import { store } from "../model/store.js";
import { plural } from "../lib/format.js";

let link = "connecting";
let deadlocks = 0;

function say(text) {
    document.getElementById("said").textContent = text;
}

export function announce() {
    if (store.link.state !== link) {
        if (store.link.state === "live" && link === "gone") say("The gate answers again.");
        link = store.link.state;
    }
    if (store.loaded.deadlocks && store.deadlocks.length !== deadlocks) {
        deadlocks = store.deadlocks.length;
        say(deadlocks ? `${plural(deadlocks, "deadlock")}.` : "No deadlock any more.");
    }
}
