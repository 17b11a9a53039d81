/* queue_view.h - every participant at the path of a lock, whatever its kind by the names of the
 * nodes: a mutex, a read-write lock, a semaphore, or an election.
 *
 * Map of src/cmd/queues, what the verbs of locks and elections share:
 *   queue_view      all participants of a lock, with their roles; src/observe says who holds; once
 *                   or again after every change; and what a path without a queue may be
 *   locks_revoke    asks a holder to release, or deletes its node
 *   leader_follow   every change of an election's leader
 *   leader_resign   resign and transfer: asks the leader and waits */
#ifndef CLAVE_CMD_QUEUES_QUEUE_VIEW_H
#define CLAVE_CMD_QUEUES_QUEUE_VIEW_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"
#include "observe/lock_listing.h"
#include "recipe/queue/queue_nodes.h"

struct queue_view_place {
    const clave_participant *p;
    bool holds;
    /* "holder", "waiting", for elections too; read-write: "reader", "writer", "to-read",
     * "to-write"; semaphore: "lease", "waiting". For any kind "outside": a stock kazoo lock queued
     * after another kind, which it does not see, and "left-over": participant_text_note explains
     * both. */
    const char *role;
    const char *path;   /* of its node */
    bool asked;         /* to release it; of an election, to resign */
    int64_t held_since; /* by granted_field.h, if it holds; -1: its node does not tell */
};

struct queue_view_node {
    struct queue_node of;
    const struct lock_queue *queue;
    int64_t held_since;
};

struct queue_view {
    struct queue_view_place *list; /* holders first, then in the order of the queue */
    size_t n;
    struct clave_mem mem;
    struct lock_listing listing;   /* decides who holds */
    struct queue_view_node *nodes; /* as named by the listing */
    size_t nnodes;
    clave_participant *participants; /* what `list` points into, which point into the nodes */
};

/* Reads it after a sync, as clave_participants does. A missing path is an empty queue; errors as
 * there. *out stays where it is. */
clave_err queue_view_read(clave_client *c, const char *path, int64_t timeout_ms,
                          struct queue_view *out);
void queue_view_fini(struct queue_view *v);

/* true, after a message: the path has children, but none of a lock, or of an election if the verb
 * is about those. A path without children may be either. */
bool no_queue_report(const struct options *o, clave_client *c, const char *path);

/* Prints it; an exit code. */
typedef int queue_show(struct options *o, clave_client *c, const char *path);

/* Opens the session, and shows the queue: once, or, if it is to `watch`, until a signal ends the
 * program or something fails. On a terminal each picture replaces the one before. */
int queue_repeat(struct options *o, const char *path, bool watch, queue_show *show);

#endif
