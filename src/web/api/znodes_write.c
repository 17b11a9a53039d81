/* znodes_write.c - changing znodes: PUT, POST, DELETE of znodes_api.h. Called by the table of
 * routes. Invariant: with a guard the change and the check of the lock are one transaction; an
 * answer that was lost is 504 and nothing else. */
#include <string.h>

#include "web/api/client_call.h"
#include "web/api/guard.h"
#include "web/api/node_json.h"
#include "web/api/orders/subtree_api.h"
#include "web/api/znode_poll.h"
#include "web/api/znodes_api.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/conditional.h"
#include "web/http/problem.h"

struct znode_write {
    const char *verb;
    clave_op op; /* path, data, version, mode, as of a transaction */
    clave_create_options create;
    struct condition condition;
    struct guard guard;
    bool acl; /* sets the access list */
};

static const struct problem bad_write = {.status = 400, .err = CLAVE_EINVAL};

/* ---- the answer ----------------------------------------------------------------------------- */

static void znode_put_result(struct web_exchange *x, const char *path, const clave_stat *st)
{
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", path);
    clave__web_json_stat(&x->json, "stat", st);
    clave__json_close(&x->json, '}');
}

static void znode_answer_done(struct web_exchange *x, const struct znode_write *w, const char *path,
                              const clave_stat *st)
{
    if (w->op.kind == CLAVE_OP_DELETE) {
        clave__web_answer_empty(x, 204);
        return;
    }
    char tag[ZNODE_TAG_CAP];
    clave__znode_tag(tag, w->acl ? ZNODE_TAG_ACL : ZNODE_TAG_DATA, st);
    if (st)
        clave__web_set_header(x, "ETag", "%s", tag);
    if (w->op.kind == CLAVE_OP_CREATE)
        clave__web_set_location(x, path);
    znode_put_result(x, path, st);
    clave__web_answer_json(x, w->op.kind == CLAVE_OP_CREATE ? 201 : 200);
}

static void on_znode_written(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    const struct znode_write *w = x->state;
    const clave_op_result *ops = res->ops;
    if (res->err == CLAVE_OK && res->nops == 2)
        znode_answer_done(x, w, ops[1].path ? ops[1].path : w->op.path, ops[1].stat);
    else if (res->err == CLAVE_OK)
        znode_answer_done(x, w, res->path, res->stat);
    else if (res->nops == 2 && ops[0].err == CLAVE_ENONODE)
        clave__guard_answer_lost(x, &w->guard);
    else if (clave__condition_failed(&w->condition, res->err))
        clave__web_problem_as(x, 412, res->err, w->verb, w->op.path);
    else if (res->err == CLAVE_ENONODE && w->op.kind == CLAVE_OP_CREATE)
        clave__web_problem(
            x, &(struct problem){.status = 404, .err = res->err, .path = w->op.path},
            "cannot create %s: its parent does not exist; POST with ?parents creates it",
            w->op.path);
    else
        clave__web_problem_err(x, res->err, w->verb, w->op.path);
}

/* ---- the request ---------------------------------------------------------------------------- */

static void znode_submitted(struct web_exchange *x, clave_async_client *c, clave_err err)
{
    const struct znode_write *w = x->state;
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__client_call_refused(x, c, err, w->verb, w->op.path);
}

static void znode_write_guarded(struct web_exchange *x, clave_async_client *c, const char *node)
{
    const struct znode_write *w = x->state;
    clave_op ops[2] = {{.kind = CLAVE_OP_CHECK, .path = node, .version = -1}, w->op};
    znode_submitted(x, c, clave_async_multi(c, ops, 2, on_znode_written, x));
}

static clave_err znode_write_one(struct web_exchange *x, clave_async_client *c)
{
    const struct znode_write *w = x->state;
    const clave_op *op = &w->op;
    if (w->acl)
        return clave_async_set_acl(c, op->path, op->acls, op->nacls, op->version, on_znode_written,
                                   x);
    switch (op->kind) {
    case CLAVE_OP_CREATE:
        return clave_async_create(c, op->path, op->data, op->len, &w->create, on_znode_written, x);
    case CLAVE_OP_DELETE:
        return clave_async_delete(c, op->path, op->version, on_znode_written, x);
    case CLAVE_OP_SET:
    case CLAVE_OP_CHECK:
        break;
    }
    return clave_async_set(c, op->path, op->data, op->len, op->version, on_znode_written, x);
}

static void znode_write_go(struct web_exchange *x, clave_async_client *c)
{
    const struct znode_write *w = x->state;
    if (w->guard.path)
        clave__guard_find(x, c, &w->guard, znode_write_guarded);
    else
        znode_submitted(x, c, znode_write_one(x, c));
}

/* With what all of them have; NULL: it has answered. */
static struct znode_write *znode_write_new(struct web_exchange *x, const char *verb,
                                           clave_op_kind kind)
{
    struct znode_write *w = clave__web_alloc(x, sizeof *w);
    if (!w) {
        clave__web_problem_err(x, CLAVE_ENOMEM, verb, x->params[0]);
        return NULL;
    }
    *w = (struct znode_write){.verb = verb, .create = CLAVE_CREATE_OPTIONS_INIT};
    w->op = (clave_op){.kind = kind,
                       .path = x->params[0],
                       .data = x->q->len ? x->q->body : "",
                       .len = x->q->len,
                       .version = -1};
    x->state = w;
    if (!clave__guard_read(x, &w->guard) || !clave__condition_read(x, &w->condition))
        return NULL;
    w->op.version = w->condition.version;
    return w;
}

/* ---- PUT ------------------------------------------------------------------------------------ */

static bool znode_read_acl(struct web_exchange *x, struct znode_write *w)
{
    static const char *const keys[] = {"acl", NULL};
    json_t *body = clave__web_body(x);
    const json_t *list = NULL;
    if (!body || !clave__body_only(x, body, keys) || !clave__body_array(x, body, "acl", &list) ||
        !clave__web_read_acls(x, list, &w->op.acls, &w->op.nacls))
        return false;
    if (w->guard.path || w->condition.must_not_exist || w->op.nacls == 0) {
        clave__web_problem(x, &bad_write,
                           "?acl needs a list \"acl\" of at least one entry, and knows neither "
                           "Clave-Guard nor If-None-Match");
        return false;
    }
    w->acl = true;
    return true;
}

void clave__web_put_znode(struct web_exchange *x)
{
    struct znode_write *w = znode_write_new(x, "set", CLAVE_OP_SET);
    if (!w)
        return;
    if (w->condition.must_not_exist) {
        w->op.kind = CLAVE_OP_CREATE;
        w->verb = "create";
    }
    if (clave__web_query(x, "acl") && !znode_read_acl(x, w))
        return;
    clave__client_call(x, znode_write_go);
}

/* ---- POST ----------------------------------------------------------------------------------- */

static bool mode_has_ttl(clave_create_mode mode)
{
    return mode == CLAVE_PERSISTENT_TTL || mode == CLAVE_PERSISTENT_SEQUENTIAL_TTL;
}

static const char *znode_create_fault(struct web_exchange *x, struct znode_write *w)
{
    const char *mode = clave__web_query(x, "mode"), *ttl = clave__web_query(x, "ttl");
    clave_create_options *o = &w->create;
    if (mode && !clave__web_parse_mode(mode, &o->mode))
        return "unknown mode: see /v1/openapi.json";
    if (ttl && (!clave__web_parse_int(ttl, &o->ttl_ms) || o->ttl_ms <= 0))
        return "ttl must be a number of milliseconds";
    if (mode_has_ttl(o->mode) != (ttl != NULL))
        return "ttl is for the modes persistent_ttl and persistent_sequential_ttl, which need it";
    if (clave__web_mode_is_ephemeral(o->mode) && !clave__web_header(x, "Clave-Session"))
        return "an ephemeral node needs a session: header Clave-Session";
    if (clave__web_query(x, "parents"))
        o->flags |= CLAVE_CREATE_PARENTS;
    if (w->guard.path && (o->flags || o->mode > CLAVE_EPHEMERAL_SEQUENTIAL))
        return "Clave-Guard goes with neither parents, ttl nor containers";
    if (w->condition.must_exist || w->condition.must_not_exist)
        return "POST knows no conditions: PUT with If-None-Match: * creates";
    return NULL;
}

void clave__web_post_znode(struct web_exchange *x)
{
    struct znode_write *w = znode_write_new(x, "create", CLAVE_OP_CREATE);
    if (!w)
        return;
    /* Not one of the types that a page of another site can send without asking. */
    if (x->q->len > 0 && !clave__web_has_type(x, "application/octet-stream")) {
        clave__web_problem(x, &(struct problem){.status = 415, .err = CLAVE_EINVAL},
                           "the body's Content-Type must be application/octet-stream");
        return;
    }
    const char *fault = znode_create_fault(x, w);
    w->op.mode = w->create.mode;
    if (fault)
        clave__web_problem(x, &bad_write, "%s", fault);
    else if (clave__web_must_create(x, w->op.mode, w->op.path))
        clave__client_call(x, znode_write_go);
}

/* ---- DELETE --------------------------------------------------------------------------------- */

void clave__web_delete_znode(struct web_exchange *x)
{
    if (clave__web_query(x, "recursive")) {
        clave__web_delete_subtree(x);
        return;
    }
    if (clave__web_query(x, "max")) {
        clave__web_problem(x, &bad_write, "max is for ?recursive");
        return;
    }
    struct znode_write *w = znode_write_new(x, "delete", CLAVE_OP_DELETE);
    if (!w)
        return;
    if (w->condition.must_not_exist)
        clave__web_problem(x, &bad_write, "DELETE knows If-Match only");
    else
        clave__client_call(x, znode_write_go);
}
