/* znodes_write.c - changing znodes: PUT, POST and DELETE of /v1/znodes/PATH, and POST /v1/multi.
 *
 * A recursive DELETE lists the tree first, level by level, so that nothing is done when it is too
 * large. Then the nodes are deleted in the opposite order, children before their parents, in
 * transactions that follow one another without waiting. A node that somebody else has deleted makes
 * its transaction fail, and also the later transactions with its parents. What is left is sent once
 * more, each node by itself.
 *
 * Invariants: with a guard the change and the check of the lock are one transaction, in which the
 * checks come first and have no result in the answer; the roles on all paths are checked before
 * anything is sent; an answer that was lost is 504 and nothing else; a round of a recursive DELETE
 * is answered as a whole before the next one, or the answer, begins. */
#include "web/api/api.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/path.h"
#include "web/observe/observe.h"

/* ==== what a create takes ===================================================================== */

static bool mode_is_ephemeral(clave_create_mode mode)
{
    return mode == CLAVE_EPHEMERAL || mode == CLAVE_EPHEMERAL_SEQUENTIAL;
}

static bool mode_is_sequential(clave_create_mode mode)
{
    return mode == CLAVE_PERSISTENT_SEQUENTIAL || mode == CLAVE_EPHEMERAL_SEQUENTIAL ||
           mode == CLAVE_PERSISTENT_SEQUENTIAL_TTL;
}
static bool mode_has_ttl(clave_create_mode mode)
{
    return mode == CLAVE_PERSISTENT_TTL || mode == CLAVE_PERSISTENT_SEQUENTIAL_TTL;
}

static bool mode_parse(const char *name, clave_create_mode *out)
{
    static const char *const names[] = {
        [CLAVE_PERSISTENT] = "persistent",
        [CLAVE_EPHEMERAL] = "ephemeral",
        [CLAVE_PERSISTENT_SEQUENTIAL] = "persistent_sequential",
        [CLAVE_EPHEMERAL_SEQUENTIAL] = "ephemeral_sequential",
        [CLAVE_CONTAINER] = "container",
        [CLAVE_PERSISTENT_TTL] = "persistent_ttl",
        [CLAVE_PERSISTENT_SEQUENTIAL_TTL] = "persistent_sequential_ttl",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (clave_create_mode)i;
            return true;
        }
    }
    return false;
}

static bool node_must_create(struct web_exchange *x, clave_create_mode mode, const char *path)
{
    /* The number of a sequential node is not known yet, so a prefix covers the node only if it
     * covers all siblings. */
    const char *covered =
        mode_is_sequential(mode)
            ? clave__web_strndup(x, path, clave__path_parent_len(path, strlen(path)))
            : path;
    if (covered)
        return clave__web_must(x, WEB_WRITE, covered);
    clave__web_problem_err(x, CLAVE_ENOMEM, "create", path);
    return false;
}

static void node_set_location(struct web_exchange *x, const char *path)
{
    char *encoded = clave__web_alloc(x, 3 * strlen(path) + 1);
    if (!encoded)
        return;
    clave__percent_encode(encoded, path);
    clave__web_set_header(x, "Location", "%s/v1/znodes%s", clave__web_prefix(x), encoded);
}

/* ==== DELETE ?recursive ======================================================================= */

enum {
    SUBTREE_MAX = 10000,
    SUBTREE_MOST_MAX = 100000,
    LISTS = 64, /* under way */
    OPS = 200,  /* of a transaction */
    OPS_BYTES = 256 << 10,
    TRANSACTIONS = 8, /* under way */
    SINGLE = 64,      /* in the second round */
};

struct subtree {
    struct web_exchange *x;
    int64_t max;
    const char **paths; /* a parent before its children; NULL: it is gone */
    size_t n, cap;
    size_t listed; /* how many nodes were asked for their children */
    size_t left;   /* how many, from the first on, are still to be sent */
    size_t deleted;
    unsigned under_way, rounds;
    bool again;    /* a node was gone, so there is another round */
    clave_err err; /* the first error that ends the request */
    const char *at;
};

struct subtree_batch {
    struct subtree *s;
    size_t first, end; /* of the paths */
};

static void subtree_go_on(struct subtree *s, clave_async_client *c);

/* ---- answers --------------------------------------------------------------------------------- */

static size_t subtree_left(const struct subtree *s)
{
    size_t left = 0;
    for (size_t i = 0; i < s->n; i++)
        left += s->paths[i] != NULL;
    return left;
}

static void subtree_put_counts(struct json *j, const void *arg)
{
    const struct subtree *s = arg;
    clave__json_int(j, "deleted", (int64_t)s->deleted);
    if (s->rounds > 0) /* otherwise the count is not complete */
        clave__json_int(j, "left", (int64_t)subtree_left(s));
}

static void subtree_answer(struct subtree *s)
{
    struct web_exchange *x = s->x;
    struct problem p = {.err = s->err, .path = s->at, .members = subtree_put_counts, .arg = s};
    if (s->err == CLAVE_OK) {
        clave__json_open(&x->json, NULL, '{');
        clave__json_string(&x->json, "path", x->params[0]);
        clave__json_int(&x->json, "deleted", (int64_t)s->deleted);
        clave__web_answer_object(x, 200);
        return;
    }
    const char *at = s->at ? s->at : x->params[0];
    p.status = clave__web_status(x, s->err);
    if (s->rounds == 0)
        clave__web_problem(x, &p, "not begun: cannot delete %s: %s", at, clave_strerror(s->err));
    else
        clave__web_problem(x, &p, "cannot delete %s: %s; nodes deleted: %zu, left: %zu%s", at,
                           clave_strerror(s->err), s->deleted, subtree_left(s),
                           p.status == 504 ? " or fewer" : "");
}

static void subtree_fail(struct subtree *s, clave_err err, const char *at)
{
    if (s->err != CLAVE_OK)
        return;
    s->err = err;
    s->at = at;
}

/* ---- listing --------------------------------------------------------------------------------- */

/* false: no memory. */
static bool subtree_add(struct subtree *s, const char *path)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        const char **paths = clave__web_alloc(s->x, cap * sizeof *paths);
        if (!paths)
            return false;
        if (s->n)
            memcpy(paths, s->paths, s->n * sizeof *paths);
        s->paths = paths;
        s->cap = cap;
    }
    s->paths[s->n++] = path;
    return path != NULL;
}

static void subtree_take_names(struct subtree *s, const char *dir, const clave_result *res)
{
    for (size_t i = 0; i < res->nnames && s->err == CLAVE_OK; i++) {
        if (s->n >= (size_t)s->max)
            subtree_fail(s, CLAVE_ETOOBIG, s->x->params[0]);
        else if (!subtree_add(s, clave__web_child(s->x, dir, res->names[i])))
            subtree_fail(s, CLAVE_ENOMEM, dir);
    }
}

static void on_recursive_names(clave_async_client *c, const clave_result *res, void *arg)
{
    struct subtree_batch *b = arg;
    struct subtree *s = b->s;
    if (!clave__web_expected(s->x))
        return;
    assert(s->under_way > 0);
    s->under_way--;
    if (res->err == CLAVE_OK)
        subtree_take_names(s, s->paths[b->first], res);
    else if (res->err == CLAVE_ENONODE && b->first > 0)
        s->paths[b->first] = NULL;
    else /* nothing was done */
        subtree_fail(
            s, clave_err_classify(res->err) == CLAVE_CLASS_UNKNOWN ? CLAVE_EUNREACHABLE : res->err,
            s->paths[b->first]);
    subtree_go_on(s, c);
}

static struct subtree_batch *subtree_batch_new(struct subtree *s, size_t first, size_t end)
{
    struct subtree_batch *b = clave__web_alloc(s->x, sizeof *b);
    if (b)
        *b = (struct subtree_batch){s, first, end};
    return b;
}

/* Notes that a request is under way, or the error with which it could not be sent. */
static void subtree_sent(struct subtree *s, clave_err err, const char *at)
{
    if (err == CLAVE_OK) {
        clave__web_expect(s->x);
        s->under_way++;
    } else {
        subtree_fail(s, err, at);
    }
}

static void subtree_list(struct subtree *s, clave_async_client *c)
{
    size_t i = s->listed++;
    struct subtree_batch *b = subtree_batch_new(s, i, i + 1);
    clave_err err =
        b ? clave_async_children(c, s->paths[i], NULL, on_recursive_names, b) : CLAVE_ENOMEM;
    subtree_sent(s, err, s->paths[i]);
}

/* ---- deleting -------------------------------------------------------------------------------- */

/* Index of the path that operation number `op` of the batch deletes. */
static size_t subtree_path_of(const struct subtree_batch *b, size_t op)
{
    for (size_t i = b->end; i > b->first; i--)
        if (b->s->paths[i - 1] && op-- == 0)
            return i - 1;
    return b->first;
}

static void subtree_take_failure(struct subtree *s, const struct subtree_batch *b,
                                 const clave_result *res)
{
    size_t op = 0;
    while (op < res->nops && (res->ops[op].err == CLAVE_OK || res->ops[op].err == CLAVE_ERUNTIME))
        op++;
    if (op == res->nops) {
        subtree_fail(s, res->err, s->x->params[0]);
        return;
    }
    size_t i = subtree_path_of(b, op);
    if (res->ops[op].err == CLAVE_ENONODE) {
        s->paths[i] = NULL;
        s->again = s->rounds == 1;
    } else if (res->ops[op].err != CLAVE_ENOTEMPTY || !s->again) {
        subtree_fail(s, res->ops[op].err, s->paths[i]);
    }
}

static void on_recursive_deleted(clave_async_client *c, const clave_result *res, void *arg)
{
    struct subtree_batch *b = arg;
    struct subtree *s = b->s;
    if (!clave__web_expected(s->x))
        return;
    assert(s->under_way > 0);
    s->under_way--;
    if (res->err != CLAVE_OK)
        subtree_take_failure(s, b, res);
    for (size_t i = b->first; i < b->end && res->err == CLAVE_OK; i++) {
        s->deleted += s->paths[i] != NULL;
        s->paths[i] = NULL;
    }
    subtree_go_on(s, c);
}

/* Sends a transaction that deletes the last of the nodes that are left. */
static void subtree_delete(struct subtree *s, clave_async_client *c)
{
    clave_op ops[OPS];
    size_t n = 0, bytes = 0, end = s->left, most = s->rounds == 1 ? OPS : 1;
    for (; s->left > 0 && n < most && bytes < OPS_BYTES; s->left--) {
        const char *path = s->paths[s->left - 1];
        if (!path)
            continue;
        ops[n++] = (clave_op){.kind = CLAVE_OP_DELETE, .path = path, .version = -1};
        bytes += strlen(path);
    }
    if (n == 0)
        return;
    struct subtree_batch *b = subtree_batch_new(s, s->left, end);
    clave_err err = b ? clave_async_multi(c, ops, n, on_recursive_deleted, b) : CLAVE_ENOMEM;
    subtree_sent(s, err, ops[0].path);
}

static void subtree_begin_round(struct subtree *s)
{
    assert(s->under_way == 0);
    s->x->only_reads = false;
    s->again = false;
    s->left = s->n;
    s->rounds++;
    s->x->only_reads = false;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void subtree_too_large(struct subtree *s)
{
    struct problem p = {.status = 413,
                        .err = CLAVE_ETOOBIG,
                        .path = s->x->params[0],
                        .members = subtree_put_counts,
                        .arg = s};
    clave__web_problem(
        s->x, &p,
        "not begun: %s and what is below it are more nodes than ?max=%lld; it can be "
        "up to %d",
        s->x->params[0], (long long)s->max, SUBTREE_MOST_MAX);
}

static void subtree_go_on(struct subtree *s, clave_async_client *c)
{
    struct web_exchange *x = s->x;
    bool listing = s->rounds == 0;
    if (x->timer.armed) /* the delete goes on */
        clave__web_timer_set(x->web, &x->timer, x->web->now + WEB_PATIENCE_MS);
    x->only_reads = listing;
    while (s->err == CLAVE_OK && listing && s->listed < s->n && s->under_way < LISTS)
        subtree_list(s, c);
    if (s->under_way > 0 && (listing || s->again || s->left == 0 || s->err != CLAVE_OK))
        return; /* the rest of this round is still to come */
    if (s->err == CLAVE_ETOOBIG && listing) {
        subtree_too_large(s);
        return;
    }
    if (s->err == CLAVE_OK && (s->left > 0 || s->again) && !clave__web_may_still(x))
        subtree_fail(s, CLAVE_ENOAUTH,
                     NULL); /* requests that were under way have been left to finish */
    if (s->err == CLAVE_OK && (listing || s->again))
        subtree_begin_round(s);
    unsigned window = s->rounds == 1 ? TRANSACTIONS : SINGLE;
    while (s->err == CLAVE_OK && s->left > 0 && s->under_way < window)
        subtree_delete(s, c);
    if (s->under_way == 0)
        subtree_answer(s);
}

/* Reports what was deleted so far. While the tree was only being listed, nothing was. */
static void subtree_give_up(struct web_exchange *x)
{
    struct subtree *s = x->state;
    if (s->rounds == 0)
        return;
    subtree_fail(s, CLAVE_EOPTIMEOUT, NULL);
    subtree_answer(s);
}

static void subtree_begin(struct web_exchange *x, clave_async_client *c)
{
    static const struct exchange_owner of_session = {
        .leave = clave__session_request_leave, .stop = subtree_give_up, .late = subtree_give_up};
    static const struct exchange_owner of_gate = {.stop = subtree_give_up, .late = subtree_give_up};
    if (x->owner)
        clave__web_own_as(x, &of_session);
    else
        clave__web_own(x, &of_gate, NULL);
    x->only_reads = true;
    subtree_go_on(x->state, c);
}

static void znodes_delete_subtree(struct web_exchange *x)
{
    const char *path = x->params[0];
    int64_t max = SUBTREE_MAX;
    if (!clave__param_path(x) || !clave__query_int(x, "max", 1, SUBTREE_MOST_MAX, &max))
        return;
    if (clave__web_header(x, "Clave-Guard") || clave__web_header(x, "If-Match") ||
        clave__web_header(x, "If-None-Match")) {
        clave__web_bad_request(x, "?recursive is no transaction: it knows neither Clave-Guard nor "
                                  "conditions");
        return;
    }
    if (strcmp(path, "/") == 0 || clave__observe_is_below(path, "/zookeeper")) {
        clave__web_bad_request(x, "%s is not deleted with what is below it", path);
        return;
    }
    struct subtree *s = x->state = clave__web_must_alloc(x, sizeof *s);
    if (!s)
        return;
    *s = (struct subtree){.x = x, .max = max};
    if (subtree_add(s, path))
        clave__request_client(x, subtree_begin);
    else
        clave__web_problem_err(x, CLAVE_ENOMEM, "delete", path);
}

/* ==== PUT, POST, DELETE ======================================================================= */

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
        x->deed.path = clave__web_sprintf(x, "%s", path); /* perhaps with the number of a sequential
                                                           * node */
        node_set_location(x, path);
    }
    znode_put_result(x, path, st);
    clave__web_answer_json(x, w->op.kind == CLAVE_OP_CREATE ? 201 : 200);
}

static void znode_answer_failed(struct web_exchange *x, const struct znode_write *w, clave_err err)
{
    if (clave__condition_failed(&w->condition, err))
        clave__web_problem_as(x, 412, err, w->verb, w->op.path);
    else if (err == CLAVE_ENONODE && w->op.kind == CLAVE_OP_CREATE)
        clave__web_refuse(x, 404, err, w->op.path,
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

/* True if a parent has gone that was there, or has appeared that was missing. */
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

/* Missing parents are created as containers, as the client does with CLAVE_CREATE_PARENTS. */
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
    if (!clave__web_may_still(x)) { /* the roles have changed during an earlier transaction */
        clave__web_refuse_now(x);
        return;
    }
    clave_err err = znode_put_ops(x, w);
    if (err == CLAVE_OK)
        err = clave_async_multi(c, w->ops, w->nops, on_znode_guarded, x);
    x->only_reads = false;
    clave__request_client_sent(x, c, err, w->verb, w->op.path);
}

static void znode_on_parent_looked(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    struct znode_write *w = x->state;
    clave_err err = res->err;
    if (err == CLAVE_ENONODE && !clave__web_may(x, WEB_WRITE, res->path))
        err = CLAVE_ENOAUTH; /* the parent was deleted after clave__web_check_parents */
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

/* Looks for all parents at once, the one nearest to the root first. */
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
    x->only_reads = true;
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
    clave__request_client_sent(x, c, err, w->verb, w->op.path);
}

static void znode_write_go(struct web_exchange *x)
{
    const struct znode_write *w = x->state;
    if (w->create.flags & CLAVE_CREATE_PARENTS)
        clave__request_client_to_create(x, w->op.path, znode_write_begin);
    else
        clave__request_client(x, znode_write_begin);
}

/* Reads what PUT, POST and DELETE have in common. NULL: it has answered. */
static struct znode_write *znode_write_new(struct web_exchange *x, const char *verb,
                                           clave_op_kind kind)
{
    struct znode_write *w = clave__web_must_alloc(x, sizeof *w);
    if (!w)
        return NULL;
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
    const json_t *list = NULL;
    const struct body_member members[] = {{"acl", .array = &list}};
    if (!clave__web_read_body(x, BODY_MEMBERS(members)) ||
        !clave__web_read_acls(x, list, &w->op.acls, &w->op.nacls))
        return false;
    if (w->guards.n > 0 || w->condition.must_not_exist || w->op.nacls == 0)
        return clave__web_bad_request(
            x, "?acl needs a list \"acl\" of at least one entry, and knows neither "
               "If-None-Match nor Clave-Guard: ZooKeeper sets no access list in a "
               "transaction");
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
    znode_write_go(x);
}

/* ---- POST ----------------------------------------------------------------------------------- */

static const char *znode_create_fault(struct web_exchange *x, struct znode_write *w)
{
    const char *mode = clave__web_query(x, "mode"), *ttl = clave__web_query(x, "ttl");
    clave_create_options *o = &w->create;
    if (mode && !mode_parse(mode, &o->mode))
        return "mode is persistent, ephemeral or container, the first two with _sequential or not, "
               "or "
               "persistent_ttl or persistent_sequential_ttl";
    if (ttl && (!clave__web_parse_int(ttl, &o->ttl_ms) || o->ttl_ms <= 0))
        return "ttl must be a number of milliseconds";
    if (mode_has_ttl(o->mode) != (ttl != NULL))
        return "ttl is for the modes persistent_ttl and persistent_sequential_ttl, which need it";
    if (mode_is_ephemeral(o->mode) && !clave__web_header(x, "Clave-Session"))
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
    /* A type that a page of another site cannot send without a CORS preflight. */
    if (clave__web_body_len(x) > 0 && !clave__web_has_type(x, "application/octet-stream")) {
        clave__web_refuse(x, 415, CLAVE_EINVAL, NULL,
                          "the body's Content-Type must be application/octet-stream");
        return;
    }
    const char *fault = znode_create_fault(x, w);
    w->op.mode = w->create.mode;
    w->op.ttl_ms = w->create.ttl_ms;
    if (fault)
        clave__web_bad_request(x, "%s", fault);
    else if (node_must_create(x, w->op.mode, w->op.path))
        znode_write_go(x);
}

/* ---- DELETE --------------------------------------------------------------------------------- */

void clave__web_delete_znode(struct web_exchange *x)
{
    if (clave__web_query(x, "recursive")) {
        znodes_delete_subtree(x);
        return;
    }
    if (clave__web_query(x, "max")) {
        clave__web_bad_request(x, "max is for ?recursive");
        return;
    }
    struct znode_write *w = znode_write_new(x, "delete", CLAVE_OP_DELETE);
    if (!w)
        return;
    if (w->condition.must_not_exist)
        clave__web_bad_request(x, "DELETE knows If-Match only");
    else
        znode_write_go(x);
}

/* ==== /v1/multi =============================================================================== */

enum { MOST_OPS = 10000 };

struct multi {
    struct guards guards;
    clave_op *ops; /* preceded by room for MOST_GUARDS checks of guards */
    size_t nops;
};

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
    clave__web_answer_object(x, 200);
}

static void multi_put_index(struct json *j, const void *arg)
{
    clave__json_int(j, "failed", (int64_t) * (const size_t *)arg);
}

/* Names the first operation that failed by itself; the servers report the others as not tried. */
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
    clave__request_client_sent(x, c, err, "do", "the transaction");
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

struct multi_op_body {
    const char *op, *data, *data_base64, *mode;
    const json_t *acl;
    int64_t version;
};

/* "data" is text, "data_base64" any bytes. */
static bool multi_op_take_data(struct web_exchange *x, const struct multi_op_body *b, clave_op *op)
{
    op->data = b->data ? b->data : "";
    op->len = strlen(op->data);
    if (!b->data_base64)
        return true;
    size_t n = strlen(b->data_base64);
    void *bytes = clave__web_must_alloc(x, n / 4 * 3 + 1);
    op->data = bytes;
    if (!bytes)
        return false;
    if (b->data)
        return clave__web_bad_request(x, "data and data_base64 exclude each other");
    return clave__base64_decode(b->data_base64, n, bytes, &op->len) ||
           clave__web_bad_request(x, "data_base64 is not base64");
}

static bool multi_op_take_mode(struct web_exchange *x, const struct multi_op_body *b, clave_op *op)
{
    if (!mode_parse(b->mode, &op->mode))
        return clave__web_bad_request(x, "a transaction knows no mode \"%.40s\"", b->mode);
    if (mode_has_ttl(op->mode) != (op->ttl_ms > 0))
        return clave__web_bad_request(x, "\"ttl_ms\" is for the modes persistent_ttl and "
                                         "persistent_sequential_ttl, which need it");
    if (mode_is_ephemeral(op->mode) && !clave__web_header(x, "Clave-Session"))
        return clave__web_bad_request(x, "an ephemeral node needs a session: header Clave-Session");
    return true;
}

/* Reads the members that an operation of this kind may have; a member that only other kinds have is
 * unknown. */
static bool multi_op_read_members(struct web_exchange *x, json_t *o, struct multi_op_body *b,
                                  clave_op *op)
{
    const struct body_member members[] = {
        {"mode", .text = &b->mode},
        {"ttl_ms", .number = &op->ttl_ms, .least = 1, .most = INT64_MAX},
        {"acl", .array = &b->acl},
        {"data", .text = &b->data},
        {"data_base64", .text = &b->data_base64},
        {"op", .text = &b->op},
        {"path", .text = &op->path},
        {"version", .number = &b->version, .least = -1, .most = INT32_MAX},
    };
    enum { CREATES = 0, SETS = 3, ALL = 5, VERSION = 7, END = 8 };
    if (op->kind == CLAVE_OP_CREATE)
        return clave__web_read_object(x, o, members + CREATES, VERSION - CREATES);
    size_t from = op->kind == CLAVE_OP_SET ? SETS : ALL;
    return clave__web_read_object(x, o, members + from, END - from);
}

static bool multi_op_read(struct web_exchange *x, json_t *o, clave_op *op)
{
    const struct jansson *json = x->web->o.jansson;
    struct multi_op_body b = {.mode = "persistent", .version = -1};
    *op = (clave_op){.version = -1};
    if (!json_is_object(o))
        return clave__web_bad_request(x, "an operation is an object");
    bool named = multi_op_kind(json->json_string_value(json->json_object_get(o, "op")), &op->kind);
    if (named && !multi_op_read_members(x, o, &b, op))
        return false;
    if (!named || !op->path)
        return clave__web_bad_request(
            x, "an operation needs \"op\", one of create, set, delete and check, and \"path\"");
    const char *fault = clave__path_fault(op->path, strlen(op->path), true);
    if (fault)
        return clave__web_bad_request(x, "the path %.200s %s", op->path, fault);
    op->version = (int32_t)b.version;
    if (!multi_op_take_data(x, &b, op))
        return false;
    if (op->kind == CLAVE_OP_CREATE)
        return clave__web_read_acls(x, b.acl, &op->acls, &op->nacls) &&
               multi_op_take_mode(x, &b, op) && node_must_create(x, op->mode, op->path);
    return clave__web_must(x, op->kind == CLAVE_OP_CHECK ? WEB_READ : WEB_WRITE, op->path);
}

/* Describes the transaction for the audit log: "create /a, set /b"; of a long one, only the
 * beginning. */
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
        clave__web_bad_request(x, "\"ops\" must be an array of 1 to %d operations", (int)MOST_OPS);
        return NULL;
    }
    m = clave__web_must_alloc(x, sizeof *m + (n + MOST_GUARDS) * sizeof *m->ops);
    if (!m)
        return NULL;
    *m = (struct multi){.ops = (clave_op *)(void *)(m + 1) + MOST_GUARDS, .nops = n};
    for (size_t i = 0; i < n; i++)
        if (!multi_op_read(x, json->json_array_get(list, i), &m->ops[i]))
            return NULL;
    return clave__guards_read(x, &m->guards) ? m : NULL;
}

void clave__web_post_multi(struct web_exchange *x)
{
    const json_t *list = NULL;
    const struct body_member members[] = {{"ops", .array = &list}};
    struct multi *m = clave__web_read_body(x, BODY_MEMBERS(members)) ? multi_read(x, list) : NULL;
    if (!m)
        return;
    x->state = m;
    multi_tell(x, m);
    clave__request_client(x, multi_go);
}
