/* lock_delay.c - finds out whether the previous holder lost the lock, and if so, waits for the
 * delay. Implements the public API. What must stay true: CLAVE_OK is reported only when our own
 * mark exists and no delay is left.
 *
 *   LOOKING ──▶ (no mark) ─────────▶ MARKING ──▶ HELD ──▶ ENDING ──▶ OVER
 *    ▲   └────▶ PAUSING ── delay ──────▲  │
 *    └──────── answer lost ───────────────┘ */
#include "clave/async/lock_delay.h"

#include "base/deadline.h"
#include "recipe/contender/contender_grant.h"
#include "recipe/lock/record_node.h"

enum phase { LOOKING, PAUSING, MARKING, HELD, ENDING, OVER };

struct clave_async_delay {
    clave_async_client *client;
    const struct clave_mem *mem;
    struct record_node *lock_record;
    clave_async_delay_cb *cb;
    void *arg;
    clave_delay_event_cb *event_cb;
    void *event_arg;
    enum phase phase;
    int64_t delay_ms;
    bool paused; /* it has paused under this grant, and once is enough */
    struct timer timer;
};

static void lock_delay_tell(clave_async_delay *d, clave_err err)
{
    clave_async_delay_cb *cb = d->cb;
    d->cb = NULL;
    if (cb)
        cb(d, err, d->arg);
}

static clave_err lock_delay_enter(clave_async_delay *d, enum phase phase, enum record_node_act act)
{
    d->phase = phase;
    return clave__record_node_do(d->lock_record, act);
}

static clave_err lock_delay_mark(clave_async_delay *d, enum record_node_act act)
{
    clave__record_node_compose(d->lock_record, "held", 0);
    return lock_delay_enter(d, MARKING, act);
}

static clave_err lock_delay_pause(clave_async_delay *d)
{
    int64_t now = clave__client_now(d->client);
    d->phase = PAUSING;
    d->paused = true;
    clave__client_timer_set(d->client, &d->timer, deadline_after(now, d->delay_ms));
    return CLAVE_OK;
}

static clave_err lock_delay_looked(clave_async_delay *d, clave_err err)
{
    if (err == CLAVE_ENONODE)
        return lock_delay_mark(d, LOCK_RECORD_CREATE);
    if (err != CLAVE_OK)
        return err;
    /* A mark with the token of this very grant was left by another process that has the session, or
     * by this one earlier; no delay is owed for it. */
    const struct record_node *mark = d->lock_record;
    bool lost = !clave__record_node_is_own(mark) && mark->entry.token != mark->token;
    return lost && !d->paused && d->delay_ms > 0 ? lock_delay_pause(d)
                                                 : lock_delay_mark(d, LOCK_RECORD_REPLACE);
}

static clave_err lock_delay_marked(clave_async_delay *d, clave_err err)
{
    d->phase = err == CLAVE_OK ? HELD : LOOKING;
    return clave__record_node_look_again(d->lock_record, err);
}

/* Called after every step: reports the result, if there is one. The callbacks may free d. */
static void lock_delay_conclude(clave_async_delay *d, clave_err err)
{
    if (err != CLAVE_OK)
        d->phase = OVER;
    if (d->phase == HELD || d->phase == OVER)
        lock_delay_tell(d, err);
    else if (d->phase == PAUSING && d->event_cb)
        d->event_cb(d, &d->lock_record->entry.identity, d->delay_ms, d->event_arg);
}

static void lock_delay_on_done(void *owner, enum record_node_act act, clave_err err,
                               const clave_stat *stat)
{
    (void)act;
    (void)stat;
    clave_async_delay *d = owner;
    if (d->phase == LOOKING)
        err = lock_delay_looked(d, err);
    else if (d->phase == MARKING)
        err = lock_delay_marked(d, err);
    else
        d->phase = OVER; /* the caller has already been told */
    lock_delay_conclude(d, err);
}

static void lock_delay_on_timer(struct timer *t, int64_t now)
{
    (void)now;
    clave_async_delay *d = LIST_ENTRY(t, clave_async_delay, timer);
    lock_delay_conclude(d, lock_delay_mark(d, LOCK_RECORD_REPLACE));
}

/* ---- the calls ------------------------------------------------------------------------------- */

static bool lock_delay_options_ok(const clave_delay_options *o)
{
    return o->path && o->delay_ms >= 0 && (!o->acls || o->nacls > 0);
}

clave_err clave_async_delay_begin(clave_async_delay **out, const clave_async_grant *grant,
                                  const clave_delay_options *given, clave_async_delay_cb *cb,
                                  void *arg)
{
    clave_async_client *c = clave__grant_client(grant);
    const struct clave_mem *mem = clave__client_mem(c);
    clave_delay_options o;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_delay_options");
    if (err == CLAVE_OK && (!lock_delay_options_ok(&o) || !cb))
        err = CLAVE_EINVAL;
    if (err != CLAVE_OK)
        return err;
    clave_async_delay *d = clave__mem_zalloc(mem, sizeof *d);
    if (!d)
        return CLAVE_ENOMEM;
    *d = (clave_async_delay){.client = c, .mem = mem, .cb = cb, .arg = arg};
    clave__client_ref(c);
    d->delay_ms = o.delay_ms;
    d->event_cb = o.event_cb;
    d->event_arg = o.event_arg;
    clave__timer_init(&d->timer, lock_delay_on_timer);
    const struct record_node_spec spec = {.done = lock_delay_on_done,
                                          .owner = d,
                                          .grant = grant,
                                          .path = o.path,
                                          .acls = o.acls,
                                          .nacls = o.nacls,
                                          .identity = o.identity};
    err = clave__record_node_new(&d->lock_record, c, &spec, "the mark's path");
    if (err == CLAVE_OK)
        err = lock_delay_enter(d, LOOKING, LOCK_RECORD_READ);
    if (err != CLAVE_OK) {
        clave_async_delay_free(d);
        return err;
    }
    *out = d;
    return CLAVE_OK;
}

clave_err clave_async_delay_end(clave_async_delay *d, clave_async_delay_cb *cb, void *arg)
{
    if (d->phase != HELD)
        return CLAVE_EINVAL;
    clave_err err = lock_delay_enter(d, ENDING, LOCK_RECORD_REMOVE);
    if (err != CLAVE_OK) {
        d->phase = HELD;
        return err;
    }
    d->cb = cb;
    d->arg = arg;
    return CLAVE_OK;
}

void clave_async_delay_free(clave_async_delay *d)
{
    if (!d)
        return;
    clave_async_client *c = d->client;
    clave__client_timer_clear(c, &d->timer);
    clave__record_node_free(d->lock_record);
    clave__mem_free(d->mem, d);
    clave__client_unref(c);
}
