/* guard_header.c - see guard_header.h. Called by the endpoints that write. Invariant: a node that
 * is checked held its lock by a listing (token_lookup.h), so while it is there, it holds. */
#include "web/api/guard_header.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "web/api/request_client.h"
#include "web/api/token_lookup.h"
#include "web/http/authorization.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"

/* ---- the header ----------------------------------------------------------------------------- */

/* Reads the guard at *text, whose path has *len bytes, and moves on to the next; false: it is none.
 */
static bool guard_parse(const char **text, size_t *len, int64_t *token)
{
    char digits[24] = "";
    const char *number;
    size_t n;
    if (!clave__guard_next(text, len, &number, &n))
        return false;
    if (n < sizeof digits)
        memcpy(digits, number, n);
    return clave__web_parse_int(digits, token);
}

static bool guards_read_header(struct web_exchange *x, const char *text, struct guards *out)
{
    static const struct problem bad = {.status = 400, .err = CLAVE_EINVAL};
    do {
        const char *begin = text, *fault = "";
        struct guard *g = &out->list[out->n];
        size_t len = 0;
        if (out->n == MOST_GUARDS) {
            clave__web_problem(x, &bad, "at most %d locks can guard a write", (int)MOST_GUARDS);
            return false;
        }
        if (!guard_parse(&text, &len, &g->token) ||
            (fault = clave__path_fault(begin, len, false)) != NULL) {
            clave__web_problem(x, &bad,
                               "Clave-Guard must be PATH;token=NUMBER, or several of them, "
                               "separated by commas%s%s",
                               *fault ? "; the path " : "", fault);
            return false;
        }
        g->path = clave__web_strndup(x, begin, len);
        if (!g->path) {
            clave__web_problem_err(x, CLAVE_ENOMEM, "read", "Clave-Guard");
            return false;
        }
        if (!clave__web_must(x, WEB_READ, g->path))
            return false;
        out->n++;
    } while (*text);
    return true;
}

bool clave__guards_read(struct web_exchange *x, struct guards *out)
{
    const char *value;
    *out = (struct guards){.n = 0};
    for (size_t i = 0; (value = clave__web_header_at(x, "Clave-Guard", i)); i++)
        if (!guards_read_header(x, value, out))
            return false;
    return true;
}

/* ---- the nodes ------------------------------------------------------------------------------ */

static void guard_answer_lost(struct web_exchange *x, const struct guard *g)
{
    struct problem p = {.status = 410, .err = CLAVE_ELOST, .path = g->path};
    clave__web_problem(x, &p, "not done: the lock %s is not held with token %lld any more", g->path,
                       (long long)g->token);
}

static void guards_go_on(struct web_exchange *x, clave_async_client *c, struct guards *g);

static void on_guard_found(struct web_exchange *x, clave_async_client *c, void *arg,
                           enum place_found found, const char *node)
{
    struct guards *all = arg;
    assert(all->at < all->n);
    struct guard *g = &all->list[all->at];
    struct problem waits = {.status = 409, .err = CLAVE_EBUSY, .path = g->path};
    g->node = node;
    switch (found) {
    case PLACE_HOLDS:
        all->at++;
        guards_go_on(x, c, all);
        break;
    case PLACE_WAITS:
        clave__web_problem(x, &waits,
                           "not done: the place with token %lld does not hold the lock %s yet",
                           (long long)g->token, g->path);
        break;
    case PLACE_GONE:
        guard_answer_lost(x, g);
        break;
    }
}

static void guards_go_on(struct web_exchange *x, clave_async_client *c, struct guards *g)
{
    const struct guard *next = &g->list[g->at];
    const struct place_question q = {next->path, next->token, false, on_guard_found, g};
    if (g->at == g->n)
        g->found(x, c);
    else
        clave__place_search(x, c, &q);
}

void clave__guards_find(struct web_exchange *x, clave_async_client *c, struct guards *g,
                        void (*found)(struct web_exchange *x, clave_async_client *c))
{
    g->found = found;
    g->at = 0;
    guards_go_on(x, c, g);
}

/* ---- the transaction ------------------------------------------------------------------------ */

void clave__guards_put_checks(const struct guards *g, clave_op *ops)
{
    assert(g->at == g->n); /* _find has found all of them */
    for (size_t i = 0; i < g->n; i++)
        ops[i] = (clave_op){.kind = CLAVE_OP_CHECK, .path = g->list[i].node, .version = -1};
}

/* The operations before the one that failed would have succeeded. */
bool clave__guards_failed(struct web_exchange *x, const struct guards *g, const clave_result *res)
{
    size_t i = 0;
    while (i < g->n && i < res->nops && res->ops[i].err == CLAVE_OK)
        i++;
    if (res->err == CLAVE_OK || i >= g->n || i >= res->nops)
        return false;
    if (res->ops[i].err == CLAVE_ENONODE)
        guard_answer_lost(x, &g->list[i]);
    else
        clave__web_problem_err(x, res->ops[i].err, "check the lock", g->list[i].path);
    return true;
}
