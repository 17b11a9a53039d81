/* queue_scan.h - one reading of the lock queues at some paths and below them: which nodes are in
 * which queue, and what they say. It reads one node after the other, so it does not show one
 * moment; but everything it saw was true at some time while it ran. */
#ifndef CLAVE_RECIPE_DEADLOCK_QUEUE_SCAN_H
#define CLAVE_RECIPE_DEADLOCK_QUEUE_SCAN_H

#include "clave/async/mutex.h"
#include "recipe/queue/queue_nodes.h"

struct scan_queue {
    char *path;
    const struct queue_order_rule *rule; /* mutex, write (both sides), lease */
    struct queue_nodes nodes;            /* `there`: was read, and belongs to a session */
};

struct scan {
    clave_async_client *client;
    const struct clave_mem *mem;
    clave_err err; /* the first that counts */
    /* Only those in which somebody may wait, and those of leases and of their acquires. */
    struct scan_queue *queues;
    size_t nqueues;
    /* Private from here on. */
    size_t cap;   /* for queues */
    char **paths; /* to be listed, and listed */
    size_t npaths, path_cap, listed;
    size_t counted, max;      /* names in listings */
    size_t in_queue, at_node; /* which is to be read next */
    size_t pending;           /* requests under way */
    bool descends;
    bool reading; /* listing is over */
    void (*done)(struct scan *s, void *arg);
    void *arg;
};

struct scan_options {
    const char *const *paths; /* the queues at these */
    size_t n;
    bool descends;                           /* and those below */
    size_t max;                              /* the most nodes that there may be; 0: any number */
    void (*done)(struct scan *s, void *arg); /* once, later */
    void *arg;
};
/* Its `err` when it is done: ETOOBIG when there are too many nodes, or the error that stopped it.
 * Nodes that may not be read, or vanish meanwhile, are left out. Returns ENOMEM; EINVAL: no path;
 * EPATH, ECLOSED. */
clave_err clave__scan_new(struct scan **out, clave_async_client *c, const struct scan_options *o);
/* NULL is ignored. A scan with pending requests frees itself when they are answered. */
void clave__scan_free(struct scan *s);

/* The queue of that path; NULL. */
const struct scan_queue *clave__scan_find(const struct scan *s, const char *path, size_t n);

#endif
