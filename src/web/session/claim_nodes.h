/* claim_nodes.h - the nodes of a session's claims: which claim a node is of, and the marks of
 * claims that were given back.
 *
 * A mark is an ephemeral node of the session, made before the node of the claim is deleted: no
 * request of before may make that claim anew, as one could that a gate has received late. It is
 * kept for MARK_MS at least, which is longer than anybody waits for an answer, and goes when there
 * are many.
 *
 * Invariant: a session has one place a path and owner (clave__claim_is_same_owner). */
#ifndef CLAVE_WEB_SESSION_CLAIM_NODES_H
#define CLAVE_WEB_SESSION_CLAIM_NODES_H

#include "web/session/claim.h"

/* The directory of marks, which the gate's own client makes. */
#define CLAIM_MARKS "/clave-gate"

enum { CLAIM_NODE_ID = 3 }; /* where the UUID begins in the name: behind "_c_" */

/* Two claims of a session exclude each other on a path unless their ids name different owners: the
 * last twelve digits of a UUID of version 8 do. Any gate sees that by the name of a node. NULL: it
 * names none. */
bool clave__claim_is_same_owner(const char *id, const char *other);
/* A new id, which names none. */
void clave__claim_draw_id(struct rand_state *r, char out[CLAVE_UUID_TEXT + 1]);

/* A node of a claim on this path. */
struct claim_node {
    char uuid[CLAVE_UUID_TEXT + 1];
    enum queue_kind kind; /* LEASE: of a semaphore, one of those that queue for leases too */
    bool queues;          /* such a one */
    int number;
};
/* false: it is of no claim, or of one on another path than `claimed`. */
bool clave__claim_node_parse(const char *path, const char *claimed, struct claim_node *out);
/* It is this claim's, which is on that path. */
bool clave__claim_has_node(const struct claim *c, const struct claim_node *n);
/* Whether this node of the session excludes one of the claim whose place this is: it is of another
 * claim on the same path, or the mark of this one. */
bool clave__claim_excludes(void *place, const char *path);

/* The path is that of a mark; *id: of which claim. */
bool clave__claim_is_mark(const char *path, const char **id);
/* The claim of this id was given back: as far as this gate knows. */
bool clave__claim_is_marked(const struct http_session *s, const char *id);
/* It is given back. Notes it here: ENOMEM; and at the servers, for other gates, as of
 * clave_async_create: ENODEEXISTS when it was marked before. */
clave_err clave__claim_mark_note(struct http_session *s, const char *id);
clave_err clave__claim_mark_send(struct http_session *s, const char *id, clave_result_cb *cb,
                                 void *arg);
void clave__claim_marks_trim(struct http_session *s);
void clave__claim_marks_free(struct http_session *s);

#endif
