/* hold.c - /v1/hold: a claim that lives as long as the connection on which it was requested, for
 * shell scripts: `curl -N` holds a lock for as long as it runs. The claim has a session of its own,
 * which is closed when the exchange ends: at the client's FIN, whatever the request was waiting
 * for. The answer is a stream of events, one JSON object per line (queued, held, asked, lost), with
 * heartbeats in between that reveal a dead connection. Called by the table of endpoints. Invariant:
 * an event is written when its reader asks for more, and says what is true then; only `held` has a
 * valid_ms, counted from the request. */
#include <assert.h>

#include "web/api/api.h"

enum { HOLD_TTL_MS = 10000, HOLD_BEATS = 3, HOLD_LEAST_BEAT_MS = 1000 };
/* Proxies close a stream that is silent for too long: nginx after 60 s, HAProxy in Debian after 50
 * s. */
enum { HOLD_MOST_BEAT_MS = 15000 };

struct hold_stream {
    struct web_exchange *x;
    struct http_session *s;
    struct claim *claim;
    struct claim_poll news;
    struct timer beat;
    bool streams; /* the answer has begun, and its end is the end of the session */
    bool beat_due, sent_position, sent_held, sent_asked;
    size_t ahead;   /* as last reported */
    bool left_over; /* likewise */
};

/* ---- the stream ------------------------------------------------------------------------------ */

/* CLAIM_EVENT_NONE: a heartbeat. */
static clave_err hold_put(const struct hold_stream *h, struct buf *out, enum claim_event event)
{
    static const char *const names[] = {
        [CLAIM_EVENT_NONE] = "heartbeat", [CLAIM_EVENT_QUEUED] = "queued",
        [CLAIM_EVENT_HELD] = "held",      [CLAIM_EVENT_ASKED] = "asked",
        [CLAIM_EVENT_LOST] = "lost",
    };
    const struct claim *c = h->claim;
    struct json j = clave__json_to(out);
    clave__json_open(&j, NULL, '{');
    clave__json_string(&j, "event", names[event]);
    if (event == CLAIM_EVENT_HELD) {
        clave__json_int64(&j, "token", c->grant.token);
        clave__json_int(&j, "valid_ms", clave__claim_valid_ms(c, h->x->arrived));
        clave__json_string(&j, "node", c->node);
    }
    if (event == CLAIM_EVENT_QUEUED)
        clave__json_int(&j, "position", (int64_t)c->ahead + 1);
    if (event == CLAIM_EVENT_QUEUED && c->left_over)
        clave__json_string(&j, "left_over", c->left_over);
    if (event == CLAIM_EVENT_LOST)
        clave__web_put_cause(&j, &c->why);
    clave__json_close(&j, '}');
    return j.err ? j.err : clave__buf_append(out, "\n", 1);
}

static clave_err hold_more(void *arg, struct buf *out, bool *done)
{
    struct hold_stream *h = arg;
    const struct claim *c = h->claim;
    bool holds = c->state == CLAIM_HELD, beat = h->beat_due;
    bool moved = c->ahead != h->ahead || (c->left_over != NULL) != h->left_over;
    h->beat_due = false;
    *done = clave__claim_is_over(c);
    if (*done)
        return hold_put(h, out, CLAIM_EVENT_LOST);
    if (holds && !h->sent_held) {
        h->sent_held = true;
        return hold_put(h, out, CLAIM_EVENT_HELD);
    }
    if (holds && c->asked && !h->sent_asked) {
        h->sent_asked = true;
        return hold_put(h, out, CLAIM_EVENT_ASKED);
    }
    if (c->state == CLAIM_QUEUED && (!h->sent_position || moved)) {
        h->sent_position = true;
        h->ahead = c->ahead;
        h->left_over = c->left_over != NULL;
        return hold_put(h, out, CLAIM_EVENT_QUEUED);
    }
    return beat ? hold_put(h, out, CLAIM_EVENT_NONE) : CLAVE_OK;
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

static void hold_close(struct hold_stream *h)
{
    clave__http_session_close(h->s, NULL);
    clave__http_session_leave(h->s);
}

/* The connection has gone, or the stream has ended. */
static void hold_on_end(void *arg)
{
    struct hold_stream *h = arg;
    clave__claim_poll_cancel(&h->news);
    clave__web_timer_clear(h->x->web, &h->beat);
    hold_close(h);
}

static void hold_begin_stream(struct session_request *k, struct hold_stream *h)
{
    assert(h->claim == k->claim);
    struct web_exchange *x = k->x;
    h->streams = true;
    h->news.done = hold_on_news;
    h->news.watches = true;
    clave__timer_init(&h->beat, hold_on_beat);
    clave__claim_await(h->claim, &h->news, CLAVE_NEVER);
    hold_arm_beat(h);
    x->answer.more = hold_more;
    x->answer.end = hold_on_end;
    x->answer.arg = h;
    x->answer.sending_ms =
        h->s->ttl_ms; /* a client that reads nothing for a whole ttl no longer counts as a holder */
    clave__web_answer_stream(x, 200, "application/x-ndjson");
}

/* ---- until it begins ------------------------------------------------------------------------- */

/* With "Prefer: wait" the stream begins when the claim is held, otherwise as soon as its place is
 * known. */
static void hold_answer(struct session_request *k)
{
    static const struct problem busy = {.status = 409, .err = CLAVE_EBUSY, .retry_after_s = 1};
    struct web_exchange *x = k->x;
    if (clave__claim_is_over(k->claim)) {
        clave__claim_answer(k, 200);
    } else if (clave__web_prefer_wait(x) > 0 && k->claim->state != CLAIM_HELD) {
        clave__web_problem(x, &busy, "it was not acquired in time");
    } else {
        hold_begin_stream(k, x->state);
    }
}

/* The gate stops. The place ends with its session, but the servers may not know that yet. */
static void hold_stop(struct web_exchange *x)
{
    clave__web_problem_err(x, CLAVE_EOPTIMEOUT, "hold", x->deed.path);
}

static void hold_leave(struct web_exchange *x)
{
    struct hold_stream *h = x->state;
    clave__session_request_leave(x);
    if (!h->streams)
        hold_close(h);
}

static const struct exchange_owner hold_opening = {.leave = hold_leave};
static const struct exchange_owner hold_waiting = {.leave = hold_leave, .stop = hold_stop};

static void hold_claim(struct session_request *k)
{
    const struct claim_request *o = k->arg;
    struct hold_stream *h = k->x->state;
    int64_t wait = clave__web_prefer_wait(k->x), now = k->x->web->now;
    clave_err err = clave__claim_new(k->s, &o->terms, &k->claim);
    if (err != CLAVE_OK) {
        clave__claim_request_refuse(k, err, o->terms.path);
        return;
    }
    h->claim = k->claim;
    clave__web_own_as(k->x, &hold_waiting);
    struct claim_poll *p = clave__session_request_poll(k, hold_answer);
    p->wants_position = wait < 0;
    clave__claim_await(k->claim, p, wait > 0 ? now + wait : CLAVE_NEVER);
}

static void hold_check(struct session_request *k)
{
    clave__claim_request_check(k, hold_claim);
}

void clave__web_post_hold(struct web_exchange *x)
{
    struct hold_stream *h = clave__web_must_alloc(x, sizeof *h);
    struct http_session *s;
    struct claim_request *o = h ? clave__claim_request_read(x) : NULL;
    if (o && o->terms.depend_ms > 0) {
        clave__web_bad_request(x, "\"depend_ms\" is for claims of a session: nothing else can "
                                  "give a sign of life");
        return;
    }
    if (!o || !clave__web_may_wait(x) || !clave__web_may_make_session(x))
        return;
    o->terms.trying = clave__web_prefer_wait(x) == 0;
    x->state = h;
    const struct session_terms t = {.name = o->terms.name,
                                    .ttl_ms = o->ttl_ms ? (int32_t)o->ttl_ms : HOLD_TTL_MS,
                                    .sender = clave__web_sender(x)};
    clave_err err = clave__http_session_open(x->web->sessions, &t, &s);
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "make a session", NULL);
        return;
    }
    struct session_request *k = clave__session_request_new(x, s, &hold_opening);
    if (!k)
        return;
    *h = (struct hold_stream){.x = x, .s = s};
    clave__http_session_enter(s); /* until hold_close */
    k->arg = o;
    clave__http_session_flush(s);
    clave__session_request_when_live(k, hold_check);
}
