/* command_line.js - commands of clave for a terminal, to copy. */
import { store } from "../model/store.js";

/* What `clave --connect` takes. A server that listens on all addresses has that of the gate, which is in the
 * same process. */
export function clusterName() {
    return store.server?.connect.replace(/^(tls:)?(0\.0\.0\.0|\*|\[::\])(?=:\d+$)/, `$1${location.hostname}`) ?? null;
}

/* A command for a terminal, with the servers that this page shows. */
export const commandLine = (verb, rest) => `clave ${verb} -c ${clusterName() || "…"} ${rest}`;
