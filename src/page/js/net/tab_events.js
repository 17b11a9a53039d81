/* tab_events.js - the events of the gate for this tab: of the shared worker, or, where the browser has none
 * (Chrome on Android), of a feed of its own. */
import { gateUrl } from "../lib/gate_url.js";
import { Feed } from "./sse_reader.js";

const URL_OF_EVENTS = gateUrl("/v1/events");

let port = null;
let feed = null;
let current = null; /* {token, tell} */

function sharedPort() {
    if (typeof SharedWorker === "undefined") return null;
    try {
        const worker = new SharedWorker(new URL("./shared_sse_worker.js", import.meta.url), { type: "module", name: "clave events" });
        worker.onerror = () => {
            port = null;
            if (current) listen(current.token, current.tell);
        };
        worker.port.onmessage = ({ data }) => current?.tell(data);
        live(worker.port);
        return worker.port;
    } catch {
        return null;
    }
}

/* A message from a tab that ends may be lost; the lock that it holds is given up for certain. */
function live(to) {
    if (!navigator.locks) return; /* not on localhost, nor https */
    const name = `clave-tab-${Math.random()}`;
    navigator.locks.request(name, () => new Promise(() => to.postMessage({ type: "life", name })));
}

export function listen(token, tell) {
    if (!current) port = sharedPort();
    current = { token, tell };
    feed?.stop();
    feed = null;
    if (port) port.postMessage({ type: "join", url: URL_OF_EVENTS, token });
    else feed = new Feed(URL_OF_EVENTS, token, tell);
}

function hurry() {
    port?.postMessage({ type: "hurry" });
    feed?.hurry();
}

addEventListener("online", hurry);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && hurry());
addEventListener("pagehide", () => {
    port?.postMessage({ type: "leave" });
    feed?.stop();
});
addEventListener("pageshow", (e) => e.persisted && current && listen(current.token, current.tell));
