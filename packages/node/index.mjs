import './lib/fill.mjs';
import clave from './lib/clave.js';

export const { connect, ClaveError, BusyError, LostError, UnreachableError, UnknownOutcomeError, DeniedError } = clave;
export default clave;
