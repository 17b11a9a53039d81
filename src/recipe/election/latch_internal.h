/* latch_internal.h - the inside of a clave_async_latch, as the files of an election share it.
 *
 *   latch.c            a candidate: its states, and its places one after another
 *   latch_priority.c   what a priority changes
 *   leader_value.c     the leader's value
 *   transfer.c         who leads next
 *   leader_watch.c     an election seen from outside
 *   leader_reading.c   what a look at it has found
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
 * From QUEUED to SPENT it has a place, elsewhere none. It leads in LEADING and ASKED. */
#ifndef CLAVE_RECIPE_ELECTION_LATCH_INTERNAL_H
#define CLAVE_RECIPE_ELECTION_LATCH_INTERNAL_H

#include "clave/async/leader.h"
#include "recipe/contender/contender_config.h"

enum latch_state {
    LATCH_LATENT,  /* not started */
    LATCH_OUT,     /* between two places, or until there is memory for the next one */
    LATCH_FAILED,  /* it could not enter, and FAILED was told: until it resigns */
    LATCH_QUEUED,  /* others are before it, or its node is being created */
    LATCH_CLAIMED, /* the same, and it has asked a leader of a lower priority to resign */
    LATCH_FIRST,   /* its node is the first; with a priority it looks for a higher one now */
    LATCH_LEADING, /* LEADER was told, or is being told */
    LATCH_ASKED,   /* the same, and ASKED was told */
    LATCH_SPENT,   /* the standard policy has ended its term, and the term's deadline is to come */
    LATCH_CLOSED,  /* by _close, or with its client */
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
    struct contender *place;
    int64_t published_token; /* of the leadership that has a value out */
    /* The token of the place whose hand-over is under way; 0: none is. This is not a state, since
     * the request may outlive the place. One is under way at a time. */
    int64_t yield_token;
    int32_t priority;             /* 0: none */
    bool preempt;                 /* an option: to claim the leadership of a lower priority */
    struct contender_spec ranked; /* the config's, with the priority in the nodes' names */
    char *ranked_stem;
    struct timer promised;   /* SPENT: the deadline of the term that is over */
    struct timer regain;     /* until it stands with its priority again, after it has resigned */
    struct client_task loss; /* due: NOT_LEADER is told, before anything else */
    struct list awaits;      /* latch_callbacks */
    struct timer retry;      /* what memory was short for, or failed for a reason that may pass */
    struct listener listener;
    unsigned refs; /* the user, callbacks to come, a hand-over, calls that run */
};

static inline bool clave__latch_is_started(const clave_async_latch *l)
{
    return l->state != LATCH_LATENT && l->state != LATCH_CLOSED;
}

/* Its node is the first, whether it leads or not. */
static inline bool clave__latch_is_first(const clave_async_latch *l)
{
    return l->state >= LATCH_FIRST && l->state <= LATCH_SPENT;
}

static inline bool clave__latch_leads(const clave_async_latch *l)
{
    return l->state == LATCH_LEADING || l->state == LATCH_ASKED;
}

/* It lives until whatever is under way for it has ended. */
void clave__latch_hold(clave_async_latch *l);
void clave__latch_drop(clave_async_latch *l);
/* The only function that changes the state. A state without a place lets go of the place. */
void clave__latch_enter(clave_async_latch *l, enum latch_state to);
/* In FIRST: it leads from now on. */
void clave__latch_gain(clave_async_latch *l);
/* Tries again after a pause what failed for want of memory, or for a reason that may pass. */
void clave__latch_try_later(clave_async_latch *l);
/* Gives the leadership or the place up and stands at the end of the queue. `let_others`: without
 * its priority, and in a race a moment later than the others. ENOMEM: nothing was done. */
clave_err clave__latch_rejoin(clave_async_latch *l, bool let_others);

/* ---- latch_priority.c ----------------------------------------------------------------------- */

void clave__latch_priority_init(clave_async_latch *l);
/* Rendezvous hashing: a number above 0, as good as random for each pair, so that of many elections
 * each has another candidate with the highest. */
int32_t clave__latch_priority_spread(const char *path, const char *id);
clave_err clave__latch_set_priority(clave_async_latch *l, const clave_latch_options *o);
/* In FIRST: leads, unless another candidate has a higher priority. Nothing in other states. */
void clave__latch_rise(clave_async_latch *l);
/* Asks a leader with a lower priority to resign, once for each place. */
void clave__latch_claim(clave_async_latch *l);
/* It has resigned: it stands with its priority again after a session timeout. */
void clave__latch_regain_later(clave_async_latch *l);

struct latch_lead {
    clave_async_client *client;
    const char *path;
    const char *node; /* full path; both valid until the next call on the latch */
    int64_t token;
};
/* false: it does not lead. */
bool clave__latch_lead(const clave_async_latch *l, struct latch_lead *out);

/* ---- leader_value.c ------------------------------------------------------------------------- */

/* <path>-value, to be freed. NULL: no memory. */
char *clave__value_path(const struct clave_mem *mem, const char *path);
/* Deletes the value while the leader's node still exists. Without memory the value stays until the
 * session ends, and is not shown. */
void clave__value_withdraw(const struct latch_lead *lead);

/* ---- transfer.c ------------------------------------------------------------------------ */

/* The first hands its place over to a candidate with a higher priority. cb: CLAVE_OK: there is
 * none; ELOST: handed over, and it has entered again at the end of the queue. */
clave_err clave__transfer_yield(clave_async_latch *l, clave_async_transfer_cb *cb);
/* A waiting candidate asks a leader of a lower priority to resign, unless another candidate has a
 * higher one still. */
clave_err clave__transfer_claim(clave_async_latch *l, clave_async_transfer_cb *cb);

#endif
