/* all_loops.h - all loops of this process, and what clients did that were on loops since freed. For
 * clave/metrics.h; loop.c keeps it, metrics.c reads it.
 *
 * One mutex of its own, which is held for a few instructions and inside which no other is taken. */
#ifndef CLAVE_RUNTIME_BLOCKING_ALL_LOOPS_H
#define CLAVE_RUNTIME_BLOCKING_ALL_LOOPS_H

#include "client/client_metrics.h"
#include "runtime/blocking/loop.h"

/* A loop begins, or its thread has ended: from then on its totals count as those of the past. */
void clave__loops_add(clave_loop *l);
void clave__loops_remove(clave_loop *l);
/* This process is a fork of the one that had them. */
void clave__loops_forget(void);

/* The loops at one moment, each with a reference that the caller gives back, in an array that the
 * caller frees (NULL for none), and the past before them. ENOMEM. */
clave_err clave__loops_list(clave_loop ***out, size_t *n, struct client_totals *past);

#endif
