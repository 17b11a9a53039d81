/* sse_reader.js - one stream of /v1/events: opens it, parses it, opens it again with Last-Event-ID when it ends.
 * fetch() and not EventSource, which cannot send a token. Used by the shared worker, and by a tab where
 * there is none. tell() is given {type: "open" | "event" | "gone" | "denied", ...}. */

const SILENCE_MS = 20000; /* the gate says something every 15 s: beyond this nobody is there */
const SHORTEST_MS = 200;
const LONGEST_MS = 3000;

/* Feeds text, calls event(id, name, data) for each event. Fields and rules are those of the WHATWG. */
export class EventParser {
    constructor(event) {
        this.event = event;
        this.rest = "";
        this.id = null;
        this.clear();
    }

    clear() {
        this.name = "message";
        this.data = [];
    }

    push(text) {
        const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
        this.rest = lines.pop();
        for (const line of lines) this.line(line);
    }

    line(line) {
        if (line === "") {
            if (this.data.length) this.event(this.id, this.name, this.data.join("\n"));
            this.clear();
            return;
        }
        const colon = line.indexOf(":");
        if (colon === 0) return;
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "event") this.name = value;
        else if (field === "data") this.data.push(value);
        else if (field === "id") this.id = value;
    }
}

export class Feed {
    constructor(url, token, tell) {
        Object.assign(this, { url, token, tell, last: null, wait: SHORTEST_MS, stopped: false, state: null, date: null });
        this.run();
    }

    stop() {
        this.stopped = true;
        this.abort?.abort();
        this.wake?.();
    }

    /* Tries again now: the machine is back on a network, or a tab came to the front. */
    hurry() {
        this.wait = SHORTEST_MS;
        this.wake?.();
    }

    say(message) {
        this.state = message;
        this.tell(message);
    }

    async run() {
        while (!this.stopped) {
            const denied = await this.once().catch(() => false);
            if (this.stopped) return;
            if (denied) return this.say({ type: "denied", status: denied });
            if (this.state?.type !== "gone") this.say({ type: "gone" });
            await this.pause();
        }
    }

    pause() {
        const ms = this.wait * (0.75 + Math.random() / 2);
        this.wait = Math.min(this.wait * 1.6, LONGEST_MS);
        return new Promise((done) => {
            const timer = setTimeout(done, ms);
            this.wake = () => {
                clearTimeout(timer);
                done();
            };
        });
    }

    /* Until the stream ends. The status, if the gate refuses. */
    async once() {
        this.abort = new AbortController();
        const headers = { Accept: "text/event-stream" };
        if (this.token) headers.Authorization = `Bearer ${this.token}`;
        if (this.last) headers["Last-Event-ID"] = this.last;
        let watchdog = this.watch();
        try {
            const answer = await fetch(this.url, { headers, signal: this.abort.signal, cache: "no-store" });
            if (answer.status === 401 || answer.status === 403) return answer.status;
            if (!answer.ok || !answer.body) return false;
            this.wait = SHORTEST_MS;
            this.date = answer.headers.get("Date");
            this.say({ type: "open", resumed: Boolean(this.last), date: this.date });
            const parser = new EventParser((id, name, data) => this.receive(id, name, data));
            const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
            for (;;) {
                const { value, done } = await reader.read();
                if (done) return false;
                clearTimeout(watchdog);
                watchdog = this.watch();
                parser.push(value);
            }
        } finally {
            clearTimeout(watchdog);
        }
    }

    watch() {
        return setTimeout(() => this.abort.abort(), SILENCE_MS);
    }

    receive(id, name, data) {
        if (id) this.last = id;
        let value = null;
        try {
            value = JSON.parse(data);
        } catch {
            return; /* not ours */
        }
        this.tell({ type: "event", id, name, data: value });
    }
}
