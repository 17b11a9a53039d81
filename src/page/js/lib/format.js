/* format.js - times, sizes, numbers and paths as text. 64-bit numbers come as decimal strings and stay
 * strings: JavaScript's numbers would round them. */

export function duration(ms) {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 60) return `${s} s`;
    const m = Math.floor(s / 60);
    if (m < 60) return `${m} m ${String(s % 60).padStart(2, "0")} s`;
    const h = Math.floor(m / 60);
    if (h < 48) return `${h} h ${String(m % 60).padStart(2, "0")} m`;
    return `${Math.floor(h / 24)} d ${h % 24} h`;
}

/* Milliseconds since 1970 of an RFC 3339 time or a number; null for neither. */
export function instant(value) {
    if (value === null || value === undefined || value === "") return null;
    const ms = typeof value === "number" ? value : /^\d+$/.test(value) ? Number(value) : Date.parse(value);
    return Number.isNaN(ms) ? null : ms;
}

const two = (n) => String(n).padStart(2, "0");

export function clockTime(ms) {
    const d = new Date(ms);
    return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function dateTime(ms) {
    const d = new Date(ms);
    return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clockTime(ms)}`;
}

export function count(n) {
    return Number(n).toLocaleString("en", { useGrouping: true }).replace(/,/g, "\u202f");
}

export function plural(n, one, many = `${one}s`) {
    return `${count(n)} ${n === 1 ? one : many}`;
}

export function bytes(n) {
    if (n < 1024) return `${n} B`;
    if (n < 1024 * 1024) return `${(n / 1024).toFixed(1)} KiB`;
    if (n < 1024 ** 3) return `${(n / 1024 ** 2).toFixed(1)} MiB`;
    return n < 1024 ** 4 ? `${(n / 1024 ** 3).toFixed(1)} GiB` : `${(n / 1024 ** 4).toFixed(1)} TiB`;
}

/* Of what is measured: 0 ms is less than one. */
export function milliseconds(ms) {
    if (ms <= 0) return "under 1 ms";
    return ms < 10 ? `${ms.toFixed(1).replace(/\.0$/, "")} ms` : ms < 10000 ? `${Math.round(ms)} ms` : duration(ms);
}

/* Its beginning and its end in at most so many characters; as plain text, for pictures. */
export function elided(text, most) {
    const all = [...text];
    if (all.length <= most) return text;
    const end = Math.ceil((most - 1) * 0.6);
    return `${all.slice(0, most - 1 - end).join("")}…${all.slice(-end).join("")}`;
}

/* A path of the tree as part of a URL: its slashes stay. */
export function urlPath(path) {
    return path.split("/").map(encodeURIComponent).join("/");
}

export function hexSession(id) {
    if (id === null || id === undefined) return null;
    const text = String(id);
    if (/^0x/i.test(text)) return text;
    try {
        return `0x${BigInt.asUintN(64, BigInt(text)).toString(16)}`;
    } catch {
        return text;
    }
}
