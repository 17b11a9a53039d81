export * from './node-cron.js';
import all from './node-cron.js';
export default all;
