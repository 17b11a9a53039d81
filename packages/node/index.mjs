import clave from './index.js';

export const { connect, ClaveError, BusyError, LostError, UnreachableError, UnknownOutcomeError, DeniedError } = clave;
export default clave;
