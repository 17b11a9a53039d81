export * from './fence.js';
import all from './fence.js';
export default all;
