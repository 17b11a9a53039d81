/* contender_timers.c - the times of a contender: the deadline of its acquire, which is the end of
 * the maximum hold once it holds, and the pause before what failed is tried again. */
#include <assert.h>

#include "base/deadline.h"
#include "base/err_class.h"
#include "recipe/contender/contender.h"

enum { PAUSE_MIN_MS = 20, PAUSE_MAX_MS = 1000 };

/* ---- the pause after a failure --------------------------------------------------------------- */

static int64_t contender_pause_ms(const struct contender *c)
{
    if (c->acquire.failures == 0)
        return 0;
    unsigned doublings = c->acquire.failures < 6 ? c->acquire.failures - 1 : 6;
    int64_t ms = (int64_t)PAUSE_MIN_MS << doublings;
    return ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
}

static void contender_retry_later(struct contender *c)
{
    clave__client_timer_set(c->client, &c->acquire.pause,
                            clave__client_now(c->client) + contender_pause_ms(c));
}

void clave__contender_join_after_pause(struct contender *c)
{
    if (contender_pause_ms(c) > 0)
        contender_retry_later(c);
    else
        clave__contender_join_again(c);
}

void clave__contender_check_later(struct contender *c)
{
    c->acquire.failures++;
    contender_retry_later(c);
}

void clave__contender_retry_or_fail(struct contender *c, clave_err err)
{
    if (clave__err_passes(err))
        clave__contender_check_later(c);
    else
        clave__contender_fail(c, err);
}

static void contender_on_pause(struct timer *t, int64_t now)
{
    (void)now;
    struct contender *c = LIST_ENTRY(t, struct contender, acquire.pause);
    clave__contender_begin(c);
    if (c->state == CONTENDER_LEAVING && c->leaving.must_delete)
        clave__contender_remove_node(c, c->node.watch.path);
    else if (c->state == CONTENDER_WAITING)
        clave__contender_turn_check(c);
    else if (c->state == CONTENDER_HELD)
        clave__contender_turn_look(c);
    else if (c->state == CONTENDER_IDLE || c->state == CONTENDER_STANDING_BY)
        clave__contender_join_again(c);
    clave__contender_end(c);
}

/* ---- the limit ------------------------------------------------------------------------------- */

static void contender_on_limit(struct timer *t, int64_t now)
{
    (void)now;
    struct contender *c = LIST_ENTRY(t, struct contender, acquire.limit);
    clave__contender_begin(c);
    if (c->state == CONTENDER_HELD)
        clave__contender_lose(c, CLAVE_EMAXHOLD, true);
    else
        clave__contender_fail(c, clave__contender_not_in_time(c));
    clave__contender_end(c);
}

void clave__contender_limit(struct contender *c, int64_t max)
{
    assert(max >= 0);
    int64_t now = clave__client_now(c->client);
    c->grant.end = max > 0 ? deadline_after(now, max) : CLAVE_NEVER;
    if (c->grant.end != CLAVE_NEVER)
        clave__client_timer_set(c->client, &c->acquire.limit, c->grant.end);
    else
        clave__client_timer_clear(c->client, &c->acquire.limit);
}

void clave__contender_timers_init(struct contender *c)
{
    clave__timer_init(&c->acquire.limit, contender_on_limit);
    clave__timer_init(&c->acquire.pause, contender_on_pause);
}
