/* redraw.js - draws at the next frame, once for however many reasons; and the ages every second. */
import { duration, instant } from "./format.js";
import { h } from "./dom.js";
import * as clock from "./clock.js";

let draw = () => {};
let due = false;

export function drawWith(f) {
    draw = f;
}

const HIDDEN_MS = 500; /* no frame comes while the tab is hidden, and its title tells of deadlocks all the same */

export function soon() {
    if (due) return;
    due = true;
    const now = () => {
        due = false;
        draw();
    };
    if (document.visibilityState === "visible") requestAnimationFrame(now);
    else setTimeout(now, HIDDEN_MS);
}

/* How long a lock has been held; where nobody knows when it was granted, it was not before its holder queued. */
export function heldFor(lock) {
    const queued = instant(lock.holders?.[0]?.since);
    return (lock.held_since ?? null) === null && queued !== null ? ["< ", age(queued)] : age(instant(lock.held_since));
}

/* How long ago `since` (ms) was; counts on by itself. */
export function age(since, props = {}) {
    if (since === null || since === undefined) return h("span.none", {}, "–");
    return h("time", { "data-since": since, datetime: new Date(since).toISOString(), ...props },
        duration(clock.now() - since));
}

setInterval(() => {
    for (const el of document.querySelectorAll("time[data-since]")) {
        const text = duration(clock.now() - Number(el.getAttribute("data-since")));
        if (el.textContent !== text) el.firstChild.data = text;
    }
}, 1000);
