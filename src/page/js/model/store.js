/* store.js - what the page knows: locks, elections, deadlocks, who one is, whether the gate answers. It is
 * loaded once, then kept by events; screens read it and are drawn again after each change. An event that
 * comes during a load is newer than the load, and wins. */
import { get, getAll, getPages, token, Problem } from "../net/api.js";
import { listen } from "../net/tab_events.js";
import * as clock from "../lib/clock.js";
import { instant } from "../lib/format.js";
import { soon } from "../lib/redraw.js";

export const store = {
    locks: new Map(), /* path -> LOCK with waitingSince, heldSince (ms) */
    unreadable: 0, /* nodes below which there may be more */
    elections: new Map(),
    deadlocks: [],
    who: null, /* of /v1/whoami */
    server: null, /* of /v1/server */
    loaded: { locks: false, elections: false, deadlocks: false },
    failed: {}, /* part -> Problem: what one may not see */
    link: { state: "connecting", since: null },
    asOf: null, /* ms of this machine's clock: what is shown was so then, or later */
    version: 0, /* counts changes of what is shown */
};

const listeners = new Set();
const eventListeners = new Set();
let touched = null; /* during a load: what events said of paths meanwhile */

export function onChange(f) {
    listeners.add(f);
}

/* f(event): each event of the stream, for screens that keep more than the store; returns its end. */
export function onEvent(f) {
    eventListeners.add(f);
    return () => eventListeners.delete(f);
}

export function changed() {
    store.version++;
    for (const f of listeners) f();
}

function prepare(lock) {
    /* When the first waiter came does not change, so rows keep their order; its age is told for those
       whose nodes say nothing. */
    const first = instant(lock.waiters?.[0]?.since) ?? clock.now() - (lock.oldest_wait_ms || 0);
    lock.waitingSince = lock.nwaiters > 0 && !lock.waiters?.[0]?.unreadable ? first : null;
    lock.heldSince = lock.nholders > 0 ? instant(lock.held_since ?? lock.holders?.[0]?.since) : null;
    return lock;
}

function putLock(lock) {
    if (lock.nholders + lock.nwaiters + lock.nleft_over === 0) store.locks.delete(lock.path);
    else store.locks.set(lock.path, prepare(lock));
}

function putElection(election) {
    if (!election.leader && !election.candidates?.length && !election.left_over?.length && !election.terms?.length) store.elections.delete(election.path);
    else store.elections.set(election.path, election);
}

/* Candidates come and go without an event of their own: the queue's tells of them, and of nothing else. */
const queueOfElection = ({ holders: [leader = null], waiters, left_over, held_since: since }) =>
    ({ leader, candidates: waiters, left_over, term: leader?.token ?? null, since: leader ? since : null });

function putQueueOfElection(lock) {
    const old = store.elections.get(lock.path);
    if (!old && lock.nholders + lock.nwaiters + lock.nleft_over === 0) return;
    putElection({ path: lock.path, value: null, terms: [], over: false, ...old, ...queueOfElection(lock) });
}

/* Replaces a map by a list that was loaded, but for what events said meanwhile: that of a queue says nothing
 * of the terms of its election. */
function replace(map, list, put, told) {
    const fresh = new Set(list.map((x) => x.path));
    for (const path of [...map.keys()]) if (!fresh.has(path) && !told.has(path)) map.delete(path);
    for (const x of list) put({ ...x, ...told.get(x.path) });
}

function tell(name, path, what) {
    if (touched) touched[name].set(path, { ...touched[name].get(path), ...what });
}

async function part(name, load) {
    try {
        await load();
        delete store.failed[name];
        store.loaded[name] = true;
    } catch (e) {
        if (!(e instanceof Problem)) throw e;
        if (!e.unreachable && e.status !== 401) {
            store.failed[name] = e;
            store.loaded[name] = true;
        }
    }
    changed();
}

const loadDeadlocks = () => part("deadlocks", async () => {
    store.deadlocks = (await get("/v1/deadlocks")).deadlocks;
});

let loading = null;
let again = false;

/* Loads everything; asked again meanwhile, once more afterwards. */
export function load() {
    if (loading) {
        again = true;
        return loading;
    }
    touched = { locks: new Map(), elections: new Map() };
    loading = Promise.all([
        part("who", async () => { store.who = await get("/v1/whoami"); }),
        part("server", loadServer),
        part("locks", async () => {
            const { all, last } = await getPages("/v1/locks", "locks");
            store.unreadable = last.unreadable || 0;
            replace(store.locks, all, putLock, touched.locks);
        }),
        part("elections", async () => replace(store.elections, await getAll("/v1/elections", "elections"), putElection, touched.elections)),
        loadDeadlocks(),
    ]).finally(() => {
        loading = null;
        touched = null;
        if (again) {
            again = false;
            load();
        }
    });
    return loading;
}

/* ---- how fresh it is ---- */

const ASK_MS = 1000;
const ANSWER_MS = 5000; /* a gate that takes longer is asked again */
const SILENT_MS = 3000;
let asking = false;

function isAsOf(ms) {
    store.asOf = ms;
    if (store.link.state === "live" && !isSilent()) clock.go();
}

/* What is shown is as old as the gate's copy was when it answered. */
async function loadServer() {
    store.server = await get("/v1/server", { within: ANSWER_MS });
    isAsOf(Date.now() - (store.server.gate.age_ms ?? 0));
}

/* Silence has no event, and nor has a gate that has lost its servers: it is asked. */
async function ask() {
    soon();
    if (asking || store.link.state !== "live" || document.visibilityState !== "visible") return;
    asking = true;
    try {
        await loadServer();
    } catch (e) {
        if (!(e instanceof Problem)) throw e;
        if (!e.unreachable) isAsOf(Date.now()); /* it answers, though not this */
    } finally {
        asking = false;
        soon();
    }
}

let seenSince = 0; /* nobody asked while nobody looked */

setInterval(ask, ASK_MS);
document.addEventListener("visibilitychange", () => {
    seenSince = Date.now();
    ask();
});

/* Nothing was heard of the servers for so long that what is shown may be out of date. */
export const isSilent = () => store.asOf !== null && document.visibilityState === "visible" && Date.now() - Math.max(store.asOf, seenSince) > SILENT_MS;

/* Before anything is drawn: ages that are shown beside "No answer" stand still. */
export function stopClockIfSilent() {
    if (store.link.state === "live" && isSilent()) clock.stop(store.asOf);
}

/* ---- events ---- */

let deadlocksDue = false;

function reloadDeadlocks() {
    if (deadlocksDue) return;
    deadlocksDue = true;
    setTimeout(() => {
        deadlocksDue = false;
        loadDeadlocks();
    }, 30);
}

let loadedAtOpen = false; /* and no event came since: a reset says nothing new */

function applyEvent({ name, data }) {
    const known = loadedAtOpen;
    loadedAtOpen = false;
    if (name === "reset") return void (known || load());
    if (name === "deadlock") return reloadDeadlocks();
    if (!data || typeof data.path !== "string") return;
    if (name === "lock") {
        tell("locks", data.path, data);
        putLock(data);
        if (data.kind === "election") {
            tell("elections", data.path, queueOfElection(data));
            putQueueOfElection(data);
        }
        if (store.deadlocks.some((d) => d.members.some((m) => m.path === data.path || lockAt(m.path)?.path === data.path))) reloadDeadlocks();
    } else if (name === "leader" || name === "vacant") {
        tell("elections", data.path, data);
        putElection({ ...store.elections.get(data.path), ...data });
    }
}

function setLink(state, since = Date.now()) {
    if (store.link.state === state) return;
    store.link = { state, since };
    if (state === "live") ask();
    else if (state === "gone") clock.stop(store.asOf ?? since);
}

function hear(message) {
    if (message.type === "open") {
        if (message.date) clock.heardDate(message.date);
        setLink("live");
        loadedAtOpen = !message.resumed || !store.loaded.locks;
        if (loadedAtOpen) load();
    } else if (message.type === "gone") {
        setLink("gone");
    } else if (message.type === "denied") {
        setLink("denied");
        if (message.status === 401) load(); /* which asks for the token */
    } else if (message.type === "event") {
        applyEvent(message);
        for (const f of eventListeners) f(message);
    }
    changed();
}

/* Begins, or begins anew with another token. */
export function connect() {
    store.link = { state: "connecting", since: Date.now() };
    listen(token() || "", hear);
    changed();
}

/* The gate answers, from a copy that is not kept up to date: its servers do not answer. */
export const isOld = () => store.link.state === "live" && store.server !== null && !store.server.gate.current;

/* The lock at this path, or that whose leases or queue it is. */
export const lockAt = (path) => store.locks.get(path) ?? store.locks.get(path.replace(/\/(leases|locks|queue)$/, ""));

/* Those that two may hold at once. */
export const doubtful = () => [...store.locks.values()].filter((l) => l.outside);

const RANKS = ["none", "read", "lock", "write", "admin"];
const rank = (role) => RANKS.indexOf(role);

const below = (path, prefix) => prefix === "/" || path === prefix || path.startsWith(`${prefix}/`);

/* May this user do at `path` what needs `role`? A role includes those before it. */
export function may(role, path) {
    return (store.who?.grants || []).some((g) => rank(g.role) >= rank(role) && below(path, g.prefix));
}

/* The grant that allows most. */
export function bestGrant() {
    return (store.who?.grants || []).reduce((best, g) => (rank(g.role) > rank(best.role) ? g : best), { role: "none", prefix: "/" });
}

export const certainDeadlocks = () => store.deadlocks.filter((d) => d.certain);

/* Path -> is the deadlock that it is part of certain? */
export function deadlockedPaths() {
    const paths = new Map();
    for (const d of store.deadlocks) {
        for (const m of d.members) {
            const path = lockAt(m.path)?.path ?? m.path;
            paths.set(path, d.certain || paths.get(path) || false);
        }
    }
    return paths;
}
