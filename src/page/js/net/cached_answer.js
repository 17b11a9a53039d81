/* cached_answer.js - an answer of the gate that one screen shows: kept while it is loaded again, so nothing flashes.
 * ask(path) loads; another path forgets the old answer. load(path, options, value) is given what is kept. */
import { get, Problem } from "../net/api.js";
import { soon } from "../lib/redraw.js";

export class Kept {
    constructor(load = get) {
        this.load = load;
        this.forget();
    }

    forget() {
        this.abort?.abort();
        this.abort = null;
        Object.assign(this, { path: null, value: null, problem: null, due: null, anew: false });
    }

    get waiting() {
        return this.value === null && this.problem === null;
    }

    async ask(path) {
        if (path !== this.path) this.forget();
        this.path = path;
        this.abort?.abort();
        const abort = new AbortController();
        this.abort = abort;
        try {
            const value = await this.load(path, { signal: abort.signal }, this.anew ? null : this.value);
            if (this.abort !== abort) return;
            this.value = value;
            this.problem = null;
            this.anew = false;
        } catch (e) {
            if (this.abort !== abort || !(e instanceof Problem)) return;
            if (!e.unreachable && e.status !== 401) this.problem = e; /* gone: the banner says so; what is kept stays */
        }
        soon();
    }

    /* An event told it: newer than any answer on its way. */
    put(value) {
        this.abort?.abort();
        this.abort = null;
        this.value = value;
        this.problem = null;
        soon();
    }

    /* What is kept may be of another gate: the next load does not build on it. */
    doubt() {
        this.anew = true;
    }

    /* Soon, once for many reasons. */
    askSoon(ms = 40) {
        if (this.due || this.path === null) return;
        this.due = setTimeout(() => {
            this.due = null;
            if (this.path !== null) this.ask(this.path);
        }, ms);
    }
}
