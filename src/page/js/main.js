/* main.js - begins: asks who one is, listens to events, and draws the shell and the screen that the
 * address names (lib/address.js). Each screen is {title, view, enter?, leave?}. */
import { render } from "./lib/dom.js";
import { drawWith, soon } from "./lib/redraw.js";
import { remember, where } from "./lib/address.js";
import { store, connect, onChange, certainDeadlocks } from "./model/store.js";
import { onDenied, setToken, token } from "./net/api.js";
import { clusterName } from "./parts/command_line.js";
import { askToken } from "./parts/dialog.js";
import { side, topbar, banner } from "./parts/shell.js";
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

let screen = null;
let route = null;

function draw() {
    if (!screen) return;
    document.documentElement.classList.toggle("stale", store.link.state === "gone");
    render(document.getElementById("side"), side(route.name));
    render(document.getElementById("topbar"), topbar());
    render(document.getElementById("banner"), banner());
    render(document.getElementById("main"), screen.view(route));
    remember(where());
    const deadlocks = certainDeadlocks().length;
    const dead = deadlocks ? `(${deadlocks}) ` : "";
    document.title = `${dead}${screen.title(route)} · ${clusterName() || "clave"}`;
}

function go() {
    const first = screen === null;
    const { name, path } = where();
    const next = { name: SCREENS[name] ? name : "locks", path };
    const target = next.path !== null && DETAILS[next.name] ? DETAILS[next.name] : SCREENS[next.name];
    if (screen !== target || route?.path !== next.path) screen?.leave?.();
    const entered = screen !== target || route?.path !== next.path;
    screen = target;
    route = next;
    if (entered) screen.enter?.(route);
    draw();
    if (!first && entered) {
        scrollTo(0, 0);
        document.querySelector("main h1")?.focus({ preventScroll: true });
    }
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
addEventListener("hashchange", go);
/* The address names a screen, not a place in the page. */
document.querySelector(".skip").addEventListener("click", (e) => {
    e.preventDefault();
    document.getElementById("main").focus();
});
listenToKeys(Object.keys(SCREENS));
go();
connect();
