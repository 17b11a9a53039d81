/* znodes_api.c - reading znodes; see znodes_api.h. Called by the table of routes. */
#include "web/api/znodes_api.h"

#include <stdlib.h>
#include <string.h>

#include "web/api/client_call.h"
#include "web/api/node_json.h"
#include "web/http/answer.h"
#include "web/http/conditional.h"
#include "web/http/problem.h"
#include "web/http/query.h"

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
    clave__web_set_etag(x, res->stat->version);
    clave__web_set_header(x, "Clave-Czxid", "%lld", (long long)res->stat->czxid);
    clave__web_set_header(x, "Clave-Mzxid", "%lld", (long long)res->stat->mzxid);
    clave__web_answer_bytes(x, 200, "application/octet-stream", res->data, res->len);
}

static void znode_answer_stat(struct web_exchange *x, const clave_result *res)
{
    clave__web_set_etag(x, res->stat->version);
    znode_open(x);
    znode_close(x, res);
}

static int compare_names(const void *a, const void *b)
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
    qsort(names, res->nnames, sizeof *names, compare_names);
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
    clave__web_set_etag(x, res->stat->aversion);
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
} views[] = {
    {"stat", "stat", znode_exists, znode_answer_stat},
    {"children", "list", znode_list, znode_answer_children},
    {"acl", "get the access list of", clave_async_get_acl, znode_answer_acl},
    {NULL, "get", znode_get, znode_answer_data},
};

static void on_znode_read(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    const struct znode_view *v = x->state;
    if (res->err == CLAVE_OK)
        v->answer(x, res);
    else
        clave__web_problem_err(x, res->err, v->verb, x->params[0]);
}

/* The read that follows it on the same connection says what matters. */
static void on_znode_synced(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)res;
    (void)clave__web_expected(arg);
}

static void znode_ask(struct web_exchange *x, clave_async_client *c)
{
    const char *path = x->params[0];
    const struct znode_view *v = x->state;
    clave_err err = CLAVE_OK;
    if (clave__web_query(x, "sync")) {
        err = clave_async_sync(c, path, on_znode_synced, x);
        if (err == CLAVE_OK)
            clave__web_expect(x);
    }
    if (err == CLAVE_OK)
        err = v->ask(c, path, on_znode_read, x);
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__client_call_refused(x, c, err, v->verb, path);
}

void clave__web_get_znode(struct web_exchange *x)
{
    const struct znode_view *v = views;
    int64_t limit;
    if (!clave__query_int(x, "limit", child_limits, &limit))
        return;
    while (v->argument && !clave__web_query(x, v->argument))
        v++;
    x->state = (void *)(uintptr_t)v;
    clave__client_call(x, znode_ask);
}
