/* once.c - finds out whether a job still has to be done, and records that it was.
 *
 *   LOOKING ──▶ (nothing that counts) ──▶ STARTING ──▶ RUNNING ──▶ ENDING ──▶ OVER
 *    ▲   │                                  ▲  │
 *    │   └──▶ TOUCHING ── out of date ──────┘  │ answer lost, or another record is there
 *    │             └───── counts: EDONE        │
 *    └─────────────────────────────────────────┘
 *
 * The previous holder wrote the record before its node was deleted, and that deletion made us the
 * holder. So our server has the record as the previous holder left it. Each run creates a new
 * record, whose ctime is therefore when the run began. */
#include "clave/async/once.h"

#include <string.h>

#include "recipe/contender/contender_grant.h"
#include "recipe/lock/record_node.h"

enum phase { LOOKING, TOUCHING, STARTING, RUNNING, ENDING, OVER };

struct clave_async_once {
    clave_async_client *client;
    const struct clave_mem *mem;
    struct record_node *lock_record;
    clave_async_once_cb *cb;
    void *arg;
    enum phase phase;
    int64_t period_ms;
    bool at_most_once;
    int64_t began; /* by the client's clock */
    clave_once_record former;
};

static void recipe_once_tell(clave_async_once *o, clave_err err)
{
    clave_async_once_cb *cb = o->cb;
    o->cb = NULL;
    if (cb)
        cb(o, err, &o->former, o->arg);
}

static clave_err recipe_once_enter(clave_async_once *o, enum phase phase, enum record_node_act act)
{
    o->phase = phase;
    return clave__record_node_do(o->lock_record, act);
}

/* ---- the record ------------------------------------------------------------------------------ */

static clave_once_state once_state_of(const struct record_node_entry *e)
{
    if (strcmp(e->state, "started") == 0)
        return CLAVE_ONCE_STARTED;
    return strcmp(e->state, "failed") == 0 ? CLAVE_ONCE_FAILED : CLAVE_ONCE_DONE;
}

static void once_note_former(clave_async_once *o)
{
    const struct record_node_entry *e = &o->lock_record->entry;
    o->former = (clave_once_record){.state = once_state_of(e),
                                    .began = e->stat.ctime,
                                    .age_ms = -1,
                                    .took_ms = e->took_ms,
                                    .token = e->token,
                                    .identity = e->identity};
}

/* Reads the record again after an answer that leaves its content in doubt. */
static clave_err recipe_once_look_again(clave_async_once *o, clave_err err)
{
    o->phase = LOOKING;
    return clave__record_node_look_again(o->lock_record, err);
}

static clave_err recipe_once_start(clave_async_once *o, enum record_node_act act)
{
    o->began = clave__client_now(o->client);
    clave__record_node_compose(o->lock_record, "started", 0);
    return recipe_once_enter(o, STARTING, act);
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* The record was read, or does not exist. */
static clave_err recipe_once_looked(clave_async_once *o, clave_err err)
{
    if (err == CLAVE_ENONODE) {
        o->former = (clave_once_record){.age_ms = -1};
        return recipe_once_start(o, LOCK_RECORD_CREATE);
    }
    if (err != CLAVE_OK)
        return err;
    /* The answer to our start was lost. Starting again proves that the lock is still held. */
    if (clave__record_node_is_own(o->lock_record))
        return recipe_once_start(o, LOCK_RECORD_REPLACE);
    once_note_former(o);
    if (o->former.state != CLAVE_ONCE_DONE && !o->at_most_once)
        return recipe_once_start(o, LOCK_RECORD_REPLACE);
    return o->period_ms == 0 ? CLAVE_EDONE : recipe_once_enter(o, TOUCHING, LOCK_RECORD_TOUCH);
}

static clave_err once_touched(clave_async_once *o, clave_err err, const clave_stat *stat)
{
    if (err == CLAVE_EBADVERSION || err == CLAVE_ENONODE)
        return recipe_once_look_again(
            o, err); /* our own touch whose answer was lost, or a write by an operator */
    if (err != CLAVE_OK || !stat)
        return err != CLAVE_OK ? err : CLAVE_EPROTO;
    int64_t age = stat->mtime - o->former.began;
    o->former.age_ms = age;
    bool counts = age < o->period_ms && age > -o->period_ms;
    return counts ? CLAVE_EDONE : recipe_once_start(o, LOCK_RECORD_REPLACE);
}

static clave_err once_started(clave_async_once *o, clave_err err)
{
    if (err != CLAVE_OK)
        return recipe_once_look_again(o, err);
    o->phase = RUNNING;
    return CLAVE_OK;
}

static void recipe_once_on_done(void *owner, enum record_node_act act, clave_err err,
                                const clave_stat *stat)
{
    (void)act;
    clave_async_once *o = owner;
    if (o->phase == LOOKING)
        err = recipe_once_looked(o, err);
    else if (o->phase == TOUCHING)
        err = once_touched(o, err, stat);
    else if (o->phase == STARTING)
        err = once_started(o, err);
    else
        o->phase = OVER; /* the caller has already been told */
    if (err != CLAVE_OK)
        o->phase = OVER;
    if (o->phase == RUNNING || o->phase == OVER)
        recipe_once_tell(o, err);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static bool recipe_once_options_ok(const clave_once_options *o)
{
    return o->path && o->period_ms >= 0 && (!o->acls || o->nacls > 0);
}

clave_err clave_async_once_begin(clave_async_once **out, const clave_async_grant *grant,
                                 const clave_once_options *given, clave_async_once_cb *cb,
                                 void *arg)
{
    clave_async_client *c = clave__grant_client(grant);
    const struct clave_mem *mem = clave__client_mem(c);
    clave_once_options o;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_once_options");
    if (err == CLAVE_OK && (!recipe_once_options_ok(&o) || !cb))
        err = CLAVE_EINVAL;
    if (err != CLAVE_OK)
        return err;
    clave_async_once *once = clave__mem_zalloc(mem, sizeof *once);
    if (!once)
        return CLAVE_ENOMEM;
    *once = (clave_async_once){.client = c, .mem = mem, .cb = cb, .arg = arg};
    clave__client_ref(c);
    once->period_ms = o.period_ms;
    once->at_most_once = o.at_most_once;
    const struct record_node_spec spec = {.done = recipe_once_on_done,
                                          .owner = once,
                                          .grant = grant,
                                          .path = o.path,
                                          .acls = o.acls,
                                          .nacls = o.nacls,
                                          .identity = o.identity};
    err = clave__record_node_new(&once->lock_record, c, &spec, "the record's path");
    if (err == CLAVE_OK)
        err = recipe_once_enter(once, LOOKING, LOCK_RECORD_READ);
    if (err != CLAVE_OK) {
        clave_async_once_free(once);
        return err;
    }
    *out = once;
    return CLAVE_OK;
}

clave_err clave_async_once_end(clave_async_once *o, bool succeeded, clave_async_once_cb *cb,
                               void *arg)
{
    if (o->phase != RUNNING)
        return CLAVE_EINVAL;
    clave__record_node_compose(o->lock_record, succeeded ? "done" : "failed",
                               clave__client_now(o->client) - o->began);
    clave_err err = recipe_once_enter(o, ENDING, LOCK_RECORD_UPDATE);
    if (err != CLAVE_OK) {
        o->phase = RUNNING;
        return err;
    }
    o->cb = cb;
    o->arg = arg;
    return CLAVE_OK;
}

void clave_async_once_free(clave_async_once *o)
{
    if (!o)
        return;
    clave_async_client *c = o->client;
    clave__record_node_free(o->lock_record);
    clave__mem_free(o->mem, o);
    clave__client_unref(c);
}
