/* http_session.c - the life of an HTTP session. Called by the endpoints of sessions and claims.
 * Invariants: it is LIVE only with the ZooKeeper session of its id. A LIVE session without a
 * request has its timer set, by which it ends: no session outlives a silent client for long. */
#include "web/session/http_session.h"

#include <assert.h>
#include <string.h>

#include "client/client_for_gate.h"
#include "web/http/sender_limits.h"

enum { OPENING_MS = 10000 };

/* ---- the table ------------------------------------------------------------------------------- */

clave_err clave__http_sessions_new(struct web *w, const uint8_t *key)
{
    struct http_sessions *ss = clave__mem_zalloc(&w->mem, sizeof *ss);
    if (!ss)
        return CLAVE_ENOMEM;
    ss->web = w;
    list_init(&ss->all);
    list_init(&ss->ended);
    for (size_t i = 0; i < SEAL_KEY; i++)
        ss->key[i] = key ? key[i] : (uint8_t)clave__rand_u64(&w->rand);
    if (clave__map_init(&ss->by_id, &w->mem, clave__rand_u64(&w->rand)) != CLAVE_OK) {
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

/* After each change: when is something due? */
static void http_session_settle(struct http_session *s)
{
    struct web *w = s->all->web;
    if (s->client && s->state != HTTP_SESSION_CLOSING)
        clave__client_rest(s->client, s->present == 0 && s->state == HTTP_SESSION_LIVE);
    switch (s->state) {
    case HTTP_SESSION_OPENING:
        clave__web_timer_set(w, &s->timer, s->present > 0 ? s->made + OPENING_MS : w->now);
        break;
    case HTTP_SESSION_LIVE:
        if (s->present > 0)
            clave__web_timer_clear(w, &s->timer);
        else
            clave__web_timer_set(w, &s->timer, clave__http_session_silent_at(s));
        break;
    case HTTP_SESSION_CLOSING:
        clave__web_timer_clear(w, &s->timer); /* its client has a limit of its own */
        break;
    case HTTP_SESSION_ENDED:
        clave__http_session_keep_ended(s);
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
    clave_async_client_tick(s->client, w->now); /* it may be over already */
    if (!s->attached)
        clave__http_session_flush(s); /* it may have rested */
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
    clave__http_session_let_go(s);
}

/* Its places are given back by deletes, which the servers refuse if the session lives on another
 * gate; then the connection is dropped, and the rest goes with the session's timeout. */
static void http_session_fall_silent(struct http_session *s)
{
    static const clave_op check = {.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
    bool attached = s->attached;
    assert(s->present == 0);
    clave__http_session_end(s, CLAVE_EREQUESTTIMEOUT, !attached);
    if (!s->client)
        return;
    if (clave_async_multi(s->client, &check, 1, http_session_on_farewell, s) != CLAVE_OK)
        clave__http_session_let_go(s);
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
        clave__http_session_forget(s, now);
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
        s->looked_on = clave_async_client_connection(c); /* it has nothing yet */
    }
    s->state = HTTP_SESSION_LIVE;
    clave__http_session_tell(s, CLAVE_OK);
    http_session_settle(s);
}

static void http_session_detached(struct http_session *s)
{
    s->attached = false;
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
            clave__http_session_let_go(s);
        http_session_settle(s);
        break;
    case CLAVE_STATE_LOST:
    case CLAVE_STATE_CLOSED:
        if (s->state == HTTP_SESSION_CLOSING && state == CLAVE_STATE_LOST)
            break; /* CLOSED follows */
        if (s->state == HTTP_SESSION_ENDED)
            clave__http_session_let_go(s);
        clave__http_session_end(s, s->state == HTTP_SESSION_CLOSING ? CLAVE_OK : why, true);
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
    list_init(&s->in_ended);
    list_push_back(&ss->all, &s->link);
    if (name && !s->name) {
        clave__http_session_free(s);
        return NULL;
    }
    return s;
}

enum { MOST_SESSION_AUTHS = 16 };

/* "digest:user:password" in a list of them: the scheme, and what is its own. `text` is changed. */
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

/* Writes them one after the other, each with its NUL. */
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

/* A session that is not here is attached to; if no server knows it any more, that is its end. */
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

/* Its client has been away since the connection was lost, and may have gone on at another gate. */
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

bool clave__http_session_is_here(const struct http_sessions *ss, const char *secret)
{
    struct sealed_session sealed;
    return clave__unseal(ss->key, secret, &sealed) && clave__http_session_by_id(ss, sealed.id);
}

clave_err clave__http_session_find(struct http_sessions *ss, const char *secret, struct sender *of,
                                   struct http_session **out)
{
    struct sealed_session sealed;
    *out = NULL;
    if (!clave__unseal(ss->key, secret, &sealed))
        return CLAVE_EAUTHFAILED;
    struct http_session *s = clave__http_session_by_id(ss, sealed.id);
    if (s && http_session_is_doubtful(s)) {
        clave__http_session_end(s, CLAVE_ECONNLOSS, true);
        s = NULL;
    }
    clave_err err = s ? CLAVE_OK : http_session_resume(ss, of, &sealed, &s);
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
    if (s->state == HTTP_SESSION_OPENING)
        list_push_back(&s->waits, &w->link);
    else
        w->done(w, s->state == HTTP_SESSION_LIVE ? CLAVE_OK : s->why ? s->why : CLAVE_ECLOSED);
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

/* Its client knows for how long it is valid, or what it holds: that must not be another's before.
 */
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
            clave_async_client_abandon(s->client, ss->web->now); /* whose end is its end here */
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
        clave__http_session_let_go(s);
    }
    while (!list_empty(&ss->all))
        clave__http_session_free(LIST_ENTRY(ss->all.next, struct http_session, link));
    clave__map_fini(&ss->by_id);
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
    clave__seal(s->all->key, &sealed, out);
}
