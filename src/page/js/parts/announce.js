/* announce.js - says to a screen reader what the eye would see: the gate is gone or back, a deadlock came
 * or ended, a lock may be held twice. Not every change of a lock: nobody could listen to that. */
import { store, certainDeadlocks, doubtful } from "../model/store.js";
import { plural } from "../lib/format.js";

let link = "connecting";
let deadlocks = 0;
let twice = 0;

function say(text) {
    document.getElementById("said").textContent = text;
}

export function announce() {
    if (store.link.state !== link) {
        if (store.link.state === "live" && link === "gone") say("The gate answers again.");
        link = store.link.state;
    }
    const certain = certainDeadlocks().length;
    if (store.loaded.deadlocks && certain !== deadlocks) {
        deadlocks = certain;
        say(deadlocks ? `${plural(deadlocks, "deadlock")}.` : "No deadlock any more.");
    }
    const now = doubtful().length;
    if (now > twice) say(`${plural(now, "lock")} may be held twice.`);
    twice = now;
}
