/* shared_sse_worker.js - the shared worker: one stream of events for all tabs of a browser, which allows six
 * connections an origin only. One feed a token; it ends with its last tab. */
import { Feed } from "./sse_reader.js";

const feeds = new Map(); /* token -> {feed, ports} */

function leave(port) {
    for (const [token, entry] of feeds) {
        if (!entry.ports.delete(port) || entry.ports.size > 0) continue;
        entry.feed.stop();
        feeds.delete(token);
    }
}

function join(port, { url, token }) {
    leave(port);
    let entry = feeds.get(token);
    if (!entry || entry.feed.state?.type === "denied") {
        entry = { ports: entry?.ports || new Set() };
        entry.ports.add(port);
        feeds.set(token, entry);
        entry.feed = new Feed(url, token, (message) => {
            for (const p of entry.ports) p.postMessage(message);
        });
        return;
    }
    entry.ports.add(port);
    if (entry.feed.state) port.postMessage({ ...entry.feed.state, resumed: false });
    entry.feed.hurry();
}

self.onconnect = ({ ports: [port] }) => {
    port.onmessage = ({ data }) => {
        if (data.type === "join") join(port, data);
        else if (data.type === "life") navigator.locks?.request(data.name, () => leave(port)); /* granted when its tab ends, however */
        else if (data.type === "leave") leave(port);
        else if (data.type === "hurry") for (const { feed, ports } of feeds.values()) ports.has(port) && feed.hurry();
    };
    port.start();
};
