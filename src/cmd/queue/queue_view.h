/* queue_view.h - every participant at the path of a lock, whatever its kind by the names of the
 * nodes: a mutex, a read-write lock, a semaphore, or an election. */
#ifndef CLAVE_CMD_QUEUE_QUEUE_VIEW_H
#define CLAVE_CMD_QUEUE_QUEUE_VIEW_H

#include "clave/client.h"
#include "recipe/contender/queue_nodes.h"

struct queue_view_place {
    const clave_participant *p;
    bool holds;
    /* "holder", "waiting", for elections too; read-write: "reader", "writer", "to-read",
     * "to-write"; semaphore: "lease", "waiting". For any kind "outside": a stock kazoo lock queued
     * after another kind, which it does not see: participant_text_note explains it. */
    const char *role;
    const char
        *below; /* where its node is below the path: "leases" or "locks"; NULL: right below */
    bool asked; /* to release it; of an election, to resign */
    int64_t held_since; /* by held_since.h, if it holds; -1: its node does not tell */
};

struct queue_view {
    struct queue_view_place *list; /* holders first, then in the order of the queue */
    size_t n;
    struct clave_mem mem;
    struct queue_nodes
        nodes[2]; /* right at the path; or of a semaphore, the leases and the locks */
    size_t nleases;
    clave_participant *participants; /* what `list` points into, which point into the nodes */
};

/* Reads it after a sync, as clave_participants does. A missing path is an empty queue; errors as
 * there. *out stays where it is. */
clave_err queue_view_read(clave_client *s, const char *path, int64_t timeout_ms,
                          struct queue_view *out);
void queue_view_fini(struct queue_view *l);

/* The path of its node in the queue at `path`, to be freed; NULL: out of memory. */
char *queue_view_node_path(const char *path, const struct queue_view_place *at);

#endif
