/* queue_view.h - all participants of the lock at a path: a mutex, a read-write lock, a semaphore,
 * or an election. The names of the nodes tell the kind.
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
    /* "holder" or "waiting" for a mutex or an election; "reader", "writer", "to-read" or "to-write"
     * for a read-write lock; "lease" or "waiting" for a semaphore. Of any kind may be "outside", a
     * stock kazoo lock that is queued behind nodes of another kind, which it does not see; and
     * "left-over". participant_text_note explains these two. */
    const char *role;
    const char *path;   /* of its node */
    bool asked;         /* it was asked to release the lock, or to resign */
    int64_t held_since; /* if it holds: since when (clave__identity_granted); -1: its node does not
                           tell */
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
    struct queue_view_node *nodes; /* the nodes that the listing names */
    size_t nnodes;
    clave_participant *participants; /* `list` points to these, and these point into `nodes` */
};

/* Reads the queue after a sync, as clave_participants does, and with the same errors. If the path
 * does not exist, the queue is empty. *out must not be moved afterwards. */
clave_err queue_view_read(clave_client *c, const char *path, int64_t timeout_ms,
                          struct queue_view *out);
void queue_view_fini(struct queue_view *v);

/* true, after a message: the path has children, but none that belongs to a lock (or to an election,
 * if the verb is about elections). A path without children may be either. */
bool no_queue_report(const struct options *o, clave_client *c, const char *path);

/* Reads and prints the queue. Returns an exit code. */
typedef int queue_show(struct options *o, clave_client *c, const char *path);

/* Opens a session and shows the queue. With `watch`, goes on until a signal ends the program or
 * something fails; on a terminal each picture replaces the previous one. Returns the exit code. */
int queue_repeat(struct options *o, const char *path, bool watch, queue_show *show);

#endif
