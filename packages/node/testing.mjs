import './lib/fill.mjs';
import testing from './lib/testing.js';

export const { startGate } = testing;
export default testing;
