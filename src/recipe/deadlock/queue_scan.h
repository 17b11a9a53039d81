/* queue_scan.h - reads the lock queues at some paths, or below them, once: which nodes are in which
 * queue, and what they say. It reads one node after another, so it does not show a single moment,
 * but everything that it saw was true at some time while it ran. */
#ifndef CLAVE_RECIPE_DEADLOCK_QUEUE_SCAN_H
#define CLAVE_RECIPE_DEADLOCK_QUEUE_SCAN_H

#include "clave/async/mutex.h"
#include "recipe/queue/queue_nodes.h"

struct queue_scan_queue {
    char *path;
    const struct queue_order_rule
        *rule;                /* that of a mutex, of a write lock (for both sides), or of leases */
    struct queue_nodes nodes; /* `there`: it was read, and belongs to a session */
};

struct queue_scan {
    clave_async_client *client;
    const struct clave_mem *mem;
    clave_err err; /* the first error that counts */
    /* Only queues in which somebody may be waiting, and those of leases and of acquires of leases.
     */
    struct queue_scan_queue *queues;
    size_t nqueues;
    /* The rest is private. */
    size_t cap;   /* of `queues` */
    char **paths; /* to be listed, and already listed */
    size_t npaths, path_cap, listed;
    size_t counted, max;      /* names in listings */
    size_t in_queue, at_node; /* what is to be read next */
    size_t pending;           /* requests under way */
    bool descends;
    bool reading; /* listing is complete */
    void (*done)(struct queue_scan *s, void *arg);
    void *arg;
};

struct queue_scan_options {
    const char *const *paths; /* the queues at these paths */
    size_t n;
    bool descends; /* also the queues below these paths */
    size_t max;    /* the largest number of nodes allowed; 0: unlimited */
    void (*done)(struct queue_scan *s, void *arg); /* called exactly once, later */
    void *arg;
};
/* Starts a scan. When it is done, its `err` is ETOOBIG if there were too many nodes, or the error
 * that stopped it. Nodes that may not be read, or vanish in the meantime, are left out. Returns
 * ENOMEM; EINVAL: no path was given; EPATH, ECLOSED. */
clave_err clave__queue_scan_new(struct queue_scan **out, clave_async_client *c,
                                const struct queue_scan_options *o);
/* NULL is ignored. A scan with pending requests frees itself once they are answered. */
void clave__queue_scan_free(struct queue_scan *s);

/* The queue at that path; NULL: there is none. */
const struct queue_scan_queue *clave__queue_scan_find(const struct queue_scan *s, const char *path,
                                                      size_t n);

#endif
