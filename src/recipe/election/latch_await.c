/* latch_await.c - callbacks of a latch that are due once: of its awaits, and of its close.
 * Called by latch.c. Invariant: each runs once, never inside the call that caused it. */
#include "base/list.h"
#include "recipe/election/latch_internal.h"

/* Frees it, then runs it: whatever the callback does finds us consistent. */
static void latch_callback_run(struct latch_callback *k, clave_err verdict)
{
    clave_async_latch *l = k->l;
    clave_async_latch_cb *cb = k->cb;
    void *arg = k->arg;
    clave__client_timer_clear(l->client, &k->limit);
    list_remove(&k->due.link);
    list_remove(&k->link);
    clave__mem_free(l->mem, k);
    cb(l, verdict, arg);
    clave__latch_drop(l);
}

static void latch_callback_on_limit(struct timer *t, int64_t now)
{
    (void)now;
    struct latch_callback *k = LIST_ENTRY(t, struct latch_callback, limit);
    const clave_async_latch *l = k->l;
    latch_callback_run(k, l->place ? clave__contender_not_in_time(l->place)
                                   : clave__client_not_in_time(l->client, 0));
}

static void latch_callback_wait(struct latch_callback *k)
{
    if (k->deadline != CLAVE_NEVER)
        clave__client_timer_set(k->l->client, &k->limit, k->deadline);
}

static void latch_callback_on_due(struct client_task *t)
{
    struct latch_callback *k = LIST_ENTRY(t, struct latch_callback, due);
    clave__latch_tell_owed_loss(k->l);
    bool awaits = !list_empty(&k->link);
    if (awaits && k->verdict == CLAVE_OK && !clave__latch_leads(k->l))
        latch_callback_wait(k); /* NOT_LEADER has been told since */
    else
        latch_callback_run(k, k->verdict);
}

clave_err clave__latch_callback_new(struct latch_callback **out, clave_async_latch *l,
                                    clave_async_latch_cb *cb, void *arg)
{
    struct latch_callback *k = clave__mem_zalloc(l->mem, sizeof *k);
    *out = k;
    if (!k)
        return CLAVE_ENOMEM;
    list_init(&k->link);
    list_init(&k->due.link);
    k->due.run = latch_callback_on_due;
    clave__timer_init(&k->limit, latch_callback_on_limit);
    k->l = l;
    k->cb = cb;
    k->arg = arg;
    clave__latch_hold(l);
    return CLAVE_OK;
}

void clave__latch_callback_post(struct latch_callback *k, clave_err verdict)
{
    clave__client_timer_clear(k->l->client, &k->limit);
    k->verdict = verdict;
    if (list_empty(&k->due.link))
        clave__client_later(k->l->client, &k->due);
}

/* ---- awaits ---------------------------------------------------------------------------- */

void clave__latch_post_awaits(clave_async_latch *l, clave_err verdict)
{
    for (struct list *e = l->awaits.next; e != &l->awaits; e = e->next) {
        struct latch_callback *k = LIST_ENTRY(e, struct latch_callback, link);
        if (k->verdict == CLAVE_OK)
            clave__latch_callback_post(k, verdict);
    }
}

clave_err clave_async_latch_await(clave_async_latch *l, int64_t deadline, clave_async_latch_cb *cb,
                                  void *arg)
{
    struct latch_callback *k;
    if (!cb)
        return CLAVE_EINVAL;
    if (l->state == LATCH_CLOSED || clave_async_client_state(l->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    if (clave__latch_callback_new(&k, l, cb, arg) != CLAVE_OK)
        return CLAVE_ENOMEM;
    k->deadline = deadline;
    list_push_back(&l->awaits, &k->link);
    if (clave__latch_leads(l))
        clave__latch_callback_post(k, CLAVE_OK);
    else
        latch_callback_wait(k);
    return CLAVE_OK;
}

clave_err clave_async_latch_cancel(clave_async_latch *l, clave_async_latch_cb *cb, void *arg)
{
    clave_err err = CLAVE_ENOTHELD;
    for (struct list *e = l->awaits.next; e != &l->awaits; e = e->next) {
        struct latch_callback *k = LIST_ENTRY(e, struct latch_callback, link);
        if (k->verdict != CLAVE_OK || k->cb != cb || k->arg != arg)
            continue;
        clave__latch_callback_post(k, CLAVE_ECANCELED);
        err = CLAVE_OK;
    }
    return err;
}
