/* client_base.h - what everything that is made on a clave_async_client reads of it without a call:
 * memory, log, time, timers. It is the beginning of the client, and only the client writes to it.
 * Recipes use the functions below, and know no other part of the client. */
#ifndef CLAVE_CLIENT_CLIENT_BASE_H
#define CLAVE_CLIENT_CLIENT_BASE_H

#include <assert.h>

#include "base/list.h"
#include "base/log_line.h"
#include "clave/async/client.h"
#include "client/timer.h"

struct client_base {
    struct clave_mem mem;
    struct log log;
    struct clave_tls *tls; /* only passed on to the driver */
    uint64_t hash_seed;
    int64_t now;
    struct timers timers;
    struct list listeners;
    struct list contenders;         /* the places of recipes in their queues: recipe/contender */
    struct settle_hook *on_settled; /* NULL: nothing waits for it */
};

/* Called at the end of each entry into the client, when everything has been delivered. A hand-over
 * (recipe/contender/hand_over.c) uses it to wait until no request is under way. */
struct settle_hook {
    void (*run)(struct settle_hook *h);
};

static inline const struct client_base *clave__client_base(const clave_async_client *c)
{
    return (const void *)c;
}

static inline const struct clave_mem *clave__client_mem(const clave_async_client *c)
{
    return &clave__client_base(c)->mem;
}

/* The log in the client's options. */
static inline const struct log *clave__client_log(const clave_async_client *c)
{
    return &clave__client_base(c)->log;
}

/* The TLS context in the client's options. */
static inline struct clave_tls *clave__client_tls(const clave_async_client *c)
{
    return clave__client_base(c)->tls;
}

/* The seed for hash maps whose keys others choose (base/map.h). */
static inline uint64_t clave__client_hash_seed(const clave_async_client *c)
{
    return clave__client_base(c)->hash_seed;
}

/* The time passed in by the newest call into the client. */
static inline int64_t clave__client_now(const clave_async_client *c)
{
    return clave__client_base(c)->now;
}

/* Sets a timer, which fires inside _tick; see client/timer.h. An overdue timer counts as due now:
 * drivers subtract to get the time that is left, and CLAVE_TRY is far in the past. */
static inline void clave__client_timer_set(clave_async_client *c, struct timer *t, int64_t at)
{
    struct client_base *b = (void *)c;
    assert(t->fire);
    clave__timers_set(&b->timers, t, at > b->now ? at : b->now);
}

static inline void clave__client_timer_clear(clave_async_client *c, struct timer *t)
{
    struct client_base *b = (void *)c;
    clave__timers_clear(&b->timers, t);
}

/* True while the session is being handed over to another process: nobody may queue any more. */
static inline bool clave__client_is_handing_over(const clave_async_client *c)
{
    return clave__client_base(c)->on_settled;
}

/* True before the client has claimed the session that it resumes (handed_session.h): it may be
 * another process's. */
bool clave__client_is_unclaimed(const clave_async_client *c);

static inline void clave__client_add_contender(clave_async_client *c, struct list *link)
{
    struct client_base *b = (void *)c;
    list_push_back(&b->contenders, link);
}

static inline void clave__client_on_settled(clave_async_client *c, struct settle_hook *h)
{
    struct client_base *b = (void *)c;
    b->on_settled = h;
}

/* True if the session is attached to a server. */
static inline bool clave__state_is_up(clave_state state)
{
    return state == CLAVE_STATE_CONNECTED || state == CLAVE_STATE_RECONNECTED ||
           state == CLAVE_STATE_READ_ONLY;
}

/* Listeners are called on state changes, in the order in which they were added, before the user's
 * own callback. A listener may remove itself or others during the call. */
struct listener {
    struct list link;
    void (*on_state)(struct listener *l, clave_state state, clave_err why);
};

static inline void clave__client_listen(clave_async_client *c, struct listener *l)
{
    struct client_base *b = (void *)c;
    list_push_back(&b->listeners, &l->link);
}

static inline void clave__client_unlisten(struct listener *l)
{
    list_remove(&l->link);
}

#endif
