/* znodes_delete_recursive.c - see znodes_delete_recursive.h. Called by znodes_write.c.
 *
 * The tree is listed first, level by level, so that nothing is done when it is too large. Then the
 * nodes are deleted in the opposite order, children before their parents, in transactions that
 * follow one another without waiting. A node that somebody else has deleted makes its transaction
 * fail, and those after it that have its parents: what is left is sent once more, each node by
 * itself. Invariant: a round is answered as a whole before the next one, or the answer, begins. */
#include "web/api/znodes/znodes_delete_recursive.h"

#include <assert.h>
#include <string.h>

#include "web/api/request_client.h"
#include "web/http/answer.h"
#include "web/http/head_checks.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"
#include "web/observe/observe.h"

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
    size_t listed; /* so many were asked for their children */
    size_t left;   /* so many of the first are still to be sent */
    size_t deleted;
    unsigned under_way, rounds;
    bool again;    /* one was gone: another round */
    clave_err err; /* the first that ends it */
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
    if (s->rounds > 0) /* else they were not counted to the end */
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
        clave__json_close(&x->json, '}');
        clave__web_answer_json(x, 200);
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

/* A request is under way, or the error that ends it is noted. */
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

/* The operation of this number among those of the paths that are there. */
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

/* The last of those that are left. */
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
    s->x->looking = false;
    s->again = false;
    s->left = s->n;
    s->rounds++;
    s->x->looking = false;
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
    if (x->timer.armed) /* it goes on */
        clave__web_timer_set(x->web, &x->timer, x->web->now + WEB_PATIENCE_MS);
    x->looking = listing;
    while (s->err == CLAVE_OK && listing && s->listed < s->n && s->under_way < LISTS)
        subtree_list(s, c);
    if (s->under_way > 0 && (listing || s->again || s->left == 0 || s->err != CLAVE_OK))
        return; /* for the rest of this round */
    if (s->err == CLAVE_ETOOBIG && listing) {
        subtree_too_large(s);
        return;
    }
    if (s->err == CLAVE_OK && (s->left > 0 || s->again) && !clave__web_may_still(x))
        subtree_fail(s, CLAVE_ENOAUTH, NULL); /* what was under way was not called off */
    if (s->err == CLAVE_OK && (listing || s->again))
        subtree_begin_round(s);
    unsigned window = s->rounds == 1 ? TRANSACTIONS : SINGLE;
    while (s->err == CLAVE_OK && s->left > 0 && s->under_way < window)
        subtree_delete(s, c);
    if (s->under_way == 0)
        subtree_answer(s);
}

/* What was deleted so far is told. While it was only listed, nothing was. */
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
    x->late = x->stop = subtree_give_up;
    x->looking = true;
    subtree_go_on(x->state, c);
}

void clave__web_delete_subtree(struct web_exchange *x)
{
    static const struct problem bad = {.status = 400, .err = CLAVE_EINVAL};
    static const int64_t bounds[2] = {1, SUBTREE_MOST_MAX};
    const char *path = x->params[0];
    int64_t max = SUBTREE_MAX;
    if (!clave__param_path(x) || !clave__query_int(x, "max", bounds, &max))
        return;
    if (clave__web_header(x, "Clave-Guard") || clave__web_header(x, "If-Match") ||
        clave__web_header(x, "If-None-Match")) {
        clave__web_problem(x, &bad,
                           "?recursive is no transaction: it knows neither Clave-Guard nor "
                           "conditions");
        return;
    }
    if (strcmp(path, "/") == 0 || clave__observe_is_below(path, "/zookeeper")) {
        clave__web_problem(x, &bad, "%s is not deleted with what is below it", path);
        return;
    }
    struct subtree *s = x->state = clave__web_alloc(x, sizeof *s);
    if (s)
        *s = (struct subtree){.x = x, .max = max};
    if (s && subtree_add(s, path))
        clave__request_client(x, subtree_begin);
    else
        clave__web_problem_err(x, CLAVE_ENOMEM, "delete", path);
}
