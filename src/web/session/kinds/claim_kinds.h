/* claim_kinds.h - the kinds of claims, one file each: its state around struct claim, and its table
 * of functions (claim.h). Each claim has recipe objects of its own, so that one owner, 0, is
 * enough.
 *
 *   lock_claim.c       a mutex          semaphore_claim.c   leases
 *   rw_claim.c         a side of a read-write lock
 *   election_claim.c   a candidate */
#ifndef CLAVE_WEB_SESSION_KINDS_CLAIM_KINDS_H
#define CLAVE_WEB_SESSION_KINDS_CLAIM_KINDS_H

#include "web/session/claim.h"

#define CLAIM_KIND_NAMES "lock, read, write, semaphore, election"

/* Of a kind that is no semaphore: the fault of terms that are one's. */
static inline const char *clave__claim_no_semaphore(const struct claim_terms *t)
{
    return t->limit || t->permits ? "\"limit\" and \"permits\" are for a semaphore" : NULL;
}

extern const struct claim_kind clave__lock_claim, clave__read_claim, clave__write_claim,
    clave__semaphore_claim, clave__election_claim;

#endif
