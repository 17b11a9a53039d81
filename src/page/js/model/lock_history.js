/* lock_history.js - the history of locks: loaded once, then only what is new; and made of its entries: stays. A stay
 * is one place in one queue from its beginning to its end:
 * {key, place, queued, granted, ended, cause, deed}, times in ms. `null` is not known; a stay that goes on has no
 * `ended`. `before`: it held, or waited, already when the history began. */
import { instant } from "../lib/format.js";
import { get } from "../net/api.js";

/* Why something ended is known a moment after its entry: the last ones are loaded again. */
const AGAIN = 20;

/* For Kept: the newest `most` entries, the newest first, and what has come since; {entries, from, full}. full:
 * there may be older ones than these. */
export const newest = (most) => async (path, options, have) => {
    const at = have ? Math.min(AGAIN, have.entries.length - 1) : -1;
    const ask = `${path}${path.includes("?") ? "&" : "?"}limit=${most}`;
    if (at >= 0) {
        const { entries, from } = await get(`${ask}&since=${have.entries[at].n}`, options);
        if (entries.length < most) {
            const all = [...entries.reverse(), ...have.entries.slice(at)];
            return { from, entries: all.slice(0, most), full: have.full || all.length > most };
        }
    }
    const { entries, from } = await get(ask, options);
    return { from, entries: entries.reverse(), full: entries.length >= most };
};

/* Since when these entries have all there was. */
export const knownSince = (past) => (past.full ? instant(past.entries.at(-1).time) : instant(past.from));

/* Did it hold? The role of a reader or a writer does not tell: null. */
const HELD = { holder: true, lease: true, slot: true, leader: true, waiting: false, candidate: false, "left-over": false };

const heldBefore = (place) => HELD[place.role] ?? null;

/* The place that waits is another node than the lease that follows, of one session, or the slot, of one id. */
const isFollowedBy = (place, next) => (next.role === "slot" ? place.name === next.name && place.session !== null
    : place.session === next.session && Boolean(place.session));

function waiterOf(open, e) {
    for (const [node, stay] of open) {
        if (stay.granted === null && isFollowedBy(stay.place, e.place)) {
            open.delete(node);
            return stay;
        }
    }
    return null;
}

function take(open, stays, e) {
    const { node } = e.place;
    const time = instant(e.time);
    let stay = open.get(node);
    if (!stay && e.what === "granted") stay = waiterOf(open, e);
    if (!stay) {
        const before = e.what !== "queued";
        stay = { key: `${node} ${e.n}`, place: e.place, queued: before ? null : time, granted: null, ended: null, cause: null, deed: null, before };
        stays.push(stay);
    }
    open.set(node, stay);
    stay.place = e.place;
    if (e.what === "granted") stay.granted = time;
    if (e.what !== "ended") return;
    stay.ended = time;
    stay.cause = e.cause || "unknown";
    stay.deed = e.deed;
    stay.held = stay.granted !== null || (stay.before ? heldBefore(e.place) : false);
    open.delete(node);
}

/* Of one path, the oldest first. `lock` tells who is there now, some of them from before the history. */
export function staysOf(entries, lock) {
    const open = new Map();
    const stays = [];
    for (let i = entries.length - 1; i >= 0; i--) if (entries[i].place) take(open, stays, entries[i]);
    const now = new Map([...(lock?.holders || []).map((p) => [p.node, [p, true]]), ...[...(lock?.left_over || []), ...(lock?.waiters || [])].map((p) => [p.node, [p, false]])]);
    for (const [node, stay] of open) {
        const there = now.get(node);
        stay.held = there ? there[1] : stay.granted !== null;
    }
    for (const [node, [place, held]] of now) {
        if (open.has(node)) continue;
        stays.push({ key: node, place, queued: instant(place.since), granted: null, ended: null, cause: null, before: true, held });
    }
    return stays;
}

/* What is drawn of a stay: [from, to] of its wait, of its hold, and of what may have been either; null for none.
 * `begin`: the history has all since then. A hold of before it began when nobody knows. */
export function spansOf(stay, begin, now) {
    const from = stay.queued ?? begin;
    const to = stay.ended ?? now;
    if (stay.granted !== null) return { wait: stay.granted > from ? [from, stay.granted] : null, hold: [stay.granted, to], maybe: null };
    if (stay.held === null) return { wait: null, hold: null, maybe: [from, to] };
    if (!stay.held) return { wait: [from, to], hold: null, maybe: null };
    const certain = Math.min(Math.max(from, begin), to);
    return { wait: null, hold: [certain, to], maybe: certain > from ? [from, certain] : null };
}

/* How long some of these spans lasted: several hold a semaphore at a time. */
export function covered(spans) {
    let until = 0;
    return [...spans].sort((a, b) => a[0] - b[0]).reduce((sum, [from, to]) => {
        const more = Math.max(0, to - Math.max(from, until));
        until = Math.max(until, to);
        return sum + more;
    }, 0);
}
