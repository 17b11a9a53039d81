/* contrib_rest_session.c - see contrib_rest_session.h. Called by contrib_rest_sessions_api.c, and
 * by web.c at the end.
 */
#include "web/session/contrib_rest_session.h"

#include <assert.h>
#include <string.h>

static void contrib_rest_session_free(struct contrib_rest_session *r)
{
    clave__web_timer_clear(r->web, &r->timer);
    list_remove(&r->link);
    clave__mem_free(&r->web->mem, r);
}

static void contrib_rest_session_tell(struct contrib_rest_session *r, clave_err err)
{
    void (*done)(struct contrib_rest_session *, clave_err, void *) = r->done;
    r->done = NULL;
    if (done)
        done(r, err, r->arg);
}

static void contrib_rest_session_use(struct contrib_rest_session *r)
{
    clave__web_timer_set(r->web, &r->timer, r->web->now + r->expire_ms);
}

static void on_rest_session_closed(struct session_wait *w, clave_err err)
{
    struct contrib_rest_session *r = LIST_ENTRY(w, struct contrib_rest_session, wait);
    (void)err;
    clave__http_session_leave(r->s);
    contrib_rest_session_tell(r, CLAVE_OK);
    contrib_rest_session_free(r);
}

static void on_rest_session_open(struct session_wait *w, clave_err err)
{
    struct contrib_rest_session *r = LIST_ENTRY(w, struct contrib_rest_session, wait);
    if (err == CLAVE_OK) {
        contrib_rest_session_use(r);
        contrib_rest_session_tell(r, CLAVE_OK);
        return;
    }
    clave__http_session_leave(r->s);
    contrib_rest_session_tell(r, err);
    contrib_rest_session_free(r);
}

static void on_rest_session_expired(struct timer *t, int64_t now)
{
    (void)now;
    clave__contrib_rest_session_close(LIST_ENTRY(t, struct contrib_rest_session, timer), NULL,
                                      NULL);
}

clave_err clave__contrib_rest_session_open(struct web *w, const struct session_terms *t,
                                           void (*done)(struct contrib_rest_session *r,
                                                        clave_err err, void *arg),
                                           void *arg, struct contrib_rest_session **out)
{
    assert(done);
    struct contrib_rest_session *r = clave__mem_zalloc(&w->mem, sizeof *r);
    clave_err err = r ? clave__http_session_open(w->sessions, t, &r->s) : CLAVE_ENOMEM;
    if (err != CLAVE_OK) {
        clave__mem_free(&w->mem, r);
        return err;
    }
    r->web = w;
    r->expire_ms = t->ttl_ms;
    r->done = done;
    r->arg = arg;
    r->wait.done = on_rest_session_open;
    clave__rand_uuid(&w->rand, r->uuid);
    clave__seal_uuid(w->sessions->key, r->uuid); /* what else is drawn is told to others */
    clave__timer_init(&r->timer, on_rest_session_expired);
    list_push_back(&w->rest_sessions, &r->link);
    *out = r;
    clave__http_session_await(r->s, &r->wait);
    return CLAVE_OK;
}

struct contrib_rest_session *clave__contrib_rest_session_find(struct web *w, const char *uuid)
{
    for (struct list *l = w->rest_sessions.next; l != &w->rest_sessions; l = l->next) {
        struct contrib_rest_session *r = LIST_ENTRY(l, struct contrib_rest_session, link);
        if (strcmp(r->uuid, uuid) != 0)
            continue;
        if (r->closing || !clave__http_session_is_live(r->s))
            return NULL;
        contrib_rest_session_use(r);
        return r;
    }
    return NULL;
}

void clave__contrib_rest_session_close(struct contrib_rest_session *r,
                                       void (*done)(struct contrib_rest_session *r, clave_err err,
                                                    void *arg),
                                       void *arg)
{
    assert(!r->closing);
    r->closing = true;
    r->done = done;
    r->arg = arg;
    clave__web_timer_clear(r->web, &r->timer);
    clave__session_wait_cancel(&r->wait); /* it may be opening still */
    r->wait.done = on_rest_session_closed;
    clave__http_session_close(r->s, &r->wait);
}

void clave__rest_sessions_free(struct web *w)
{
    while (!list_empty(&w->rest_sessions)) {
        struct contrib_rest_session *r =
            LIST_ENTRY(w->rest_sessions.next, struct contrib_rest_session, link);
        clave__session_wait_cancel(&r->wait);
        contrib_rest_session_free(r);
    }
}
