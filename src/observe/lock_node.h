/* lock_node.h - a node in a queue as lock_model.h has it: made, written, freed. */
#ifndef CLAVE_OBSERVE_LOCK_NODE_H
#define CLAVE_OBSERVE_LOCK_NODE_H

#include "observe/lock_model.h"

/* Without data, and in no queue. `kept`: a slot. NULL: no memory. */
struct lock_node *clave__lock_node_new(struct lock_model *m, enum queue_kind kind, const char *name,
                                       const clave_stat *stat, bool kept);
void clave__lock_node_free(struct lock_model *m, struct lock_node *p);
/* What the node says now. Data that is too long is cut; that of Curator's request leaves what the
 * node said before. false: no memory, and nothing is
 * changed. */
bool clave__lock_node_set_data(struct lock_model *m, struct lock_node *p, const void *data,
                               size_t len);

/* A candidate is asked by a write of what its node says anyway: once its version is known. */
void clave__lock_node_note_asked(struct lock_node *p);

/* It enters a queue, or leaves it: its session counts it. It waits, until it is granted. */
void clave__lock_node_join(struct lock_node *p);
void clave__lock_node_part(struct lock_node *p);

/* NULL: it has no place. */
struct lock_session *clave__lock_session_find(const struct lock_model *m, int64_t id);

/* The path of its node, to be freed; NULL: no memory. */
char *clave__lock_node_path(const struct clave_mem *mem, const struct lock_node *p);

/* The server's digits at the end; the names of kazoo's leases have none, and are ordered as a
 * whole. */
struct lock_key clave__lock_key_of(const char *name);

#endif
