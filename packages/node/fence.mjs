import './lib/fill.mjs';
import fence from './lib/fence.js';

export const { fencePostgres, fenceS3, fenceFile, StaleTokenError } = fence;
export default fence;
