'use strict';
require('./lib/fill.js');
module.exports = require('./lib/fence.js');
