'use strict';
// clave - locks, elections and run-once over HTTP. See README.md and index.d.ts.
require('./lib/fill.js');
module.exports = require('./lib/clave.js');
