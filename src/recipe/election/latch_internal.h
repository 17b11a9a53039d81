/* latch_internal.h - the inside of a clave_async_latch, shared by the files of this folder:
 *
 *   latch.c            a candidate: its places one after another, its priority, the leader's value
 *   transfer.c         who leads next
 *   leader_watch.c     an election seen from outside
 *   selector_state.c   a LeaderSelector's state, for runtime/blocking/selector.c
 *
 *     LATENT ──> QUEUED <──> CLAIMED
 *                 ^ └─────┬─────┘
 *                 │       v
 *                 │     FIRST ──> LEADING ──> ASKED
 *                 │       │        │   v        │ v
 *                 │       │        │  SPENT <───│──
 *                 │       v        v   v        v
 *                OUT <──────────────────────────────   also from QUEUED and CLAIMED
 *                 ^
 *                 v
 *               FAILED                                 and every state ──> CLOSED
 *
 * It has a place from QUEUED to SPENT, and no place in the other states. It leads in LEADING and
 * ASKED. */
#ifndef CLAVE_RECIPE_ELECTION_LATCH_INTERNAL_H
#define CLAVE_RECIPE_ELECTION_LATCH_INTERNAL_H

#include "clave/async/leader.h"
#include "recipe/contender/contender_config.h"

enum latch_state {
    LATCH_LATENT, /* not started */
    LATCH_OUT,    /* between two places, or waiting for memory for the next one */
    LATCH_FAILED, /* it could not enter the queue and has reported FAILED; stays so until it resigns
                   */
    LATCH_QUEUED, /* others are before it, or its node is being created */
    LATCH_CLAIMED, /* the same, and it has asked a leader with a lower priority to resign */
    LATCH_FIRST,   /* its node is the first; if it has a priority, it is looking for a higher one */
    LATCH_LEADING, /* LEADER was reported, or is being reported */
    LATCH_ASKED,   /* the same, and ASKED was reported */
    LATCH_SPENT, /* the standard policy has ended its term, but the term's deadline has not come yet
                  */
    LATCH_CLOSED, /* closed by _close, or together with its client */
};

struct clave_async_latch {
    clave_async_client *client;
    const struct clave_mem *mem;
    struct contender_config config;
    char *id;
    clave_latch_policy policy;
    clave_latch_event_cb *event_cb;
    void *event_arg;
    enum latch_state state;
    clave_err failed; /* in FAILED: why */
    struct contender *place;
    int64_t published_token; /* the token of the leadership that has published a value */
    /* The token of the place whose hand-over is under way; 0: none is. It is not a state because
     * the request may outlive the place. There is at most one. */
    int64_t yield_token;
    int32_t priority; /* 0: none */
    bool preempt;     /* an option: claim the leadership from a leader with a lower priority */
    struct contender_spec ranked; /* the config's spec, but with the priority in the nodes' names */
    char *ranked_stem;
    struct timer promised;   /* for SPENT: the deadline of the ended term */
    struct timer regain;     /* after it has resigned: until it may queue with its priority again */
    struct client_task loss; /* when it runs, NOT_LEADER is reported, before anything else */
    struct list awaits;      /* of struct latch_callback */
    struct timer retry;      /* for what failed for want of memory, or for a reason that may pass */
    struct listener listener;
    unsigned refs; /* the user, callbacks still to come, a hand-over, and running calls */
};

static inline bool clave__latch_is_started(const clave_async_latch *l)
{
    return l->state != LATCH_LATENT && l->state != LATCH_CLOSED;
}

/* True if its node is the first, whether or not it leads. */
static inline bool clave__latch_is_first(const clave_async_latch *l)
{
    return l->state >= LATCH_FIRST && l->state <= LATCH_SPENT;
}

static inline bool clave__latch_leads(const clave_async_latch *l)
{
    return l->state == LATCH_LEADING || l->state == LATCH_ASKED;
}

/* Keeps the latch alive until what is under way for it has ended. */
void clave__latch_hold(clave_async_latch *l);
void clave__latch_drop(clave_async_latch *l);
/* Gives up the leadership or the place, and queues again at the end. `let_others`: without its
 * priority and, in a race, a moment later than the others. ENOMEM: nothing was done. */
clave_err clave__latch_rejoin(clave_async_latch *l, bool let_others);

/* Rendezvous hashing: a number above 0 that is as good as random for each pair of arguments, so
 * that among many elections the highest priority goes to different candidates. */
int32_t clave__latch_priority_spread(const char *path, const char *id);

struct latch_lead {
    clave_async_client *client;
    const char *path; /* this and `node`, a full path, are valid until the next call on the latch */
    const char *node;
    int64_t token;
};
/* Returns false if it does not lead. */
bool clave__latch_lead(const clave_async_latch *l, struct latch_lead *out);

/* <path>-value, to be freed by the caller. NULL: no memory. */
char *clave__value_path(const struct clave_mem *mem, const char *path);

/* ---- transfer.c ------------------------------------------------------------------------------ */

/* The first candidate hands its place over to one with a higher priority. `cb` gets CLAVE_OK if
 * there is none, ELOST if it has handed over and queued again at the end. */
clave_err clave__transfer_yield(clave_async_latch *l, clave_async_transfer_cb *cb);
/* A waiting candidate asks a leader with a lower priority to resign, unless another candidate has
 * an even higher priority. */
clave_err clave__transfer_claim(clave_async_latch *l, clave_async_transfer_cb *cb);

#endif
