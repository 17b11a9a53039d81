/* gate_url.js - where the gate is: two folders above this page, so the page works behind a proxy that serves it
 * below a path of its own, as nginx with `location /clave/ { proxy_pass http://gate/; }`. */
const BASE = new URL("../../../", import.meta.url);

/* The whole address of "/v1/...". */
export const gateUrl = (path) => new URL(`.${path}`, BASE).href;

/* Gates behind one proxy are one origin: what is kept in the browser is of one gate. */
export const keptAs = (name) => `${name} ${BASE.pathname}`;
