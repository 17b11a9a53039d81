/* latch.c - clave_latch: clave_async_latch for threads. A thread's question about the leadership is
 * answered from a copy of the grant, which the loop's thread updates after every pass, as for a
 * mutex. */
#include "clave/latch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "clave/async/leader.h"
#include "recipe/grant_held.h"
#include "runtime/blocking/thread_grant.h"

enum { FREE_WAIT_MS = 1000 };

struct clave_latch {
    clave_client *client;
    clave_async_latch *latch; /* the loop's thread only, like the observer */
    struct observer observer;
    struct list awaiting;           /* requests of clave_latch_await; the loop's thread only */
    clave_latch_event_cb *event_cb; /* the user's */
    void *event_arg;
    int64_t token; /* 0: not leading. Under the loop's mutex, as is everything below */
    int64_t deadline;
    struct cell lost; /* the token is gone */
};

/* ---- what the loop's thread publishes ------------------------------------------------------- */

static void blocking_latch_publish(clave_latch *l, const struct grant_facts *g)
{
    assert(clave__loop_is_current(l->client->loop));
    if (l->token == g->token && l->deadline == g->deadline)
        return;
    clave__loop_lock(l->client->loop);
    l->token = g->token;
    l->deadline = g->deadline;
    if (l->token == 0)
        clave__cell_wake(&l->lost);
    clave__loop_unlock(l->client->loop);
}

static void blocking_latch_refresh(clave_latch *l)
{
    struct grant_facts g = {.deadline = INT64_MIN};
    (void)clave__latch_held(l->latch, &g);
    blocking_latch_publish(l, &g);
}

static void blocking_latch_on_settled(struct observer *o)
{
    blocking_latch_refresh(LIST_ENTRY(o, clave_latch, observer));
}

static void blocking_latch_on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    clave_latch *latch = arg;
    if (latch->latch)
        blocking_latch_refresh(latch); /* before the user's callback acts on the event */
    if (latch->event_cb)
        latch->event_cb(l, ev, latch->event_arg);
}

/* ---- life ----------------------------------------------------------------------------------- */

struct creation {
    clave_latch *l;
    const char *path;
    const clave_latch_options *o;
    clave_err err;
};

static void blocking_latch_create(clave_async_client *client, void *arg)
{
    struct creation *b = arg;
    b->err = clave_async_latch_new(&b->l->latch, client, b->path, b->o);
    if (b->err == CLAVE_OK)
        clave__session_adopt(b->l->client, &b->l->observer);
}

static void blocking_latch_on_session_ended(struct observer *o)
{
    clave_latch *l = LIST_ENTRY(o, clave_latch, observer);
    clave_async_latch_free(l->latch);
    l->latch = NULL;
    blocking_latch_publish(l, &(struct grant_facts){.deadline = INT64_MIN});
}

clave_err clave_latch_new(clave_latch **out, clave_client *c, const char *path,
                          const clave_latch_options *o)
{
    clave_latch_options own;
    *out = NULL;
    clave_err err = clave__session_take_options(c, &own, sizeof own, o, "clave_latch_options");
    if (err != CLAVE_OK)
        return err;
    clave_latch *l = calloc(1, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    l->client = c;
    l->event_cb = own.event_cb;
    l->event_arg = own.event_arg;
    l->deadline = INT64_MIN;
    l->observer.settled = blocking_latch_on_settled;
    l->observer.ended = blocking_latch_on_session_ended;
    clave__cell_init(&l->lost);
    list_init(&l->awaiting);
    own.event_cb = blocking_latch_on_event;
    own.event_arg = l;
    struct creation b = {.l = l, .path = path, .o = &own, .err = CLAVE_ECLOSED};
    clave__blocking_do(c, blocking_latch_create, &b);
    if (b.err != CLAVE_OK) {
        clave__cell_fini(&l->lost);
        free(l);
        return b.err;
    }
    *out = l;
    return CLAVE_OK;
}

static void blocking_latch_destroy(clave_async_client *client, void *arg)
{
    clave_latch *l = arg;
    (void)client;
    list_remove(&l->observer.link);
    clave_async_latch_free(l->latch);
}

void clave_latch_free(clave_latch *l)
{
    if (!l || !clave__loop_is_here(l->client->loop))
        return;
    (void)clave_latch_close(l, CLAVE_CLOSE_SILENT, FREE_WAIT_MS);
    clave__blocking_do(l->client, blocking_latch_destroy, l);
    clave__cell_fini(&l->lost);
    clave__session_unref(l->client);
    free(l);
}

/* ---- candidacy ------------------------------------------------------------------------------ */

/* The arguments of one call on the latch. */
struct request {
    struct list link; /* while it is in `awaiting` */
    clave_latch *l;
    struct call *call; /* of an await */
    int64_t deadline;
    clave_latch_close_mode mode;
    const void *data;
    size_t len;
    const char *node;
};

/* For calls that do not wait: allowed in callbacks too. */
struct step {
    clave_latch *c;
    clave_err (*take)(clave_async_latch *l);
    clave_err err;
};

static void blocking_latch_take_step(clave_async_client *client, void *arg)
{
    struct step *s = arg;
    (void)client;
    s->err = s->take(s->c->latch);
    blocking_latch_refresh(s->c);
}

clave_err clave_latch_start(clave_latch *l)
{
    struct step s = {.c = l, .take = clave_async_latch_start, .err = CLAVE_ECLOSED};
    clave__blocking_do(l->client, blocking_latch_take_step, &s);
    return s.err;
}

clave_err clave_latch_resign(clave_latch *l)
{
    struct step s = {.c = l, .take = clave_async_latch_resign, .err = CLAVE_ECLOSED};
    clave__blocking_do(l->client, blocking_latch_take_step, &s);
    return s.err;
}

static void blocking_latch_on_verdict(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l;
    clave__call_finish(arg, err);
}

static clave_err blocking_latch_begin_close(struct call *call, void *args)
{
    const struct request *r = args;
    clave_err err = clave_async_latch_close(r->l->latch, r->mode, blocking_latch_on_verdict, call);
    blocking_latch_refresh(r->l);
    return err;
}

clave_err clave_latch_close(clave_latch *l, clave_latch_close_mode mode, int64_t timeout_ms)
{
    struct request r = {.l = l, .mode = mode};
    struct call_spec spec = {.begin = blocking_latch_begin_close, .args = &r};
    return clave__call(l->client, &spec, timeout_ms, NULL);
}

static void blocking_latch_on_awaited(clave_async_latch *l, clave_err err, void *arg)
{
    struct request *r = arg;
    (void)l;
    list_remove(&r->link);
    clave__call_finish(r->call, err);
}

static clave_err blocking_latch_begin_await(struct call *call, void *args)
{
    struct request *r = args;
    /* A latch that was never started never leads. Curator's await throws in that case. */
    if (clave_async_latch_state_of(r->l->latch) == CLAVE_LATCH_LATENT)
        return CLAVE_EINVAL;
    r->call = call;
    clave_err err = clave_async_latch_await(r->l->latch, r->deadline, blocking_latch_on_awaited, r);
    if (err == CLAVE_OK)
        list_push_back(&r->l->awaiting, &r->link);
    return err;
}

clave_err clave_latch_await(clave_latch *l, int64_t timeout_ms)
{
    struct request r = {.l = l, .deadline = clave__deadline_after(timeout_ms)};
    struct call_spec spec = {.begin = blocking_latch_begin_await, .args = &r};
    /* The deadline is the engine's timer. The call itself waits for ever, so that `r` exists when
     * the callback runs. */
    return clave__call(l->client, &spec, -1, NULL);
}

static void blocking_latch_cancel_all(clave_async_client *client, void *arg)
{
    clave_latch *l = arg;
    (void)client;
    for (struct list *e = l->awaiting.next; e != &l->awaiting; e = e->next)
        (void)clave_async_latch_cancel(l->latch, blocking_latch_on_awaited,
                                       LIST_ENTRY(e, struct request, link));
}

void clave_latch_cancel(clave_latch *l)
{
    clave__blocking_do(l->client, blocking_latch_cancel_all, l);
}

clave_err clave_latch_await_loss(clave_latch *l, int64_t timeout_ms)
{
    clave_loop *loop = l->client->loop;
    int64_t until = clave__deadline_after(timeout_ms);
    if (!clave__loop_is_here(loop) || clave__session_has_ended(l->client))
        return CLAVE_ECLOSED;
    if (clave__loop_is_current(loop))
        return CLAVE_ELOOPTHREAD;
    clave__loop_lock(loop);
    clave__blocking_enter_locked(l->client);
    int64_t now = clave_now(), term = l->token;
    while (term != 0 && l->token == term && now <= l->deadline && now < until) {
        /* The deadline normally moves on: then look again. */
        (void)clave__cell_wait(&l->lost, loop, deadline_earlier(l->deadline + 1, until));
        now = clave_now();
    }
    bool leads = term != 0 && l->token == term && now <= l->deadline;
    clave__blocking_leave_locked(l->client);
    clave__loop_unlock(loop);
    return leads ? CLAVE_EBUSY : CLAVE_OK;
}

/* ---- queries -------------------------------------------------------------------------------- */

bool clave_latch_has_leadership(clave_latch *l)
{
    clave_loop *loop = l->client->loop;
    if (!clave__loop_is_here(loop))
        return false;
    clave__loop_lock(loop);
    int64_t deadline = l->deadline;
    clave__loop_unlock(loop);
    int64_t now = clave_now(); /* read after the copy, so that a pause in between counts */
    return deadline_lasts(deadline, now, 0);
}

static clave_err blocking_latch_find_grant(void *holder, uint64_t owner, clave_async_grant **out)
{
    const clave_latch *l = holder;
    (void)owner;
    return clave_async_latch_grant(l->latch, out);
}

clave_err clave_latch_grant(clave_latch *l, clave_grant **out)
{
    return clave__thread_grant_take(out, l->client, blocking_latch_find_grant, l, 0);
}

/* ---- what only the leader may do ------------------------------------------------------------ */

static clave_err blocking_latch_begin_publish(struct call *call, void *args)
{
    const struct request *r = args;
    return clave_async_latch_publish(r->l->latch, r->data, r->len, clave__call_on_result, call);
}

clave_err clave_latch_publish(clave_latch *l, const void *data, size_t len, int64_t timeout_ms)
{
    struct request r = {.l = l, .data = data, .len = len};
    struct call_spec spec = {.begin = blocking_latch_begin_publish, .args = &r};
    return clave__call(l->client, &spec, timeout_ms, NULL);
}

static void blocking_latch_on_transferred(clave_async_client *client, clave_err err, void *arg)
{
    (void)client;
    clave__call_finish(arg, err);
}

static clave_err blocking_latch_begin_transfer(struct call *call, void *args)
{
    const struct request *r = args;
    return clave_async_latch_transfer(r->l->latch, r->node, blocking_latch_on_transferred, call);
}

clave_err clave_latch_transfer(clave_latch *l, const char *node, int64_t timeout_ms)
{
    struct request r = {.l = l, .node = node};
    struct call_spec spec = {.begin = blocking_latch_begin_transfer, .args = &r};
    return clave__call(l->client, &spec, timeout_ms, NULL);
}
