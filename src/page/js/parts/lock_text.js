/* lock_text.js - a lock or an election in words: its path and kind, why a hold ended, what is late or old. */
import { h } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import * as clock from "../lib/clock.js";

export function pathText(path) {
    const i = path.lastIndexOf("/");
    return h("span.path.cut", { title: path }, h("span.dir", {}, path.slice(0, i + 1)), h("span.last", {}, path.slice(i + 1)));
}

const KINDS = { lock: "lock", rw: "read-write", semaphore: "semaphore", election: "election", slot: "slots", mixed: "mixed" };

function kindText(lock) {
    const kind = KINDS[lock.kind] || lock.kind;
    const first = lock.holders?.[0]?.role;
    if (lock.kind === "semaphore" && lock.limit) return `${kind} of ${lock.limit}`;
    if (lock.kind === "slot" && typeof lock.limit === "number") return `${lock.nholders} of ${lock.limit} slots`;
    return first === "writer" ? `${kind}: writing` : first === "reader" ? `${kind}: ${lock.nholders} reading` : kind;
}

export const kindBadge = (lock) => h("span.badge", {}, kindText(lock));

const LATE_MS = 60000; /* a wait this long is marked */

export const isLate = (since) => since !== null && since !== undefined && clock.now() - since > LATE_MS;

const CAUSES = { released: "released", expired: "session expired", closed: "session closed", broken: "broken by somebody else",
    unknown: "released, or session ended" };

export const causeText = (cause) => CAUSES[cause] || cause;

/* Of an answer from a copy that is not kept up to date. */
export function oldBadge(answer) {
    if (answer?.current !== false) return null;
    return h("span.badge.amber", {}, typeof answer.age_ms === "number" ? `as it was ${duration(answer.age_ms)} ago` : "may be out of date");
}
