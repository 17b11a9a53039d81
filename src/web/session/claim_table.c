/* claim_table.c - the claims of a session: made, found, forgotten. Called by the endpoints of
 * claims, and by the session. Invariant: a claim is freed only when no callback of its recipe, and
 * no contender of its place, can come back to it. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash/siphash.h"
#include "base/path.h"
#include "recipe/queue/identity.h"
#include "web/session/claim_nodes.h"

enum { CLAIM_DATA = 8192 };

/* ---- from the session ------------------------------------------------------------------------ */

static void claim_session_ended(struct session_part *p, clave_err why)
{
    clave__claim_end(clave__claim_of(p), why == CLAVE_OK ? CLAVE_ECLOSED : why);
}

static void claim_node_missing(struct session_part *p)
{
    clave__claim_end(clave__claim_of(p), CLAVE_ENONODE);
}

static void claim_session_elsewhere(struct session_part *p)
{
    clave__claim_went_elsewhere(clave__claim_of(p));
}

static bool claim_is_open(struct session_part *p)
{
    const struct claim *c = clave__claim_of(p);
    bool waits = c->state == CLAIM_WAITING && !c->placed;
    bool leaves = c->state >= CLAIM_LEAVING && c->place.ncontenders > 0;
    return waits || leaves;
}

/* ---- its memory ------------------------------------------------------------------------------ */

static void claim_free(struct session_part *p)
{
    struct claim *c = clave__claim_of(p);
    assert(list_empty(&c->polls));
    const struct clave_mem *mem = &p->s->all->web->mem;
    list_remove(&p->link);
    clave__session_wait_cancel(&c->proof);
    clave__web_timer_clear(p->s->all->web, &c->gives_back);
    clave__web_timer_clear(p->s->all->web, &c->ends);
    clave__claim_drop(c);
    c->forgotten = true;
    c->state = CLAIM_ENDED;
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
    claim_free(&c->part);
    return false;
}

static void claim_place_unused(struct queue_place *p)
{
    struct claim *c = LIST_ENTRY(p, struct claim, place);
    /* The listing took the node for one that this claim would delete. What may not be locked here
     * any more is left to the gate that made it. */
    if (p->spared && !c->forbidden)
        c->part.s->looked_on = 0;
    if (c->forgotten)
        claim_free(&c->part);
}

/* ---- finding --------------------------------------------------------------------------------- */

struct claim *clave__claim_find(const struct http_session *s, const char *id)
{
    struct claim *found = NULL;
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        bool tried =
            c->state == CLAIM_ENDED &&
            (c->why == CLAVE_EBUSY || c->why == CLAVE_ECONNLOSS || c->why == CLAVE_ENODEEXISTS);
        if (!tried && strcmp(c->place.uuid, id) == 0)
            found = c;
    }
    return found;
}

struct claim *clave__claim_on_path(const struct http_session *s, const char *path, const char *id)
{
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        if (c->state != CLAIM_ENDED && strcmp(c->path, path) == 0 &&
            clave__claim_is_same_owner(c->place.uuid, id))
            return c;
    }
    return NULL;
}

bool clave__claim_is_being_left(const struct http_session *s, const char *path, const char *id)
{
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        const struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        bool is_same = id && strcmp(c->place.uuid, id) == 0;
        bool leaves = c->state == CLAIM_ENDED && c->place.ncontenders > 0 &&
                      c->why != CLAVE_ENODEEXISTS; /* that has made none */
        if (leaves && strcmp(c->path, path) == 0 &&
            (is_same || (!c->placed && clave__claim_is_same_owner(c->place.uuid, id))))
            return true;
    }
    return false;
}

bool clave__claim_is_id(const char *key)
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
    if (clave__claim_is_id(key)) {
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

/* ---- making ---------------------------------------------------------------------------------- */

/* What another gate cannot know otherwise, when it takes the claim up (claim_elsewhere.c). */
static size_t claim_put_terms(const struct claim *c, char data[CLAIM_DATA], size_t n)
{
    const struct {
        const char *key;
        int64_t value, unsaid;
    } terms[] = {{"permits", c->permits, 1},
                 {"lock_delay_ms", c->lock_delay_ms, 0},
                 {"max_hold_ms", c->max_hold_ms, 0}};
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, terms[i].value);
        if (terms[i].value > terms[i].unsaid)
            n = clave__identity_put_field(data, n, CLAIM_DATA, terms[i].key, text);
    }
    return c->permits > 1 ? clave__identity_put_field(data, n, CLAIM_DATA, "claim", c->place.uuid)
                          : n;
}

/* What its node says: for `clave locks`, the page and deadlocks. */
static clave_err claim_describe(struct claim *c, const struct claim_terms *t)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    if (t->found.node) {
        c->len = t->found.len;
        c->data = clave__mem_strndup(mem, t->found.len > 0 ? t->found.data : "", t->found.len);
        return c->data ? CLAVE_OK : CLAVE_ENOMEM;
    }
    const clave_identity id = {.host = t->host,
                               .name = t->name,
                               .command = t->command,
                               .traceparent = t->traceparent,
                               .revocable = t->revocable ? 1 : -1};
    const char *text = t->text ? t->text : t->name ? t->name : "";
    char data[CLAIM_DATA];
    if (c->kind->plain) {
        c->len = strlen(text);
    } else {
        c->len = clave_identity_format(&id, data, sizeof data);
        if (t->lock_delay_ms > 0)
            c->len = clave__lock_delay_field_put(data, c->len, sizeof data);
        c->len = claim_put_terms(c, data, c->len);
        text = data;
    }
    if (c->len >= CLAIM_DATA)
        return CLAVE_ETOOBIG;
    c->data = clave__mem_strndup(mem, text, c->len);
    return c->data ? CLAVE_OK : CLAVE_ENOMEM;
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
            claim_free(&c->part); /* as if there had been no request */
        else
            n++;
    }
    return n < SESSION_CLAIMS + SESSION_ENDED_CLAIMS;
}

static struct claim *claim_alloc(struct http_session *s, const struct claim_terms *t)
{
    assert(t->kind->size >= sizeof(struct claim));
    assert(!t->id || strlen(t->id) == CLAVE_UUID_TEXT);
    struct web *w = s->all->web;
    struct claim *c = clave__mem_zalloc(&w->mem, t->kind->size);
    if (!c)
        return NULL;
    c->part = (struct session_part){.s = s,
                                    .ended = claim_session_ended,
                                    .missing = claim_node_missing,
                                    .elsewhere = claim_session_elsewhere,
                                    .is_open = claim_is_open,
                                    .free = claim_free};
    c->kind = t->kind;
    c->part.more = t->kind->more;
    c->proof.done = clave__claim_on_proven;
    list_init(&c->proof.link);
    list_init(&c->polls);
    list_push_back(&s->parts, &c->part.link);
    c->path = clave__mem_strdup(&w->mem, t->path);
    c->limit = t->limit;
    c->permits = t->permits;
    c->max_hold_ms = t->max_hold_ms;
    c->lock_delay_ms = t->lock_delay_ms;
    c->revocable = t->revocable;
    c->trying = t->trying;
    if (t->id)
        memcpy(c->place.uuid, t->id, sizeof c->place.uuid);
    else
        clave__claim_draw_id(&w->rand, c->place.uuid);
    /* Another gate may have it, of which this one knows nothing yet. */
    bool has_more = s->resumed || clave__http_session_is_shared(s);
    bool knows = has_more && !clave__http_session_must_look(s) && !s->blind;
    bool queues = c->kind->queue != QUEUE_LEASE;
    c->place.search = s->elsewhere && (t->id || has_more) && (!knows || (t->found.node && !queues));
    c->place.below = has_more ? "/" : NULL;
    clave__claim_limit(c, t->found.node ? t->found.ends_at : CLAVE_NEVER);
    if (t->found.node) {
        c->at = clave__mem_strdup(&w->mem, clave__path_name(t->found.node));
        c->place.at = queues ? c->at : NULL;
        c->waited = true; /* what it is now is asked */
    }
    c->place.excludes = clave__claim_excludes;
    c->place.unused = claim_place_unused;
    return c;
}

clave_err clave__claim_new(struct http_session *s, const struct claim_terms *t, struct claim **out)
{
    *out = NULL;
    assert(!t->kind->misfit(t));
    assert(s->client);
    if (clave__path_fault(t->path, strlen(t->path), false))
        return CLAVE_EPATH;
    if (clave__claim_is_being_left(s, t->path, t->id))
        return CLAVE_EINUSE;
    if (!claim_make_room(s))
        return CLAVE_EQUOTA;
    struct claim *c = claim_alloc(s, t);
    if (!c)
        return CLAVE_ENOMEM;
    clave_err err = c->path && (!t->found.node || c->at) ? claim_describe(c, t) : CLAVE_ENOMEM;
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
