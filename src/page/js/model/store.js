/* store.js - what the page knows: locks, elections, deadlocks, who one is, whether the gate answers. It is
 * loaded once, then kept by events; screens read it and are drawn again after each change. An event that
 * comes during a load is newer than the load, and wins. */
import { get, getAll, getPages, token, Problem } from "../net/api.js";
import { listen } from "../net/tab_events.js";
import * as clock from "../lib/clock.js";
import { instant } from "../lib/format.js";

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
    version: 0, /* counts changes */
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
        part("server", async () => { store.server = await get("/v1/server"); }),
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

/* No event says that the gate has lost its servers: its own word is asked for now and then. */
const ASK_MS = 10000;
setInterval(() => store.link.state === "live" && document.visibilityState === "visible" &&
    part("server", async () => { store.server = await get("/v1/server"); }), ASK_MS);

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
        if (store.deadlocks.some((d) => d.members.some((m) => m.path === data.path))) reloadDeadlocks();
    } else if (name === "leader" || name === "vacant") {
        tell("elections", data.path, data);
        putElection({ ...store.elections.get(data.path), ...data });
    }
}

function setLink(state, since = Date.now()) {
    if (store.link.state === state) return;
    store.link = { state, since };
    if (state === "live") clock.go();
    else if (state === "gone") clock.stop();
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
    for (const d of store.deadlocks) for (const m of d.members) paths.set(m.path, d.certain || paths.get(m.path) || false);
    return paths;
}
