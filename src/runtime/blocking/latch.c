/* latch.c - clave_latch: clave_async_latch for threads. When a thread asks about the leadership,
 * the answer comes from a copy of the grant, which the loop's thread updates after every pass, as
 * for a mutex. */
#include "clave/latch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "clave/async/leader.h"
#include "recipe/grant_held.h"
#include "runtime/blocking/thread_grant.h"

enum { FREE_WAIT_MS = 1000 };

struct clave_latch {
    struct child child;
    clave_async_latch *latch; /* used by the loop's thread only */
    struct list awaiting;     /* requests of clave_latch_await; used by the loop's thread only */
    clave_latch_event_cb *event_cb; /* the user's */
    void *event_arg;
    int64_t token; /* 0: it does not lead. Under the loop's mutex, as is everything below */
    int64_t deadline;
    struct cell lost; /* woken when the token is gone */
};

/* ---- publishing, on the loop's thread -------------------------------------------------------- */

static void latch_publish(clave_latch *l, const struct grant_facts *g)
{
    assert(clave__loop_is_current(l->child.client->loop));
    if (l->token == g->token && l->deadline == g->deadline)
        return;
    clave__loop_lock(l->child.client->loop);
    l->token = g->token;
    l->deadline = g->deadline;
    if (l->token == 0)
        clave__cell_wake(&l->lost);
    clave__loop_unlock(l->child.client->loop);
}

static void latch_refresh(clave_latch *l)
{
    struct grant_facts g = {.deadline = INT64_MIN};
    (void)clave__latch_held(l->latch, &g);
    latch_publish(l, &g);
}

static void latch_on_settled(struct child *c)
{
    latch_refresh(LIST_ENTRY(c, clave_latch, child));
}

static void latch_on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    clave_latch *latch = arg;
    if (latch->latch)
        latch_refresh(latch); /* this runs before the user's callback acts on the event */
    if (latch->event_cb)
        latch->event_cb(l, ev, latch->event_arg);
}

/* ---- creating and freeing -------------------------------------------------------------------- */

static clave_err latch_make(clave_async_client *c, const struct args *a)
{
    clave_latch *l = a->of;
    return clave_async_latch_new(&l->latch, c, a->path, a->options);
}

static void latch_on_ended(struct child *c)
{
    clave_latch *l = LIST_ENTRY(c, clave_latch, child);
    clave_async_latch_free(l->latch);
    l->latch = NULL;
    latch_publish(l, &(struct grant_facts){.deadline = INT64_MIN});
}

clave_err clave_latch_new(clave_latch **out, clave_client *c, const char *path,
                          const clave_latch_options *o)
{
    static const struct child_kind kind = {.settled = latch_on_settled, .ended = latch_on_ended};
    clave_latch_options own;
    *out = NULL;
    clave_err err = clave__blocking_take_options(c, &own, sizeof own, o, "clave_latch_options");
    if (err != CLAVE_OK)
        return err;
    clave_latch *l = calloc(1, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    l->event_cb = own.event_cb;
    l->event_arg = own.event_arg;
    l->deadline = INT64_MIN;
    clave__cell_init(&l->lost);
    list_init(&l->awaiting);
    own.event_cb = latch_on_event;
    own.event_arg = l;
    err = clave__child_open(&l->child, c, &kind, latch_make,
                            &(struct args){.of = l, .path = path, .options = &own});
    if (err == CLAVE_OK) {
        *out = l;
        return CLAVE_OK;
    }
    clave__cell_fini(&l->lost);
    free(l);
    return err;
}

void clave_latch_free(clave_latch *l)
{
    if (!l || !clave__loop_is_here(l->child.client->loop))
        return;
    (void)clave_latch_close(l, CLAVE_CLOSE_SILENT, FREE_WAIT_MS);
    (void)clave__child_close(&l->child);
    clave__cell_fini(&l->lost);
    free(l);
}

/* ---- candidacy ------------------------------------------------------------------------------ */

/* The operations that do not wait are also allowed in callbacks. */
static clave_err latch_start(clave_async_client *c, const struct args *a)
{
    clave_latch *l = a->of;
    (void)c;
    clave_err err = clave_async_latch_start(l->latch);
    latch_refresh(l);
    return err;
}

clave_err clave_latch_start(clave_latch *l)
{
    return clave__visit(l->child.client, latch_start, &(struct args){.of = l});
}

static clave_err latch_resign(clave_async_client *c, const struct args *a)
{
    clave_latch *l = a->of;
    (void)c;
    clave_err err = clave_async_latch_resign(l->latch);
    latch_refresh(l);
    return err;
}

clave_err clave_latch_resign(clave_latch *l)
{
    return clave__visit(l->child.client, latch_resign, &(struct args){.of = l});
}

static void latch_on_closed(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l;
    clave__call_finish(arg, err);
}

static clave_err begin_close(struct call *call, const struct args *a)
{
    clave_latch *l = a->of;
    clave_err err = clave_async_latch_close(l->latch, (clave_latch_close_mode)a->version,
                                            latch_on_closed, call);
    latch_refresh(l);
    return err;
}

clave_err clave_latch_close(clave_latch *l, clave_latch_close_mode mode, int64_t timeout_ms)
{
    struct args a = {.of = l, .version = (int32_t)mode};
    return clave__call(l->child.client, begin_close, &a, timeout_ms, NULL);
}

/* Lives on the stack of the thread that waits. */
struct await {
    struct list link;
    clave_latch *l;
    struct call *call;
    int64_t deadline;
};

static void latch_on_awaited(clave_async_latch *l, clave_err err, void *arg)
{
    struct await *w = arg;
    (void)l;
    list_remove(&w->link);
    clave__call_finish(w->call, err);
}

static clave_err begin_await(struct call *call, const struct args *a)
{
    struct await *w = a->of;
    /* A latch that was never started will never lead; Curator's await throws in that case. */
    if (clave_async_latch_state_of(w->l->latch) == CLAVE_LATCH_LATENT)
        return CLAVE_EINVAL;
    w->call = call;
    clave_err err = clave_async_latch_await(w->l->latch, w->deadline, latch_on_awaited, w);
    if (err == CLAVE_OK)
        list_push_back(&w->l->awaiting, &w->link);
    return err;
}

clave_err clave_latch_await(clave_latch *l, int64_t timeout_ms)
{
    struct await w = {.l = l, .deadline = clave__deadline_after(timeout_ms)};
    /* The deadline is the engine's timer. The call itself waits without a limit, so that `w` still
     * exists when the callback runs. */
    return clave__call(l->child.client, begin_await, &(struct args){.of = &w}, -1, NULL);
}

static clave_err cancel_awaits(clave_async_client *c, const struct args *a)
{
    clave_latch *l = a->of;
    (void)c;
    for (struct list *e = l->awaiting.next; e != &l->awaiting; e = e->next)
        (void)clave_async_latch_cancel(l->latch, latch_on_awaited,
                                       LIST_ENTRY(e, struct await, link));
    return CLAVE_OK;
}

void clave_latch_cancel(clave_latch *l)
{
    (void)clave__visit(l->child.client, cancel_awaits, &(struct args){.of = l});
}

clave_err clave_latch_await_loss(clave_latch *l, int64_t timeout_ms)
{
    clave_loop *loop = l->child.client->loop;
    int64_t until = clave__deadline_after(timeout_ms);
    clave_err err = clave__wait_enter(l->child.client);
    if (err != CLAVE_OK)
        return err;
    int64_t now = clave_now(), term = l->token;
    while (term != 0 && l->token == term && now <= l->deadline && now < until) {
        /* the deadline normally moves on, so look again */
        (void)clave__cell_wait(&l->lost, loop, deadline_earlier(l->deadline + 1, until));
        now = clave_now();
    }
    bool leads = term != 0 && l->token == term && now <= l->deadline;
    clave__wait_leave(l->child.client);
    return leads ? CLAVE_EBUSY : CLAVE_OK;
}

/* ---- queries -------------------------------------------------------------------------------- */

bool clave_latch_has_leadership(clave_latch *l)
{
    clave_loop *loop = l->child.client->loop;
    if (!clave__loop_is_here(loop))
        return false;
    clave__loop_lock(loop);
    int64_t deadline = l->deadline;
    clave__loop_unlock(loop);
    int64_t now = clave_now(); /* read after the copy, so that a pause in between counts */
    return deadline_lasts(deadline, now, 0);
}

static clave_err latch_find_grant(void *holder, uint64_t owner, clave_async_grant **out)
{
    const clave_latch *l = holder;
    (void)owner;
    return clave_async_latch_grant(l->latch, out);
}

clave_err clave_latch_grant(clave_latch *l, clave_grant **out)
{
    return clave__thread_grant_take(out, l->child.client, latch_find_grant, l, 0);
}

/* ---- what only the leader may do ------------------------------------------------------------ */

static clave_err begin_publish(struct call *call, const struct args *a)
{
    const clave_latch *l = a->of;
    return clave_async_latch_publish(l->latch, a->data, a->len, clave__call_on_result, call);
}

clave_err clave_latch_publish(clave_latch *l, const void *data, size_t len, int64_t timeout_ms)
{
    struct args a = {.of = l, .data = data, .len = len};
    return clave__call(l->child.client, begin_publish, &a, timeout_ms, NULL);
}

static void latch_on_transferred(clave_async_client *client, clave_err err, void *arg)
{
    (void)client;
    clave__call_finish(arg, err);
}

static clave_err begin_transfer(struct call *call, const struct args *a)
{
    const clave_latch *l = a->of;
    return clave_async_latch_transfer(l->latch, a->path, latch_on_transferred, call);
}

clave_err clave_latch_transfer(clave_latch *l, const char *node, int64_t timeout_ms)
{
    struct args a = {.of = l, .path = node};
    return clave__call(l->child.client, begin_transfer, &a, timeout_ms, NULL);
}
