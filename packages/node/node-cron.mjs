import cron from './node-cron.js';

export const { coordinator, ClaveCoordinator } = cron;
