/* tenant.h - a mutex and those who have something of it: what mutex.c and share.c have in common.
 */
#ifndef CLAVE_RECIPE_TENANT_H
#define CLAVE_RECIPE_TENANT_H

#include "base/list.h"
#include "base/map.h"
#include "clave/mutex.h"
#include "recipe/notice.h"
#include "recipe/stock.h"

/* What an acquire or a release will be told. */
struct answer {
    struct notice notice;
    clave_mutex *m;
    uint64_t owner;
    clave_mutex_cb *cb;
    void *arg;
    clave_err verdict;
};

/* What one owner has of a mutex: waiting (a place, no count), holding (both), or lost (a
 * count to give back, no place). When the owner's interest ends it leaves the map, and
 * its answer may live on. */
struct tenant {
    struct answer answer; /* first: freeing the answer frees the tenant */
    struct map_node node;
    struct contender *place;
    unsigned count;
    clave_err lost;       /* why; OK while it is not */
    int64_t beside_token; /* of the write whose place a read takes over */
    /* Shared places (share.c): */
    struct list link; /* in the mutex's line, while another has the place */
    int64_t deadline; /* of its acquire */
    struct timer limit;
    bool untold; /* holds, but its acquire's callback is still to come */
    bool asked;  /* and ASKED behind that */
};

struct clave_mutex {
    clave_client *client;
    const struct clave_mem *mem;
    struct stock stock;
    struct stall_terms stall;
    char *deadlock;     /* of the newest acquire that it has ended; may be NULL */
    clave_mutex *other; /* side of a read-write lock; may be NULL */
    clave_mutex_event_cb *event_cb;
    void *event_arg;
    struct map tenants;
    struct notices notices;
    unsigned share_turns; /* as in the options; 0: no sharing */
    unsigned turns;       /* that the present grant was handed over */
    struct tenant *host;  /* who has the place that is shared; NULL: nobody */
    struct list line;     /* who waits for it, first come first */
    bool freed;
    unsigned refs; /* the user, answers to come, calls that run */
};

/* ---- mutex.c ------------------------------------------------------------------------------- */

/* Takes a place of its own in the queue; its tenant hears of it. `beside` may be NULL. */
clave_err clave__tenant_take_place(struct tenant *t, int64_t deadline, const char *beside);
/* It holds: its acquire's callback, then the event. */
void clave__tenant_tell_held(struct tenant *t);
/* Out of the map, and its callback told, later. */
void clave__tenant_dismiss(struct tenant *t, clave_err verdict);

/* ---- share.c: one place for several owners --------------------------------------------------- */

void clave__share_init(struct tenant *t);
/* Takes a place, or waits for the one there is: no try then. */
clave_err clave__share_acquire(struct tenant *t, int64_t deadline);
/* The host gives its last hold back: true: another has the place now. */
bool clave__share_hand_over(struct tenant *t);
/* The host's place is gone: the next in line takes one. */
void clave__share_promote(clave_mutex *m);
/* Its acquire has ended, in whatever way. */
void clave__share_settle(struct tenant *t);
/* The host's grant is gone. false: its owner was not told of it yet, and waits again. */
bool clave__share_lose(struct tenant *t);
/* Gives up waiting: the place of a host goes to the next in line, if there is one. */
void clave__share_step_down(struct tenant *t);

#endif
