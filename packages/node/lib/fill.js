'use strict';
// fill.js - fills node.js, for CommonJS. fill.mjs does it for ES modules.
Object.assign(require('./node.js'), {
  child_process: require('node:child_process'),
  crypto: require('node:crypto'),
  fs: require('node:fs/promises'),
  http: require('node:http'),
  net: require('node:net'),
  os: require('node:os'),
  path: require('node:path'),
  tls: require('node:tls'),
  util: require('node:util'),
});
