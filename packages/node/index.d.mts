export * from './index.js';
import all from './index.js';
export default all;
