/* lock_digest.h - a number for all that is shown of a lock or an election and may change: the same
 * at every gate that sees the same tree, and another one after each change. */
#ifndef CLAVE_OBSERVE_LOCK_DIGEST_H
#define CLAVE_OBSERVE_LOCK_DIGEST_H

#include "observe/election_model.h"

uint64_t clave__lock_digest(const struct lock_queue *q);
/* `q`: its candidates; NULL: none. */
uint64_t clave__election_digest(const struct election *e, const struct lock_queue *q);

#endif
