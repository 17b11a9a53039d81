/* hold.h - what somebody believes to have: one node of one lock. */
#ifndef CLAVE_SIM_HOLD_H
#define CLAVE_SIM_HOLD_H

#include "clave/async/mutex.h"
#include "lock_layout.h"

enum { WRITER = 64 }; /* what a write weighs, beside a read */

struct hold {
    bool believed; /* from the grant to the release or LOST */
    bool shared;   /* a read */
    bool again;    /* of a leader that has tried in vain to resign: the grant that it had */
    unsigned lock;
    int64_t token;
    int64_t session;
    char node[PATH_SIZE];
    int64_t granted_ms; /* by its process's clock */
    int64_t called_at;  /* true time of the acquire's call, and of its answer */
    int64_t granted_at;
    int64_t seen_zxid; /* its node was compared with its queue, in this tree of this server */
    uint64_t seen_start;
    int64_t promised_ms; /* it depends on a sign of life every so many ms; 0: on none */
    int64_t alive_ms;    /* the newest one, by its process's clock */
    int64_t valid_at;    /* the last true moment at which it was seen to be valid; 0: none */
};

/* How much of a lock it takes, of how much there is. */
static inline unsigned hold_weight(const struct hold *h, const struct lock_layout *s)
{
    return s->kind == LOCK_RWLOCK && !h->shared ? WRITER : 1;
}
static inline unsigned layout_capacity(const struct lock_layout *s)
{
    return s->kind == LOCK_RWLOCK ? WRITER : s->limit;
}

#endif
