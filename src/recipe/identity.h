/* identity.h - who a lock node says it belongs to. */
#ifndef CLAVE_RECIPE_IDENTITY_H
#define CLAVE_RECIPE_IDENTITY_H

#include "clave/mutex.h"

/* Reads what a node holds: clave's form, or printable text. `data` has n bytes and a NUL
 * behind them; it is changed in place, and `out` points into it. */
void clave__identity_parse(char *data, size_t n, clave_identity *out);

#endif
