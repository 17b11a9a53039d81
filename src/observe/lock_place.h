/* lock_place.h - a node in a queue as lock_model.h has it: made, written, freed. */
#ifndef CLAVE_OBSERVE_LOCK_PLACE_H
#define CLAVE_OBSERVE_LOCK_PLACE_H

#include "observe/lock_model.h"

/* Without data, and in no queue. `kept`: a slot. NULL: no memory. */
struct lock_place *clave__lock_place_new(struct lock_model *m, enum queue_kind kind,
                                         const char *name, const clave_stat *stat, bool kept);
void clave__lock_place_free(struct lock_model *m, struct lock_place *p);
/* What the node says now. Data that is too long is cut; that of Curator's request leaves what the
 * node said before. false: no memory, and nothing is
 * changed. */
bool clave__lock_place_set_data(struct lock_model *m, struct lock_place *p, const void *data,
                                size_t len);

/* A candidate is asked by a write of what its node says anyway: once its version is known. */
void clave__lock_place_note_asked(struct lock_place *p);

/* It enters a queue, or leaves it: its session counts it. It waits, until it is granted. */
void clave__lock_place_join(struct lock_place *p);
void clave__lock_place_part(struct lock_place *p);

/* NULL: it has no place. */
struct lock_session *clave__lock_session_find(const struct lock_model *m, int64_t id);

/* The path of its node, to be freed; NULL: no memory. */
char *clave__lock_place_path(const struct clave_mem *mem, const struct lock_place *p);

/* The server's digits at the end; the names of kazoo's leases have none, and are ordered as a
 * whole. */
struct lock_key clave__lock_key_of(const char *name);

#endif
