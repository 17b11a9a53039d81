/* znodes_write.c - changing znodes: PUT, POST, DELETE of znodes_api.h. Called by the table of
 * routes. Invariant: with a guard the change and the check of the lock are one transaction; an
 * answer that was lost is 504 and nothing else. */
#include <string.h>

#include "web/api/guard_header.h"
#include "web/api/request_client.h"
#include "web/api/znodes/node_create.h"
#include "web/api/znodes/node_json.h"
#include "web/api/znodes/parents_access.h"
#include "web/api/znodes/znode_long_poll.h"
#include "web/api/znodes/znodes_api.h"
#include "web/api/znodes/znodes_delete_recursive.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/conditional.h"
#include "web/http/head_checks.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"

struct znode_write {
    const char *verb;
    clave_op op; /* path, data, version, mode, as of a transaction */
    clave_create_options create;
    struct condition condition;
    struct guards guards;
    clave_op *ops; /* the checks of guards, parents that are missing, and `op` */
    size_t nops;
    size_t *missing; /* where the paths of those parents end */
    size_t nmissing;
    unsigned rounds;  /* looks for parents */
    size_t looks;     /* answers that are still to come */
    clave_err looked; /* the first error among them */
    bool acl;         /* sets the access list */
};

enum { MOST_ROUNDS = 8 };

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
    if (w->op.kind == CLAVE_OP_CREATE) {
        x->deed.path = clave__web_sprintf(x, "%s", path); /* perhaps with a number */
        clave__web_set_location(x, path);
    }
    znode_put_result(x, path, st);
    clave__web_answer_json(x, w->op.kind == CLAVE_OP_CREATE ? 201 : 200);
}

static void znode_answer_failed(struct web_exchange *x, const struct znode_write *w, clave_err err)
{
    const struct problem orphan = {.status = 404, .err = err, .path = w->op.path};
    if (clave__condition_failed(&w->condition, err))
        clave__web_problem_as(x, 412, err, w->verb, w->op.path);
    else if (err == CLAVE_ENONODE && w->op.kind == CLAVE_OP_CREATE)
        clave__web_problem(x, &orphan,
                           "cannot create %s: its parent does not exist; POST with ?parents "
                           "creates it",
                           w->op.path);
    else
        clave__web_problem_err(x, err, w->verb, w->op.path);
}

static void on_znode_written(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    const struct znode_write *w = x->state;
    if (res->err == CLAVE_OK)
        znode_answer_done(x, w, res->path, res->stat);
    else
        znode_answer_failed(x, w, res->err);
}

/* ---- with guards ---------------------------------------------------------------------------- */

static void znode_look_for_parents(struct web_exchange *x, clave_async_client *c);

/* Of parents: one is missing that was there, or there that was missing. */
static bool znode_parents_changed(const struct znode_write *w, clave_err err)
{
    return (w->create.flags & CLAVE_CREATE_PARENTS) && w->rounds < MOST_ROUNDS &&
           (err == CLAVE_ENONODE || (err == CLAVE_ENODEEXISTS && w->nmissing > 0));
}

static void on_znode_guarded(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    const struct znode_write *w = x->state;
    if (clave__guards_failed(x, &w->guards, res))
        return;
    const clave_op_result *own = res->nops == w->nops ? &res->ops[w->nops - 1] : NULL;
    if (res->err == CLAVE_OK)
        znode_answer_done(x, w, own && own->path ? own->path : w->op.path, own ? own->stat : NULL);
    else if (own && znode_parents_changed(w, res->err))
        znode_look_for_parents(x, c);
    else
        znode_answer_failed(x, w, res->err);
}

/* Parents are containers, as those are that the client makes by itself. */
static clave_err znode_put_ops(struct web_exchange *x, struct znode_write *w)
{
    w->nops = w->guards.n + w->nmissing + 1;
    w->ops = clave__web_alloc(x, w->nops * sizeof *w->ops);
    if (!w->ops)
        return CLAVE_ENOMEM;
    clave__guards_put_checks(&w->guards, w->ops);
    for (size_t i = 0; i < w->nmissing; i++) {
        const char *path = clave__web_strndup(x, w->op.path, w->missing[i]);
        if (!path)
            return CLAVE_ENOMEM;
        w->ops[w->guards.n + i] =
            (clave_op){.kind = CLAVE_OP_CREATE, .path = path, .data = "", .mode = CLAVE_CONTAINER};
    }
    w->ops[w->nops - 1] = w->op;
    return CLAVE_OK;
}

static void znode_write_guarded(struct web_exchange *x, clave_async_client *c)
{
    struct znode_write *w = x->state;
    if (!clave__web_may_still(x)) { /* an earlier transaction was under way when that changed */
        clave__web_refuse_now(x);
        return;
    }
    clave_err err = znode_put_ops(x, w);
    if (err == CLAVE_OK)
        err = clave_async_multi(c, w->ops, w->nops, on_znode_guarded, x);
    x->looking = false;
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__request_client_refused(x, c, err, w->verb, w->op.path);
}

static void znode_on_parent_looked(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    struct znode_write *w = x->state;
    clave_err err = res->err;
    if (err == CLAVE_ENONODE && !clave__web_may(x, WEB_WRITE, res->path))
        err = CLAVE_ENOAUTH; /* it went after clave__web_check_parents */
    if (err == CLAVE_ENONODE)
        w->missing[w->nmissing++] = strlen(res->path);
    else if (err != CLAVE_OK && w->looked == CLAVE_OK)
        w->looked = err;
    if (--w->looks > 0)
        return;
    if (clave_err_classify(w->looked) == CLAVE_CLASS_UNKNOWN)
        w->looked = CLAVE_EUNREACHABLE; /* nothing was done */
    if (w->looked == CLAVE_OK)
        znode_write_guarded(x, c);
    else
        clave__web_problem_err(x, w->looked, "look for the parents of", w->op.path);
}

/* All of them at once, the one nearest to the root first. */
static void znode_look_for_parents(struct web_exchange *x, clave_async_client *c)
{
    struct znode_write *w = x->state;
    size_t n = strlen(w->op.path);
    char *path = clave__web_strndup(x, w->op.path, n);
    clave_err err = CLAVE_OK;
    w->missing = clave__web_alloc(x, n * sizeof *w->missing);
    w->nmissing = w->looks = 0;
    w->looked = path && w->missing ? CLAVE_OK : CLAVE_ENOMEM;
    w->rounds++;
    x->looking = true;
    for (size_t i = 1; i < n && w->looked == CLAVE_OK && err == CLAVE_OK; i++) {
        if (path[i] != '/')
            continue;
        path[i] = '\0';
        err = clave_async_exists(c, path, NULL, znode_on_parent_looked, x);
        path[i] = '/';
        if (err == CLAVE_OK) {
            clave__web_expect(x);
            w->looks++;
        }
    }
    if (err != CLAVE_OK)
        w->looked = err;
    if (w->looks == 0)
        clave__web_problem_err(x, w->looked != CLAVE_OK ? w->looked : CLAVE_ENONODE,
                               "look for the parents of", w->op.path);
}

/* ---- the request ---------------------------------------------------------------------------- */

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

static void znode_write_begin(struct web_exchange *x, clave_async_client *c)
{
    struct znode_write *w = x->state;
    if (w->guards.n > 0) {
        clave__guards_find(x, c, &w->guards, znode_write_guarded);
        return;
    }
    clave_err err = znode_write_one(x, c);
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__request_client_refused(x, c, err, w->verb, w->op.path);
}

static void znode_write_go(struct web_exchange *x, clave_async_client *c)
{
    const struct znode_write *w = x->state;
    if (w->create.flags & CLAVE_CREATE_PARENTS)
        clave__web_check_parents(x, c, WEB_WRITE, w->op.path, znode_write_begin);
    else
        znode_write_begin(x, c);
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
                       .data = clave__web_body_bytes(x),
                       .len = clave__web_body_len(x),
                       .version = -1};
    x->state = w;
    if (!clave__guards_read(x, &w->guards) || !clave__condition_read(x, &w->condition))
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
    if (w->guards.n > 0 || w->condition.must_not_exist || w->op.nacls == 0) {
        clave__web_problem(x, &bad_write,
                           "?acl needs a list \"acl\" of at least one entry, and knows neither "
                           "If-None-Match nor Clave-Guard: ZooKeeper sets no access list in a "
                           "transaction");
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
    clave__request_client(x, znode_write_go);
}

/* ---- POST ----------------------------------------------------------------------------------- */

static const char *znode_create_fault(struct web_exchange *x, struct znode_write *w)
{
    const char *mode = clave__web_query(x, "mode"), *ttl = clave__web_query(x, "ttl");
    clave_create_options *o = &w->create;
    if (mode && !clave__web_parse_mode(mode, &o->mode))
        return "mode is persistent, ephemeral or container, the first two with _sequential or not, "
               "or "
               "persistent_ttl or persistent_sequential_ttl";
    if (ttl && (!clave__web_parse_int(ttl, &o->ttl_ms) || o->ttl_ms <= 0))
        return "ttl must be a number of milliseconds";
    if (clave__web_mode_has_ttl(o->mode) != (ttl != NULL))
        return "ttl is for the modes persistent_ttl and persistent_sequential_ttl, which need it";
    if (clave__web_mode_is_ephemeral(o->mode) && !clave__web_header(x, "Clave-Session"))
        return "an ephemeral node needs a session: header Clave-Session";
    if (clave__web_query(x, "parents"))
        o->flags |= CLAVE_CREATE_PARENTS;
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
    if (clave__web_body_len(x) > 0 && !clave__web_has_type(x, "application/octet-stream")) {
        clave__web_problem(x, &(struct problem){.status = 415, .err = CLAVE_EINVAL},
                           "the body's Content-Type must be application/octet-stream");
        return;
    }
    const char *fault = znode_create_fault(x, w);
    w->op.mode = w->create.mode;
    w->op.ttl_ms = w->create.ttl_ms;
    if (fault)
        clave__web_problem(x, &bad_write, "%s", fault);
    else if (clave__web_must_create(x, w->op.mode, w->op.path))
        clave__request_client(x, znode_write_go);
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
        clave__request_client(x, znode_write_go);
}
