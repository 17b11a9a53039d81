/* claim.c - the life of a claim. Called by the endpoints of claims, and by claim_kinds.c with what
 * the recipes report. Invariant: only claim_enter changes the state, and every change is news to
 * those that wait. */
#include "web/session/claim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "client/client_internal.h"
#include "web/session/claim_events.h"
#include "web/session/validity.h"

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

/* It would wait for a grant, or for the place of one. */
static bool claim_is_polled(const struct claim *c, const struct claim_poll *p)
{
    return !p->wants_end && !c->trying;
}

static bool claim_is_news(const struct claim *c, const struct claim_poll *p)
{
    if (c->state == CLAIM_ENDED)
        return true;
    return !p->wants_end && (c->state == CLAIM_HELD || (p->wants_position && c->placed));
}

/* A `done` may free the claim when it was the last to wait for its end, so the list is taken first.
 */
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

static void claim_tell(struct claim *c)
{
    clave__claim_publish(c);
    claim_tell_those(c, claim_is_news);
}

void clave__claim_await(struct claim *c, struct claim_poll *p, int64_t until)
{
    p->web = c->part.s->all->web;
    list_init(&p->link);
    clave__timer_init(&p->limit, claim_poll_due);
    if (!p->watches && claim_is_news(c, p)) {
        p->done(p);
        return;
    }
    list_push_back(&c->polls, &p->link);
    if (until != CLAVE_NEVER)
        clave__web_timer_set(p->web, &p->limit, until);
}

/* ---- states ---------------------------------------------------------------------------------- */

static void claim_drop(struct claim *c)
{
    clave_async_delay *delay = c->delay;
    c->delay = NULL;
    clave_async_delay_free(delay);
    c->kind->drop(c);
}

static void claim_enter(struct claim *c, enum claim_state to)
{
    bool has = to == CLAIM_PROVING || to == CLAIM_HELD;
    if (c->state == CLAIM_PROVING)
        clave__session_wait_cancel(&c->proof);
    c->state = to;
    if (to == CLAIM_HELD)
        c->granted_at = c->part.s->all->web->now;
    c->part.token = has ? c->grant.token : 0;
    c->part.node = has ? c->node : NULL;
    if (to == CLAIM_ENDED) {
        clave__web_timer_clear(c->part.s->all->web, &c->gives_back);
        claim_drop(c);
    }
    claim_tell(c);
}

static void claim_end(struct claim *c, clave_err why)
{
    if (c->state == CLAIM_ENDED)
        return;
    c->why = why;
    claim_enter(c, CLAIM_ENDED);
}

int64_t clave__claim_valid_ms(const struct claim *c, int64_t arrived)
{
    const struct http_session *s = c->part.s;
    clave_grant g;
    if (c->state != CLAIM_HELD || !c->kind->grant(c, &g))
        return 0;
    struct validity v = {.arrived = arrived,
                         .granted = c->granted_at,
                         .hold_deadline = g.deadline,
                         .ttl_ms = s->ttl_ms,
                         .now = s->all->web->now};
    return clave__validity_ms(&v);
}

/* ---- what the recipe reports ----------------------------------------------------------------- */

static void claim_take_time(struct claim *c)
{
    struct http_session *s = c->part.s;
    int64_t now = s->client ? clave__client_now(s->client) : 0;
    if (now > s->all->web->now)
        s->all->web->now = now;
}

void clave__claim_moved(struct claim *c, size_t ahead)
{
    claim_take_time(c);
    c->placed = true;
    c->ahead = ahead;
    c->waited |= ahead > 0;
    if (c->state == CLAIM_WAITING)
        claim_tell(c);
}

static void claim_on_proven(struct session_wait *w, clave_err err)
{
    struct claim *c = LIST_ENTRY(w, struct claim, proof);
    claim_take_time(c);
    if (err == CLAVE_OK)
        claim_enter(c, CLAIM_HELD);
    else if (err == CLAVE_EOPTIMEOUT)
        clave__http_session_prove(c->part.s, w);
    else
        claim_end(c, err);
}

/* The listing after its create shows that it was granted. What is granted later, by the end of
 * others, may have been given back at another gate meanwhile. */
static void claim_hold(struct claim *c)
{
    bool proves = c->waited && clave__http_session_is_shared(c->part.s);
    claim_enter(c, proves ? CLAIM_PROVING : CLAIM_HELD);
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
        claim_end(c, err);
}

/* The mark's node is the one of `clave lock --lock-delay`. */
static clave_err claim_begin_delay(struct claim *c)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    size_t cap = strlen(c->path) + sizeof "-held";
    char *mark = clave__mem_alloc(mem, cap);
    if (!mark)
        return CLAVE_ENOMEM;
    snprintf(mark, cap, "%s-held", c->path);
    clave_delay_options o = {.size = sizeof o, .path = mark, .delay_ms = c->lock_delay_ms};
    clave_err err =
        clave_async_delay_begin(&c->delay, c->part.s->client, &c->grant, &o, claim_on_delayed, c);
    clave__mem_free(mem, mark);
    return err;
}

void clave__claim_granted(struct claim *c)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    if (c->state != CLAIM_WAITING)
        return;
    claim_take_time(c);
    if (!c->kind->grant(c, &c->grant))
        return; /* it was lost already, and that is told next */
    c->node = clave__mem_strdup(mem, c->grant.node);
    clave_err err = c->node ? CLAVE_OK : CLAVE_ENOMEM;
    c->grant.node = c->node;
    if (err == CLAVE_OK && c->lock_delay_ms > 0)
        err = claim_begin_delay(c);
    if (err != CLAVE_OK)
        claim_end(c, err);
    else if (c->delay)
        claim_enter(c, CLAIM_DELAYED);
    else
        claim_hold(c);
}

/* A try whose connection went ends as one that was not first: before it is answered, the holder is
 * asked for, which needs a connection. */
void clave__claim_failed(struct claim *c, clave_err err)
{
    claim_take_time(c);
    claim_end(c, c->trying && err == CLAVE_EUNREACHABLE ? CLAVE_EBUSY : err);
}

void clave__claim_lost(struct claim *c, clave_err why)
{
    claim_take_time(c);
    /* closeSession was asked for: the end of the session says so. */
    if (c->part.s->state != HTTP_SESSION_CLOSING)
        claim_end(c, why == CLAVE_OK ? CLAVE_ELOST : why);
}

void clave__claim_asked(struct claim *c)
{
    c->asked = true;
    claim_tell(c);
}

/* ---- giving back ----------------------------------------------------------------------------- */

/* The delete is repeated until the node is gone, or the servers refuse it: then it stays until the
 * session ends. */
void clave__claim_left(struct claim *c, clave_err err)
{
    claim_take_time(c);
    claim_end(c, err == CLAVE_ENOAUTH ? err : c->forbidden ? CLAVE_EAUTHFAILED : CLAVE_OK);
}

void clave__claim_release(struct claim *c)
{
    if (c->state == CLAIM_ENDED || c->state == CLAIM_LEAVING)
        return;
    if (c->state != CLAIM_HELD) {
        claim_end(c, CLAVE_ECANCELED);
        clave__http_session_flush(c->part.s);
        return;
    }
    if (c->delay)
        (void)clave_async_delay_end(c->delay, NULL,
                                    NULL); /* else the mark remains, which is safe */
    clave_err err = c->kind->release(c);
    if (err != CLAVE_OK)
        claim_end(c, err);
    else
        claim_enter(c, CLAIM_LEAVING);
    clave__http_session_flush(c->part.s);
}

static void claim_session_ended(struct session_part *p, clave_err why)
{
    claim_end(clave__claim_of(p), why == CLAVE_OK ? CLAVE_ECLOSED : why);
}

static void claim_node_missing(struct session_part *p)
{
    claim_end(clave__claim_of(p), CLAVE_ENONODE);
}

/* A claim of the same id may have been made there. Whoever waits here for its turn would take the
 * session back from the other gate: such a request is answered, and its client asks again. */
static void claim_session_elsewhere(struct session_part *p)
{
    struct claim *c = clave__claim_of(p);
    bool has_place = c->state == CLAIM_WAITING ? c->placed : c->state < CLAIM_HELD;
    c->place.search = true;
    c->waited = true;
    clave__claim_publish_suspended(c);
    if (has_place && clave__http_session_is_shared(p->s))
        claim_tell_those(c, claim_is_polled);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void claim_free(struct session_part *p)
{
    struct claim *c = clave__claim_of(p);
    const struct clave_mem *mem = &p->s->all->web->mem;
    list_remove(&p->link);
    clave__session_wait_cancel(&c->proof);
    clave__web_timer_clear(p->s->all->web, &c->gives_back);
    claim_drop(c);
    c->forgotten = true;
    c->state = CLAIM_ENDED;
    if (c->owed > 0 || c->place.ncontenders > 0)
        return;
    clave__mem_free(mem, c->path);
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
    c->owed--;
    if (!c->forgotten)
        return true;
    claim_free(&c->part);
    return false;
}

static void claim_place_unused(struct contender_place *p)
{
    struct claim *c = LIST_ENTRY(p, struct claim, place);
    if (c->forgotten)
        claim_free(&c->part);
}

void clave__claim_forget(struct claim *c)
{
    claim_free(&c->part);
}

struct claim *clave__claim_find(const struct http_session *s, const char *id)
{
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        bool tried = c->state == CLAIM_ENDED && c->why == CLAVE_EBUSY;
        if (!tried && strcmp(c->place.uuid, id) == 0)
            return c;
    }
    return NULL;
}

/* An earlier try of this id was given up, but its node may still be there: it is looked for by the
 * id, and deleted. */
static bool claim_is_being_left(const struct http_session *s, const char *id)
{
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        const struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        if (c->place.ncontenders > 0 && strcmp(c->place.uuid, id) == 0)
            return true;
    }
    return false;
}

static bool claim_is_uuid(const char *key)
{
    for (size_t i = 0; i < CLAVE_UUID_TEXT; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (!key[i] || (dash ? key[i] != '-' : !strchr("0123456789abcdef", key[i])))
            return false;
    }
    return key[CLAVE_UUID_TEXT] == '\0';
}

/* A key that is a UUID is the id; of another one a UUID is made, the same on every gate. */
void clave__claim_id_of_key(const struct http_session *s, const char *key,
                            char out[CLAVE_UUID_TEXT + 1])
{
    if (claim_is_uuid(key)) {
        memcpy(out, key, CLAVE_UUID_TEXT + 1);
        return;
    }
    struct siphash_key k = {(uint64_t)s->id, 0x636c61766531ull};
    uint64_t a = clave__siphash(k, key, strlen(key));
    k.k1++;
    uint64_t b = clave__siphash(k, key, strlen(key));
    snprintf(out, CLAVE_UUID_TEXT + 1,
             "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-8%03" PRIx64 "-%012" PRIx64, a >> 32,
             a >> 16 & 0xffff, a & 0xfff, b >> 52, b & ((UINT64_C(1) << 48) - 1));
}

static clave_err claim_check(const struct claim_terms *t, const struct claim_kind *kind)
{
    bool counts = kind && strcmp(kind->name, "semaphore") == 0;
    if (!kind || t->lock_delay_ms < 0 || (counts ? t->limit == 0 : t->limit != 0) ||
        (t->lock_delay_ms > 0 && !kind->marks))
        return CLAVE_EINVAL;
    return clave__path_fault(t->path, strlen(t->path), false) ? CLAVE_EPATH : CLAVE_OK;
}

/* Room for one more: the oldest that have ended, and that nobody waits for, are forgotten. */
static bool claim_make_room(struct http_session *s)
{
    size_t n = 0, ended = 0;
    for (struct list *l = s->parts.prev, *before; l != &s->parts; l = before) {
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        before = l->prev;
        if (c->state == CLAIM_ENDED && c->place.ncontenders == 0 && list_empty(&c->polls) &&
            ++ended > SESSION_ENDED_CLAIMS)
            clave__claim_forget(c);
        else
            n++;
    }
    return n < SESSION_CLAIMS + SESSION_ENDED_CLAIMS;
}

static struct claim *claim_alloc(struct http_session *s, const struct claim_terms *t)
{
    struct web *w = s->all->web;
    struct claim *c = clave__mem_zalloc(&w->mem, sizeof *c);
    if (!c)
        return NULL;
    c->part = (struct session_part){.s = s,
                                    .ended = claim_session_ended,
                                    .missing = claim_node_missing,
                                    .elsewhere = claim_session_elsewhere,
                                    .free = claim_free};
    c->kind = clave__claim_kind(t->kind);
    c->proof.done = claim_on_proven;
    list_init(&c->proof.link);
    list_init(&c->polls);
    list_push_back(&s->parts, &c->part.link);
    c->path = clave__mem_strdup(&w->mem, t->path);
    c->limit = t->limit;
    c->lock_delay_ms = t->lock_delay_ms;
    c->revocable = t->revocable;
    c->trying = t->trying;
    if (t->id)
        memcpy(c->place.uuid, t->id, sizeof c->place.uuid);
    else
        clave__rand_uuid(&w->rand, c->place.uuid);
    c->place.search = t->id && s->elsewhere;
    c->place.unused = claim_place_unused;
    return c;
}

clave_err clave__claim_new(struct http_session *s, const struct claim_terms *t, struct claim **out)
{
    clave_err err = claim_check(t, clave__claim_kind(t->kind));
    *out = NULL;
    if (err == CLAVE_OK && t->id && claim_is_being_left(s, t->id))
        err = CLAVE_EINUSE;
    if (err == CLAVE_OK && !claim_make_room(s))
        err = CLAVE_EQUOTA;
    if (err != CLAVE_OK)
        return err;
    struct claim *c = claim_alloc(s, t);
    if (!c)
        return CLAVE_ENOMEM;
    err = c->path ? clave__claim_describe(c, t) : CLAVE_ENOMEM;
    clave_async_client_tick(s->client, s->all->web->now);
    if (err == CLAVE_OK && s->state != HTTP_SESSION_LIVE)
        err = CLAVE_ECLOSED; /* its time was up just now */
    if (err == CLAVE_OK)
        err = c->kind->begin(c);
    if (err != CLAVE_OK) {
        claim_free(&c->part);
        return err;
    }
    clave__http_session_flush(s);
    *out = c;
    return CLAVE_OK;
}
