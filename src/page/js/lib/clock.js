/* clock.js - the server's time as the page knows it. While the server is silent the clock stands at the time of what
 * is shown: an age that went on growing would be a guess. */
let offset = 0;
let stopped = null;

/* A Date header has seconds only: a difference below two of them is not the clocks'. */
export function heardDate(date) {
    const theirs = Date.parse(date);
    if (Number.isNaN(theirs)) return;
    const difference = theirs + 500 - Date.now();
    offset = Math.abs(difference) > 2000 ? difference : 0;
}

/* at: of this machine's clock. */
export function stop(at) {
    stopped = at + offset;
}

export function go() {
    stopped = null;
}

export function now() {
    return stopped === null ? Date.now() + offset : stopped;
}
