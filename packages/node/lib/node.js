'use strict';
// node.js - the modules of Node that this package uses. index.js fills it by require, index.mjs by import: so a bundle
// of ES modules has imports in it, and no require, which such a bundle does not have.
module.exports = {};
