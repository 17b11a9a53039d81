/* znodes.c - reading /v1/znodes/PATH. A znode is a resource: its data are the body as it is, its
 * version is the entity tag; ?stat, ?children and ?acl are JSON. Requests that wait for a change of
 * one path share a watch of the engine's own session. Invariant: while polls wait at a watch, the
 * watch is armed, or a request that arms it is under way. So a change after the answer with which
 * the polls were compared causes an event. */
#include "web/api/api.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "client/client_for_recipes.h"

/* ==== a node as JSON ========================================================================== */

/* ---- stat ----------------------------------------------------------------------------------- */

void clave__web_json_stat(struct json *j, const char *key, const clave_stat *st)
{
    if (!st) {
        clave__json_string(j, key, NULL);
        return;
    }
    clave__json_open(j, key, '{');
    clave__json_int64(j, "czxid", st->czxid);
    clave__json_int64(j, "mzxid", st->mzxid);
    clave__json_int64(j, "pzxid", st->pzxid);
    clave__json_int(j, "ctime", st->ctime);
    clave__json_int(j, "mtime", st->mtime);
    clave__json_int(j, "version", st->version);
    clave__json_int(j, "cversion", st->cversion);
    clave__json_int(j, "aversion", st->aversion);
    clave__json_int64(j, "ephemeral_owner", st->ephemeral_owner);
    clave__json_int(j, "data_length", st->data_length);
    clave__json_int(j, "num_children", st->num_children);
    clave__json_close(j, '}');
}

/* ---- access lists --------------------------------------------------------------------------- */

static const char perm_letters[] = "rwcda"; /* by bit */

static void node_json_acls(struct json *j, const char *key, const clave_acl *acls, size_t n)
{
    clave__json_open(j, key, '[');
    for (size_t i = 0; i < n; i++) {
        char perms[sizeof perm_letters];
        size_t len = 0;
        for (size_t bit = 0; bit < sizeof perm_letters - 1; bit++)
            if (acls[i].perms & 1 << bit)
                perms[len++] = perm_letters[bit];
        clave__json_open(j, NULL, '{');
        clave__json_bytes(j, "perms", perms, len);
        clave__json_string(j, "scheme", acls[i].scheme);
        clave__json_string(j, "id", acls[i].id);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
}

static bool node_json_acl_read(struct web_exchange *x, json_t *o, clave_acl *out)
{
    const char *perms = NULL;
    const struct body_member members[] = {
        {"perms", .text = &perms}, {"scheme", .text = &out->scheme}, {"id", .text = &out->id}};
    *out = (clave_acl){0};
    if (!json_is_object(o))
        return clave__web_refuse(x, 400, CLAVE_EINVALIDACL, NULL,
                                 "an access entry is an object of perms, scheme and id");
    if (!clave__web_read_object(x, o, BODY_MEMBERS(members)))
        return false;
    for (const char *c = perms; c && *c; c++) {
        const char *at = strchr(perm_letters, *c);
        if (at)
            out->perms |= 1 << (at - perm_letters);
        else
            perms = NULL;
    }
    if (!perms || !out->scheme || !out->id)
        return clave__web_refuse(x, 400, CLAVE_EINVALIDACL, NULL,
                                 "an access entry needs perms of the letters cdrwa, scheme "
                                 "and id");
    return true;
}

bool clave__web_read_acls(struct web_exchange *x, const json_t *list, const clave_acl **acls,
                          size_t *n)
{
    const struct jansson *json = x->web->o.jansson;
    *acls = NULL;
    *n = list ? json->json_array_size(list) : 0;
    if (*n == 0)
        return true;
    clave_acl *all = clave__web_must_alloc(x, *n * sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < *n; i++)
        if (!node_json_acl_read(x, json->json_array_get(list, i), &all[i]))
            return false;
    *acls = all;
    return true;
}

/* ==== long polls ============================================================================== */

#define ZNODE_TAG_NONE "\"none\""

struct znode_long_poll {
    struct list link;
    struct znode_watch *at;
    struct web_exchange *x;
    struct timer timer;
};

struct znode_polls {
    struct map watches;
};

struct znode_watch {
    struct map_node node; /* in znode_polls.watches, while there are polls */
    struct web *web;
    clave_async_watch *watch;
    struct list polls;
    enum znode_tag kind;
    bool asking;             /* a request is under way */
    bool telling;            /* the polls are being handled */
    bool missing;            /* the node does not exist: then only `exists` leaves a watch */
    char tag[ZNODE_TAG_CAP]; /* the entity tag in the newest answer */
    char path[];
};

struct znode_watch_key {
    const char *path;
    enum znode_tag kind;
};

void clave__znode_tag(char out[ZNODE_TAG_CAP], enum znode_tag kind, const clave_stat *st)
{
    if (!st)
        snprintf(out, ZNODE_TAG_CAP, ZNODE_TAG_NONE);
    else if (kind == ZNODE_TAG_CHILDREN)
        snprintf(out, ZNODE_TAG_CAP, "\"c%d-%" PRId64 "\"", (int)st->cversion, st->czxid);
    else
        snprintf(out, ZNODE_TAG_CAP, "\"%d-%" PRId64 "\"",
                 (int)(kind == ZNODE_TAG_ACL ? st->aversion : st->version), st->czxid);
}

clave_err clave__znode_polls_new(struct web *w)
{
    w->znode_polls = clave__mem_zalloc(&w->mem, sizeof *w->znode_polls);
    return w->znode_polls
               ? clave__map_init(&w->znode_polls->watches, &w->mem, clave__rand_u64(&w->rand))
               : CLAVE_ENOMEM;
}

void clave__znode_polls_free(struct web *w)
{
    if (w->znode_polls)
        clave__map_fini(&w->znode_polls->watches);
    clave__mem_free(&w->mem, w->znode_polls);
    w->znode_polls = NULL;
}

/* ---- a poll ---------------------------------------------------------------------------------- */

/* Frees the watch if no poll needs it any more; if an answer is under way, it is freed when the
 * answer comes. */
static void poll_drop(struct znode_watch *k)
{
    struct web *w = k->web;
    if (k->telling || !list_empty(&k->polls))
        return;
    if (k->watch) {
        clave__map_remove(&w->znode_polls->watches, &k->node);
        clave_async_watch_free(k->watch);
        k->watch = NULL;
    }
    if (!k->asking)
        clave__mem_free(&w->mem, k);
}

static void poll_leave(struct znode_long_poll *p)
{
    list_remove(&p->link);
    clave__web_timer_clear(p->x->web, &p->timer);
    poll_drop(p->at);
}

static void poll_left(struct web_exchange *x)
{
    poll_leave(x->owned);
}

static struct web_exchange *poll_end(struct znode_long_poll *p)
{
    struct web_exchange *x = p->x;
    clave__web_leave(x);
    return x;
}

static void poll_on_time(struct timer *t, int64_t now)
{
    struct web_exchange *x = poll_end(LIST_ENTRY(t, struct znode_long_poll, timer));
    (void)now;
    x->route->handle(x);
}

/* ---- a watch --------------------------------------------------------------------------------- */

static void poll_ask(struct znode_watch *k);

/* Handles each poll once, although handling may make it wait again. */
static void poll_tell(struct znode_watch *k, clave_err err)
{
    struct list polls;
    k->telling = true;
    list_init(&polls);
    list_splice(&polls, &k->polls);
    for (struct list *at; (at = list_pop_front(&polls));) {
        struct znode_long_poll *p = LIST_ENTRY(at, struct znode_long_poll, link);
        list_push_back(&k->polls, &p->link);
        if (err == CLAVE_OK && clave__condition_knows(p->x, k->tag, ZNODE_TAG_NONE))
            continue;
        struct web_exchange *x = poll_end(p);
        if (err == CLAVE_OK)
            x->route->handle(x);
        else
            clave__web_problem_err(x, err, "wait for a change of", k->path);
    }
    k->telling = false;
    if (list_empty(&k->polls))
        poll_drop(k);
    else if (!k->asking && !clave_async_watch_is_armed(k->watch))
        poll_ask(k);
}

static void poll_on_watch_answer(clave_async_client *c, const clave_result *res, void *arg)
{
    struct znode_watch *k = arg;
    assert(k->asking);
    struct web *w = k->web;
    int64_t now = clave__client_now(c);
    w->now = now > w->now ? now : w->now;
    k->asking = false;
    if (!k->watch) { /* no poll waits any more */
        clave__mem_free(&w->mem, k);
        return;
    }
    bool known = res->err == CLAVE_OK || res->err == CLAVE_ENONODE;
    clave__znode_tag(k->tag, k->kind, res->err == CLAVE_OK ? res->stat : NULL);
    if (k->missing && res->err == CLAVE_OK && k->kind == ZNODE_TAG_CHILDREN)
        clave_async_watch_disarm(k->watch); /* the watch is not for children */
    k->missing = res->err == CLAVE_ENONODE;
    poll_tell(k, known ? CLAVE_OK : res->err);
}

static void poll_ask(struct znode_watch *k)
{
    assert(k->watch && !k->asking);
    clave_async_client *own = k->web->own;
    clave_async_watch *watch = clave_async_watch_is_armed(k->watch) ? NULL : k->watch;
    clave_err err = k->kind == ZNODE_TAG_CHILDREN && !k->missing
                        ? clave_async_children(own, k->path, watch, poll_on_watch_answer, k)
                        : clave_async_exists(own, k->path, watch, poll_on_watch_answer, k);
    k->asking = err == CLAVE_OK;
    if (err == CLAVE_OK)
        clave__web_flush(k->web, own);
    else
        poll_tell(k, err);
}

static void poll_on_watch_event(clave_async_client *c, clave_async_watch *watch,
                                const clave_event *ev, void *arg)
{
    struct znode_watch *k = arg;
    (void)c;
    (void)watch;
    (void)ev;
    if (!k->asking)
        poll_ask(k);
}

static bool poll_is(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct znode_watch, node);
    const struct znode_watch *k = (const void *)at;
    const struct znode_watch_key *wanted = key;
    return k->kind == wanted->kind && strcmp(k->path, wanted->path) == 0;
}

/* Returns NULL if there is no memory. */
static struct znode_watch *poll_get(struct web *w, const struct znode_watch_key *key)
{
    struct map *m = &w->znode_polls->watches;
    size_t n = strlen(key->path);
    uint32_t hash = clave__map_hash_bytes(m, key->path, n);
    struct map_node *found = clave__map_find(m, hash, poll_is, key);
    if (found)
        return MAP_ENTRY(found, struct znode_watch, node);
    struct znode_watch *k = clave__mem_zalloc(&w->mem, sizeof *k + n + 1);
    if (!k || clave_async_watch_new(&k->watch, w->own, poll_on_watch_event, k) != CLAVE_OK) {
        clave__mem_free(&w->mem, k);
        return NULL;
    }
    memcpy(k->path, key->path, n);
    k->web = w;
    k->kind = key->kind;
    list_init(&k->polls);
    clave__map_insert(m, &k->node, hash);
    return k;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void znode_long_poll_enter(struct znode_long_poll *p, struct web_exchange *x,
                                  enum znode_tag kind, int64_t until)
{
    assert(!x->answered && !x->owner);
    struct web *w = x->web;
    struct znode_watch *k = poll_get(w, &(struct znode_watch_key){x->params[0], kind});
    if (!k) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "wait for a change of", x->params[0]);
        return;
    }
    *p = (struct znode_long_poll){.at = k, .x = x};
    list_push_back(&k->polls, &p->link);
    clave__web_timer_clear(w, &x->timer); /* the timer was for the answer that has come */
    clave__timer_init(&p->timer, poll_on_time);
    clave__web_timer_set(w, &p->timer, until);
    static const struct exchange_owner poll = {.leave = poll_left};
    clave__web_own(x, &poll, p);
    if (!k->asking) /* the newest answer may be older than what the request has seen */
        poll_ask(k);
}

/* ==== GET ===================================================================================== */

static void znode_open(struct web_exchange *x)
{
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", x->params[0]);
}

static void znode_close(struct web_exchange *x, const clave_result *res)
{
    clave__web_json_stat(&x->json, "stat", res->stat);
    clave__web_answer_object(x, 200);
}

/* ---- what is asked for ---------------------------------------------------------------------- */

static void znode_answer_data(struct web_exchange *x, const clave_result *res)
{
    clave__web_set_header(x, "Clave-Czxid", "%lld", (long long)res->stat->czxid);
    clave__web_set_header(x, "Clave-Mzxid", "%lld", (long long)res->stat->mzxid);
    clave__web_answer_bytes(x, 200, "application/octet-stream", res->data, res->len);
}

static void znode_answer_stat(struct web_exchange *x, const clave_result *res)
{
    znode_open(x);
    znode_close(x, res);
}

static int znode_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void znode_answer_children(struct web_exchange *x, const clave_result *res)
{
    const char *after = clave__web_query(x, "after");
    int64_t left = INT64_MAX;
    const char *last = NULL;
    const char **names = clave__web_alloc(x, (res->nnames + 1) * sizeof *names);
    if (!names) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "list", x->params[0]);
        return;
    }
    clave__query_int(x, "limit", 1, INT64_MAX, &left); /* the value was checked before */
    memcpy(names, res->names, res->nnames * sizeof *names);
    qsort(names, res->nnames, sizeof *names, znode_compare_names);
    znode_open(x);
    clave__json_open(&x->json, "children", '[');
    size_t i = 0;
    for (; i < res->nnames && left > 0; i++) {
        if (after && strcmp(names[i], after) <= 0)
            continue;
        clave__json_string(&x->json, NULL, names[i]);
        last = names[i];
        left--;
    }
    clave__json_close(&x->json, ']');
    clave__json_string(&x->json, "next", i < res->nnames ? last : NULL);
    znode_close(x, res);
}

static void znode_answer_acl(struct web_exchange *x, const clave_result *res)
{
    znode_open(x);
    node_json_acls(&x->json, "acl", res->acls, res->nacls);
    znode_close(x, res);
}

/* ---- reading -------------------------------------------------------------------------------- */

static clave_err znode_get(clave_async_client *c, const char *path, clave_result_cb *cb, void *arg)
{
    return clave_async_get(c, path, NULL, cb, arg);
}

static clave_err znode_exists(clave_async_client *c, const char *path, clave_result_cb *cb,
                              void *arg)
{
    return clave_async_exists(c, path, NULL, cb, arg);
}

static clave_err znode_list(clave_async_client *c, const char *path, clave_result_cb *cb, void *arg)
{
    return clave_async_children(c, path, NULL, cb, arg);
}

/* The first whose argument is in the query counts; the last needs no argument. */
static const struct znode_view {
    const char *argument, *verb;
    clave_err (*ask)(clave_async_client *c, const char *path, clave_result_cb *cb, void *arg);
    void (*answer)(struct web_exchange *x, const clave_result *res);
    enum znode_tag tag;
} views[] = {
    {"stat", "stat", znode_exists, znode_answer_stat, ZNODE_TAG_DATA},
    {"children", "list", znode_list, znode_answer_children, ZNODE_TAG_CHILDREN},
    {"acl", "get the access list of", clave_async_get_acl, znode_answer_acl, ZNODE_TAG_ACL},
    {NULL, "get", znode_get, znode_answer_data, ZNODE_TAG_DATA},
};

/* In x->state. */
struct znode_read {
    const struct znode_view *view;
    clave_err unsynced;
    int64_t until; /* it waits for a change */
    struct znode_long_poll poll;
};

/* The sender already knows the node as it is now. */
static void znode_is_known(struct web_exchange *x)
{
    struct znode_read *r = x->state;
    if (x->web->now < r->until && clave__web_may_wait(x))
        znode_long_poll_enter(&r->poll, x, r->view->tag, r->until);
    else if (!x->answered)
        clave__web_answer_empty(x, 304);
}

static void on_znode_read(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    char tag[ZNODE_TAG_CAP];
    (void)c;
    if (!clave__web_expected(x))
        return;
    const struct znode_read *r = x->state;
    clave_err err = r->unsynced ? r->unsynced : res->err;
    clave__znode_tag(tag, r->view->tag, err == CLAVE_OK ? res->stat : NULL);
    bool shown = err == CLAVE_OK || err == CLAVE_ENONODE;
    if (shown && clave__condition_knows(x, tag, ZNODE_TAG_NONE)) {
        znode_is_known(x);
        return;
    }
    if (shown)
        clave__web_set_header(x, "ETag", "%s", tag);
    clave__web_set_header(x, "Clave-Source", "servers");
    if (err == CLAVE_OK)
        r->view->answer(x, res);
    else
        clave__web_problem_err(x, err, r->view->verb, x->params[0]);
}

static void on_znode_synced(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (clave__web_expected(x))
        ((struct znode_read *)x->state)->unsynced = res->err;
}

static void znode_ask(struct web_exchange *x, clave_async_client *c)
{
    const char *path = x->params[0];
    struct znode_read *r = x->state;
    clave_err err = CLAVE_OK;
    r->unsynced = CLAVE_OK;
    if (clave__web_query(x, "sync") || clave__web_query(x, "fresh")) {
        err = clave_async_sync(c, path, on_znode_synced, x);
        if (err == CLAVE_OK)
            clave__web_expect(x);
    }
    if (err == CLAVE_OK)
        err = r->view->ask(c, path, on_znode_read, x);
    clave__request_client_sent(x, c, err, r->view->verb, path);
}

/* How long the request waits for a change, in ms; -1: it was refused. */
static int64_t znode_wait(struct web_exchange *x, const struct znode_view *v)
{
    int64_t wait = clave__web_prefer_wait(x);
    const char *fault = NULL;
    if (wait <= 0 || !clave__web_header(x, "If-None-Match"))
        return 0;
    if (clave__web_header(x, "Clave-Session"))
        fault =
            "the gate waits with its own identity: a wait for a change goes without Clave-Session";
    else if (v->tag == ZNODE_TAG_ACL)
        fault = "servers do not tell when an access list changes: it cannot be waited for";
    else if (strcmp(x->params[0], "/") == 0) /* the watch of the root is that of the copy of the
                                              * tree */
        fault = "a change of the root cannot be waited for";
    if (fault) {
        clave__web_bad_request(x, "%s", fault);
        return -1;
    }
    return wait < LONGEST_POLL_MS ? wait : LONGEST_POLL_MS;
}

/* A page continues after a name that an earlier page has returned; that child may be gone by
 * now. */
static bool znode_after_is_name(struct web_exchange *x)
{
    const char *after = clave__web_query(x, "after");
    if (!after || !strchr(after, '/'))
        return true;
    return clave__web_bad_request(x, "after is the name of a child, the \"next\" of a page");
}

static struct znode_read *znode_read_new(struct web_exchange *x)
{
    const struct znode_view *v = views;
    while (v->argument && !clave__web_query(x, v->argument))
        v++;
    for (const struct znode_view *w = v; w->argument; w++)
        if (w != v && clave__web_query(x, w->argument)) {
            clave__web_bad_request(x, "it is either %s or %s: the stat comes with both",
                                   v->argument, w->argument);
            return NULL;
        }
    int64_t limit, wait = znode_wait(x, v);
    if (wait < 0 || !clave__query_int(x, "limit", 1, INT64_MAX, &limit) || !znode_after_is_name(x))
        return NULL;
    struct znode_read *r = x->state = clave__web_must_alloc(x, sizeof *r);
    if (r)
        *r = (struct znode_read){.view = v, .until = x->web->now + wait};
    return r;
}

void clave__web_get_znode(struct web_exchange *x)
{
    if (x->state || znode_read_new(x))
        clave__request_client(x, znode_ask);
}
