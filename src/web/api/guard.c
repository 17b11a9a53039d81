/* guard.c - see guard.h. Called by the endpoints that write.
 *
 * A token is the czxid of a node, which only the node itself tells. The nodes of one queue have
 * numbers that grow with their czxid, so the search halves: a read for each doubling of the queue;
 * the first read is of the first in the queue, who holds in most cases. Invariant: [low, high) of
 * `names` are the nodes that may still be it. */
#include "web/api/guard.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "web/api/client_call.h"
#include "web/http/problem.h"

enum { NUMBER = 10 };

struct guard_search {
    struct web_exchange *x;
    struct guard guard;
    guard_found *found;
    const char *dir; /* that is looked at: the path, then its leases */
    bool in_leases;
    clave_err unsynced;
    const char **names; /* with a number at their end, the lowest first */
    size_t low, high, at;
};

/* ---- the header ----------------------------------------------------------------------------- */

bool clave__guard_read(struct web_exchange *x, struct guard *out)
{
    static const struct problem bad = {.status = 400, .err = CLAVE_EINVAL};
    static const char mark[] = ";token=";
    const char *text = clave__web_header(x, "Clave-Guard");
    const char *at = text ? strstr(text, mark) : NULL;
    *out = (struct guard){0};
    if (!text)
        return true;
    for (const char *next = at; next && (next = strstr(next + 1, mark));)
        at = next; /* a path may have the mark in it */
    char *path = at ? clave__web_strndup(x, text, (size_t)(at - text)) : NULL;
    const char *fault = path ? clave__path_fault(path, strlen(path), false) : NULL;
    if (!path || fault || !clave__web_parse_int(at + strlen(mark), &out->token)) {
        clave__web_problem(x, &bad, "Clave-Guard must be PATH;token=NUMBER%s%s",
                           fault ? ", and the path " : "", fault ? fault : "");
        return false;
    }
    out->path = path;
    return clave__web_must(x, WEB_READ, path);
}

void clave__guard_answer_lost(struct web_exchange *x, const struct guard *g)
{
    struct problem p = {.status = 410, .err = CLAVE_ELOST, .path = g->path};
    clave__web_problem(x, &p, "not done: the lock is not held with token %lld any more",
                       (long long)g->token);
}

/* ---- the search ----------------------------------------------------------------------------- */

static void guard_list(struct guard_search *s, clave_async_client *c);

/* The number at the end of a contender's name; NULL: it has none. */
static const char *guard_number(const char *name)
{
    size_t n = strlen(name);
    return n >= NUMBER && strspn(name + n - NUMBER, "0123456789") == NUMBER ? name + n - NUMBER
                                                                            : NULL;
}

static int guard_compare(const void *a, const void *b)
{
    return strcmp(guard_number(*(const char *const *)a), guard_number(*(const char *const *)b));
}

static void guard_give_up(struct guard_search *s, clave_async_client *c)
{
    char *leases = s->in_leases ? NULL : clave__web_child(s->x, s->guard.path, "leases");
    if (!leases) {
        clave__guard_answer_lost(s->x, &s->guard);
        return;
    }
    s->dir = leases;
    s->in_leases = true;
    guard_list(s, c);
}

static void on_guard_stat(clave_async_client *c, const clave_result *res, void *arg);

static void guard_probe(struct guard_search *s, clave_async_client *c)
{
    if (s->low >= s->high) {
        guard_give_up(s, c);
        return;
    }
    char *path = clave__web_child(s->x, s->dir, s->names[s->at]);
    clave_err err = path ? clave_async_exists(c, path, NULL, on_guard_stat, s) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        clave__web_expect(s->x);
    else
        clave__client_call_refused(s->x, c, err, "look for the guard below", s->dir);
}

/* The middle one of those that are left. */
static void guard_go_on(struct guard_search *s, clave_async_client *c)
{
    s->at = s->low + (s->high - s->low) / 2;
    guard_probe(s, c);
}

static void on_guard_stat(clave_async_client *c, const clave_result *res, void *arg)
{
    struct guard_search *s = arg;
    struct web_exchange *x = s->x;
    if (!clave__web_expected(x))
        return;
    if (res->err == CLAVE_ENONODE) { /* gone meanwhile */
        memmove(s->names + s->at, s->names + s->at + 1, (s->high - s->at - 1) * sizeof *s->names);
        s->high--;
    } else if (res->err != CLAVE_OK) {
        clave__web_problem_err(x, res->err, "look for the guard below", s->dir);
        return;
    } else if (res->stat->czxid == s->guard.token) {
        char *node = clave__web_strndup(x, res->path, strlen(res->path));
        if (node)
            s->found(x, c, node);
        else
            clave__web_problem_err(x, CLAVE_ENOMEM, "look for the guard below", s->dir);
        return;
    } else if (res->stat->czxid < s->guard.token) {
        s->low = s->at + 1;
    } else {
        s->high = s->at;
    }
    guard_go_on(s, c);
}

static bool guard_copy_names(struct guard_search *s, const clave_result *res)
{
    s->low = s->high = s->at = 0;
    s->names = clave__web_alloc(s->x, (res->nnames + 1) * sizeof *s->names);
    if (!s->names)
        return false;
    for (size_t i = 0; i < res->nnames; i++) {
        if (!guard_number(res->names[i]))
            continue;
        s->names[s->high] = clave__web_strndup(s->x, res->names[i], strlen(res->names[i]));
        if (!s->names[s->high++])
            return false;
    }
    qsort(s->names, s->high, sizeof *s->names, guard_compare);
    return true;
}

static void on_guard_names(clave_async_client *c, const clave_result *res, void *arg)
{
    struct guard_search *s = arg;
    if (!clave__web_expected(s->x))
        return;
    if (s->unsynced != CLAVE_OK) /* the names may be old ones, and say 410 of a lock that is held */
        clave__web_problem_err(s->x, s->unsynced, "look for the guard below", s->dir);
    else if (res->err == CLAVE_ENONODE)
        guard_give_up(s, c);
    else if (res->err != CLAVE_OK)
        clave__web_problem_err(s->x, res->err, "look for the guard below", s->dir);
    else if (!guard_copy_names(s, res))
        clave__web_problem_err(s->x, CLAVE_ENOMEM, "look for the guard below", s->dir);
    else
        guard_probe(s, c);
}

static void on_guard_synced(clave_async_client *c, const clave_result *res, void *arg)
{
    struct guard_search *s = arg;
    (void)c;
    if (clave__web_expected(s->x))
        s->unsynced = res->err;
}

static void guard_list(struct guard_search *s, clave_async_client *c)
{
    clave_err err = clave_async_sync(c, s->dir, on_guard_synced, s);
    if (err == CLAVE_OK) {
        clave__web_expect(s->x);
        err = clave_async_children(c, s->dir, NULL, on_guard_names, s);
    }
    if (err == CLAVE_OK)
        clave__web_expect(s->x);
    else
        clave__client_call_refused(s->x, c, err, "look for the guard below", s->dir);
}

void clave__guard_find(struct web_exchange *x, clave_async_client *c, const struct guard *g,
                       guard_found *found)
{
    struct guard_search *s = clave__web_alloc(x, sizeof *s);
    if (!s) {
        clave__client_call_refused(x, c, CLAVE_ENOMEM, "look for the guard below", g->path);
        return;
    }
    *s = (struct guard_search){.x = x, .guard = *g, .found = found, .dir = g->path};
    guard_list(s, c);
}
