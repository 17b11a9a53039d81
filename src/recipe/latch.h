/* latch.h - what publishing and transfers need to know of a latch. */
#ifndef CLAVE_RECIPE_LATCH_H
#define CLAVE_RECIPE_LATCH_H

#include "clave/leader.h"

struct latch_lead {
    clave_client *client;
    const char *path;
    const char *node; /* full path; both valid until the next call on the latch */
    int64_t token;
};
/* false: it does not lead. */
bool clave__latch_lead(const clave_latch *l, struct latch_lead *out);

/* It outlives what is under way for it. */
void clave__latch_hold(clave_latch *l);
void clave__latch_drop(clave_latch *l);

/* The leadership with this token has published, for the first time or again. */
bool clave__latch_has_published(const clave_latch *l, int64_t token);
void clave__latch_set_published(clave_latch *l, int64_t token);

/* ---- publish.c ------------------------------------------------------------------------- */

/* <path>-value, to be freed. NULL: no memory. */
char *clave__value_path(const struct clave_mem *mem, const char *path);
/* Takes the value back while its leader still stands. Short of memory it stays until the session
 * ends, and is not shown. */
void clave__value_withdraw(const struct latch_lead *lead);

#endif
