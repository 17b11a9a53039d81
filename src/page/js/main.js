/* main.js - begins: asks who one is, listens to events, and draws the shell and the screen that the
 * address names (lib/address.js). Each screen is {title, view, enter?, leave?}; one that shows a single thing too is in
 * DETAILS, or, when one module does both, in BOTH.
 *
 * Who comes back to a list, by the browser's Back or by `u`, finds it as it was left: scrolled to the same place, the
 * focus on the row that was opened. Who comes anew begins at the top, with the focus on the heading. */
import { render } from "./lib/dom.js";
import { drawWith, soon } from "./lib/redraw.js";
import { remember, where } from "./lib/address.js";
import { store, connect, onChange, certainDeadlocks, doubtful, stopClockIfSilent } from "./model/store.js";
import { onDenied, setToken, token } from "./net/api.js";
import { clusterName } from "./parts/command_line.js";
import { askToken, closeDialogs } from "./parts/dialog.js";
import { unknown } from "./parts/empty.js";
import { side, topbar, banner, closeMenu } from "./parts/shell.js";
import { announce } from "./parts/announce.js";
import { listenToKeys } from "./parts/keys.js";
import * as locks from "./screens/locks.js";
import * as lock from "./screens/lock.js";
import * as deadlocks from "./screens/deadlocks.js";
import * as elections from "./screens/elections.js";
import * as election from "./screens/election.js";
import * as sessions from "./screens/sessions.js";
import * as tree from "./screens/tree.js";
import * as events from "./screens/events.js";
import * as server from "./screens/server.js";

const SCREENS = { locks, deadlocks, elections, events, sessions, tree, server };
const DETAILS = { locks: lock, elections: election };
const BOTH = ["events", "tree"];
const UNKNOWN = { title: () => "No such page", view: unknown };

let screen = null;
let route = null;
const left = new Map(); /* address -> {y, row}: how it was left */
let opened = null; /* the key of the row that was used last */
let returning = null; /* what of `left` is still to be found again */
let entries = 0; /* of the browser's history, numbered as they are made */

function draw() {
    if (!screen) return;
    stopClockIfSilent();
    document.documentElement.classList.toggle("stale", store.link.state === "gone");
    render(document.getElementById("side"), side(route.name));
    render(document.getElementById("topbar"), topbar());
    render(document.getElementById("banner"), banner());
    render(document.getElementById("main"), screen.view(route));
    remember(where());
    const bad = certainDeadlocks().length + doubtful().length;
    document.title = `${bad ? `(${bad}) ` : ""}${screen.title(route)} · ${clusterName() || "clave"}`;
    if (returning) findAgain();
}

function screenOf({ name, path }) {
    if (path === null || BOTH.includes(name)) return Object.hasOwn(SCREENS, name) ? SCREENS[name] : UNKNOWN;
    return Object.hasOwn(DETAILS, name) ? DETAILS[name] : UNKNOWN;
}

/* The rows of a list may be loaded only now; until somebody does something else. */
function findAgain() {
    scrollTo(0, returning.y);
    const row = [...document.querySelectorAll("main tr[data-key]")].find((tr) => tr.getAttribute("data-key") === returning.row);
    const link = row?.querySelector("a.main");
    if (!link) return;
    returning = null;
    link.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
}

/* An entry of the browser's history that is new has no number yet. */
function isBack() {
    const known = typeof history.state === "number";
    if (!known) history.replaceState(++entries, "");
    entries = Math.max(entries, history.state);
    return known;
}

/* An address without a screen is that of the first. */
const addressIn = (url) => new URL(url).hash || "#/locks";

function go(e) {
    const first = screen === null;
    const next = where();
    const target = screenOf(next);
    const entered = screen !== target || route.path !== next.path || route.name !== next.name;
    const up = entered && !first && route.name === next.name && next.path === null;
    const back = isBack();
    returning = null;
    if (entered && !first) {
        left.set(addressIn(e.oldURL), { y: scrollY, row: opened });
        closeDialogs();
        screen.leave?.();
    }
    screen = target;
    route = next;
    if (entered) screen.enter?.(route);
    draw();
    if (first || !entered) return;
    opened = null;
    scrollTo(0, 0);
    document.querySelector("main h1")?.focus({ preventScroll: true });
    if (!back && !up) return;
    returning = left.get(addressIn(location.href)) ?? null;
    if (returning) soon();
}

function rowOf(e) {
    returning = null;
    opened = e.target.closest?.("main tr")?.getAttribute("data-key") ?? opened;
}

let asking = false;

function ask(refused) {
    if (asking || refused !== token()) return;
    asking = true;
    askToken({ must: !refused, refused: Boolean(refused) }, (value) => {
        asking = false;
        setToken(value);
        connect();
    });
}

onDenied(ask);
drawWith(draw);
onChange(() => {
    announce();
    soon();
});
history.scrollRestoration = "manual";
addEventListener("hashchange", go);
addEventListener("click", rowOf, true);
addEventListener("wheel", () => { returning = null; }, { passive: true });
/* The address names a screen, not a place in the page. */
document.querySelector(".skip").addEventListener("click", (e) => {
    e.preventDefault();
    document.getElementById("main").focus();
});
listenToKeys(Object.keys(SCREENS), closeMenu);
go();
connect();
