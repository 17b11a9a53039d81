/* znodes_api.c - reading znodes; see znodes_api.h. Called by the table of routes. */
#include "web/api/znodes/znodes_api.h"

#include <stdlib.h>
#include <string.h>

#include "web/api/request_client.h"
#include "web/api/znodes/node_json.h"
#include "web/api/znodes/znode_long_poll.h"
#include "web/http/answer.h"
#include "web/http/conditional.h"
#include "web/http/prefer.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"
#include "web/http/request_limits.h"

static const int64_t child_limits[2] = {1, INT64_MAX};

static void znode_open(struct web_exchange *x)
{
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", x->params[0]);
}

static void znode_close(struct web_exchange *x, const clave_result *res)
{
    clave__web_json_stat(&x->json, "stat", res->stat);
    clave__json_close(&x->json, '}');
    clave__web_answer_json(x, 200);
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
    clave__query_int(x, "limit", child_limits, &left); /* which was checked */
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
    clave__web_json_acls(&x->json, "acl", res->acls, res->nacls);
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

/* The first whose argument is given counts; the last needs none. */
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

/* It is as the sender knows it. */
static void znode_is_known(struct web_exchange *x)
{
    struct znode_read *r = x->state;
    if (x->web->now < r->until && clave__web_may_wait(x))
        clave__znode_long_poll_enter(&r->poll, x, r->view->tag, r->until);
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
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__request_client_refused(x, c, err, r->view->verb, path);
}

/* How long it waits for a change; -1: it has answered that it cannot. */
static int64_t znode_wait(struct web_exchange *x, const struct znode_view *v)
{
    static const struct problem bad = {.status = 400, .err = CLAVE_EINVAL};
    int64_t wait = clave__web_prefer_wait(x);
    const char *fault = NULL;
    if (wait <= 0 || !clave__web_header(x, "If-None-Match"))
        return 0;
    if (clave__web_header(x, "Clave-Session"))
        fault =
            "the gate waits with its own identity: a wait for a change goes without Clave-Session";
    else if (v->tag == ZNODE_TAG_ACL)
        fault = "servers do not tell when an access list changes: it cannot be waited for";
    else if (strcmp(x->params[0], "/") == 0) /* which has the persistent watch of the copy */
        fault = "a change of the root cannot be waited for";
    if (fault)
        clave__web_problem(x, &bad, "%s", fault);
    return fault ? -1 : wait < LONGEST_POLL_MS ? wait : LONGEST_POLL_MS;
}

/* A page goes on after a name that another page has told, though it may be gone since. */
static bool znode_after_is_name(struct web_exchange *x)
{
    const char *after = clave__web_query(x, "after");
    if (!after || !strchr(after, '/'))
        return true;
    clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EINVAL},
                       "after is the name of a child, the \"next\" of a page");
    return false;
}

static struct znode_read *znode_read_new(struct web_exchange *x)
{
    const struct znode_view *v = views;
    while (v->argument && !clave__web_query(x, v->argument))
        v++;
    for (const struct znode_view *w = v; w->argument; w++)
        if (w != v && clave__web_query(x, w->argument)) {
            clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EINVAL},
                               "it is either %s or %s: the stat comes with both", v->argument,
                               w->argument);
            return NULL;
        }
    int64_t limit, wait = znode_wait(x, v);
    if (wait < 0 || !clave__query_int(x, "limit", child_limits, &limit) || !znode_after_is_name(x))
        return NULL;
    struct znode_read *r = x->state = clave__web_alloc(x, sizeof *r);
    if (r)
        *r = (struct znode_read){.view = v, .until = x->web->now + wait};
    else
        clave__web_problem_err(x, CLAVE_ENOMEM, v->verb, x->params[0]);
    return r;
}

void clave__web_get_znode(struct web_exchange *x)
{
    if (x->state || znode_read_new(x))
        clave__request_client(x, znode_ask);
}
