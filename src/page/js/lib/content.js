/* content.js - the bytes of a node as something to read: text, JSON in lines, or hexadecimal. */

const MOST = 64 * 1024;
const MOST_HEX = 4 * 1024;

function hexDump(bytes) {
    const lines = [];
    for (let at = 0; at < bytes.length; at += 16) {
        const row = [...bytes.subarray(at, at + 16)];
        const hex = row.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(47);
        const text = row.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : ".")).join("");
        lines.push(`${at.toString(16).padStart(6, "0")}  ${hex}  ${text}`);
    }
    return lines.join("\n");
}

function prettyJson(text) {
    if (!/^\s*[[{]/.test(text)) return null;
    try {
        const value = JSON.parse(text);
        /* Numbers that JavaScript would round are not shown rounded. */
        return /\d{16}/.test(text) ? text : JSON.stringify(value, null, 2);
    } catch {
        return null;
    }
}

/* {kind, text, cut}: cut says how many bytes are shown, when not all. */
export function readable(bytes) {
    let text = null;
    try {
        text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
        text = null;
    }
    if (text === null || /[\0-\x08\x0e-\x1f]/.test(text)) {
        return { kind: "binary", text: hexDump(bytes.subarray(0, MOST_HEX)), cut: bytes.length > MOST_HEX ? MOST_HEX : null };
    }
    const json = prettyJson(text);
    return { kind: json ? "JSON" : "text", text: (json || text).slice(0, MOST), cut: text.length > MOST ? MOST : null };
}
