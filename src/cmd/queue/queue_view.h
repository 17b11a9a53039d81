/* queue_view.h - every participant at the path of a lock, whatever its kind by the names of the
 * nodes: a mutex, a read-write lock, a semaphore, or an election. */
#ifndef CLAVE_CMD_QUEUE_QUEUE_VIEW_H
#define CLAVE_CMD_QUEUE_QUEUE_VIEW_H

#include "clave/participants.h"

struct queue_view_place {
    const clave_participant *p;
    bool holds;
    /* "holder", "waiting", for elections too; read-write: "reader", "writer", "to-read",
     * "to-write"; semaphore: "lease", "waiting". For any kind "outside": a stock kazoo lock queued
     * after another kind, which it does not see: participant_text_note explains it. */
    const char *role;
    const char
        *below; /* where its node is below the path: "leases" or "locks"; NULL: right below */
};

struct queue_view {
    struct queue_view_place *list; /* holders first, then in the order of the queue */
    size_t n;
    clave_participant_list *lists[2]; /* what `list` points into */
};

/* As clave_participants. */
clave_err queue_view_read(clave_client *s, const char *path, int64_t timeout_ms,
                          struct queue_view *out);
void queue_view_fini(struct queue_view *l);

/* The path of its node in the queue at `path`, to be freed; NULL: out of memory. */
char *queue_view_node_path(const char *path, const struct queue_view_place *at);

#endif
