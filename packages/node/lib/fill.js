'use strict';
// fill.js - fills node.js, for CommonJS. fill.mjs does it for ES modules.
Object.assign(require('./node.js'), {
  child_process: require('node:child_process'),
  crypto: require('node:crypto'),
  fs: require('node:fs/promises'),
  http: require('node:http'),
  https: require('node:https'),
  os: require('node:os'),
  path: require('node:path'),
  util: require('node:util'),
});
