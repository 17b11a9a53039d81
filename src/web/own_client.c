/* own_client.c - the engine's own session, declared in web_internal.h. Called by web.c, and by
 * api/server.c for the latency. */
#include "web/web_internal.h"

#include <assert.h>

#include "client/client_for_gate.h"
#include "web/api/api.h"
#include "web/session/claim.h"

/* A restarting server is back before this time. */
enum { AWAY_MS = 5000 };

/* ---- how fast it answers -------------------------------------------------------------------- */

static void own_client_on_answer(clave_async_client *c, const clave_result *r, void *arg)
{
    struct web *w = arg;
    w->latency_ms = r->err == CLAVE_OK ? clave__client_now(c) - w->asked_at : -1;
    w->asked_at = 0;
}

static void own_client_ask(struct web *w, int64_t now)
{
    if (!w->asked_at && clave_async_exists(w->own, "/", NULL, own_client_on_answer, w) == CLAVE_OK)
        w->asked_at = now;
}

void clave__own_client_measure(struct web *w)
{
    if (w->asked_at || !clave_async_client_is_connected(w->own))
        w->latency_ms = -1;
    else
        own_client_ask(w, w->now);
    clave__web_flush(w, w->own);
}

/* ---- what gates tell each other -------------------------------------------------------------- */

static void own_client_on_marks(clave_async_client *c, const clave_result *r, void *arg)
{
    struct web *w = arg;
    (void)c;
    clave__marks_directory_answered(w, r->err);
    if (w->marks == MARKS_DENIED)
        clave__log(&w->o.log, CLAVE_LOG_WARN,
                   "cannot create " SESSION_MARKS " (%s): a request that is late by a release, at "
                   "another gate, may take its lock again, and each gate counts max_hold_ms and "
                   "depend_ms anew",
                   clave_strerror(r->err));
}

/* Creates the directory of the marks by which a gate learns what was released at another. */
static void own_client_make_marks(struct web *w)
{
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    if (w->o.key_is_shared)
        (void)clave_async_create(w->own, SESSION_MARKS, NULL, 0, &o, own_client_on_marks, w);
}

/* ---- whether there is a server -------------------------------------------------------------- */

static void own_client_on_away(struct timer *t, int64_t now)
{
    struct web *w = LIST_ENTRY(t, struct web, away);
    (void)now;
    w->is_away = true;
    clave__log(&w->o.log, CLAVE_LOG_WARN, "no server of %s answers: %s", w->o.hosts,
               clave_async_client_errmsg(w->own));
}

/* The engine knows no time before its first tick. */
static void own_client_on_first_tick(struct timer *t, int64_t now)
{
    struct web *w = LIST_ENTRY(t, struct web, away);
    clave__timer_init(&w->away, own_client_on_away);
    if (!clave_async_client_is_connected(w->own))
        clave__web_timer_set(w, &w->away, now + AWAY_MS);
}

static void own_client_on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    struct web *w = arg;
    if (state == CLAVE_STATE_SUSPENDED) {
        clave__web_timer_set(w, &w->away, clave__client_now(c) + AWAY_MS);
    } else if (state == CLAVE_STATE_LOST) {
        clave__slot_places_lost(w);
    } else if (state == CLAVE_STATE_CLOSED) {
        clave__web_timer_clear(w, &w->away);
        if (why != CLAVE_OK && !w->closing)
            clave__log(&w->o.log, CLAVE_LOG_ERROR, "the gate has no session any more: %s",
                       clave_async_client_errmsg(c));
    } else if (clave_async_client_is_connected(c)) {
        clave__web_timer_clear(w, &w->away);
        own_client_ask(w, clave__client_now(c));
        own_client_make_marks(w);
        if (w->is_away) /* as severe as the other line, so that those who saw that one see this one
                         */
            clave__log(&w->o.log, CLAVE_LOG_WARN, "a server of %s answers again", w->o.hosts);
        w->is_away = false;
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

clave_err clave__own_client_open(struct web *w)
{
    assert(!w->own);
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.hosts = w->o.hosts;
    o.session_timeout_ms = w->o.session_timeout_ms;
    o.seed = clave__rand_u64(&w->rand) | 1;
    o.mem = &w->mem;
    o.log = w->o.log.cb;
    o.log_arg = w->o.log.arg;
    o.tls = w->o.tls;
    o.auths = w->o.auths;
    o.nauths = w->o.nauths;
    o.state_cb = own_client_on_state;
    o.state_arg = w;
    clave__timer_init(&w->away, own_client_on_first_tick);
    clave__web_timer_set(w, &w->away, 0);
    clave_err err = w->o.env->client_open(w->o.env->arg, &o, &w->own);
    if (w->own)
        clave__client_set_log(w->own, &w->o.log);
    return err;
}

void clave__own_client_close(struct web *w, int64_t now)
{
    if (!w->own)
        return;
    clave__web_timer_clear(w, &w->away);
    clave_async_client_close(w->own, now);
    clave__web_flush(w, w->own);
}

bool clave__own_client_is_closed(const struct web *w)
{
    return !w->own || clave_async_client_state(w->own) == CLAVE_STATE_CLOSED;
}

void clave__own_client_free(struct web *w)
{
    clave_async_client *c = w->own;
    w->own = NULL;
    if (!c)
        return;
    clave_async_client_abandon(c, w->now); /* what is pending ends now */
    w->o.env->client_free(w->o.env->arg, c);
}
