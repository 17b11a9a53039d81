/* lock_etag.h - a number for all that is shown of a lock or an election and may change: the same
 * at every gate that sees the same tree, and another one after each change. */
#ifndef CLAVE_OBSERVE_LOCK_ETAG_H
#define CLAVE_OBSERVE_LOCK_ETAG_H

#include "observe/election_terms.h"

uint64_t clave__lock_etag(const struct lock_queue *q);
/* `q`: its candidates; NULL: none. */
uint64_t clave__election_digest(const struct election *e, const struct lock_queue *q);

#endif
