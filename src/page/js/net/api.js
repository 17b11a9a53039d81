/* api.js - requests to the gate. A refusal is thrown as a Problem: what RFC 9457's body says. The token is
 * kept in sessionStorage: for this tab, as long as it is open. */
import { heardDate } from "../lib/clock.js";
import { gateUrl, keptAs } from "../lib/gate_url.js";

const KEY = keptAs("clave-token");
const ANSWER_MS = 15000;

export class Problem extends Error {
    constructor(status, body) {
        super(body.detail || body.title || `status ${status}`);
        this.status = status;
        this.code = body.code || null;
        this.body = body;
    }

    get unreachable() {
        return this.status === 0;
    }
}

export function token() {
    return sessionStorage.getItem(KEY);
}

export function setToken(value) {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
}

let denied = () => {};

/* Called for each 401, with the token that was refused. */
export function onDenied(f) {
    denied = f;
}

async function problemOf(answer) {
    const body = await answer.json().catch(() => ({}));
    return new Problem(answer.status, body && typeof body === "object" ? body : {});
}

export async function call(method, path, { body, headers = {}, raw = false, signal, as, within = ANSWER_MS } = {}) {
    const sent = as ?? token();
    const all = { Accept: raw ? "*/*" : "application/json", ...headers };
    if (sent) all.Authorization = `Bearer ${sent}`;
    if (body !== undefined && !all["Content-Type"]) all["Content-Type"] = "application/json";
    const limit = AbortSignal.timeout(within);
    let answer;
    try {
        answer = await fetch(gateUrl(path), { method, headers: all, cache: "no-store",
            body: body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body),
            signal: signal ? AbortSignal.any([signal, limit]) : limit });
    } catch (e) {
        if (signal?.aborted) throw e;
        throw new Problem(0, { title: "The gate does not answer." });
    }
    heardDate(answer.headers.get("Date"));
    if (answer.status === 401 && as === undefined) denied(sent);
    if (!answer.ok) throw await problemOf(answer);
    if (raw) return answer;
    return answer.status === 204 ? null : answer.json();
}

/* Throws if the gate does not take this token, before it takes the place of another. */
export async function checkToken(value) {
    try {
        await call("GET", "/v1/whoami", { as: value });
    } catch (e) {
        throw e.status === 401 ? new Problem(401, { title: "The gate does not know this token." }) : e;
    }
}

export const get = (path, options) => call("GET", path, options);

/* The pages of a list, at most so many: {all, last, more}. `name` is the member that has the entries. */
export async function getPages(path, name, options, most = Infinity) {
    const all = [];
    let after = null;
    let page = null;
    for (let n = 0; n < most && (n === 0 || after); n++) {
        const rest = after ? `&after=${encodeURIComponent(after)}` : "";
        page = await get(`${path}${path.includes("?") ? "&" : "?"}limit=1000${rest}`, options);
        all.push(...page[name]);
        after = page.next;
    }
    return { all, last: page, more: Boolean(after) };
}

export const getAll = async (path, name, options) => (await getPages(path, name, options)).all;
