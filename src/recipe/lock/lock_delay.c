/* lock_delay.c - finds out whether the previous holder lost the lock, and if so, has it fenced and
 * waits for the delay. Implements the public API and held_mark.h. What must stay true: CLAVE_OK is
 * reported only when our own mark exists, the holder that left the previous one has been fenced,
 * and no delay remains. A mark is replaced only after its fence: until then a crash leaves it
 * standing.
 *
 *   LOOKING ──▶ (no mark) ───────────────────────────────▶ MARKING ──▶ HELD ──▶ ENDING ──▶ OVER
 *    ▲ ▲ └────▶ FENCING ── fenced ──▶ PAUSING ── delay ──────▲  │
 *    │ │           each is skipped if it is not owed         │  │
 *    │ └───────────────── answer lost ───────────────────────┼──┘
 *    └── NAMING ◀── the holder before left no mark ──────────┘ */
#include "recipe/lock/held_mark.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "recipe/contender/contender_grant.h"
#include "recipe/lock/record_node.h"
#include "recipe/queue/identity.h"

enum phase { LOOKING, FENCING, PAUSING, NAMING, MARKING, HELD, ENDING, OVER };

/* The id in a mark that was written for a holder that leaves none. */
static const char foreign_id[] = "foreign";

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

    void (*owed)(clave_async_delay *d, const struct held_mark *left,
                 void *arg); /* NULL: no fence */
    char harmless[CLAVE_UUID_TEXT + 1];
    /* The mark that was fenced under this grant. */
    bool fenced;
    char fenced_id[CLAVE_UUID_TEXT + 1];
    int64_t fenced_token;
    /* The holder before, for which a mark has to be written; `unmarked_text` is its identity. */
    bool unmarked;
    int64_t unmarked_token;
    char *unmarked_text;
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

/* Writes our mark, or first one for the holder before, which left none. */
static clave_err lock_delay_mark(clave_async_delay *d, enum record_node_act act)
{
    if (!d->unmarked) {
        clave__record_node_compose(d->lock_record, "held", 0);
        return lock_delay_enter(d, MARKING, act);
    }
    clave_identity who;
    size_t n = strlen(d->unmarked_text);
    char *copy = clave__mem_strndup(d->mem, d->unmarked_text, n);
    if (!copy)
        return CLAVE_ENOMEM;
    clave__identity_parse(copy, n, &who);
    clave_err err =
        clave__record_node_compose_for(d->lock_record, foreign_id, d->unmarked_token, &who);
    clave__mem_free(d->mem, copy);
    return err == CLAVE_OK ? lock_delay_enter(d, NAMING, act) : err;
}

static clave_err lock_delay_pause(clave_async_delay *d)
{
    int64_t now = clave__client_now(d->client);
    d->phase = PAUSING;
    d->paused = true;
    clave__client_timer_set(d->client, &d->timer, deadline_after(now, d->delay_ms));
    return CLAVE_OK;
}

/* The mark that was read needs no fence, or has had it. */
static clave_err lock_delay_replace(clave_async_delay *d)
{
    return !d->paused && d->delay_ms > 0 ? lock_delay_pause(d)
                                         : lock_delay_mark(d, LOCK_RECORD_REPLACE);
}

static bool lock_delay_is_fenced(const clave_async_delay *d)
{
    const struct record_node_entry *e = &d->lock_record->entry;
    bool done = d->fenced && e->token == d->fenced_token && strcmp(e->id, d->fenced_id) == 0;
    return done || (*d->harmless && strcmp(e->id, d->harmless) == 0);
}

static clave_err lock_delay_looked(clave_async_delay *d, clave_err err)
{
    if (err == CLAVE_ENONODE)
        return lock_delay_mark(d, LOCK_RECORD_CREATE);
    if (err != CLAVE_OK)
        return err;
    const struct record_node *mark = d->lock_record;
    if (d->unmarked && strcmp(mark->entry.id, foreign_id) == 0 &&
        mark->entry.token == d->unmarked_token)
        d->unmarked = false; /* it was written, and the answer to that was lost */
    /* A mark with the token of this very grant was left by another process that has the session, or
     * by this one earlier; nothing is owed for it. */
    if (clave__record_node_is_own(mark) || mark->entry.token == mark->token)
        return lock_delay_mark(d, LOCK_RECORD_REPLACE);
    if (!d->owed || lock_delay_is_fenced(d))
        return lock_delay_replace(d);
    d->phase = FENCING;
    return CLAVE_OK;
}

static clave_err lock_delay_marked(clave_async_delay *d, clave_err err)
{
    d->phase = err == CLAVE_OK ? HELD : LOOKING;
    return clave__record_node_look_again(d->lock_record, err);
}

static clave_err lock_delay_named(clave_async_delay *d, clave_err err)
{
    d->phase = LOOKING;
    if (err != CLAVE_OK)
        return clave__record_node_look_again(d->lock_record, err);
    d->unmarked = false;
    return lock_delay_enter(d, LOOKING, LOCK_RECORD_READ);
}

static void lock_delay_tell_owed(clave_async_delay *d, void *arg)
{
    const struct record_node_entry *e = &d->lock_record->entry;
    const struct held_mark left = {
        .token = e->token, .foreign = strcmp(e->id, foreign_id) == 0, .identity = &e->identity};
    d->owed(d, &left, arg);
}

/* Called after every step: reports the result, if there is one. The callbacks may free d. */
static void lock_delay_conclude(clave_async_delay *d, clave_err err)
{
    if (err != CLAVE_OK)
        d->phase = OVER;
    if (d->phase == HELD || d->phase == OVER)
        lock_delay_tell(d, err);
    else if (d->phase == FENCING)
        lock_delay_tell_owed(d, d->arg);
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
    else if (d->phase == NAMING)
        err = lock_delay_named(d, err);
    else if (d->phase == MARKING)
        err = lock_delay_marked(d, err);
    else
        d->phase = OVER; /* the caller has already been told */
    lock_delay_conclude(d, err);
}

void clave__delay_fenced(clave_async_delay *d)
{
    assert(d->phase == FENCING);
    const struct record_node_entry *e = &d->lock_record->entry;
    d->fenced = true;
    d->fenced_token = e->token;
    memcpy(d->fenced_id, e->id, sizeof d->fenced_id);
    lock_delay_conclude(d, lock_delay_replace(d));
}

const char *clave__delay_mark_id(const clave_async_delay *d)
{
    return d->lock_record->id;
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

static clave_err lock_delay_take_fence(clave_async_delay *d, const struct held_mark_fence *fence)
{
    if (!fence)
        return CLAVE_OK;
    d->owed = fence->owed;
    if (fence->harmless)
        snprintf(d->harmless, sizeof d->harmless, "%s", fence->harmless);
    if (!fence->unmarked)
        return CLAVE_OK;
    const clave_identity *who = fence->unmarked->identity;
    size_t cap = clave_identity_format(who, NULL, 0) + 1;
    d->unmarked = true;
    d->unmarked_token = fence->unmarked->token;
    d->unmarked_text = clave__mem_alloc(d->mem, cap);
    if (!d->unmarked_text)
        return CLAVE_ENOMEM;
    clave_identity_format(who, d->unmarked_text, cap);
    return CLAVE_OK;
}

clave_err clave_async_delay_begin(clave_async_delay **out, const clave_async_grant *grant,
                                  const clave_delay_options *given, clave_async_delay_cb *cb,
                                  void *arg)
{
    return clave__delay_begin(out, grant, given, NULL, cb, arg);
}

clave_err clave__delay_begin(clave_async_delay **out, const clave_async_grant *grant,
                             const clave_delay_options *given, const struct held_mark_fence *fence,
                             clave_async_delay_cb *cb, void *arg)
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
        err = lock_delay_take_fence(d, fence);
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
    clave__mem_free(d->mem, d->unmarked_text);
    clave__mem_free(d->mem, d);
    clave__client_unref(c);
}
