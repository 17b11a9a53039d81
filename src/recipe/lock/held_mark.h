/* held_mark.h - fencing with the mark of a lock delay (clave/async/lock_delay.h), for `clave lock`
 * and `clave elect`. A mark that is found when the lock is granted was left by a holder that is not
 * known to have ended properly. With a fence, the new holder first has that one made harmless, and
 * only then replaces the mark with its own; if it dies in the meantime, the mark stays, and the
 * next holder fences the same one. */
#ifndef CLAVE_RECIPE_LOCK_HELD_MARK_H
#define CLAVE_RECIPE_LOCK_HELD_MARK_H

#include "clave/async/lock_delay.h"

/* A holder whose end is not known to have been in order. */
struct held_mark {
    int64_t token; /* 0: unknown, because another program wrote the mark */
    bool foreign;  /* it leaves no marks: its successor wrote this one for it */
    const clave_identity *identity;
};

struct held_mark_fence {
    /* The holder in this mark has to be fenced; valid during the call only. Call
     * clave__delay_fenced when that is done, or free the delay. */
    void (*owed)(clave_async_delay *d, const struct held_mark *left, void *arg);
    /* Id of a mark that this program has left itself, under an earlier grant, and knows to be
     * harmless; NULL: none. Copied. */
    const char *harmless;
    /* The holder before this one left no mark, but has to be fenced; NULL: none. A mark is written
     * for it first, since this holder may die while it fences. Copied. */
    const struct held_mark *unmarked;
};

/* As clave_async_delay_begin; `fence` may be NULL. */
clave_err clave__delay_begin(clave_async_delay **out, const clave_async_grant *grant,
                             const clave_delay_options *o, const struct held_mark_fence *fence,
                             clave_async_delay_cb *cb, void *arg);
/* The holder that `owed` named has been fenced. */
void clave__delay_fenced(clave_async_delay *d);
/* The id of the marks that this one leaves. */
const char *clave__delay_mark_id(const clave_async_delay *d);

#endif
