import './lib/fill.mjs';
import cron from './lib/node-cron.js';

export const { coordinator, ClaveCoordinator } = cron;
export default cron;
