/* hold_api.c - see hold_api.h. The claim has a session of its own, which is closed when the
 * exchange ends: at the client's FIN, whatever it was waiting for. The answer is a stream of
 * events, one JSON object a line: queued, held, asked, lost, and heartbeats in between, by which a
 * connection that is gone is noticed. Invariant: an event is written when its reader asks for more,
 * from what is true then; only `held` has a valid_ms, counted from the request. */
#include "web/api/claims/hold_api.h"

#include <assert.h>
#include <string.h>

#include "web/api/claims/claim_request.h"
#include "web/api/claims/claims_api.h"
#include "web/api/session_request.h"
#include "web/http/answer.h"
#include "web/http/prefer.h"
#include "web/http/problem.h"
#include "web/http/request_limits.h"

enum { HOLD_TTL_MS = 10000, HOLD_BEATS = 3, HOLD_LEAST_BEAT_MS = 1000 };
/* Proxies give up a stream that is silent for longer: nginx after 60 s, HAProxy in Debian after 50.
 */
enum { HOLD_MOST_BEAT_MS = 15000 };

struct hold_stream {
    struct web_exchange *x;
    struct http_session *s;
    struct claim *claim;
    struct claim_poll news;
    struct timer beat;
    bool beat_due, told_position, told_held, told_asked;
    size_t ahead;   /* as told */
    bool left_over; /* likewise */
};

/* ---- the stream ------------------------------------------------------------------------------ */

static struct json hold_line(struct buf *out, const char *event)
{
    struct json j = clave__json_to(out);
    clave__json_open(&j, NULL, '{');
    clave__json_string(&j, "event", event);
    return j;
}

static clave_err hold_end_line(struct json *j, struct buf *out)
{
    clave__json_close(j, '}');
    return j->err ? j->err : clave__buf_append(out, "\n", 1);
}

static clave_err hold_put_held(struct hold_stream *h, struct buf *out)
{
    const struct claim *c = h->claim;
    struct json j = hold_line(out, "held");
    h->told_held = true;
    clave__json_int64(&j, "token", c->grant.token);
    clave__json_int(&j, "valid_ms", clave__claim_valid_ms(c, h->x->arrived));
    clave__json_string(&j, "node", c->node);
    return hold_end_line(&j, out);
}

static clave_err hold_put_queued(struct hold_stream *h, struct buf *out)
{
    struct json j = hold_line(out, "queued");
    h->told_position = true;
    h->ahead = h->claim->ahead;
    h->left_over = h->claim->left_over;
    clave__json_int(&j, "position", (int64_t)h->ahead + 1);
    if (h->left_over)
        clave__json_string(&j, "left_over", h->claim->left_over);
    return hold_end_line(&j, out);
}

static clave_err hold_put_lost(struct hold_stream *h, struct buf *out)
{
    struct json j = hold_line(out, "lost");
    clave__web_put_cause(&j, h->claim->why);
    return hold_end_line(&j, out);
}

static clave_err hold_put_plain(struct buf *out, const char *event)
{
    struct json j = hold_line(out, event);
    return hold_end_line(&j, out);
}

static clave_err hold_more(void *arg, struct buf *out, bool *done)
{
    struct hold_stream *h = arg;
    const struct claim *c = h->claim;
    bool beat = h->beat_due;
    h->beat_due = false;
    if (c->state == CLAIM_ENDED) {
        *done = true;
        return hold_put_lost(h, out);
    }
    if (c->state == CLAIM_HELD && !h->told_held)
        return hold_put_held(h, out);
    if (c->state == CLAIM_HELD && c->asked && !h->told_asked) {
        h->told_asked = true;
        return hold_put_plain(out, "asked");
    }
    bool moved = c->ahead != h->ahead || (c->left_over != NULL) != h->left_over;
    if (c->state == CLAIM_WAITING && c->placed && (!h->told_position || moved))
        return hold_put_queued(h, out);
    return beat ? hold_put_plain(out, "heartbeat") : CLAVE_OK;
}

static void hold_arm_beat(struct hold_stream *h)
{
    int32_t every = h->s->ttl_ms / HOLD_BEATS;
    every = every > HOLD_LEAST_BEAT_MS ? every : HOLD_LEAST_BEAT_MS;
    every = every < HOLD_MOST_BEAT_MS ? every : HOLD_MOST_BEAT_MS;
    clave__web_timer_set(h->x->web, &h->beat, h->x->web->now + every);
}

static void hold_on_beat(struct timer *t, int64_t now)
{
    struct hold_stream *h = LIST_ENTRY(t, struct hold_stream, beat);
    (void)now;
    h->beat_due = true;
    hold_arm_beat(h);
    clave__web_wake(h->x);
}

static void hold_on_news(struct claim_poll *p)
{
    struct hold_stream *h = LIST_ENTRY(p, struct hold_stream, news);
    clave__web_wake(h->x);
}

/* The connection has gone, or the stream has ended. */
static void hold_on_end(void *arg)
{
    struct hold_stream *h = arg;
    clave__claim_poll_cancel(&h->news);
    clave__web_timer_clear(h->x->web, &h->beat);
    clave__http_session_close(h->s, NULL);
    clave__http_session_leave(h->s);
}

static void hold_begin_stream(struct session_request *k, struct hold_stream *h)
{
    assert(h->claim == k->claim && k->closes);
    struct web_exchange *x = k->x;
    h->news.done = hold_on_news;
    h->news.watches = true;
    clave__timer_init(&h->beat, hold_on_beat);
    clave__http_session_enter(h->s); /* until hold_on_end */
    k->closes = false;
    clave__session_request_done(k);
    clave__claim_await(h->claim, &h->news, CLAVE_NEVER);
    hold_arm_beat(h);
    x->answer.more = hold_more;
    x->answer.end = hold_on_end;
    x->answer.arg = h;
    x->answer.sending_ms = h->s->ttl_ms; /* a holder that takes nothing for its ttl is none */
    clave__web_answer_stream(x, 200, "application/x-ndjson");
}

/* ---- until it begins ------------------------------------------------------------------------- */

/* With "Prefer: wait" the stream begins when it is held, otherwise as soon as its place is known.
 */
static void hold_on_first_news(struct claim_poll *p)
{
    static const struct problem busy = {.status = 409, .err = CLAVE_EBUSY, .retry_after_s = 1};
    struct session_request *k = LIST_ENTRY(p, struct session_request, poll);
    struct web_exchange *x = k->x;
    if (k->claim->state == CLAIM_ENDED) {
        clave__web_answer_claim(k, 200);
    } else if (clave__web_prefer_wait(x) > 0 && k->claim->state != CLAIM_HELD) {
        clave__session_request_done(k);
        clave__web_problem(x, &busy, "it was not acquired in time");
    } else {
        hold_begin_stream(k, ((struct claim_request *)k->arg)->arg);
    }
}

/* The gate stops. Its place goes with its session, which the servers may not have heard yet. */
static void hold_stop(struct web_exchange *x)
{
    clave__session_request_done(x->pending);
    clave__web_problem_err(x, CLAVE_EOPTIMEOUT, "hold", x->deed.path);
}

static void hold_claim(struct session_request *k)
{
    const struct claim_request *o = k->arg;
    struct hold_stream *h = o->arg;
    int64_t wait = clave__web_prefer_wait(k->x), now = k->x->web->now;
    clave_err err = clave__claim_new(k->s, &o->terms, &k->claim);
    if (err != CLAVE_OK) {
        clave__web_refuse_claim(k, err, o->terms.path);
        return;
    }
    h->claim = k->claim;
    k->x->stop = hold_stop;
    k->polls = true;
    k->poll.done = hold_on_first_news;
    k->poll.wants_position = wait < 0;
    clave__claim_await(k->claim, &k->poll, wait > 0 ? now + wait : CLAVE_NEVER);
}

static void hold_on_session(struct session_wait *w, clave_err err)
{
    struct session_request *k = clave__session_request_of(w);
    k->x->deed.session = k->s->id;
    if (err == CLAVE_OK)
        clave__claim_request_look(k, hold_claim);
    else
        clave__session_request_gone(k, err);
}

void clave__web_post_hold(struct web_exchange *x)
{
    struct hold_stream *h = clave__web_alloc(x, sizeof *h);
    struct http_session *s;
    if (!h) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "hold", NULL);
        return;
    }
    *h = (struct hold_stream){.x = x};
    struct claim_request *o = clave__claim_request_read(x);
    if (!o || !clave__web_may_wait(x) || !clave__web_may_make_session(x))
        return;
    o->terms.trying = clave__web_prefer_wait(x) == 0;
    o->arg = h;
    const struct session_terms t = {.name = o->terms.name,
                                    .ttl_ms = o->ttl_ms ? (int32_t)o->ttl_ms : HOLD_TTL_MS,
                                    .sender = clave__web_sender(x)};
    clave_err err = clave__http_session_open(x->web->sessions, &t, &s);
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "make a session", NULL);
        return;
    }
    struct session_request *k = clave__session_request_new(x, s);
    if (!k)
        return;
    h->s = s;
    k->arg = o;
    k->closes = true;
    clave__session_request_await(k, hold_on_session);
    clave__http_session_flush(s);
    clave__http_session_await(s, &k->wait);
}
