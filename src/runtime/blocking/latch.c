/* latch.c - clave_latch: clave_async_latch for threads. A thread's question about the leadership is
 * answered from a copy of the grant, which the loop's thread updates after every pass, as for a
 * mutex. */
#include "clave/latch.h"

#include <stdlib.h>

#include "base/deadline.h"
#include "clave/async/leader.h"
#include "recipe/grant_facts.h"
#include "runtime/blocking/thread_grant.h"

enum { FREE_WAIT_MS = 1000 };

struct clave_latch {
    clave_client *session;
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

static void blocking_latch_publish(clave_latch *c, const struct grant_facts *g)
{
    if (c->token == g->token && c->deadline == g->deadline)
        return;
    clave__loop_lock(c->session->loop);
    c->token = g->token;
    c->deadline = g->deadline;
    if (c->token == 0)
        clave__cell_wake(&c->lost);
    clave__loop_unlock(c->session->loop);
}

static void blocking_latch_refresh(clave_latch *c)
{
    struct grant_facts g = {.deadline = INT64_MIN};
    (void)clave__latch_held(c->latch, &g);
    blocking_latch_publish(c, &g);
}

static void blocking_latch_on_settled(struct observer *o)
{
    blocking_latch_refresh(LIST_ENTRY(o, clave_latch, observer));
}

static void blocking_latch_on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    clave_latch *c = arg;
    if (c->latch)
        blocking_latch_refresh(c); /* before the user's callback acts on the event */
    if (c->event_cb)
        c->event_cb(l, ev, c->event_arg);
}

/* ---- life ----------------------------------------------------------------------------------- */

struct creation {
    clave_latch *c;
    const char *path;
    const clave_latch_options *o;
    clave_err err;
};

static void blocking_latch_create(clave_async_client *client, void *arg)
{
    struct creation *b = arg;
    b->err = clave_async_latch_new(&b->c->latch, client, b->path, b->o);
    if (b->err == CLAVE_OK)
        clave__session_adopt(b->c->session, &b->c->observer);
}

static void blocking_latch_on_session_ended(struct observer *o)
{
    clave_latch *c = LIST_ENTRY(o, clave_latch, observer);
    clave_async_latch_free(c->latch);
    c->latch = NULL;
    blocking_latch_publish(c, &(struct grant_facts){.deadline = INT64_MIN});
}

clave_err clave_latch_new(clave_latch **out, clave_client *s, const char *path,
                          const clave_latch_options *o)
{
    clave_latch_options own;
    *out = NULL;
    clave_err err = clave__session_take_options(s, &own, sizeof own, o, "clave_latch_options");
    if (err != CLAVE_OK)
        return err;
    clave_latch *c = calloc(1, sizeof *c);
    if (!c)
        return CLAVE_ENOMEM;
    c->session = s;
    c->event_cb = own.event_cb;
    c->event_arg = own.event_arg;
    c->deadline = INT64_MIN;
    c->observer.settled = blocking_latch_on_settled;
    c->observer.ended = blocking_latch_on_session_ended;
    clave__cell_init(&c->lost);
    list_init(&c->awaiting);
    own.event_cb = blocking_latch_on_event;
    own.event_arg = c;
    struct creation b = {.c = c, .path = path, .o = &own, .err = CLAVE_ECLOSED};
    clave__blocking_do(s, blocking_latch_create, &b);
    if (b.err != CLAVE_OK) {
        clave__cell_fini(&c->lost);
        free(c);
        return b.err;
    }
    *out = c;
    return CLAVE_OK;
}

static void blocking_latch_destroy(clave_async_client *client, void *arg)
{
    clave_latch *c = arg;
    (void)client;
    list_remove(&c->observer.link);
    clave_async_latch_free(c->latch);
}

void clave_latch_free(clave_latch *c)
{
    if (!c || !clave__loop_is_here(c->session->loop))
        return;
    (void)clave_latch_close(c, CLAVE_CLOSE_SILENT, FREE_WAIT_MS);
    clave__blocking_do(c->session, blocking_latch_destroy, c);
    clave__cell_fini(&c->lost);
    clave__session_unref(c->session);
    free(c);
}

/* ---- candidacy ------------------------------------------------------------------------------ */

/* The arguments of one call on the latch. */
struct request {
    struct list link; /* while it is in `awaiting` */
    clave_latch *c;
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

clave_err clave_latch_start(clave_latch *c)
{
    struct step s = {.c = c, .take = clave_async_latch_start, .err = CLAVE_ECLOSED};
    clave__blocking_do(c->session, blocking_latch_take_step, &s);
    return s.err;
}

clave_err clave_latch_resign(clave_latch *c)
{
    struct step s = {.c = c, .take = clave_async_latch_resign, .err = CLAVE_ECLOSED};
    clave__blocking_do(c->session, blocking_latch_take_step, &s);
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
    clave_err err = clave_async_latch_close(r->c->latch, r->mode, blocking_latch_on_verdict, call);
    blocking_latch_refresh(r->c);
    return err;
}

clave_err clave_latch_close(clave_latch *c, clave_latch_close_mode mode, int64_t timeout_ms)
{
    struct request r = {.c = c, .mode = mode};
    struct call_spec spec = {.begin = blocking_latch_begin_close, .args = &r};
    return clave__call(c->session, &spec, timeout_ms, NULL);
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
    if (clave_async_latch_state_of(r->c->latch) == CLAVE_LATCH_LATENT)
        return CLAVE_EINVAL;
    r->call = call;
    clave_err err = clave_async_latch_await(r->c->latch, r->deadline, blocking_latch_on_awaited, r);
    if (err == CLAVE_OK)
        list_push_back(&r->c->awaiting, &r->link);
    return err;
}

clave_err clave_latch_await(clave_latch *c, int64_t timeout_ms)
{
    struct request r = {.c = c, .deadline = clave__deadline_after(timeout_ms)};
    struct call_spec spec = {.begin = blocking_latch_begin_await, .args = &r};
    /* The deadline is the engine's timer. The call itself waits for ever, so that `r` exists when
     * the callback runs. */
    return clave__call(c->session, &spec, -1, NULL);
}

static void blocking_latch_cancel_all(clave_async_client *client, void *arg)
{
    clave_latch *c = arg;
    (void)client;
    for (struct list *e = c->awaiting.next; e != &c->awaiting; e = e->next)
        (void)clave_async_latch_cancel(c->latch, blocking_latch_on_awaited,
                                       LIST_ENTRY(e, struct request, link));
}

void clave_latch_cancel(clave_latch *c)
{
    clave__blocking_do(c->session, blocking_latch_cancel_all, c);
}

clave_err clave_latch_await_loss(clave_latch *c, int64_t timeout_ms)
{
    clave_loop *loop = c->session->loop;
    int64_t until = clave__deadline_after(timeout_ms);
    if (!clave__loop_is_here(loop) || clave__session_has_ended(c->session))
        return CLAVE_ECLOSED;
    if (clave__loop_is_current(loop))
        return CLAVE_ELOOPTHREAD;
    clave__loop_lock(loop);
    clave__blocking_enter_locked(c->session);
    int64_t now = clave_now(), term = c->token;
    while (term != 0 && c->token == term && now <= c->deadline && now < until) {
        /* The deadline normally moves on: then look again. */
        (void)clave__cell_wait(&c->lost, loop, deadline_earlier(c->deadline + 1, until));
        now = clave_now();
    }
    bool leads = term != 0 && c->token == term && now <= c->deadline;
    clave__blocking_leave_locked(c->session);
    clave__loop_unlock(loop);
    return leads ? CLAVE_EBUSY : CLAVE_OK;
}

/* ---- queries -------------------------------------------------------------------------------- */

bool clave_latch_has_leadership(clave_latch *c)
{
    clave_loop *loop = c->session->loop;
    if (!clave__loop_is_here(loop))
        return false;
    clave__loop_lock(loop);
    int64_t deadline = c->deadline;
    clave__loop_unlock(loop);
    int64_t now = clave_now(); /* read after the copy, so that a pause in between counts */
    return deadline_lasts(deadline, now, 0);
}

static clave_err blocking_latch_find_grant(void *holder, uint64_t owner, clave_async_grant **out)
{
    const clave_latch *c = holder;
    (void)owner;
    return clave_async_latch_grant(c->latch, out);
}

clave_err clave_latch_grant(clave_latch *c, clave_grant **out)
{
    return clave__thread_grant_take(out, c->session, blocking_latch_find_grant, c, 0);
}

/* ---- what only the leader may do ------------------------------------------------------------ */

static clave_err blocking_latch_begin_publish(struct call *call, void *args)
{
    const struct request *r = args;
    return clave_async_latch_publish(r->c->latch, r->data, r->len, clave__call_on_result, call);
}

clave_err clave_latch_publish(clave_latch *c, const void *data, size_t len, int64_t timeout_ms)
{
    struct request r = {.c = c, .data = data, .len = len};
    struct call_spec spec = {.begin = blocking_latch_begin_publish, .args = &r};
    return clave__call(c->session, &spec, timeout_ms, NULL);
}

static void blocking_latch_on_transferred(clave_async_client *client, clave_err err, void *arg)
{
    (void)client;
    clave__call_finish(arg, err);
}

static clave_err blocking_latch_begin_transfer(struct call *call, void *args)
{
    const struct request *r = args;
    return clave_async_latch_transfer(r->c->latch, r->node, blocking_latch_on_transferred, call);
}

clave_err clave_latch_transfer(clave_latch *c, const char *node, int64_t timeout_ms)
{
    struct request r = {.c = c, .node = node};
    struct call_spec spec = {.begin = blocking_latch_begin_transfer, .args = &r};
    return clave__call(c->session, &spec, timeout_ms, NULL);
}
