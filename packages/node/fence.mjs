import fence from './fence.js';

export const { fencePostgres, fenceS3, fenceFile, StaleTokenError } = fence;
