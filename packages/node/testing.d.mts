export * from './testing.js';
import all from './testing.js';
export default all;
