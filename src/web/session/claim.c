/* claim.c - one claim: its states, the polls that wait for it, the events that streams get, and the
 * rights of its sender. Called by the endpoints of claims, by session_claims.c for all claims of a
 * session, and by its kind (claim_kinds.c) with what the recipe reports. Invariants: only
 * claim_move changes the state, and each change wakes those who wait (but for clave__claim_free,
 * which reports nothing); each event is reported once, and the cause of an end is recorded before
 * the tree shows the end. */
#include "web/session/claim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "base/hash/siphash.h"
#include "base/memory.h"
#include "client/client_for_gate.h"
#include "recipe/contender/contender_grant.h"
#include "web/http/admission.h"
#include "web/http/exchange.h"
#include "web/observe/observe.h"

enum { EVENT_MAX = 64 << 10 };

/* ==== events ================================================================================== */

static enum claim_event claim_event_of(const struct claim *c)
{
    if (c->state == CLAIM_QUEUED)
        return c->ahead > 1 ? CLAIM_EVENT_QUEUED : CLAIM_EVENT_NEXT;
    if (c->state == CLAIM_HELD)
        return c->asked ? CLAIM_EVENT_ASKED : CLAIM_EVENT_HELD;
    return clave__claim_has_ended(c) && c->why != CLAVE_OK ? CLAIM_EVENT_LOST : CLAIM_EVENT_NONE;
}

static void claim_put_event(const struct claim *c, const char *name)
{
    struct web *w = c->part.s->all->web;
    char session[24];
    struct buf text;
    clave__buf_init(&text, &w->mem, EVENT_MAX);
    struct json j = clave__json_to(&text);
    snprintf(session, sizeof session, "%" PRId64, c->part.s->id);
    clave__json_open(&j, NULL, '{');
    clave__json_string(&j, "claim", c->place.uuid);
    clave__json_string(&j, "session", session);
    clave__json_string(&j, "path", c->path);
    clave__json_string(&j, "kind", c->kind->name);
    if (clave__claim_waits(c))
        clave__json_int(&j, "position", (int64_t)c->ahead + 1);
    if (clave__claim_waits(c) && c->left_over)
        clave__json_string(&j, "left_over", c->left_over);
    if (c->part.token)
        clave__json_int64(&j, "token", c->part.token);
    if (clave__claim_has_ended(c))
        clave__web_put_cause(&j, &c->why);
    clave__json_close(&j, '}');
    struct event_text e = {.name = name, .path = c->path, .session = session};
    if (j.err == CLAVE_OK && clave__buf_append(&text, "", 1) == CLAVE_OK) {
        e.data = clave__buf_text(&text);
        clave__observe_event(w->observe, &e);
    }
    clave__buf_fini(&text);
}

static enum lock_cause claim_cause(const struct claim *c)
{
    /* While a silent client's session is attached here, it is for this gate to end it. */
    bool silent = c->why == CLAVE_EREQUESTTIMEOUT && c->part.s->attached;
    return c->why == CLAVE_OK                   ? LOCK_RELEASED
           : c->why == CLAVE_EMAXHOLD           ? LOCK_RELEASED
           : c->why == CLAVE_ESILENT            ? LOCK_RELEASED
           : c->why == CLAVE_EEXPIRED || silent ? LOCK_EXPIRED
           : c->why == CLAVE_ECLOSED            ? LOCK_CLOSED
           : c->why == CLAVE_EAUTHFAILED        ? LOCK_BROKEN
                                                : LOCK_UNKNOWN;
}

static void claim_say_cause(struct claim *c)
{
    assert(clave__claim_is_over(c));
    enum lock_cause cause = claim_cause(c);
    struct observe *o = c->part.s->all->web->observe;
    if (c->held_token == 0 || cause == LOCK_UNKNOWN)
        return;
    clave__observe_cause(o, c->held_token, cause);
    for (size_t i = 0; c->kind->more_token && c->kind->more_token(c, i); i++)
        clave__observe_cause(o, c->kind->more_token(c, i), cause);
}

static void claim_publish(struct claim *c)
{
    static const char *const names[] = {
        [CLAIM_EVENT_QUEUED] = "queued", [CLAIM_EVENT_NEXT] = "next", [CLAIM_EVENT_HELD] = "held",
        [CLAIM_EVENT_ASKED] = "asked",   [CLAIM_EVENT_LOST] = "lost",
    };
    enum claim_event event = claim_event_of(c);
    bool left_over = clave__claim_waits(c) && c->left_over && !c->sent_left_over;
    if (!c->part.s->all->web->observe || event == CLAIM_EVENT_NONE)
        return;
    if (event <= c->sent && !left_over)
        return;
    c->sent = event > c->sent ? event : c->sent;
    c->sent_left_over |= left_over;
    claim_put_event(c, names[event]);
}

/* ==== states ================================================================================== */

/* ---- those that wait ------------------------------------------------------------------------- */

void clave__claim_poll_cancel(struct claim_poll *p)
{
    list_remove(&p->link);
    clave__web_timer_clear(p->web, &p->limit);
}

static void claim_poll_tell(struct claim_poll *p)
{
    clave__claim_poll_cancel(p);
    p->done(p);
}

static void claim_poll_due(struct timer *t, int64_t now)
{
    (void)now;
    claim_poll_tell(LIST_ENTRY(t, struct claim_poll, limit));
}

/* The poll waits for a grant or for a position in the queue. */
static bool claim_is_polled(const struct claim *c, const struct claim_poll *p)
{
    return !p->wants_end && !c->trying;
}

bool clave__claim_is_fresh(const struct claim *c)
{
    const struct http_session *s = c->part.s;
    if (c->state == CLAIM_DOUBTED ||
        ((c->state == CLAIM_WANTED || c->state == CLAIM_DELAYED) && c->at))
        return false;
    if (!clave__claim_waits(c) || !clave__http_session_is_shared(s))
        return true;
    return s->attached && !c->leased &&
           c->place.listed_on == clave_async_client_connection(s->client);
}

static bool claim_is_news(const struct claim *c, const struct claim_poll *p)
{
    if (p->wants_gone)
        return c->state == CLAIM_OVER || (clave__claim_is_over(c) && !clave__claim_was_released(c));
    if (clave__claim_has_ended(c))
        return true;
    if (p->sign > 0)
        return p->sign <= c->longest.answered;
    bool placed = c->placed && clave__claim_is_fresh(c);
    return !p->wants_end && (c->state == CLAIM_HELD || (p->wants_position && placed));
}

/* A `done` that was the last to wait for the end of the claim may free it, so the list is taken
 * first. */
static void claim_tell_those(struct claim *c,
                             bool (*are)(const struct claim *, const struct claim_poll *))
{
    struct list round, *l;
    list_init(&round);
    for (l = c->polls.next; l != &c->polls;) {
        struct claim_poll *p = LIST_ENTRY(l, struct claim_poll, link);
        l = l->next;
        if (p->watches)
            p->done(p);
        if (p->watches || !are(c, p))
            continue;
        list_remove(&p->link);
        list_push_back(&round, &p->link);
    }
    while ((l = list_pop_front(&round)))
        claim_poll_tell(LIST_ENTRY(l, struct claim_poll, link));
}

static void claim_tell_session(struct http_session *s)
{
    struct list round, *l;
    list_init(&round);
    list_splice(&round, &s->polls);
    while ((l = list_pop_front(&round)))
        claim_poll_tell(LIST_ENTRY(l, struct claim_poll, link));
}

static void claim_tell(struct claim *c)
{
    struct http_session *s = c->part.s;
    bool is_news = c->state == CLAIM_HELD || clave__claim_has_ended(c);
    claim_publish(c);
    claim_tell_those(c, claim_is_news);
    if (is_news)
        claim_tell_session(s);
}

static void claim_poll_begin(struct claim_poll *p, struct web *w)
{
    assert(p->done);
    p->web = w;
    list_init(&p->link);
    clave__timer_init(&p->limit, claim_poll_due);
}

void clave__claim_await(struct claim *c, struct claim_poll *p, int64_t until)
{
    claim_poll_begin(p, c->part.s->all->web);
    if (!p->watches && claim_is_news(c, p)) {
        p->done(p);
        return;
    }
    list_push_back(&c->polls, &p->link);
    if (until != CLAVE_NEVER)
        clave__web_timer_set(p->web, &p->limit, until);
}

void clave__claims_await(struct http_session *s, struct claim_poll *p, int64_t until)
{
    claim_poll_begin(p, s->all->web);
    list_push_back(&s->polls, &p->link);
    clave__web_timer_set(p->web, &p->limit, until);
}

uint64_t clave__claims_tag(const struct http_session *s)
{
    uint64_t tag = 0;
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        struct siphash_key k = {(uint64_t)s->id, c->state == CLAIM_HELD};
        if (c->state <= CLAIM_HELD)
            tag ^= clave__siphash(k, c->place.uuid, CLAVE_UUID_TEXT);
    }
    return tag;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void claim_drop(struct claim *c)
{
    clave_async_delay *delay = c->delay;
    c->delay = NULL;
    clave_async_delay_free(delay);
    c->kind->drop(c);
}

static void claim_stop_proof(struct claim *c)
{
    clave__session_wait_cancel(&c->proof);
}

static void claim_on_held(struct claim *c)
{
    c->granted_at = c->part.s->all->web->now;
    c->held_token = c->grant.token;
}

static void claim_on_spent(struct claim *c)
{
    c->overheld = true;
    c->why = c->longest.why;
    if (c->granted_at == 0)
        c->granted_at = c->part.s->all->web->now;
}

static void claim_move(struct claim *c, enum claim_state to);
static void claim_on_over(struct claim *c);

/* Deletes what the recipe has made or may have made. If nothing is left to delete, the claim is
 * over at once. */
static void claim_on_sought(struct claim *c)
{
    clave__web_timer_clear(c->part.s->all->web, &c->gives_back);
    clave__web_timer_clear(c->part.s->all->web, &c->longest.due);
    claim_say_cause(c);
    c->strays |= !c->part.s->attached;
    claim_drop(c);
    if (c->state == CLAIM_SOUGHT && c->place.ncontenders == 0)
        claim_move(c, CLAIM_OVER);
    c->end_reported = true;
}

#define CLAIM_TO(state) (1u << (state))

/* The moves: the states to which a state leads; whether the session's proofs check the claim's node
 * in this state; and what is done when the state is entered and left. Only a claim that is HELD or
 * SPENT is released; any other is given up. */
static const struct claim_rule {
    unsigned to;
    bool is_checked;
    void (*enter)(struct claim *c), (*leave)(struct claim *c);
} claim_rules[CLAIM_STATES] = {
    [CLAIM_WANTED] = {.to = CLAIM_TO(CLAIM_QUEUED) | CLAIM_TO(CLAIM_DELAYED) |
                            CLAIM_TO(CLAIM_DOUBTED) | CLAIM_TO(CLAIM_HELD) |
                            CLAIM_TO(CLAIM_SOUGHT)},
    [CLAIM_QUEUED] = {.to = CLAIM_TO(CLAIM_DELAYED) | CLAIM_TO(CLAIM_DOUBTED) |
                            CLAIM_TO(CLAIM_HELD) | CLAIM_TO(CLAIM_SOUGHT)},
    [CLAIM_DELAYED] = {.to =
                           CLAIM_TO(CLAIM_DOUBTED) | CLAIM_TO(CLAIM_HELD) | CLAIM_TO(CLAIM_SOUGHT)},
    [CLAIM_DOUBTED] = {.to = CLAIM_TO(CLAIM_HELD) | CLAIM_TO(CLAIM_SPENT) | CLAIM_TO(CLAIM_SOUGHT),
                       .is_checked = true,
                       .leave = claim_stop_proof},
    [CLAIM_HELD] = {.to = CLAIM_TO(CLAIM_SPENT) | CLAIM_TO(CLAIM_LEAVING) | CLAIM_TO(CLAIM_SOUGHT),
                    .is_checked = true,
                    .enter = claim_on_held},
    [CLAIM_SPENT] = {.to = CLAIM_TO(CLAIM_LEAVING) | CLAIM_TO(CLAIM_SOUGHT),
                     .enter = claim_on_spent},
    [CLAIM_LEAVING] = {.to = CLAIM_TO(CLAIM_SOUGHT)},
    [CLAIM_SOUGHT] = {.to = CLAIM_TO(CLAIM_OVER), .enter = claim_on_sought},
    [CLAIM_OVER] = {.to = 0, .enter = claim_on_over},
};

static void claim_move(struct claim *c, enum claim_state to)
{
    const struct claim_rule *from = &claim_rules[c->state], *rule = &claim_rules[to];
    assert(from->to & CLAIM_TO(to));
    if (from->leave)
        from->leave(c);
    c->state = to;
    c->part.token = rule->is_checked ? c->grant.token : 0;
    c->part.node = rule->is_checked ? c->node : NULL;
    if (rule->enter)
        rule->enter(c);
    if (to != CLAIM_OVER) /* its end was reported with CLAIM_SOUGHT */
        claim_tell(c);
}

void clave__claim_end(struct claim *c, clave_err why)
{
    if (clave__claim_is_over(c))
        return;
    if (!c->overheld || why == CLAVE_ENOAUTH)
        c->why = why;
    claim_move(c, CLAIM_SOUGHT);
}

static void claim_take_time(struct claim *c)
{
    struct http_session *s = c->part.s;
    int64_t now = s->client ? clave__client_now(s->client) : 0;
    if (now > s->all->web->now)
        s->all->web->now = now;
}

/* ==== the end of a limited hold =============================================================== */

/* A claim that has max_hold_ms or depend_ms, or both, ends at the same time at every gate that has
 * the same key, also after restarts. Without a shared key one gate alone counts, and forgets the
 * session when it restarts. A claim of /v1/hold, whose session nobody can take up, is ended by its
 * recipe, and cannot have depend_ms.
 *
 * What gates know of a hold is in a node of the session beside its marks, hold-ID-TOKEN, where ID
 * is the claim and TOKEN is the claim's token (hexadecimal). The first gate that learns of the
 * grant makes this node, before the grant is reported to anybody. So the node's ctime is when the
 * hold began, and its data say when the work gave its newest sign of life:
 *
 *     (nothing)         at the node's mtime (of no interest without depend_ms)
 *     0 or less         so many ms before the mtime, while its request waited in the gate
 *     more              then, by the servers' clock: the node was written since, to read that clock
 *     over, silent      the hold is over for good, by max_hold_ms or by depend_ms
 *
 * Four things make this right. Each of them is a rule for one gate alone:
 *
 * 1. A claim is reported as held only on a connection on which this gate has made the node, or has
 *    read it, found that the hold is not over, and written it. The mtime of that write less the
 *    ctime is how long the claim had been held, and the mtime less the newest sign of life is how
 *    long its work had been silent, both by the servers' clock alone. The time that remains runs
 *    from when the write was sent, by the gate's clock. So the hold ends at most a round trip
 *    early, and never late; but another gate measures the silence of the work from the time at
 *    which the servers received the sign, minus the time that the sign had waited at this gate.
 * 2. A sign of life is one transaction, which checks that the claim's nodes are there and writes
 *    this node at the version that the gate knows. The sign counts from when its request arrived,
 *    and only once the servers have answered. Signs that arrive meanwhile share the next
 *    transaction.
 * 3. When the time is up, a gate writes the end, on a connection on which it knows the node, and at
 *    the version that it knows: had another gate written since, it reads the node again. The claim
 *    has ended for its client when the servers have answered that write. A connection is the
 *    session's only one, and the servers refuse what was sent on an earlier one. So no gate reports
 *    the claim as held on any later connection, no sign of life comes after the end, and a write
 *    whose answer was lost is found by the next read.
 * 4. The place is deleted only after the end is written, and not before every validity that gates
 *    have reported has run out. What other gates have reported was proved on connections before the
 *    present one, so it has run out a ttl after the present one was made. A gate that has made the
 *    node itself, on the present connection, need not wait, because no other gate has reported
 *    anything. This time is counted by the gates' clocks. The servers' wall clocks decide how long
 *    a hold is, but never when a place that somebody still relies on may be deleted.
 *
 * A delete that is repeated on a later connection is harmless because of 3.
 *
 * Where the gates may not write SESSION_MARKS (the gate's own client logs a warning), each gate
 * counts anew. */

enum { HOLD_PATH = sizeof CLAIM_HOLD_NOTE + CLAVE_UUID_TEXT + 24, HOLD_DATA = 24 };
enum { NO_NODE = -1 };    /* its version, if there is no node */
enum { PAUSE_PART = 16 }; /* the pause before a failed request is repeated is this part of a ttl */
static const char is_over[] = "over", is_silent[] = "silent";

static bool claim_limit_is_known(const struct claim *c)
{
    const struct http_session *s = c->part.s;
    if (!clave__http_session_is_shared(s))
        return c->longest.known_on != 0;
    return s->attached && c->longest.known_on == clave_async_client_connection(s->client);
}

/* The earlier of the two ends. */
static int64_t claim_limit_at(const struct claim *c)
{
    return deadline_earlier(c->longest.ends_at, c->longest.silent_at);
}

static void claim_limit_path(const struct claim *c, char out[HOLD_PATH])
{
    snprintf(out, HOLD_PATH, "%s%s-%016" PRIx64, CLAIM_HOLD_NOTE, c->place.uuid,
             (uint64_t)c->grant.token);
}

/* By this time, every validity that any gate reported on an earlier connection has run out. */
static int64_t claim_others_until(const struct claim *c)
{
    const struct http_session *s = c->part.s;
    int64_t most = s->ttl_ms;
    if (c->max_hold_ms > 0)
        most = deadline_earlier(most, c->max_hold_ms);
    if (c->depend_ms > 0)
        most = deadline_earlier(most, c->depend_ms);
    return clave__client_now(s->client) + most + most / SESSION_CLOCKS;
}

/* ---- one request after the other ----
 *
 * While a gate learns when the hold ends, no proof of the session is reported, and the claim is not
 * freed. */

static void claim_limit_read(struct claim *c);
static void claim_limit_make(struct claim *c);
static void claim_limit_sign(struct claim *c);

static void claim_limit_begin(struct claim *c, bool learns, void (*first)(struct claim *c))
{
    bool asks = c->longest.asks;
    c->part.s->taking += learns && !c->longest.learns;
    c->longest.learns |= learns;
    c->longest.asks = true;
    if (!asks) /* otherwise the request under way goes on with claim_limit_next */
        first(c);
}

/* No further request about the limit follows, at least not before `from`. This may free the
 * claim. */
static void claim_limit_rest(struct claim *c, int64_t from)
{
    struct http_session *s = c->part.s;
    bool holds = c->state == CLAIM_DOUBTED || c->state == CLAIM_HELD;
    bool learns = c->longest.learns;
    int64_t at = claim_limit_at(c);
    c->longest.asks = c->longest.learns = false;
    if (holds && claim_limit_is_known(c))
        clave__web_timer_set(s->all->web, &c->longest.due, at > from ? at : from);
    if (learns)
        clave__http_session_taken(s);
}

/* Answers the signs of life that were sent; after an error, also those that wait to be sent. */
static void claim_limit_tell_signs(struct claim *c, clave_err err)
{
    if (c->longest.answered == c->longest.signs)
        return;
    c->longest.answered = err == CLAVE_OK ? c->longest.sent : c->longest.signs;
    c->longest.answer = err;
    claim_tell_those(c, claim_is_news);
}

/* The request failed, or its answer is of no use. The next proof asks again; if the end could not
 * be written on this connection, the timer `due` tries again. */
static void claim_limit_give_up(struct claim *c, clave_err err)
{
    struct http_session *s = c->part.s;
    s->listed_on = 0;
    claim_limit_tell_signs(c, err);
    claim_limit_rest(c, s->all->web->now + s->ttl_ms / PAUSE_PART);
}

static void claim_limit_sent(struct claim *c, clave_err err)
{
    if (clave__claim_owe(c, err) != CLAVE_OK)
        claim_limit_give_up(c, err);
}

/* An answer has come. Returns false if the answer is of no use, or if the claim has ended
 * meanwhile. */
static bool claim_limit_goes_on(struct claim *c, clave_err err)
{
    struct http_session *s = c->part.s;
    bool learns = c->longest.learns;
    if (!clave__claim_repaid(c)) {
        if (learns)
            clave__http_session_taken(s);
        return false;
    }
    if (s->state != HTTP_SESSION_LIVE || (c->state != CLAIM_DOUBTED && c->state != CLAIM_HELD)) {
        claim_limit_rest(c, 0);
        return false;
    }
    if (err == CLAVE_OK || clave_err_classify(err) == CLAVE_CLASS_FINAL)
        return true;
    claim_limit_give_up(c, err);
    return false;
}

/* ---- the end ---- */

/* The servers have the end, or need not have it. */
static void claim_limit_over(struct claim *c)
{
    struct http_session *s = c->part.s;
    int64_t now = clave__client_now(s->client), gone_at = c->longest.gone_at;
    if (!claim_limit_is_known(c))
        gone_at = claim_others_until(c);
    clave__web_timer_set(s->all->web, &c->longest.due, gone_at > now ? gone_at : now);
    claim_move(c, CLAIM_SPENT);
    claim_limit_rest(c, 0);
}

static void claim_limit_on_said(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim *c = arg;
    (void)client;
    if (!claim_limit_goes_on(c, res->err))
        return;
    if (res->err == CLAVE_EBADVERSION || res->err == CLAVE_ENONODE)
        claim_limit_read(c);
    else
        claim_limit_over(c);
}

static void claim_limit_say_over(struct claim *c)
{
    const char *word = c->longest.why == CLAVE_ESILENT ? is_silent : is_over;
    char path[HOLD_PATH];
    claim_limit_path(c, path);
    claim_limit_sent(c, clave_async_set(c->part.s->client, path, word, strlen(word),
                                        c->longest.version, claim_limit_on_said, c));
}

/* The time is up, by what was learnt on this connection, or on an earlier one if no other gate can
 * have the session. An end of which no other gate could learn is not written. */
static void claim_limit_end(struct claim *c)
{
    c->longest.why = c->longest.silent_at < c->longest.ends_at ? CLAVE_ESILENT : CLAVE_EMAXHOLD;
    if (c->longest.version == NO_NODE || !clave__http_session_is_shared(c->part.s))
        claim_limit_over(c);
    else
        claim_limit_say_over(c);
}

/* A request has been answered: does what is next, by what is known of when the hold ends. */
static void claim_limit_next(struct claim *c)
{
    claim_take_time(c);
    if (!claim_limit_is_known(c)) /* there is another connection by now */
        claim_limit_read(c);
    else if (claim_limit_at(c) <= c->part.s->all->web->now)
        claim_limit_end(c);
    else if (c->longest.signs > c->longest.answered)
        claim_limit_sign(c);
    else
        claim_limit_rest(c, 0);
}

/* ---- the node's time ---- */

/* `held` and `silent` are how long the claim had been held, and its work silent, when the newest
 * write was sent. */
static void claim_limit_count(struct claim *c, int64_t held, int64_t silent)
{
    struct claim_limit *l = &c->longest;
    if (c->max_hold_ms > 0)
        l->ends_at = deadline_earlier(l->ends_at, l->asked_at + c->max_hold_ms - held);
    if (c->depend_ms > 0)
        l->silent_at = deadline_earlier(l->silent_at, l->asked_at + c->depend_ms - silent);
}

static void claim_limit_known(struct claim *c, int64_t gone_at, int32_t version)
{
    c->longest.gone_at = gone_at;
    c->longest.version = version;
    c->longest.known_on = clave_async_client_connection(c->part.s->client);
    claim_limit_next(c);
}

/* The node cannot be made or read: this gate counts from now on, or goes on counting as before. */
static void claim_limit_alone(struct claim *c)
{
    c->longest.asked_at = clave__client_now(c->part.s->client);
    claim_limit_count(c, 0, 0);
    claim_limit_known(c, claim_others_until(c), NO_NODE);
}

static void claim_limit_on_counted(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim *c = arg;
    (void)client;
    if (!claim_limit_goes_on(c, res->err))
        return;
    if (res->err == CLAVE_EBADVERSION || res->err == CLAVE_ENONODE) {
        claim_limit_read(c);
    } else if (res->err != CLAVE_OK) {
        claim_limit_alone(c);
    } else {
        int64_t held = res->stat->mtime - res->stat->ctime;
        int64_t silent = res->stat->mtime - c->longest.signed_at;
        c->longest.ends_at = c->longest.silent_at = CLAVE_NEVER;
        claim_limit_count(c, held > 0 ? held : 0, silent > 0 ? silent : 0);
        claim_limit_known(c, claim_others_until(c), res->stat->version);
    }
}

/* Reads from the node's data when the newest sign of life was given. Returns false if the hold is
 * over. */
static bool claim_limit_understand(struct claim *c, const clave_result *res)
{
    char text[HOLD_DATA];
    int64_t ms = 0;
    snprintf(text, sizeof text, "%.*s", (int)res->len, res->len > 0 ? (const char *)res->data : "");
    bool goes_on = res->len == 0 || clave__web_parse_int(text, &ms);
    c->longest.signed_at = ms > 0 ? ms : res->stat->mtime + ms;
    c->longest.why = strcmp(text, is_silent) == 0 ? CLAVE_ESILENT : CLAVE_EMAXHOLD;
    return goes_on;
}

static void claim_limit_on_read(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim *c = arg;
    char path[HOLD_PATH], text[HOLD_DATA] = "";
    if (!claim_limit_goes_on(c, res->err))
        return;
    bool own = res->err == CLAVE_OK && res->stat->ephemeral_owner == c->part.s->id;
    if (res->err == CLAVE_ENONODE) {
        claim_limit_make(c);
    } else if (!own) {
        claim_limit_alone(c);
    } else if (!claim_limit_understand(c, res)) {
        claim_limit_over(c);
    } else {
        claim_limit_path(c, path);
        if (c->depend_ms > 0)
            snprintf(text, sizeof text, "%" PRId64, c->longest.signed_at);
        c->longest.asked_at = clave__client_now(client);
        claim_limit_sent(c, clave_async_set(client, path, text, strlen(text), res->stat->version,
                                            claim_limit_on_counted, c));
    }
}

static void claim_limit_read(struct claim *c)
{
    char path[HOLD_PATH];
    claim_limit_path(c, path);
    claim_limit_sent(c, clave_async_get(c->part.s->client, path, NULL, claim_limit_on_read, c));
}

/* No gate can have reported the claim as held: it was made and granted here, and no node can be
 * older than that. */
static bool claim_limit_is_new(const struct claim *c)
{
    return !c->at && c->longest.known_on == 0;
}

static void claim_limit_on_made(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim *c = arg;
    (void)client;
    if (!claim_limit_goes_on(c, res->err))
        return;
    if (res->err == CLAVE_OK) {
        claim_limit_count(c, 0, 0);
        claim_limit_known(c, claim_limit_is_new(c) ? INT64_MIN : claim_others_until(c), 0);
    } else if (res->err == CLAVE_ENODEEXISTS) {
        claim_limit_read(c);
    } else if (clave__http_session_note_is_homeless(c->part.s, res->err)) {
        claim_limit_make(c);
    } else {
        claim_limit_alone(c);
    }
}

static void claim_limit_make(struct claim *c)
{
    struct http_session *s = c->part.s;
    char path[HOLD_PATH];
    claim_limit_path(c, path);
    c->longest.asked_at = clave__client_now(s->client);
    claim_limit_sent(
        c, clave__http_session_note(s, path,
                                    &(struct session_note){.done = claim_limit_on_made, .arg = c}));
}

/* ---- signs of life ---- */

static size_t claim_nodes(const struct claim *c)
{
    size_t n = 1;
    while (c->part.more && c->part.more(&c->part, n - 1))
        n++;
    return n;
}

static void claim_limit_on_signed(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim *c = arg;
    (void)client;
    if (!claim_limit_goes_on(c, res->err))
        return;
    size_t n = claim_nodes(c);
    bool is_gone = false, is_stale = res->err == CLAVE_EBADVERSION || res->err == CLAVE_ENONODE;
    for (size_t i = 0; i < n && i < res->nops; i++)
        is_gone |= res->ops[i].err == CLAVE_ENONODE;
    if (is_gone) {
        struct http_session *s = c->part.s;
        bool learns = c->longest.learns;
        c->longest.asks = false;
        clave__claim_end(c, CLAVE_ENONODE);
        if (learns)
            clave__http_session_taken(s);
    } else if (is_stale) { /* an earlier write got through, but its answer was lost */
        claim_limit_read(c);
    } else {
        if (res->err == CLAVE_OK)
            c->longest.silent_at = c->longest.sent_at + c->depend_ms;
        if (res->err == CLAVE_OK && c->longest.version != NO_NODE)
            c->longest.version++;
        claim_limit_tell_signs(c, res->err);
        claim_limit_next(c);
    }
}

static void claim_limit_sign(struct claim *c)
{
    struct http_session *s = c->part.s;
    const struct clave_mem *mem = &s->all->web->mem;
    size_t n = claim_nodes(c);
    char path[HOLD_PATH], text[HOLD_DATA];
    clave_op *ops = clave__mem_zalloc(mem, (n + 1) * sizeof *ops);
    clave_err err = CLAVE_ENOMEM;
    c->longest.sent = c->longest.signs;
    c->longest.sent_at = c->longest.silent_at - c->depend_ms;
    if (c->longest.came_at > c->longest.sent_at)
        c->longest.sent_at = c->longest.came_at;
    for (size_t i = 0; ops && i < n; i++)
        ops[i] = (clave_op){.kind = CLAVE_OP_CHECK,
                            .path = i == 0 ? c->node : c->part.more(&c->part, i - 1),
                            .version = -1};
    claim_limit_path(c, path);
    snprintf(text, sizeof text, "%" PRId64, c->longest.sent_at - s->all->web->now);
    if (ops)
        ops[n] = (clave_op){.kind = CLAVE_OP_SET,
                            .path = path,
                            .data = text,
                            .len = strlen(text),
                            .version = c->longest.version};
    if (ops)
        err = clave_async_multi(s->client, ops, n + (c->longest.version != NO_NODE),
                                claim_limit_on_signed, c);
    clave__mem_free(mem, ops);
    claim_limit_sent(c, err);
}

bool clave__claim_alive(struct claim *c, struct claim_poll *p, int64_t arrived)
{
    struct http_session *s = c->part.s;
    assert(c->depend_ms > 0);
    claim_poll_begin(p, s->all->web);
    if (c->state != CLAIM_HELD || !s->attached || !claim_limit_is_known(c))
        return false;
    c->longest.came_at = arrived;
    p->sign = ++c->longest.signs;
    clave__claim_await(c, p, s->all->web->now + s->ttl_ms);
    claim_limit_begin(c, false, claim_limit_next);
    clave__http_session_flush(s);
    return true;
}

clave_err clave__claim_alive_answer(const struct claim *c, const struct claim_poll *p)
{
    return p->sign <= c->longest.answered ? c->longest.answer : CLAVE_EOPTIMEOUT;
}

/* ---- when it is asked for ---- */

static void claim_limit_learn(struct claim *c)
{
    claim_limit_begin(c, true, claim_limit_is_new(c) ? claim_limit_make : claim_limit_read);
}

void clave__claim_on_connection(struct claim *c)
{
    if (c->limited && (c->state == CLAIM_DOUBTED || c->state == CLAIM_HELD) &&
        !claim_limit_is_known(c))
        claim_limit_learn(c);
}

/* The hold's time is over, or the place of a SPENT claim may be deleted. Without a connection
 * nothing is done, because the next one begins with clave__claim_on_connection. */
static void claim_limit_on_due(struct timer *t, int64_t now)
{
    struct claim *c = LIST_ENTRY(t, struct claim, longest.due);
    (void)now;
    if (c->state == CLAIM_SPENT)
        clave__claim_release(c);
    else if (c->state <= CLAIM_HELD &&
             (c->part.s->attached || !clave__http_session_is_shared(c->part.s)))
        claim_limit_begin(c, true, claim_limit_next);
    clave__http_session_flush(c->part.s);
}

void clave__claim_limit_init(struct claim *c)
{
    c->longest.ends_at = c->longest.silent_at = CLAVE_NEVER;
    clave__timer_init(&c->longest.due, claim_limit_on_due);
}

/* The claim's node is gone: deletes the notes beside it. Notes that stay behind because the
 * connection was lost are deleted after the next listing. */
static void claim_on_over(struct claim *c)
{
    struct http_session *s = c->part.s;
    char path[HOLD_PATH];
    if (!s->attached || c->why == CLAVE_ENOAUTH || c->place.spared || c->left_there)
        return;
    claim_limit_path(c, path);
    if (c->longest.known_on != 0)
        (void)clave_async_delete(s->client, path, -1, NULL, NULL);
    else if (c->limited && c->at)
        s->listed_on = 0; /* this gate has not learnt of the node yet: the next listing shows it if
                           * it is there */
    snprintf(path, sizeof path, "%s%s", CLAIM_TERMS_NOTE, c->place.uuid);
    if (c->noted)
        (void)clave_async_delete(s->client, path, -1, NULL, NULL);
}

/* ---------------------------------------------------------------------------------------------- */

int64_t clave__claim_valid_ms(const struct claim *c, int64_t arrived)
{
    const struct http_session *s = c->part.s;
    struct grant_facts g;
    if (c->state != CLAIM_HELD || !c->kind->grant(c, &g) ||
        (c->limited && !claim_limit_is_known(c)))
        return 0;
    int64_t until = deadline_earlier(g.deadline, claim_limit_at(c));
    /* Unlike a hold deadline, the end of a limited hold has no margin for a client whose clock is
     * slower; rounded up, so that the last milliseconds have one too. */
    if ((c->max_hold_ms > 0 || c->depend_ms > 0) && until > arrived)
        until -= (until - arrived + VALIDITY_RATE - 1) / VALIDITY_RATE;
    struct validity v = {.arrived = arrived,
                         .granted = c->granted_at,
                         .hold_deadline = until,
                         .ttl_ms = s->ttl_ms,
                         .now = s->all->web->now};
    return clave__validity_ms(&v);
}

/* ---- what the recipe reports ----------------------------------------------------------------- */

/* If there is no memory, a node that is left over is not mentioned. */
void clave__claim_moved(struct claim *c, size_t ahead, const char *left_over)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    claim_take_time(c);
    c->placed = true;
    c->ahead = ahead;
    clave__mem_free(mem, c->left_over);
    c->left_over = left_over ? clave__mem_strdup(mem, left_over) : NULL;
    c->waited |= ahead > 0;
    if (c->state == CLAIM_WANTED)
        claim_move(c, CLAIM_QUEUED);
    else if (c->state == CLAIM_QUEUED)
        claim_tell(c);
}

void clave__claim_on_proven(struct session_wait *w, clave_err err)
{
    struct claim *c = LIST_ENTRY(w, struct claim, proof);
    assert(c->state == CLAIM_DOUBTED);
    claim_take_time(c);
    if (err == CLAVE_OK && (!c->limited || claim_limit_is_known(c)))
        claim_move(c, CLAIM_HELD);
    else if (err == CLAVE_OK || err == CLAVE_EOPTIMEOUT)
        clave__http_session_prove(c->part.s, w);
    else
        clave__claim_end(c, err);
}

/* A claim that the first listing after its create shows as granted is held. One that is granted
 * later, when others have ended, may have been released at another gate meanwhile, so it is proved
 * first. */
static void claim_hold(struct claim *c)
{
    bool proves = c->limited || (c->waited && clave__http_session_is_shared(c->part.s));
    claim_move(c, proves ? CLAIM_DOUBTED : CLAIM_HELD);
    if (c->limited)
        claim_limit_learn(c);
    if (proves)
        clave__http_session_prove(c->part.s, &c->proof);
}

static void claim_on_delayed(clave_async_delay *d, clave_err err, void *arg)
{
    struct claim *c = arg;
    (void)d;
    if (c->state != CLAIM_DELAYED)
        return;
    claim_take_time(c);
    c->waited = true;
    if (err == CLAVE_OK)
        claim_hold(c);
    else
        clave__claim_end(c, err);
}

/* The node of the mark is the same as that of `clave lock --lock-delay`. */
static clave_err claim_begin_delay(struct claim *c)
{
    assert(!c->delay);
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    size_t cap = strlen(c->path) + sizeof "-held";
    char *mark = clave__mem_alloc(mem, cap);
    if (!mark)
        return CLAVE_ENOMEM;
    snprintf(mark, cap, "%s-held", c->path);
    clave_delay_options o = {.size = sizeof o, .path = mark, .delay_ms = c->lock_delay_ms};
    clave_async_grant *grant;
    clave_err err = clave__grant_new(&grant, &c->grant);
    if (err == CLAVE_OK)
        err = clave_async_delay_begin(&c->delay, grant, &o, claim_on_delayed, c);
    clave_async_grant_free(grant);
    clave__mem_free(mem, mark);
    return err;
}

void clave__claim_granted(struct claim *c)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    if (!clave__claim_waits(c))
        return;
    claim_take_time(c);
    if (!c->kind->grant(c, &c->grant))
        return; /* it was lost already, which the recipe reports next */
    assert(!c->node);
    c->node = clave__mem_strdup(mem, c->grant.node);
    clave_err err = c->node ? CLAVE_OK : CLAVE_ENOMEM;
    c->grant.node = c->node;
    if (err == CLAVE_OK && c->lock_delay_ms > 0)
        err = claim_begin_delay(c);
    if (err != CLAVE_OK)
        clave__claim_end(c, err);
    else if (c->delay)
        claim_move(c, CLAIM_DELAYED);
    else
        claim_hold(c);
}

/* A try whose connection was lost ends with EBUSY, like a try that was not first: before it is
 * answered, the holder is asked for, which needs a connection. If another gate may have the
 * session, a node of this id that is found afterwards may have been granted at that gate. Then the
 * node stays, and the outcome is unknown (ECONNLOSS). */
void clave__claim_failed(struct claim *c, clave_err err)
{
    assert(err != CLAVE_OK);
    bool cut = c->trying && (err == CLAVE_EUNREACHABLE || (err == CLAVE_EBUSY && c->cut));
    claim_take_time(c);
    if (err == CLAVE_ENODEEXISTS && c->marked)
        err = CLAVE_ECANCELED; /* it was released by another gate */
    if (cut && clave__http_session_is_shared(c->part.s)) {
        c->place.spares = SPARES_ALL;
        err = CLAVE_ECONNLOSS;
    } else if (cut) {
        err = CLAVE_EBUSY;
    }
    clave__claim_end(c, err);
}

void clave__claim_lost(struct claim *c, clave_err why)
{
    claim_take_time(c);
    /* closeSession was requested: then the end of the session reports this. */
    if (c->part.s->state != HTTP_SESSION_CLOSING)
        clave__claim_end(c, why == CLAVE_OK ? CLAVE_ELOST : why);
}

void clave__claim_asked(struct claim *c)
{
    c->asked = true;
    claim_tell(c);
}

/* ---- giving back ----------------------------------------------------------------------------- */

/* The recipe repeats the delete until the node is gone or the servers refuse it; in that case the
 * node stays until the session ends. */
void clave__claim_left(struct claim *c, clave_err err)
{
    assert(c->state == CLAIM_LEAVING);
    claim_take_time(c);
    if (err != CLAVE_ENOAUTH && c->forbidden)
        err = CLAVE_EAUTHFAILED;
    else if (err != CLAVE_ENOAUTH)
        err = CLAVE_OK;
    clave__claim_end(c, err);
}

void clave__claim_release(struct claim *c)
{
    if (c->state >= CLAIM_LEAVING)
        return;
    if (c->state < CLAIM_HELD) {
        clave__claim_end(c, CLAVE_ECANCELED);
        clave__http_session_flush(c->part.s);
        return;
    }
    if (c->delay)
        (void)clave_async_delay_end(c->delay, NULL,
                                    NULL); /* if this fails, the mark remains, which is safe */
    clave_err err = c->kind->release(c);
    if (err != CLAVE_OK)
        clave__claim_end(c, err);
    else
        claim_move(c, CLAIM_LEAVING);
    clave__http_session_flush(c->part.s);
}

void clave__claim_went_elsewhere(struct claim *c)
{
    bool has_place = c->state > CLAIM_WANTED && c->state < CLAIM_HELD;
    c->place.search = true;
    c->strays |= c->state >= CLAIM_LEAVING;
    c->cut = true;
    if (c->trying && c->state == CLAIM_SOUGHT && c->why == CLAVE_EBUSY && c->place.is_shared) {
        c->place.spares = SPARES_ALL;
        c->why = CLAVE_ECONNLOSS;
    }
    c->waited = true;
    if (c->part.s->all->web->observe && c->state <= CLAIM_HELD)
        claim_put_event(c, "suspended");
    if (!has_place || !clave__http_session_is_shared(c->part.s))
        return;
    c->place.final = true;
    struct http_session *s = c->part.s;
    claim_tell_those(c, claim_is_polled);
    claim_tell_session(s);
}

/* ==== roles =================================================================================== */

struct claim_sender {
    struct web_peer peer;
    const char *authorization;
    char text[];
};

/* ---- senders --------------------------------------------------------------------------------- */

static bool claim_text_is(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool claim_sender_is(const struct claim_sender *s, const struct web_peer *peer,
                            const char *authorization)
{
    return s && s->peer.is_unix == peer->is_unix && s->peer.is_loopback == peer->is_loopback &&
           s->peer.uid == peer->uid && claim_text_is(s->peer.tls_subject, peer->tls_subject) &&
           claim_text_is(s->authorization, authorization);
}

/* NULL: out of memory. */
static struct claim_sender *claim_sender_new(struct web *w, const struct web_peer *peer,
                                             const char *authorization)
{
    size_t subject = peer->tls_subject ? strlen(peer->tls_subject) + 1 : 0;
    size_t proof = authorization ? strlen(authorization) + 1 : 0;
    struct claim_sender *s = clave__mem_zalloc(&w->mem, sizeof *s + subject + proof);
    if (!s)
        return NULL;
    s->peer = *peer;
    s->peer.address = NULL; /* the address does not say who the sender is */
    if (subject)
        s->peer.tls_subject = memcpy(s->text, peer->tls_subject, subject);
    if (proof)
        s->authorization = memcpy(s->text + subject, authorization, proof);
    return s;
}

static bool claim_sender_may(const struct web *w, const struct claim *c)
{
    const struct web_user *u;
    const struct claim_sender *s = c->sender;
    return clave__access_find(w->o.access, &s->peer, s->authorization, &u) == ACCESS_KNOWN &&
           clave__access_covers(u->grants, u->ngrants, WEB_LOCK, c->path);
}

/* ---- what is reported
 * ----------------------------------------------------------------------------- */

int64_t clave__claim_report_valid_ms(struct claim *c, int64_t arrived)
{
    int64_t ms = clave__claim_valid_ms(c, arrived);
    if (c->forbidden && ms > c->reported_until - arrived)
        ms = c->reported_until > arrived ? c->reported_until - arrived : 0;
    if (ms > 0 && arrived + ms > c->reported_until)
        c->reported_until = arrived + ms;
    return ms;
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void claim_allow(struct claim *c)
{
    c->forbidden = false;
    clave__web_timer_clear(c->part.s->all->web, &c->gives_back);
}

static void claim_rights_due(struct timer *t, int64_t now)
{
    struct claim *c = LIST_ENTRY(t, struct claim, gives_back);
    assert(c->forbidden);
    (void)now;
    if (c->state < CLAIM_HELD)
        c->place.spares = SPARES_FOUND; /* the gate that made the node judges it */
    clave__claim_release(c);
}

/* The client may be at work until the last valid_ms that it was told has run out, by a clock that
 * is slower than ours. It may have been told by another gate, where a claim that waits here may be
 * held. */
static void claim_forbid(struct claim *c)
{
    const struct http_session *s = c->part.s;
    struct web *w = s->all->web;
    int64_t until = clave__http_session_is_shared(s) ? w->now + s->ttl_ms : c->reported_until;
    if (c->forbidden)
        return;
    c->forbidden = true;
    clave__timer_init(&c->gives_back, claim_rights_due);
    clave__web_timer_set(w, &c->gives_back, until + s->ttl_ms / SESSION_CLOCKS);
}

/* True if another gate may have had the session, or may have it now. */
static bool claim_may_be_elsewhere(const struct claim *c)
{
    const struct http_session *s = c->part.s;
    return clave__http_session_is_shared(s) && (c->place.search || c->at || !s->attached);
}

static void claim_judge(struct claim *c)
{
    if (!c->sender || c->state > CLAIM_HELD)
        return;
    if (claim_sender_may(c->part.s->all->web, c))
        claim_allow(c);
    else if (c->state == CLAIM_HELD || claim_may_be_elsewhere(c))
        claim_forbid(c);
    else
        clave__claim_failed(c, CLAVE_ENOAUTH);
}

clave_err clave__claim_admit(struct claim *c, const struct web_peer *peer,
                             const char *authorization)
{
    struct web *w = c->part.s->all->web;
    if (!claim_sender_is(c->sender, peer, authorization)) {
        struct claim_sender *s = claim_sender_new(w, peer, authorization);
        if (!s)
            return CLAVE_ENOMEM;
        clave__mem_free(&w->mem, c->sender);
        c->sender = s;
    }
    claim_allow(c);
    return CLAVE_OK;
}

/* A claim may be freed as soon as it has ended. */
static void claims_judge_session(struct http_session *s)
{
    struct list round, *l;
    list_init(&round);
    list_splice(&round, &s->parts);
    if (s->left_behind)
        s->listed_on = 0; /* the sender of the node that was left may have the role again */
    s->left_behind = false;
    while ((l = list_pop_front(&round))) {
        list_push_back(&s->parts, l);
        claim_judge(clave__claim_of(LIST_ENTRY(l, struct session_part, link)));
    }
    clave__http_session_flush(s);
}

void clave__claims_judge(struct http_sessions *ss)
{
    for (struct list *l = ss->all.next; l != &ss->all; l = l->next)
        claims_judge_session(LIST_ENTRY(l, struct http_session, link));
}

/* ==== memory ===================================================================================
 */

void clave__claim_free(struct session_part *p)
{
    struct claim *c = clave__claim_of(p);
    assert(list_empty(&c->polls));
    const struct clave_mem *mem = &p->s->all->web->mem;
    list_remove(&p->link);
    clave__session_wait_cancel(&c->proof);
    clave__web_timer_clear(p->s->all->web, &c->gives_back);
    clave__web_timer_clear(p->s->all->web, &c->longest.due);
    claim_drop(c);
    c->forgotten = true;
    c->state = CLAIM_OVER; /* this is reported to nobody */
    if (c->owed > 0 || c->place.ncontenders > 0)
        return;
    clave__mem_free(mem, c->path);
    clave__mem_free(mem, c->at);
    clave__mem_free(mem, c->left_over);
    clave__mem_free(mem, c->node);
    clave__mem_free(mem, c->data);
    clave__mem_free(mem, c->sender);
    clave__mem_free(mem, c);
}

clave_err clave__claim_owe(struct claim *c, clave_err err)
{
    c->owed += err == CLAVE_OK;
    return err;
}

bool clave__claim_repaid(struct claim *c)
{
    assert(c->owed > 0);
    c->owed--;
    if (!c->forgotten)
        return true;
    clave__claim_free(&c->part);
    return false;
}

void clave__claim_place_unused(struct queue_place *p)
{
    struct claim *c = LIST_ENTRY(p, struct claim, place);
    bool stays = p->spared || c->left_there;
    /* The listing took the node that stays for one that this claim would delete, so the next proof
     * lists again. If the sender may not lock here any more, the node is left to the gate that made
     * it, until roles change again. */
    if (stays && c->forbidden)
        c->part.s->left_behind = true;
    else if (stays)
        c->part.s->listed_on = 0;
    if (c->forgotten) {
        clave__claim_free(&c->part);
    } else if (c->state == CLAIM_SOUGHT) {
        claim_move(c, CLAIM_OVER);
        if (c->end_reported)
            claim_tell_those(c, claim_is_news);
    }
}
