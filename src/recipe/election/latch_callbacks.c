/* latch_callbacks.c - callbacks of a latch that are due once: of its awaits, and of its close.
 * Called by latch.c. Invariant: each runs once, never inside the call that caused it. */
#include "base/list.h"
#include "recipe/election/latch_internal.h"

void clave__note_deliver(struct note *n, clave_err verdict)
{
    clave_async_latch *l = n->l;
    clave_async_latch_cb *cb = n->cb;
    void *arg = n->arg;
    clave__client_timer_clear(l->client, &n->limit);
    list_remove(&n->link);
    clave__mem_free(l->mem, n);
    cb(l, verdict, arg);
    clave__latch_drop(l);
}

static void latch_callbacks_on_limit(struct timer *t, int64_t now)
{
    (void)now;
    clave__note_deliver(LIST_ENTRY(t, struct note, limit), CLAVE_EBUSY);
}

clave_err clave__note_new(struct note **out, clave_async_latch *l, clave_async_latch_cb *cb,
                          void *arg)
{
    struct note *n = clave__mem_zalloc(l->mem, sizeof *n);
    *out = n;
    if (!n)
        return CLAVE_ENOMEM;
    list_init(&n->link);
    clave__timer_init(&n->limit, latch_callbacks_on_limit);
    n->l = l;
    n->cb = cb;
    n->arg = arg;
    clave__latch_hold(l);
    return CLAVE_OK;
}

void clave__note_post(struct note *n, clave_err verdict)
{
    clave__client_timer_clear(n->l->client, &n->limit);
    list_remove(&n->link);
    n->verdict = verdict;
    n->posted = ++n->l->posts;
    list_push_back(&n->l->due, &n->link);
    clave__client_timer_set(n->l->client, &n->l->soon, clave__client_now(n->l->client));
}

/* One that waited for leadership, and is to be told. */
static bool brings_luck(const struct note *n)
{
    return n->waits && n->verdict == CLAVE_OK;
}

void clave__note_post_awaits(clave_async_latch *l, clave_err verdict)
{
    for (struct list *e = l->due.next; e != &l->due; e = e->next) {
        struct note *n = LIST_ENTRY(e, struct note, link);
        if (brings_luck(n))
            n->verdict = verdict;
    }
    while (!list_empty(&l->awaits))
        clave__note_post(LIST_ENTRY(l->awaits.next, struct note, link), verdict);
}

static void wait_on(struct note *n)
{
    list_remove(&n->link);
    list_push_back(&n->l->awaits, &n->link);
    if (n->deadline != CLAVE_NEVER)
        clave__client_timer_set(n->l->client, &n->limit, n->deadline);
}

void clave__note_deliver_due(clave_async_latch *l)
{
    uint64_t last = l->posts; /* what their callbacks add is for the next time */
    clave__latch_hold(l);
    clave__latch_tell_owed_loss(l);
    while (!list_empty(&l->due)) {
        struct note *n = LIST_ENTRY(l->due.next, struct note, link);
        if (n->posted > last)
            break;
        if (brings_luck(n) && !clave__latch_leads(l)) /* NOT_LEADER has been told since */
            wait_on(n);
        else
            clave__note_deliver(n, n->verdict);
    }
    clave__latch_drop(l);
}

/* ---- waiting --------------------------------------------------------------------------- */

clave_err clave_async_latch_await(clave_async_latch *l, int64_t deadline, clave_async_latch_cb *cb,
                                  void *arg)
{
    struct note *n;
    if (!cb)
        return CLAVE_EINVAL;
    if (l->state == LATCH_CLOSED || clave_async_client_state(l->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    if (clave__note_new(&n, l, cb, arg) != CLAVE_OK)
        return CLAVE_ENOMEM;
    n->waits = true;
    n->deadline = deadline;
    if (clave__latch_leads(l))
        clave__note_post(n, CLAVE_OK);
    else
        wait_on(n);
    return CLAVE_OK;
}

static bool latch_callbacks_is_of(const struct note *n, clave_async_latch_cb *cb, const void *arg)
{
    return n->cb == cb && n->arg == arg;
}

clave_err clave_async_latch_cancel(clave_async_latch *l, clave_async_latch_cb *cb, void *arg)
{
    clave_err err = CLAVE_ENOTHELD;
    for (struct list *e = l->due.next; e != &l->due; e = e->next) {
        struct note *n = LIST_ENTRY(e, struct note, link);
        if (!brings_luck(n) || !latch_callbacks_is_of(n, cb, arg))
            continue;
        n->verdict = CLAVE_ECANCELED;
        err = CLAVE_OK;
    }
    for (struct list *e = l->awaits.next, *next; e != &l->awaits; e = next) {
        struct note *n = LIST_ENTRY(e, struct note, link);
        next = e->next;
        if (!latch_callbacks_is_of(n, cb, arg))
            continue;
        clave__note_post(n, CLAVE_ECANCELED);
        err = CLAVE_OK;
    }
    return err;
}
