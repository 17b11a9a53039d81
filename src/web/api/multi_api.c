/* multi_api.c - see multi_api.h. Called by the table of routes. Invariant: the roles on all paths
 * are checked before anything is sent; the checks of guards are the first operations, and
 * their results are not among the results. */
#include "web/api/multi_api.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/path.h"
#include "web/api/guard_header.h"
#include "web/api/request_client.h"
#include "web/api/znodes/node_create.h"
#include "web/api/znodes/node_json.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/problem.h"

enum { MOST_OPS = 10000 };

struct multi {
    struct guards guards;
    clave_op *ops; /* after room for MOST_GUARDS, whose checks go right before them */
    size_t nops;
};

static const struct problem bad_op = {.status = 400, .err = CLAVE_EINVAL};

static const char *const op_names[] = {[CLAVE_OP_CREATE] = "create",
                                       [CLAVE_OP_DELETE] = "delete",
                                       [CLAVE_OP_SET] = "set",
                                       [CLAVE_OP_CHECK] = "check"};

/* ---- the answer ----------------------------------------------------------------------------- */

static void multi_answer_done(struct web_exchange *x, const struct multi *m,
                              const clave_op_result *results)
{
    struct json *j = &x->json;
    clave__json_open(j, NULL, '{');
    clave__json_open(j, "results", '[');
    for (size_t i = 0; i < m->nops; i++) {
        clave_op_kind kind = m->ops[i].kind;
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "op", op_names[kind]);
        if (kind == CLAVE_OP_CREATE)
            clave__json_string(j, "path", results[i].path);
        if (kind == CLAVE_OP_CREATE || kind == CLAVE_OP_SET)
            clave__web_json_stat(j, "stat", results[i].stat);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
    clave__json_close(j, '}');
    clave__web_answer_json(x, 200);
}

static void multi_put_index(struct json *j, const void *arg)
{
    clave__json_int(j, "failed", (int64_t) * (const size_t *)arg);
}

/* The first operation that failed by itself: of the others the servers say that they were not
 * tried. */
static void multi_answer_failed(struct web_exchange *x, const struct multi *m,
                                const clave_op_result *results, clave_err err)
{
    assert(m->nops > 0);
    size_t failed = 0;
    while (failed + 1 < m->nops && results[failed].err != err)
        failed++;
    const clave_op *op = &m->ops[failed];
    unsigned status = err == CLAVE_EBADVERSION ? 412 : clave__web_status(x, err);
    struct problem p = {
        .status = status, .err = err, .path = op->path, .members = multi_put_index, .arg = &failed};
    clave__web_problem(x, &p, "nothing was done: operation %zu, %s %s: %s", failed,
                       op_names[op->kind], op->path, clave_strerror(err));
}

static void on_multi_done(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    const struct multi *m = x->state;
    size_t first = m->guards.n;
    if (clave__guards_failed(x, &m->guards, res))
        return;
    if (res->err == CLAVE_OK)
        multi_answer_done(x, m, res->ops + first);
    else if (res->nops == m->nops + first)
        multi_answer_failed(x, m, res->ops + first, res->err);
    else
        clave__web_problem_err(x, res->err, "finish the transaction", NULL);
}

/* ---- the request ---------------------------------------------------------------------------- */

static void multi_go_guarded(struct web_exchange *x, clave_async_client *c)
{
    const struct multi *m = x->state;
    assert(m->guards.n <= MOST_GUARDS); /* the room before `ops` */
    clave_op *ops = m->ops - m->guards.n;
    clave__guards_put_checks(&m->guards, ops);
    clave_err err = clave_async_multi(c, ops, m->nops + m->guards.n, on_multi_done, x);
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__request_client_refused(x, c, err, "do", "the transaction");
}

static void multi_go(struct web_exchange *x, clave_async_client *c)
{
    struct multi *m = x->state;
    clave__guards_find(x, c, &m->guards, multi_go_guarded);
}

/* ---- the body ------------------------------------------------------------------------------- */

static bool multi_op_kind(const char *name, clave_op_kind *out)
{
    for (size_t i = 0; i < sizeof op_names / sizeof *op_names; i++) {
        if (name && strcmp(op_names[i], name) == 0) {
            *out = (clave_op_kind)i;
            return true;
        }
    }
    return false;
}

/* "data" is text, "data_base64" any bytes. */
static bool multi_op_read_data(struct web_exchange *x, const json_t *o, clave_op *op)
{
    const char *text = NULL, *coded = NULL;
    if (!clave__body_text(x, o, "data", &text) || !clave__body_text(x, o, "data_base64", &coded))
        return false;
    op->data = text ? text : "";
    op->len = text ? strlen(text) : 0;
    if (!coded)
        return true;
    size_t n = strlen(coded);
    void *bytes = clave__web_alloc(x, n / 4 * 3 + 1);
    op->data = bytes;
    if (!bytes)
        clave__web_problem_err(x, CLAVE_ENOMEM, "read", "data_base64");
    else if (text || !clave__base64_decode(coded, n, bytes, &op->len))
        clave__web_problem(x, &bad_op, "%s",
                           text ? "data and data_base64 exclude each other"
                                : "data_base64 is not base64");
    else
        return true;
    return false;
}

static bool multi_op_read_create(struct web_exchange *x, const json_t *o, clave_op *op)
{
    static const int64_t ttls[2] = {1, INT64_MAX};
    const char *mode = "persistent";
    const json_t *acl = NULL;
    if (!clave__body_text(x, o, "mode", &mode) ||
        !clave__body_int(x, o, "ttl_ms", ttls, &op->ttl_ms) ||
        !clave__body_array(x, o, "acl", &acl) ||
        !clave__web_read_acls(x, acl, &op->acls, &op->nacls))
        return false;
    if (!clave__web_parse_mode(mode, &op->mode)) {
        clave__web_problem(x, &bad_op, "a transaction knows no mode \"%.40s\"", mode);
        return false;
    }
    if (clave__web_mode_has_ttl(op->mode) != (op->ttl_ms > 0)) {
        clave__web_problem(x, &bad_op,
                           "\"ttl_ms\" is for the modes persistent_ttl and "
                           "persistent_sequential_ttl, which need it");
        return false;
    }
    if (clave__web_mode_is_ephemeral(op->mode) && !clave__web_header(x, "Clave-Session")) {
        clave__web_problem(x, &bad_op, "an ephemeral node needs a session: header Clave-Session");
        return false;
    }
    return true;
}

/* The members that an operation of each kind may have. */
static const char *const *multi_op_keys(clave_op_kind kind)
{
    static const char *const create[] = {"op",   "path",   "data", "data_base64",
                                         "mode", "ttl_ms", "acl",  NULL};
    static const char *const set[] = {"op", "path", "data", "data_base64", "version", NULL};
    static const char *const other[] = {"op", "path", "version", NULL};
    return kind == CLAVE_OP_CREATE ? create : kind == CLAVE_OP_SET ? set : other;
}

static bool multi_op_read(struct web_exchange *x, json_t *o, clave_op *op)
{
    static const int64_t versions[2] = {-1, INT32_MAX};
    const char *name = NULL;
    int64_t version = -1;
    *op = (clave_op){.version = -1};
    if (!json_is_object(o)) {
        clave__web_problem(x, &bad_op, "an operation is an object");
        return false;
    }
    if (!clave__body_text(x, o, "op", &name) || !clave__body_text(x, o, "path", &op->path))
        return false;
    if (!multi_op_kind(name, &op->kind) || !op->path) {
        clave__web_problem(x, &bad_op,
                           "an operation needs \"op\", one of create, set, delete and check, and "
                           "\"path\"");
        return false;
    }
    const char *fault = clave__path_fault(op->path, strlen(op->path), true);
    if (fault) {
        clave__web_problem(x, &bad_op, "the path %.200s %s", op->path, fault);
        return false;
    }
    if (!clave__body_only(x, o, multi_op_keys(op->kind)) ||
        !clave__body_int(x, o, "version", versions, &version) || !multi_op_read_data(x, o, op) ||
        (op->kind == CLAVE_OP_CREATE && !multi_op_read_create(x, o, op)))
        return false;
    op->version = (int32_t)version;
    if (op->kind == CLAVE_OP_CREATE)
        return clave__web_must_create(x, op->mode, op->path);
    return clave__web_must(x, op->kind == CLAVE_OP_CHECK ? WEB_READ : WEB_WRITE, op->path);
}

/* For the audit: "create /a, set /b", of a long transaction the beginning. */
static void multi_tell(struct web_exchange *x, const struct multi *m)
{
    enum { MOST_TOLD = 4000, REST = 40 };
    size_t size = 1, n = 0;
    for (size_t i = 0; i < m->nops && size < MOST_TOLD; i++)
        size += strlen(op_names[m->ops[i].kind]) + strlen(m->ops[i].path) + 3;
    size = size < MOST_TOLD ? size : MOST_TOLD;
    char *text = clave__web_alloc(x, size + REST);
    x->deed.what = text;
    for (size_t i = 0; text && i < m->nops; i++) {
        const clave_op *op = &m->ops[i];
        size_t more = strlen(op_names[op->kind]) + strlen(op->path) + 3;
        if (n + more > size) {
            snprintf(text + n, REST, "%s... of %zu operations", n ? " " : "", m->nops);
            return;
        }
        n += (size_t)snprintf(text + n, more + 1, "%s%s %s", i > 0 ? ", " : "", op_names[op->kind],
                              op->path);
    }
}

/* NULL: it has answered. */
static struct multi *multi_read(struct web_exchange *x, const json_t *list)
{
    const struct jansson *json = x->web->o.jansson;
    size_t n = list ? json->json_array_size(list) : 0;
    struct multi *m = NULL;
    if (n == 0 || n > MOST_OPS) {
        clave__web_problem(x, &bad_op, "\"ops\" must be an array of 1 to %d operations",
                           (int)MOST_OPS);
        return NULL;
    }
    m = clave__web_alloc(x, sizeof *m + (n + MOST_GUARDS) * sizeof *m->ops);
    if (!m) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "read", "the transaction");
        return NULL;
    }
    *m = (struct multi){.ops = (clave_op *)(void *)(m + 1) + MOST_GUARDS, .nops = n};
    for (size_t i = 0; i < n; i++)
        if (!multi_op_read(x, json->json_array_get(list, i), &m->ops[i]))
            return NULL;
    return clave__guards_read(x, &m->guards) ? m : NULL;
}

void clave__web_post_multi(struct web_exchange *x)
{
    static const char *const keys[] = {"ops", NULL};
    const json_t *list = NULL;
    json_t *body = clave__web_body(x);
    if (!body || !clave__body_only(x, body, keys) || !clave__body_array(x, body, "ops", &list))
        return;
    struct multi *m = multi_read(x, list);
    if (!m)
        return;
    x->state = m;
    multi_tell(x, m);
    clave__request_client(x, multi_go);
}
