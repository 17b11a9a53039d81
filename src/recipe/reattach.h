/* reattach.h - lets another process with the same session find the place of a recipe's user in a
 * queue again, by a UUID that the user chose. One acquire has one place; in a semaphore, that place
 * has several contenders, in <path>/locks and in <path>/leases. The place outlives its contenders:
 * one that was given up may still be looking for its node by the UUID, and deletes it, whichever
 * process it belongs to by then. */
#ifndef CLAVE_RECIPE_REATTACH_H
#define CLAVE_RECIPE_REATTACH_H

#include "base/rand.h"
#include "clave/async/latch.h"
#include "clave/async/semaphore.h"

/* What stays at the server when a contender is given up, because another process with the session
 * may hold it. */
enum queue_place_spares {
    SPARES_NOTHING,
    SPARES_FOUND, /* a node for which the contender has sent no create */
    SPARES_ALL,   /* also a node whose create was sent but not answered: it may belong to either
                     process */
};

struct queue_place {
    char uuid[CLAVE_UUID_TEXT + 1];
    bool search;    /* this session may already have such a node */
    const char *at; /* its name, if that is known: then no other is taken; NULL: unknown. Not for
                       semaphores */
    /* The connection of the newest listing that showed the place; 0: none has, or it has changed
     * since. */
    uint64_t listed_on;
    bool final; /* if its node is deleted while it waits, the acquire ends with ENONODE, since
                   another process with the session may have given it up; otherwise a new node is
                   created */
    enum queue_place_spares spares;
    bool is_shared; /* on another connection another process may have found the node of a try that
                       failed, and been granted it: its delete is not repeated there */
    bool spared;    /* a contender that was given up has left its node, which nobody in this process
                       has now */
    /* As in client_named_create, called with the place as its argument. NULL: nothing is excluded.
     */
    const char *below;
    bool (*excludes)(void *place, const char *path);
    unsigned ncontenders;                  /* how many of its contenders have not ended */
    void (*unused)(struct queue_place *p); /* called when none is left; may be NULL */
};

typedef void queue_described(void *arg, clave_err err);

/* Sets the place that the mutex's owner has or will have; borrowed. Call it before the only
 * acquire. */
void clave__mutex_set_place(clave_async_mutex *m, struct queue_place *p);
/* The same for a semaphore. The names of an acquire's leases are derived from the UUID; the first
 * lease has the UUID itself. */
void clave__semaphore_set_place(clave_async_semaphore *s, struct queue_place *p);
/* The same for a candidate, which must not have a priority. Call it before _start. */
void clave__latch_set_place(clave_async_latch *l, struct queue_place *p);

/* Change what the nodes of a place say: host, name and command in clave's form, or else `text`;
 * NULL fields stay as they are. `done` is called later, *n times, once for each node: CLAVE_OK;
 * ELOST, ENONODE: the place was lost; other errors as clave_async_set. *n is 0 if there is no node
 * yet. ENOMEM, ECLOSED: `done` may still be called for some of the nodes. */
clave_err clave__mutex_describe(clave_async_mutex *m, uint64_t owner, const clave_identity *said,
                                queue_described *done, void *arg, size_t *n);
clave_err clave__semaphore_describe(clave_async_semaphore *s, const clave_identity *said,
                                    queue_described *done, void *arg, size_t *n);
clave_err clave__latch_describe(clave_async_latch *l, const clave_identity *said,
                                queue_described *done, void *arg, size_t *n);

#endif
