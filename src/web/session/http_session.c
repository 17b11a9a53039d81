/* http_session.c - the life of an HTTP session: made, attached to, proved, silent, ended. Called by
 * the endpoints of sessions and claims. Invariants:
 * - A session is LIVE only with the ZooKeeper session of its id.
 * - A LIVE session without a request has its timer set, which ends it, so that no session outlives
 *   a silent client for long. An ENDED session without a request has its timer set, which frees it.
 * - What a proof finds was true at a commit after the proof was asked for.
 * - The tag of a secret is compared in a time that does not depend on where it differs. */
#include "web/session/http_session.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "client/client_for_gate.h"
#include "web/http/exchange.h"
#include "web/http/sender.h"
#include "web/observe/observe.h"

/* For how long a session may be OPENING before its client is told that no server can be reached: a
 * new session, and one that the client relies on. */
enum { BEGINNING_MS = 3000, OPENING_MS = 10000 };
enum { MOST_ENDED = 10000, MOST_SESSION_AUTHS = 16, END_EVENT_MAX = 64 << 10 };
enum { PROOF_ATTEMPTS = 8 };
/* The first pause is PAUSE_PROOFS times as long as a proof, and at least LEAST_PAUSE_MS; each is
 * twice as long as the one before, and none is longer than 1/PAUSE_PART of the ttl. Each is varied
 * at random by up to a half. */
enum { PAUSE_PROOFS = 2, LEAST_PAUSE_MS = 8, PAUSE_DOUBLINGS = 8, PAUSE_PART = 16 };
#define MARK_PREFIX SESSION_MARKS "/gone-"
enum { MARK_MS = 60000, FEW_MARKS = 64, MOST_MARKS = 4096 };

/* ==== its secret ============================================================================== */

enum { MOST_INPUT = 1 + SEAL_PLAIN + SEAL_AUTHS };

/* Different uses of the key never share an input, because the first byte tells them apart. */
static void seal_tag(const struct hmac_key *key, const uint8_t *plain, size_t n,
                     uint8_t tag[SEAL_TAG])
{
    assert(n < MOST_INPUT);
    uint8_t in[MOST_INPUT] = {'t'}, mac[SHA1_LEN];
    memcpy(in + 1, plain, n);
    clave__hmac(key, in, 1 + n, mac);
    memcpy(tag, mac, SEAL_TAG);
}

static void seal_mix(const struct hmac_key *key, const uint8_t tag[SEAL_TAG], uint8_t *text,
                     size_t n)
{
    uint8_t in[2 + SEAL_TAG] = {'s'}, mac[SHA1_LEN];
    memcpy(in + 2, tag, SEAL_TAG);
    for (size_t i = 0; i < n; i++) {
        if (i % SHA1_LEN == 0) {
            in[1] = (uint8_t)(i / SHA1_LEN);
            clave__hmac(key, in, sizeof in, mac);
        }
        text[i] ^= mac[i % SHA1_LEN];
    }
}

static void seal_put(uint8_t *at, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
}

static uint64_t seal_get(const uint8_t *at, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | at[i];
    return v;
}

void clave__seal(const struct hmac_key *key, const struct sealed_session *s,
                 char out[SEAL_TEXT + 1])
{
    uint8_t bytes[SEAL_MOST], *plain = bytes + SEAL_TAG;
    size_t n = SEAL_PLAIN + s->nauths;
    assert(s->nauths <= SEAL_AUTHS);
    seal_put(plain, (uint64_t)s->id, 8);
    memcpy(plain + 8, s->passwd, sizeof s->passwd);
    seal_put(plain + 24, (uint32_t)s->ttl_ms, 4);
    memcpy(plain + SEAL_PLAIN, s->auths, s->nauths);
    seal_tag(key, plain, n, bytes);
    seal_mix(key, bytes, plain, n);
    clave__base64url(bytes, SEAL_TAG + n, out);
}

bool clave__unseal(const struct hmac_key *key, const char *text, struct sealed_session *out)
{
    uint8_t bytes[SEAL_MOST], tag[SEAL_TAG], *plain = bytes + SEAL_TAG, differs = 0;
    size_t n = strlen(text), len = 0;
    if (n > SEAL_TEXT || !clave__base64url_decode(text, n, bytes, &len) ||
        len < SEAL_TAG + SEAL_PLAIN)
        return false;
    len -= SEAL_TAG;
    seal_mix(key, bytes, plain, len);
    seal_tag(key, plain, len, tag);
    for (size_t i = 0; i < SEAL_TAG; i++)
        differs |= tag[i] ^ bytes[i];
    if (differs)
        return false;
    out->id = (int64_t)seal_get(plain, 8);
    memcpy(out->passwd, plain + 8, sizeof out->passwd);
    out->ttl_ms = (int32_t)seal_get(plain + 24, 4);
    out->nauths = len - SEAL_PLAIN;
    memcpy(out->auths, plain + SEAL_PLAIN, out->nauths);
    return true;
}

void clave__seal_uuid(const struct hmac_key *key, char uuid[CLAVE_UUID_TEXT + 1])
{
    uint8_t in[1 + CLAVE_UUID_TEXT] = {'u'}, mac[SHA1_LEN];
    memcpy(in + 1, uuid, CLAVE_UUID_TEXT);
    clave__hmac(key, in, sizeof in, mac);
    clave__uuid_mix(uuid, seal_get(mac, 8), seal_get(mac + 8, 8));
}

/* ==== marks of claims that were given back ==================================================== */

struct claim_mark {
    struct list link;
    struct map_node by_id;
    const struct http_session *s;
    char uuid[CLAVE_UUID_TEXT + 1];
    int64_t at;  /* when this gate learnt of it */
    bool stands; /* the servers have it */
};

static bool claim_mark_eq(const struct map_node *node, const void *key)
{
    const void *at = (const char *)node - offsetof(struct claim_mark, by_id);
    const struct claim_mark *m = at, *wanted = key;
    return m->s == wanted->s && strcmp(m->uuid, wanted->uuid) == 0;
}

static struct claim_mark *claim_mark_find(const struct http_session *s, const char *id)
{
    struct claim_mark wanted = {.s = s};
    size_t n = strlen(id);
    if (n != CLAVE_UUID_TEXT)
        return NULL;
    memcpy(wanted.uuid, id, n);
    struct map_node *node = clave__map_find(
        &s->all->marks, clave__map_hash_bytes(&s->all->marks, id, n), claim_mark_eq, &wanted);
    return node ? MAP_ENTRY(node, struct claim_mark, by_id) : NULL;
}

bool clave__http_session_has_mark(const struct http_session *s, const char *id)
{
    return claim_mark_find(s, id) != NULL;
}

bool clave__http_session_mark_is_certain(const struct http_session *s, const char *id)
{
    const struct claim_mark *m = claim_mark_find(s, id);
    return m && (m->stands || !clave__http_session_is_shared(s));
}

void clave__http_session_mark_stands(struct http_session *s, const char *id)
{
    struct claim_mark *m = claim_mark_find(s, id);
    if (m)
        m->stands = true;
}

static void claim_mark_drop(struct http_session *s, struct claim_mark *m)
{
    list_remove(&m->link);
    clave__map_remove(&s->all->marks, &m->by_id);
    s->nmarks--;
    clave__mem_free(&s->all->web->mem, m);
}

static void http_session_free_marks(struct http_session *s)
{
    while (!list_empty(&s->marks))
        claim_mark_drop(s, LIST_ENTRY(s->marks.next, struct claim_mark, link));
}

clave_err clave__http_session_mark(struct http_session *s, const char *id)
{
    struct web *w = s->all->web;
    struct claim_mark *m = claim_mark_find(s, id);
    assert(strlen(id) == CLAVE_UUID_TEXT);
    if (m)
        return CLAVE_OK;
    m = clave__mem_zalloc(&w->mem, sizeof *m);
    if (!m)
        return CLAVE_ENOMEM;
    memcpy(m->uuid, id, sizeof m->uuid);
    m->s = s;
    m->at = w->now;
    list_push_back(&s->marks, &m->link);
    clave__map_insert(&s->all->marks, &m->by_id,
                      clave__map_hash_bytes(&s->all->marks, id, CLAVE_UUID_TEXT));
    s->nmarks++;
    return CLAVE_OK;
}

/* ---- their directory ---- */

void clave__marks_directory_answered(struct web *w, clave_err err)
{
    if (err == CLAVE_OK || err == CLAVE_ENODEEXISTS)
        w->marks = MARKS_THERE;
    else if (clave_err_classify(err) == CLAVE_CLASS_FINAL)
        w->marks = MARKS_DENIED;
}

static void marks_on_directory(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    clave__marks_directory_answered(arg, res->err);
}

/* The session may be connected before the gate's own client, which makes the directory too. */
clave_err clave__http_session_note(struct http_session *s, const char *path,
                                   const struct session_note *n)
{
    struct web *w = s->all->web;
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    if (w->marks != MARKS_THERE)
        (void)clave_async_create(s->client, SESSION_MARKS, NULL, 0, &o, marks_on_directory, w);
    o.mode = CLAVE_EPHEMERAL;
    return clave_async_create(s->client, path, n->data, n->len, &o, n->done, n->arg);
}

/* Another request may have been told so just before, and have made the directory. */
bool clave__http_session_note_is_homeless(const struct http_session *s, clave_err err)
{
    struct web *w = s->all->web;
    bool homeless = err == CLAVE_ENONODE && w->marks != MARKS_DENIED;
    if (homeless)
        w->marks = MARKS_UNKNOWN;
    return homeless;
}

/* ---- a mark ---- */

static void claim_mark_path(char out[sizeof MARK_PREFIX + CLAVE_UUID_TEXT], const char *id)
{
    snprintf(out, sizeof MARK_PREFIX + CLAVE_UUID_TEXT, "%s%s", MARK_PREFIX, id);
}

clave_err clave__http_session_send_mark(struct http_session *s, const char *id, clave_result_cb *cb,
                                        void *arg)
{
    char path[sizeof MARK_PREFIX + CLAVE_UUID_TEXT];
    claim_mark_path(path, id);
    return clave__http_session_note(s, path, &(struct session_note){.done = cb, .arg = arg});
}

/* Deletes the oldest marks when there are many. A delete may fail, because the next listing shows a
 * mark that is still there. */
void clave__http_session_trim_marks(struct http_session *s)
{
    int64_t now = s->all->web->now;
    bool at_servers = clave__http_session_is_shared(s);
    while (s->nmarks > FEW_MARKS) {
        struct claim_mark *m = LIST_ENTRY(s->marks.next, struct claim_mark, link);
        char path[sizeof MARK_PREFIX + CLAVE_UUID_TEXT];
        if (m->at + MARK_MS > now && s->nmarks <= MOST_MARKS)
            return;
        claim_mark_path(path, m->uuid);
        if (at_servers && clave_async_delete(s->client, path, -1, NULL, NULL) != CLAVE_OK)
            return;
        claim_mark_drop(s, m);
    }
}

bool clave__http_session_is_mark(const char *path, const char **id)
{
    size_t n = sizeof MARK_PREFIX - 1;
    *id = path + n;
    return strncmp(path, MARK_PREFIX, n) == 0 && strlen(path) == n + CLAVE_UUID_TEXT;
}

/* ==== the end ================================================================================= */

static void http_session_leave_map(struct http_session *s)
{
    if (s->in_map)
        clave__map_remove(&s->all->by_id, &s->by_id);
    s->in_map = false;
}

static void http_session_free(struct http_session *s)
{
    struct list *l;
    struct web *w = s->all->web;
    assert(!s->client && list_empty(&s->waits));
    assert(list_empty(&s->proving) && list_empty(&s->unproven) && list_empty(&s->knowing));
    assert(s->taking == 0);
    http_session_free_marks(s);
    while ((l = list_pop_front(&s->parts))) {
        struct session_part *p = LIST_ENTRY(l, struct session_part, link);
        p->free(p);
    }
    http_session_leave_map(s);
    list_remove(&s->link);
    s->all->nended -= !list_empty(&s->in_ended);
    list_remove(&s->in_ended);
    clave__web_timer_clear(w, &s->timer);
    clave__web_timer_clear(w, &s->pause);
    clave__sender_unref(w, s->sender);
    clave__mem_free(&w->mem, s->name);
    clave__mem_free(&w->mem, s->auths);
    clave__mem_free(&w->mem, s);
}

/* ---- it ends --------------------------------------------------------------------------------- */

void clave__session_wait_cancel(struct session_wait *w)
{
    list_remove(&w->link);
}

static void http_session_tell(struct http_session *s, clave_err err)
{
    struct list round, *l;
    list_init(&round);
    list_splice(&round, &s->waits);
    list_splice(&round, &s->proving);
    list_splice(&round, &s->unproven);
    list_splice(&round, &s->knowing);
    while ((l = list_pop_front(&round))) {
        struct session_wait *w = LIST_ENTRY(l, struct session_wait, link);
        /* A session that ended because its client asked for that was not proved to be alive. */
        bool over = err == CLAVE_OK && s->state == HTTP_SESSION_ENDED && !w->ends;
        w->done(w, over ? CLAVE_ECLOSED : err);
    }
}

static void http_session_let_go(struct http_session *s)
{
    struct web *w = s->all->web;
    clave_async_client *c = s->client;
    s->client = NULL;
    s->attached = false;
    if (!c)
        return;
    clave__sender_give(w, s->sender, SENDER_SESSIONS, 1);
    clave_async_client_abandon(c, w->now); /* before the client begins another ZooKeeper session */
    w->o.env->client_free(w->o.env->arg, c);
}

/* True if the ZooKeeper session may live on, perhaps at another gate. A client that asks for it
 * again does not hear that it is over: the gate attaches to it if the servers still know it. */
static bool http_session_may_live(const struct http_session *s, clave_err why)
{
    return why == CLAVE_EUNREACHABLE || why == CLAVE_ETIMEDOUT || why == CLAVE_ENOMEM ||
           why == CLAVE_ECONNLOSS || (why == CLAVE_EREQUESTTIMEOUT && !s->attached);
}

/* A part may be freed as soon as it has ended. */
static void http_session_end_parts(struct http_session *s, clave_err why)
{
    struct list round, *l;
    list_init(&round);
    list_splice(&round, &s->parts);
    while ((l = list_pop_front(&round))) {
        struct session_part *p = LIST_ENTRY(l, struct session_part, link);
        list_push_back(&s->parts, l);
        p->ended(p, why);
    }
}

/* ---- it is kept ------------------------------------------------------------------------------ */

int64_t clave__http_session_silent_at(const struct http_session *s)
{
    return s->heard + s->ttl_ms + s->ttl_ms / SESSION_CLOCKS;
}

static void http_session_keep_ended(struct http_session *s)
{
    assert(s->state == HTTP_SESSION_ENDED);
    struct web *w = s->all->web;
    if (s->client)
        clave__client_rest(s->client, false);
    if (s->present > 0)
        clave__web_timer_clear(w, &s->timer);
    else if (!s->known && !s->client) /* nobody can ask for the cause */
        clave__web_timer_set(w, &s->timer, w->now);
    else
        clave__web_timer_set(w, &s->timer, clave__http_session_silent_at(s));
}

static void http_session_forget(struct http_session *s, int64_t now)
{
    assert(s->present == 0);
    if (!s->client) {
        http_session_free(s);
        return;
    }
    http_session_let_go(s); /* no server has answered the last request (http_session_fall_silent) */
    s->heard = now;
    http_session_keep_ended(s);
}

/* A session has ended: if too many are kept, the oldest is to be freed now. */
static void http_sessions_forget_oldest(struct http_sessions *ss)
{
    struct web *w = ss->web;
    struct http_session *s = LIST_ENTRY(ss->ended.next, struct http_session, in_ended);
    if (ss->nended > (w->o.max_sessions ? w->o.max_sessions : MOST_ENDED) && s->present == 0 &&
        !s->client)
        clave__web_timer_set(w, &s->timer, w->now);
}

/* Sends the event that the session is over for everybody. */
static void http_session_publish_end(struct http_session *s, clave_err why)
{
    assert(s->state == HTTP_SESSION_ENDED);
    struct web *w = s->all->web;
    struct buf text;
    if (!w->observe || s->id == 0)
        return;
    clave__buf_init(&text, &w->mem, END_EVENT_MAX);
    struct json j = clave__json_to(&text);
    clave__json_open(&j, NULL, '{');
    clave__json_int64(&j, "session", s->id);
    clave__json_string(&j, "state", "ended");
    clave__web_put_cause(&j, why ? &why : &(const clave_err){CLAVE_ECLOSED});
    clave__json_close(&j, '}');
    if (j.err == CLAVE_OK && clave__buf_append(&text, "", 1) == CLAVE_OK)
        clave__observe_event(
            w->observe, &(struct event_text){.name = "session", .data = clave__buf_text(&text)});
    clave__buf_fini(&text);
}

/* ---- the move to ENDED ----------------------------------------------------------------------- */

void clave__http_session_end(struct http_session *s, clave_err why, bool client_too)
{
    if (s->state == HTTP_SESSION_ENDED)
        return;
    bool over = !http_session_may_live(s, why) && !s->all->web->closing;
    s->state = HTTP_SESSION_ENDED;
    s->why = why;
    if (http_session_may_live(s, why))
        http_session_leave_map(s);
    if (s->client)
        snprintf(s->fault, sizeof s->fault, "%s", clave_async_client_errmsg(s->client));
    s->present++; /* what follows may end the last request, which must not free the session */
    http_session_end_parts(s, why);
    if (over)
        http_session_publish_end(s, why);
    if (client_too)
        http_session_let_go(s);
    http_session_tell(s, why);
    s->present--;
    s->heard = s->all->web->now;
    list_push_back(&s->all->ended, &s->in_ended);
    s->all->nended++;
    http_session_keep_ended(s);
    http_sessions_forget_oldest(s->all);
}

/* ==== life ==================================================================================== */

/* ---- the table ------------------------------------------------------------------------------- */

clave_err clave__http_sessions_new(struct web *w, const uint8_t *key)
{
    struct http_sessions *ss = clave__mem_zalloc(&w->mem, sizeof *ss);
    uint8_t own[SEAL_KEY];
    if (!ss)
        return CLAVE_ENOMEM;
    ss->web = w;
    list_init(&ss->all);
    list_init(&ss->ended);
    for (size_t i = 0; i < SEAL_KEY; i++)
        own[i] = key ? key[i] : (uint8_t)clave__rand_u64(&w->rand);
    clave__hmac_take_key(&ss->key, own, SEAL_KEY);
    if (clave__map_init(&ss->by_id, &w->mem, clave__rand_u64(&w->rand)) != CLAVE_OK ||
        clave__map_init(&ss->marks, &w->mem, clave__rand_u64(&w->rand)) != CLAVE_OK) {
        clave__map_fini(&ss->by_id);
        clave__mem_free(&w->mem, ss);
        return CLAVE_ENOMEM;
    }
    w->sessions = ss;
    return CLAVE_OK;
}

static bool http_session_eq(const struct map_node *node, const void *key)
{
    const char *s = (const char *)node - offsetof(struct http_session, by_id);
    return ((const struct http_session *)(const void *)s)->id == *(const int64_t *)key;
}

struct http_session *clave__http_session_by_id(const struct http_sessions *ss, int64_t id)
{
    struct map_node *node =
        clave__map_find(&ss->by_id, clave__map_hash_u64((uint64_t)id), http_session_eq, &id);
    return node ? MAP_ENTRY(node, struct http_session, by_id) : NULL;
}

static void http_session_put_in_map(struct http_session *s)
{
    assert(!s->in_map);
    clave__map_insert(&s->all->by_id, &s->by_id, clave__map_hash_u64((uint64_t)s->id));
    s->in_map = true;
}

/* ---- is its client there? -------------------------------------------------------------------- */

/* The connection was lost while requests of the client are here, perhaps to another gate that also
 * has some. */
static void http_session_begin_pause(struct http_session *s)
{
    struct web *w = s->all->web;
    int64_t ms = s->proof_ms * PAUSE_PROOFS, most = s->ttl_ms / PAUSE_PART;
    unsigned n = s->interruptions < PAUSE_DOUBLINGS ? s->interruptions : PAUSE_DOUBLINGS;
    if (s->state != HTTP_SESSION_LIVE || s->present == 0 || !clave__http_session_is_shared(s))
        return;
    s->interruptions++;
    ms = (ms > LEAST_PAUSE_MS ? ms : LEAST_PAUSE_MS) << n;
    ms = ms < most ? ms : most;
    ms = ms / 2 + (int64_t)clave__rand_below(&w->rand, (uint64_t)ms + 1);
    clave__web_timer_set(w, &s->pause, w->now + ms);
}

static void http_session_on_pause_over(struct timer *t, int64_t now)
{
    struct http_session *s = LIST_ENTRY(t, struct http_session, pause);
    if (!s->client || s->state == HTTP_SESSION_CLOSING)
        return;
    clave__client_rest(s->client, s->present == 0 && s->state == HTTP_SESSION_LIVE);
    clave_async_client_tick(s->client, now);
    clave__http_session_flush(s);
}

/* After each change: sets the timer to when something is due next, and lets the client rest when it
 * may. */
static void http_session_settle(struct http_session *s)
{
    struct web *w = s->all->web;
    if (s->client && s->state != HTTP_SESSION_CLOSING)
        clave__client_rest(s->client,
                           s->state == HTTP_SESSION_LIVE && (s->present == 0 || s->pause.armed));
    switch (s->state) {
    case HTTP_SESSION_OPENING:
        clave__web_timer_set(w, &s->timer,
                             s->present == 0 ? w->now
                                             : s->made + (s->resumed ? OPENING_MS : BEGINNING_MS));
        break;
    case HTTP_SESSION_LIVE:
        if (s->present > 0)
            clave__web_timer_clear(w, &s->timer);
        else
            clave__web_timer_set(w, &s->timer, clave__http_session_silent_at(s));
        break;
    case HTTP_SESSION_CLOSING:
        clave__web_timer_clear(w, &s->timer); /* the ZooKeeper client has a limit of its own for
                                               * closing */
        break;
    case HTTP_SESSION_ENDED:
        http_session_keep_ended(s);
        break;
    }
}

void clave__http_session_enter(struct http_session *s)
{
    struct web *w = s->all->web;
    if (s->state != HTTP_SESSION_ENDED)
        s->heard = w->now;
    s->present++;
    http_session_settle(s);
    if (!s->client)
        return;
    clave_async_client_tick(s->client, w->now); /* the session may be over already */
    if (!s->attached)
        clave__http_session_flush(s); /* the client may have rested */
}

void clave__http_session_leave(struct http_session *s)
{
    assert(s->present > 0);
    s->present--;
    if (s->state != HTTP_SESSION_ENDED)
        s->heard = s->all->web->now;
    http_session_settle(s);
}

static void http_session_on_farewell(clave_async_client *c, const clave_result *res, void *arg)
{
    struct http_session *s = arg;
    (void)c;
    (void)res;
    http_session_let_go(s);
}

/* Deletes its places; the servers refuse these deletes if the session lives at another gate. Then
 * drops the connection, and what is left goes with the session's timeout. */
static void http_session_fall_silent(struct http_session *s)
{
    static const clave_op check = {.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
    bool attached = s->attached;
    assert(s->present == 0);
    clave__http_session_end(s, CLAVE_EREQUESTTIMEOUT, !attached);
    if (!s->client)
        return;
    if (clave_async_multi(s->client, &check, 1, http_session_on_farewell, s) != CLAVE_OK)
        http_session_let_go(s);
    else
        clave__http_session_flush(s);
}

static void http_session_on_due(struct timer *t, int64_t now)
{
    struct http_session *s = LIST_ENTRY(t, struct http_session, timer);
    assert(s->present == 0 || s->state == HTTP_SESSION_OPENING);
    switch (s->state) {
    case HTTP_SESSION_OPENING:
        clave__http_session_end(s, CLAVE_EUNREACHABLE, true);
        break;
    case HTTP_SESSION_LIVE:
        http_session_fall_silent(s);
        break;
    case HTTP_SESSION_ENDED:
        http_session_forget(s, now);
        break;
    case HTTP_SESSION_CLOSING:
        break;
    }
}

/* ---- what its ZooKeeper client reports ------------------------------------------------------- */

static void http_session_attached(struct http_session *s, clave_async_client *c)
{
    s->attached = true;
    s->ttl_ms = clave_async_client_session_timeout(c);
    if (s->state != HTTP_SESSION_OPENING)
        return;
    if (s->id == 0) {
        s->id = clave_async_client_session_id(c);
        memcpy(s->passwd, clave_async_client_session_passwd(c), sizeof s->passwd);
        http_session_put_in_map(s);
        s->listed_on = clave_async_client_connection(c); /* a new session has no nodes yet */
    }
    s->state = HTTP_SESSION_LIVE;
    http_session_tell(s, CLAVE_OK);
    http_session_settle(s);
}

static void http_session_detached(struct http_session *s)
{
    s->attached = false;
    s->proven = 0;
    s->elsewhere = true;
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        struct session_part *p = LIST_ENTRY(l, struct session_part, link);
        p->elsewhere(p);
    }
}

static void http_session_on_state(clave_async_client *c, clave_state state, clave_err why,
                                  void *arg)
{
    struct http_session *s = arg;
    struct web *w = s->all->web;
    if (!s->client)
        return;
    w->now = clave__client_now(c) > w->now ? clave__client_now(c) : w->now;
    switch (state) {
    case CLAVE_STATE_CONNECTED:
    case CLAVE_STATE_RECONNECTED:
        http_session_attached(s, c);
        break;
    case CLAVE_STATE_SUSPENDED:
        http_session_detached(s);
        if (s->state == HTTP_SESSION_ENDED)
            http_session_let_go(s);
        http_session_begin_pause(s);
        http_session_settle(s);
        break;
    case CLAVE_STATE_LOST:
    case CLAVE_STATE_CLOSED:
        if (s->state == HTTP_SESSION_CLOSING && state == CLAVE_STATE_LOST)
            break; /* the state CLOSED follows */
        if (s->state == HTTP_SESSION_ENDED)
            http_session_let_go(s);
        if (s->state == HTTP_SESSION_CLOSING)
            why = clave__client_session_is_over(c) ? CLAVE_OK : CLAVE_ETIMEDOUT;
        clave__http_session_end(s, why, true);
        break;
    case CLAVE_STATE_LATENT:
    case CLAVE_STATE_READ_ONLY:
        break;
    }
}

/* ---- making and attaching -------------------------------------------------------------------- */

static struct http_session *http_session_new(struct http_sessions *ss, struct sender *of,
                                             const char *name, int32_t ttl_ms)
{
    struct web *w = ss->web;
    struct http_session *s = clave__mem_zalloc(&w->mem, sizeof *s);
    if (!s)
        return NULL;
    s->all = ss;
    s->sender = clave__sender_ref(of);
    s->ttl_ms = ttl_ms;
    s->name = name ? clave__mem_strdup(&w->mem, name) : NULL;
    s->heard = s->made = w->now;
    list_init(&s->waits);
    list_init(&s->proving);
    list_init(&s->unproven);
    list_init(&s->knowing);
    list_init(&s->marks);
    list_init(&s->parts);
    list_init(&s->polls);
    clave__timer_init(&s->timer, http_session_on_due);
    clave__timer_init(&s->pause, http_session_on_pause_over);
    list_init(&s->in_ended);
    list_push_back(&ss->all, &s->link);
    if (name && !s->name) {
        http_session_free(s);
        return NULL;
    }
    return s;
}

/* Splits a list of "digest:user:password" into schemes and what follows them, in place: `text` is
 * changed. */
static size_t http_session_split_auths(char *text, size_t len, clave_auth out[MOST_SESSION_AUTHS])
{
    size_t n = 0;
    for (char *end = text + len; text < end && n < MOST_SESSION_AUTHS; n++) {
        size_t scheme = strcspn(text, ":"), all = strlen(text);
        text[scheme] = '\0';
        out[n] = (clave_auth){
            .scheme = text, .auth = text + scheme + 1, .len = all > scheme ? all - scheme - 1 : 0};
        text += all + 1;
    }
    return n;
}

static clave_err http_session_connect(struct http_session *s)
{
    struct web *w = s->all->web;
    assert(!s->client && s->nauths <= SEAL_AUTHS);
    char text[SEAL_AUTHS];
    clave_auth auths[MOST_SESSION_AUTHS];
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    memcpy(text, s->auths ? s->auths : "", s->nauths);
    o.hosts = w->o.hosts;
    o.session_timeout_ms = s->ttl_ms;
    o.seed = clave__rand_u64(&w->rand) | 1;
    o.resume_session_id = s->id;
    memcpy(o.resume_passwd, s->passwd, sizeof o.resume_passwd);
    o.mem = &w->mem;
    o.state_cb = http_session_on_state;
    o.state_arg = s;
    o.log = w->o.log.cb;
    o.log_arg = w->o.log.arg;
    o.tls = w->o.tls;
    o.nauths = http_session_split_auths(text, s->nauths, auths);
    o.auths = o.nauths > 0 ? auths : NULL;
    clave_err err = w->o.env->client_open(w->o.env->arg, &o, &s->client);
    if (s->client) {
        clave__client_set_log(s->client, &w->o.log);
        clave__sender_add(w, s->sender, SENDER_SESSIONS, 1);
    }
    return err;
}

static clave_err http_session_set_auths(struct http_session *s, const char *auths, size_t len)
{
    s->auths = len > 0 ? clave__mem_strndup(&s->all->web->mem, auths, len) : NULL;
    s->nauths = s->auths ? len : 0;
    return len > 0 && !s->auths ? CLAVE_ENOMEM : CLAVE_OK;
}

/* Writes the identities one after the other, each with its NUL. */
static clave_err http_session_join_auths(const struct session_terms *t, char out[SEAL_AUTHS],
                                         size_t *len)
{
    *len = 0;
    for (size_t i = 0; i < t->nauths; i++) {
        const char *colon = strchr(t->auths[i], ':');
        size_t n = strlen(t->auths[i]) + 1;
        if (!colon || colon == t->auths[i] || t->nauths > MOST_SESSION_AUTHS)
            return CLAVE_EINVAL;
        if (n > SEAL_AUTHS - *len)
            return CLAVE_ETOOBIG;
        memcpy(out + *len, t->auths[i], n);
        *len += n;
    }
    return CLAVE_OK;
}

clave_err clave__http_session_open(struct http_sessions *ss, const struct session_terms *t,
                                   struct http_session **out)
{
    size_t len;
    char auths[SEAL_AUTHS];
    clave_err err = http_session_join_auths(t, auths, &len);
    *out = NULL;
    if (err != CLAVE_OK)
        return err;
    struct http_session *s = http_session_new(ss, t->sender, t->name, t->ttl_ms);
    err = s ? http_session_set_auths(s, auths, len) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        err = http_session_connect(s);
    if (err != CLAVE_OK && s)
        clave__http_session_end(s, err, true);
    if (err != CLAVE_OK)
        return err;
    clave__http_session_enter(s);
    *out = s;
    return CLAVE_OK;
}

/* Attaches to a session that is not here. If no server knows it any more, it ends. */
static clave_err http_session_resume(struct http_sessions *ss, struct sender *of,
                                     const struct sealed_session *sealed, struct http_session **out)
{
    struct http_session *s = of ? http_session_new(ss, of, NULL, sealed->ttl_ms) : NULL;
    if (!s)
        return CLAVE_ENOMEM;
    s->id = sealed->id;
    s->known = s->resumed = s->elsewhere = true;
    memcpy(s->passwd, sealed->passwd, sizeof s->passwd);
    http_session_put_in_map(s);
    clave_err err = http_session_set_auths(s, sealed->auths, sealed->nauths);
    if (err == CLAVE_OK)
        err = http_session_connect(s);
    if (err != CLAVE_OK)
        clave__http_session_end(s, err, true);
    else
        *out = s;
    return err;
}

/* True if something is under way and its client has been away since the connection was lost: the
 * client may have gone on at another gate. */
static bool http_session_is_doubtful(const struct http_session *s)
{
    bool open = false;
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        struct session_part *p = LIST_ENTRY(l, struct session_part, link);
        open |= p->is_open(p);
    }
    return open && s->state == HTTP_SESSION_LIVE && !s->attached && s->present == 0 &&
           clave__http_session_is_shared(s);
}

clave_err clave__http_session_find(struct http_sessions *ss, const struct sealed_session *sealed,
                                   struct sender *of, struct http_session **out)
{
    struct http_session *s = clave__http_session_by_id(ss, sealed->id);
    *out = NULL;
    if (s && http_session_is_doubtful(s)) {
        clave__http_session_end(s, CLAVE_ECONNLOSS, true);
        s = NULL;
    }
    clave_err err = s ? CLAVE_OK : http_session_resume(ss, of, sealed, &s);
    if (err != CLAVE_OK)
        return err;
    clave__http_session_enter(s);
    *out = s;
    return CLAVE_OK;
}

void clave__http_session_await(struct http_session *s, struct session_wait *w)
{
    assert(w->done);
    w->ends = false;
    list_init(&w->link);
    if (s->state == HTTP_SESSION_OPENING || s->state == HTTP_SESSION_CLOSING)
        list_push_back(&s->waits, &w->link); /* one that closes may go on, as far as is known */
    else if (s->state == HTTP_SESSION_LIVE)
        w->done(w, CLAVE_OK);
    else
        w->done(w, s->why ? s->why : CLAVE_ECLOSED);
}

void clave__http_session_close(struct http_session *s, struct session_wait *w)
{
    assert(!w || w->done);
    if (w) {
        list_init(&w->link);
        w->ends = true;
    }
    if (w && s->state == HTTP_SESSION_ENDED)
        w->done(w, s->why);
    else if (w)
        list_push_back(&s->waits, &w->link);
    if (s->state == HTTP_SESSION_ENDED || s->state == HTTP_SESSION_CLOSING)
        return;
    assert(s->client);
    clave__client_rest(s->client, false);
    s->state = HTTP_SESSION_CLOSING;
    clave_async_client_close(s->client, s->all->web->now);
    clave__http_session_flush(s);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The client knows how long the session, or what it holds, is valid, so nobody else may get it
 * before then. */
static bool http_session_is_relied_on(const struct http_session *s)
{
    bool holds = false;
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next)
        holds |= LIST_ENTRY(l, struct session_part, link)->token != 0;
    return (s->known || holds) &&
           (s->state == HTTP_SESSION_OPENING || s->state == HTTP_SESSION_LIVE);
}

void clave__http_sessions_close(struct http_sessions *ss)
{
    for (struct list *l = ss->all.next; l != &ss->all; l = l->next) {
        struct http_session *s = LIST_ENTRY(l, struct http_session, link);
        if (http_session_is_relied_on(s))
            clave_async_client_abandon(s->client, ss->web->now); /* the session ends here when the
                                                                  * ZooKeeper client has ended */
        else
            clave__http_session_close(s, NULL);
    }
}

bool clave__http_sessions_are_closed(struct http_sessions *ss)
{
    for (struct list *l = ss->all.next; l != &ss->all; l = l->next)
        if (LIST_ENTRY(l, struct http_session, link)->client)
            return false;
    return true;
}

void clave__http_sessions_free(struct web *w)
{
    struct http_sessions *ss = w->sessions;
    if (!ss)
        return;
    for (struct list *l = ss->all.next; l != &ss->all; l = l->next) {
        struct http_session *s = LIST_ENTRY(l, struct http_session, link);
        clave__http_session_end(s, CLAVE_ECLOSED, true);
        http_session_let_go(s);
    }
    while (!list_empty(&ss->all))
        http_session_free(LIST_ENTRY(ss->all.next, struct http_session, link));
    clave__map_fini(&ss->by_id);
    clave__map_fini(&ss->marks);
    clave__mem_free(&w->mem, ss);
    w->sessions = NULL;
}

/* ---- what it is called ----------------------------------------------------------------------- */

void clave__http_session_secret(struct http_session *s, char out[SEAL_TEXT + 1])
{
    assert(s->state == HTTP_SESSION_LIVE);
    s->known = true;
    struct sealed_session sealed = {.id = s->id, .ttl_ms = s->ttl_ms, .nauths = s->nauths};
    memcpy(sealed.auths, s->auths ? s->auths : "", s->nauths);
    memcpy(sealed.passwd, s->passwd, sizeof sealed.passwd);
    clave__seal(&s->all->key, &sealed, out);
}

/* ==== proofs ================================================================================== */

/* A proof is a transaction that changes nothing and passes the leader. Requests share proofs: one
 * is under way, and all that ask meanwhile wait for the next one. So a session costs the servers
 * at most one commit per round trip, however many requests arrive. */

struct session_proof {
    struct http_session *s;
    unsigned pending; /* how many answers are awaited */
    bool answered, goes_on;
    bool lists, listed; /* it is to list the session's nodes, too; it has listed them */
    uint64_t on;        /* the connection of its answer */
    uint64_t number;
    int64_t asked_at;
    size_t n;
    struct session_check checks[];
};

static struct session_part *confirm_find(const struct http_session *s, int64_t token)
{
    const struct list *parts = &s->parts;
    for (struct list *l = parts->next; token != 0 && l != parts; l = l->next) {
        struct session_part *part = LIST_ENTRY(l, struct session_part, link);
        if (part->token == token)
            return part;
    }
    return NULL;
}

static void confirm_tell(struct list *round, clave_err err)
{
    for (struct list *l; (l = list_pop_front(round));) {
        struct session_wait *w = LIST_ENTRY(l, struct session_wait, link);
        w->done(w, err);
    }
}

/* True if the answer is definitive. A check that is refused for lack of permission still proves
 * that the session and its node exist; for how long that is good follows from the hold deadline. */
static bool confirm_is_answer(clave_err err)
{
    return err == CLAVE_OK || clave_err_classify(err) == CLAVE_CLASS_FINAL;
}

/* Ends each part whose node was found gone, unless it has ended meanwhile. Returns false if no node
 * was gone. */
static bool confirm_end_missing(const struct session_proof *p, const clave_result *res)
{
    bool missing = false;
    for (size_t i = 0; i < res->nops && i < p->n; i++) {
        bool gone = res->ops[i].err == CLAVE_ENONODE && p->checks[i].token != 0;
        struct session_part *part = gone ? confirm_find(p->s, p->checks[i].token) : NULL;
        if (part)
            part->missing(part);
        missing |= gone;
    }
    return missing;
}

/* A transaction stops at a check that is refused, so the checks after it were not made. Returns
 * true if there are some. */
static bool confirm_is_cut_short(const struct session_proof *p, const clave_result *res)
{
    struct http_session *s = p->s;
    s->refused = (struct session_check){0};
    for (size_t i = 0; i < res->nops && i + 1 < p->n; i++)
        if (res->ops[i].err == CLAVE_ENOAUTH)
            s->refused = p->checks[i];
    return s->refused.token != 0;
}

/* Waiters whom this proof did not answer wait for the next one; after PROOF_ATTEMPTS proofs they
 * give up with EOPTIMEOUT. */
static void confirm_again(struct http_session *s, struct list *unanswered, struct list *tired)
{
    struct list again, *l;
    list_init(&again);
    list_splice(&again, unanswered);
    while ((l = list_pop_front(&again))) {
        struct session_wait *w = LIST_ENTRY(l, struct session_wait, link);
        list_push_back(++w->attempts < PROOF_ATTEMPTS ? &s->unproven : tired, l);
    }
}

static void confirm_next(struct http_session *s);
static clave_err confirm_submit(struct http_session *s);

/* All answers to the proof have come. */
static void confirm_finish(struct session_proof *p)
{
    struct http_session *s = p->s;
    assert(s->proof == p && p->pending == 0);
    struct list ready;
    list_init(&ready);
    s->proof = NULL;
    bool goes_on = p->goes_on && s->state == HTTP_SESSION_LIVE;
    bool proven = p->answered && !goes_on && (!p->lists || p->listed);
    if (proven) {
        s->interruptions = 0;
        s->proof_ms = s->all->web->now - p->asked_at;
    }
    if (proven && s->attached && p->on == clave_async_client_connection(s->client))
        s->proven = p->number;
    clave__mem_free(&s->all->web->mem, p);
    if (goes_on && confirm_submit(s) == CLAVE_OK)
        return;
    s->refused = (struct session_check){0};
    if (!proven)
        confirm_again(s, &s->proving, &ready);
    else if (s->taking > 0)
        list_splice(&s->knowing, &s->proving);
    else
        list_splice(&ready, &s->proving);
    confirm_next(s);
    confirm_tell(&ready, proven ? CLAVE_OK : CLAVE_EOPTIMEOUT);
}

static void confirm_on_proven(clave_async_client *c, const clave_result *res, void *arg)
{
    struct session_proof *p = arg;
    p->answered = !confirm_end_missing(p, res) && confirm_is_answer(res->err);
    p->goes_on = p->answered && confirm_is_cut_short(p, res);
    p->on = clave_async_client_connection(c);
    if (--p->pending == 0)
        confirm_finish(p);
}

/* What is listed after a commit, on the same connection, is all that there is. */
static void confirm_on_listed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct session_proof *p = arg;
    struct http_session *s = p->s;
    bool same = p->answered && p->on == clave_async_client_connection(c);
    s->blind = res->err == CLAVE_EUNIMPLEMENTED;
    p->listed = same && (res->err == CLAVE_OK || s->blind);
    if (p->listed)
        s->listed_on = p->on;
    if (p->listed && s->state == HTTP_SESSION_LIVE)
        s->all->listed(s, res);
    if (--p->pending == 0)
        confirm_finish(p);
}

bool clave__http_session_must_list(const struct http_session *s)
{
    if (!s->client || s->state != HTTP_SESSION_LIVE)
        return false;
    if (!clave__http_session_is_shared(s))
        return s->resumed && s->listed_on == 0; /* it may have claims from before the gate was
                                                 * restarted */
    return !s->attached || s->listed_on != clave_async_client_connection(s->client);
}

void clave__http_session_taken(struct http_session *s)
{
    struct list ready;
    bool known = !clave__http_session_must_list(s);
    assert(s->taking > 0);
    if (--s->taking > 0 || s->state != HTTP_SESSION_LIVE)
        return;
    list_init(&ready);
    if (known) {
        list_splice(&ready, &s->knowing);
    } else { /* an answer was lost */
        confirm_again(s, &s->knowing, &ready);
        confirm_next(s);
    }
    confirm_tell(&ready, known ? CLAVE_OK : CLAVE_EOPTIMEOUT);
}

static size_t confirm_nodes(const struct session_part *part)
{
    size_t n = part->token != 0;
    while (n > 0 && part->more && part->more(part, n - 1))
        n++;
    return n;
}

/* Adds a check of each node that the session holds. If a check was refused in the transaction
 * before, and its part is still there, begins after that check. */
static void confirm_put_checks(struct session_proof *p, clave_op *ops)
{
    struct http_session *s = p->s;
    bool skips = confirm_find(s, s->refused.token) != NULL;
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        const struct session_part *part = LIST_ENTRY(l, struct session_part, link);
        size_t n = confirm_nodes(part), first = 0;
        if (skips && part->token != s->refused.token)
            continue;
        if (skips)
            first = s->refused.nth + 1;
        skips = false;
        for (size_t i = first; i < n; i++) {
            const char *node = i == 0 ? part->node : part->more(part, i - 1);
            p->checks[p->n] = (struct session_check){part->token, i};
            ops[p->n++] = (clave_op){.kind = CLAVE_OP_CHECK, .path = node, .version = -1};
        }
    }
    if (p->n == 0)
        ops[p->n++] = (clave_op){.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
}

/* Sends a proof of all that the session holds by now, and a listing if that is needed. */
static clave_err confirm_submit(struct http_session *s)
{
    const struct clave_mem *mem = &s->all->web->mem;
    assert(!s->proof && s->client);
    struct list *parts = &s->parts;
    size_t room = 1;
    for (struct list *l = parts->next; l != parts; l = l->next)
        room += confirm_nodes(LIST_ENTRY(l, struct session_part, link));
    struct session_proof *p = clave__mem_zalloc(mem, sizeof *p + room * sizeof *p->checks);
    clave_op *ops = clave__mem_zalloc(mem, room * sizeof *ops);
    clave_err err = p && ops ? CLAVE_OK : CLAVE_ENOMEM;
    if (err == CLAVE_OK) {
        p->s = s;
        confirm_put_checks(p, ops);
        assert(p->n <= room);
        err = clave_async_multi(s->client, ops, p->n, confirm_on_proven, p);
    }
    clave__mem_free(mem, ops);
    if (err != CLAVE_OK) {
        clave__mem_free(mem, p);
        return err;
    }
    s->proof = p;
    p->number = ++s->asked;
    p->asked_at = s->all->web->now;
    p->pending = 1;
    p->lists = clave__http_session_must_list(s);
    if (p->lists && clave__client_list_own(s->client, confirm_on_listed, p) == CLAVE_OK)
        p->pending++;
    return CLAVE_OK;
}

/* Begins the next proof if somebody waits for one and none is under way. Those who wait when the
 * session ends are called by clave__http_session_end. */
static void confirm_next(struct http_session *s)
{
    struct list round;
    if (s->proof || s->state != HTTP_SESSION_LIVE || list_empty(&s->unproven))
        return;
    clave_err err = confirm_submit(s);
    list_init(&round);
    list_splice(err == CLAVE_OK ? &s->proving : &round, &s->unproven);
    confirm_tell(&round, err);
}

void clave__http_session_prove(struct http_session *s, struct session_wait *w)
{
    clave__http_session_prove_since(s, w, s->asked);
}

void clave__http_session_prove_since(struct http_session *s, struct session_wait *w, uint64_t since)
{
    assert(w->done);
    list_init(&w->link);
    w->ends = false;
    w->attempts = 0;
    if (s->state == HTTP_SESSION_CLOSING) {
        list_push_back(&s->waits, &w->link);
        return;
    }
    if (s->state != HTTP_SESSION_LIVE) {
        w->done(w, s->why ? s->why : CLAVE_ECLOSED);
        return;
    }
    bool enough = s->proof && s->proof->number > since;
    list_push_back(enough ? &s->proving : &s->unproven, &w->link);
    confirm_next(s);
    clave__http_session_flush(s);
}

/* ==== validity ================================================================================ */

int64_t clave__validity_ms(const struct validity *v)
{
    assert(v->now >= v->arrived);
    int64_t from = v->arrived > v->granted ? v->arrived : v->granted;
    int64_t until = from + v->ttl_ms;
    if (v->hold_deadline < until)
        until = v->hold_deadline;
    if (until <= v->arrived)
        return 0;
    int64_t ms = until - v->arrived - (v->now - v->arrived + VALIDITY_RATE - 1) / VALIDITY_RATE;
    return ms > 0 ? ms : 0;
}
