/* address.js - the screen that the address names, and what it shows there: #/locks, #/locks/PATH,
 * #/locks?filter=web1&sort=-held. So every view can be sent to somebody. */
import { soon } from "./redraw.js";

const last = new Map(); /* screen -> its list's address, as it was left */

function decode(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

/* A path of the tree has no empty parts, and none at its end. */
const pathOf = (rest) => rest.replace(/\/{2,}/g, "/").replace(/\/$/, "");

/* {name, path, query}; a name of no screen is whatever somebody typed. */
export function where() {
    if (/^#?\/?$/.test(location.hash)) return { name: "locks", path: null, query: new URLSearchParams() };
    const [, name, rest, query] = /^#\/?([^/?]*)(\/[^?]*)?(?:\?(.*))?$/.exec(location.hash);
    return { name: name.toLowerCase(), path: pathOf(decode(rest || "")) || null, query: new URLSearchParams(query || "") };
}

export const asked = (name) => where().query.get(name) || "";

/* Changes what is shown; "" is what is shown without being asked for. The way back is not changed. */
export function show(change) {
    const { query } = where();
    for (const [name, value] of Object.entries(change)) {
        if (value) query.set(name, value);
        else query.delete(name);
    }
    const text = query.toString();
    history.replaceState(history.state, "", (location.hash.replace(/\?.*$/, "") || "#/locks") + (text ? `?${text}` : ""));
    soon();
}

/* Called for each address that is shown. */
export function remember({ name, path }) {
    if (path === null) last.set(name, location.hash);
}

/* Of a screen, with the filter that it was left with; of the one that is shown, without. */
export function addressOf(name) {
    const here = where();
    return (here.name !== name || here.path !== null) && last.get(name) || `#/${name}`;
}
