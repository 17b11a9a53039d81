/* lock_text.js - a lock or an election in words: its path and kind, why a hold ended, what is late or old. */
import { elidable, h } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import * as clock from "../lib/clock.js";

const TAIL = 24; /* characters of its end that are seen of any path */

/* Elided in the middle where there is no room for all of it: the beginning and the end of a path tell more. */
export function pathText(path) {
    const name = path.lastIndexOf("/") + 1;
    let tail = Math.max(name, path.length - TAIL);
    if (/[\udc00-\udfff]/.test(path.charAt(tail))) tail--; /* not within a character */
    return elidable("span.path", { title: path }, [h("span.dir", {}, path.slice(0, name)), h("span.last", {}, path.slice(name, tail))], h("span.last", {}, path.slice(tail)));
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

/* Why a place ended, or who asked for it; and, if that was done through this gate, by whom and for what reason. */
export function deedText({ cause, deed }) {
    const by = deed?.by ? `by ${deed.by}` : "";
    const done = cause === "broken" && by ? `broken ${by}` : cause ? causeText(cause) : by;
    return [done, deed?.reason].filter(Boolean).join(": ");
}

/* Of an answer from a copy that is not kept up to date. */
export function oldBadge(answer) {
    if (answer?.current !== false) return null;
    return h("span.badge.amber", {}, typeof answer.age_ms === "number" ? `as it was ${duration(answer.age_ms)} ago` : "may be out of date");
}
