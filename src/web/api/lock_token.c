/* lock_token.c - what a fencing token is worth: GET /v1/locks/PATH?token=T, and writes that are
 * done only while a token holds (Clave-Guard).
 *
 * The place of a token is looked for with two groups of requests. The first group lists the path
 * and reads the mark of a lock delay, the second lists the directories of a semaphore. The names in
 * these listings tell who holds. A token is the czxid of a node, which a listing does not show. The
 * sequence numbers of the nodes in one queue grow with their czxid, so a binary search finds the
 * node, and most locks have one holder. The data of a node are read only where they may decide who
 * holds (lock_listing.h).
 *
 * Invariants: the answer "holds" is given for a node that held by a listing and was there in a
 * transaction after the request had arrived; the answer "does not hold", for a node that was not
 * there then, or that does not hold by a listing which followed a commit. A node that guards a
 * write held its lock by a listing, so it holds as long as it is there. A search is freed when it
 * is done, or when the last answer that it expects has come. Of its `nodes`, those in [low, high)
 * may still be the place; they belong to one queue, which ends at `end`, and the other queues
 * follow. */
#include "web/api/api.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "clave/async/slots.h"
#include "observe/lock_listing.h"
#include "observe/lock_model.h"

/* ==== the place of a token ==================================================================== */

enum { MOST_TRIES = 3 };

/* A node that may be the place. */
struct search_node {
    const struct lock_queue *queue;
    const char *number; /* in the path */
    char *path;
    bool bare; /* it has no number */
};

struct token_lookup {
    struct web_exchange *x;
    struct clave_mem mem;
    struct place_question q;
    struct lock_listing listing;
    char *mark;
    char *sides[LOCK_SIDES];
    struct search_node *nodes;
    size_t low, high, end, n, at;
    unsigned pending; /* how many answers are awaited */
    unsigned tries;
    clave_err err;
    bool fresh;     /* listed after a commit */
    bool all;       /* `nodes` includes those that wait */
    bool hidden;    /* a node was found whose token may not be read */
    bool abandoned; /* nobody waits for the answer */
    bool counted, kazoo;
    bool slotted; /* the path has slots: clave/async/slots.h */
};

/* ---- life ----------------------------------------------------------------------------------- */

static void lookup_drop_nodes(struct token_lookup *s)
{
    for (size_t i = 0; i < s->n; i++)
        clave__mem_free(&s->mem, s->nodes[i].path);
    clave__mem_free(&s->mem, s->nodes);
    s->nodes = NULL;
    s->low = s->high = s->end = s->n = s->at = 0;
}

static void lookup_free(struct token_lookup *s)
{
    assert(s->pending == 0);
    lookup_drop_nodes(s);
    clave__lock_listing_fini(&s->listing);
    clave__mem_free(&s->mem, s->mark);
    for (int i = 0; i < LOCK_SIDES; i++)
        clave__mem_free(&s->mem, s->sides[i]);
    struct clave_mem mem = s->mem;
    clave__mem_free(&mem, s);
}

/* Nothing was changed, so a lost answer leaves no doubt. */
static void lookup_fail(struct token_lookup *s, clave_err err)
{
    struct web_exchange *x = s->x;
    bool lost = clave_err_classify(err) == CLAVE_CLASS_UNKNOWN;
    clave__web_problem_err(x, lost ? CLAVE_EUNREACHABLE : err, "look for the token at", s->q.path);
    lookup_free(s);
}

static void lookup_finish(struct token_lookup *s, clave_async_client *c, enum place_found found,
                          const char *node)
{
    struct web_exchange *x = s->x;
    char *copy = node ? clave__web_strndup(x, node, strlen(node)) : NULL;
    if (node && !copy) {
        lookup_fail(s, CLAVE_ENOMEM);
        return;
    }
    const struct place_question q = s->q;
    x->only_reads = false;
    lookup_free(s);
    q.done(x, c, q.arg, found, copy);
}

/* An answer has come. Returns false if nobody waits for the result any more; the last answer then
 * frees the search. */
static bool lookup_expected(struct token_lookup *s)
{
    assert(s->pending > 0);
    bool abandoned = !clave__web_expected(s->x) || s->abandoned;
    s->abandoned = abandoned;
    s->pending--;
    if (abandoned && s->pending == 0)
        lookup_free(s);
    return !abandoned;
}

static void lookup_expect(struct token_lookup *s, clave_err err)
{
    if (err == CLAVE_OK) {
        clave__web_expect(s->x);
        s->pending++;
    } else if (s->err == CLAVE_OK) {
        s->err = err;
    }
}

/* Requests were submitted. Fails at once if none of them could be. */
static void lookup_sent(struct token_lookup *s)
{
    if (s->pending == 0)
        lookup_fail(s, s->err);
}

/* ---- one of the nodes ----------------------------------------------------------------------- */

static void lookup_next(struct token_lookup *s, clave_async_client *c);
static void lookup_list(struct token_lookup *s, clave_async_client *c);

static const struct lock_node *lookup_place_at(const struct token_lookup *s, const char *path)
{
    const char *name = clave__path_name(path);
    const struct lock_queue *q = s->nodes[s->at].queue;
    const struct lock_node *p = NULL;
    while ((p = clave__lock_listing_after(&s->listing, p)))
        if (p->queue == q && strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

/* The node exists and has the token: does it hold? */
static void lookup_judge(struct token_lookup *s, clave_async_client *c)
{
    assert(s->at < s->n);
    const char *path = s->nodes[s->at].path;
    const struct lock_node *p = lookup_place_at(s, path);
    bool holds = p && clave__lock_listing_holds(&s->listing, p);
    if (holds || s->q.any)
        lookup_finish(s, c, PLACE_HOLDS, path);
    else if (s->fresh)
        lookup_finish(s, c, PLACE_WAITS, path);
    else
        lookup_list(s, c);
}

static void lookup_on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    struct token_lookup *s = arg;
    if (!lookup_expected(s))
        return;
    clave_err err = res->err;
    if (err == CLAVE_OK)
        err = clave__lock_listing_node(&s->listing, res->path, res->stat, res->data, res->len);
    else if (err == CLAVE_ENONODE)
        clave__lock_listing_gone(&s->listing, res->path);
    if (err != CLAVE_OK && err != CLAVE_ENONODE && err != CLAVE_ENOAUTH && s->err == CLAVE_OK)
        s->err = err;
    if (s->pending > 0)
        return;
    if (s->err != CLAVE_OK)
        lookup_fail(s, s->err);
    else
        lookup_judge(s, c);
}

/* Reads what the names do not tell: whether the place is within a lock delay, or whether a lease
 * has room according to its own limit, and may be the one that waits for it. */
static void lookup_read(struct token_lookup *s, clave_async_client *c)
{
    const char *path = s->nodes[s->at].path;
    const struct lock_queue *q = s->nodes[s->at].queue;
    const struct lock_node *first = q->leases ? clave__lock_waiter_after(q, NULL) : NULL;
    bool marked = q->mark != 0 && q->mark != s->q.token;
    if (s->q.any || (!marked && !q->leases)) {
        lookup_judge(s, c);
        return;
    }
    lookup_expect(s, clave_async_get(c, path, NULL, lookup_on_read, s));
    char *waiter = first ? clave__lock_node_path(&s->mem, first) : NULL;
    if (waiter)
        lookup_expect(s, clave_async_get(c, waiter, NULL, lookup_on_read, s));
    else if (first && s->err == CLAVE_OK)
        s->err = CLAVE_ENOMEM;
    clave__mem_free(&s->mem, waiter);
    lookup_sent(s);
}

/* ---- the search ----------------------------------------------------------------------------- */

static void lookup_remove(struct token_lookup *s)
{
    assert(s->at < s->end && s->end <= s->n && s->at < s->high);
    clave__mem_free(&s->mem, s->nodes[s->at].path);
    memmove(s->nodes + s->at, s->nodes + s->at + 1, (s->n - s->at - 1) * sizeof *s->nodes);
    s->n--;
    s->end--;
    s->high--;
}

static void lookup_on_stat(clave_async_client *c, const clave_result *res, void *arg)
{
    struct token_lookup *s = arg;
    if (!lookup_expected(s))
        return;
    clave_err err = res->err;
    bool found = err == CLAVE_OK && res->stat->czxid == s->q.token;
    if (found)
        err = clave__lock_listing_node(&s->listing, s->nodes[s->at].path, res->stat, NULL, 0);
    s->hidden = s->hidden || err == CLAVE_ENOAUTH;
    if (err == CLAVE_ENONODE || err == CLAVE_ENOAUTH)
        lookup_remove(s);
    else if (err != CLAVE_OK)
        lookup_fail(s, err);
    else if (found)
        lookup_read(s, c);
    else if (s->nodes[s->at].bare || res->stat->czxid < s->q.token)
        s->low = s->at + 1;
    else
        s->high = s->at;
    if (err == CLAVE_ENONODE || err == CLAVE_ENOAUTH || (err == CLAVE_OK && !found))
        lookup_next(s, c);
}

/* Sorts by queue, then by number. */
static int lookup_compare(const void *a, const void *b)
{
    const struct search_node *x = a, *y = b;
    int cmp = strcmp(x->queue->path, y->queue->path);
    if (cmp == 0)
        cmp = x->queue->leases - y->queue->leases;
    if (cmp == 0)
        cmp = strcmp(x->number, y->number);
    return cmp ? cmp : strcmp(x->path, y->path);
}

/* Collects the places that hold; if `all`, also those that wait. */
static clave_err lookup_collect(struct token_lookup *s, bool all)
{
    lookup_drop_nodes(s);
    s->all = all;
    s->nodes = clave__mem_zalloc(&s->mem, (s->listing.model.nplaces + 1) * sizeof *s->nodes);
    if (!s->nodes)
        return CLAVE_ENOMEM;
    for (const struct lock_node *p = NULL; (p = clave__lock_listing_after(&s->listing, p));) {
        if (!all && !clave__lock_listing_holds(&s->listing, p))
            break; /* holders come first */
        struct search_node *node = &s->nodes[s->n];
        node->path = clave__lock_node_path(&s->mem, p);
        if (!node->path)
            return CLAVE_ENOMEM;
        node->queue = p->queue;
        node->number = clave__path_name(node->path) + p->number;
        node->bare = p->kind == QUEUE_LEASE && clave__lock_is_bare(p->name);
        s->n++;
    }
    qsort(s->nodes, s->n, sizeof *s->nodes, lookup_compare);
    return CLAVE_OK;
}

/* The nodes of the next queue. */
static bool lookup_begin_queue(struct token_lookup *s)
{
    s->low = s->end;
    while (s->end < s->n && s->nodes[s->end].queue == s->nodes[s->low].queue)
        s->end++;
    s->high = s->end;
    return s->low < s->high;
}

/* ---- the slots of an owner ---- */

static void lookup_on_slots(clave_async_client *c, clave_err err, const clave_slots_view *view,
                            void *arg)
{
    struct token_lookup *s = arg;
    if (!lookup_expected(s))
        return;
    size_t i = 0;
    while (err == CLAVE_OK && i < view->n && view->slots[i].token != s->q.token)
        i++;
    if (err != CLAVE_OK)
        lookup_fail(s, err);
    else if (i < view->n)
        lookup_finish(s, c, PLACE_HOLDS, view->slots[i].node);
    else if (s->hidden)
        lookup_fail(s, CLAVE_ENOAUTH);
    else
        lookup_finish(s, c, PLACE_GONE, NULL);
}

/* A slot is held for as long as its node exists. This list follows the commit of the listing. */
static void lookup_slots(struct token_lookup *s, clave_async_client *c)
{
    lookup_expect(s, clave_async_slots_list(c, s->q.path, lookup_on_slots, s));
    lookup_sent(s);
}

static void lookup_exhausted(struct token_lookup *s, clave_async_client *c)
{
    clave_err err = CLAVE_OK;
    if (!s->fresh) {
        lookup_list(s, c);
    } else if (!s->all) {
        err = lookup_collect(s, true);
        if (err == CLAVE_OK)
            lookup_next(s, c);
        else
            lookup_fail(s, err);
    } else if (s->slotted && !s->q.any) {
        lookup_slots(s, c);
    } else if (s->hidden) {
        lookup_fail(s, CLAVE_ENOAUTH);
    } else {
        lookup_finish(s, c, PLACE_GONE, NULL);
    }
}

/* Looks at the first node of a queue, which holds in most cases, then always at the middle one of
 * those that are left. */
static void lookup_next(struct token_lookup *s, clave_async_client *c)
{
    bool begins = s->low >= s->high;
    if (begins && !lookup_begin_queue(s)) {
        lookup_exhausted(s, c);
        return;
    }
    if (!begins && !s->nodes[s->low].bare)
        s->at = s->low + (s->high - s->low) / 2;
    else
        s->at = s->low;
    lookup_expect(s, clave_async_exists(c, s->nodes[s->at].path, NULL, lookup_on_stat, s));
    lookup_sent(s);
}

/* ---- the listing ---------------------------------------------------------------------------- */

static void lookup_listed(struct token_lookup *s, clave_async_client *c);

static void lookup_note_names(struct token_lookup *s, const clave_result *res)
{
    for (size_t i = 0; i < res->nnames; i++) {
        const char *name = res->names[i];
        enum queue_kind kind = clave__queue_kind_of(name);
        s->counted = s->counted || strcmp(name, "leases") == 0;
        s->slotted = s->slotted || strcmp(name, "owners") == 0;
        s->kazoo = s->kazoo || (kind == QUEUE_OTHER && clave__lock_is_bare(name));
    }
}

static void lookup_on_names(clave_async_client *c, const clave_result *res, void *arg)
{
    struct token_lookup *s = arg;
    enum lock_side side = LOCK_SIDE_PATH;
    if (!lookup_expected(s))
        return;
    while (side < LOCK_SIDE_KAZOO && strcmp(res->path, s->sides[side]) != 0)
        side++;
    clave_err err = res->err;
    if (err == CLAVE_OK)
        err = clave__lock_listing_names(&s->listing, side, res->names, res->nnames);
    if (err == CLAVE_OK && side == LOCK_SIDE_PATH)
        lookup_note_names(s, res);
    if (err != CLAVE_OK && err != CLAVE_ENONODE && s->err == CLAVE_OK)
        s->err = err;
    if (s->pending == 0)
        lookup_listed(s, c);
}

/* The mark may be a node of somebody else, which the gate cannot read. */
static void lookup_on_mark(clave_async_client *c, const clave_result *res, void *arg)
{
    struct token_lookup *s = arg;
    if (!lookup_expected(s))
        return;
    clave_err err = res->err;
    if (err == CLAVE_OK)
        err = clave__lock_listing_node(&s->listing, s->mark, res->stat, res->data, res->len);
    if (err != CLAVE_OK && err != CLAVE_ENONODE && err != CLAVE_ENOAUTH && s->err == CLAVE_OK)
        s->err = err;
    if (s->pending == 0)
        lookup_listed(s, c);
}

static void lookup_on_committed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct token_lookup *s = arg;
    if (!lookup_expected(s))
        return;
    if (res->err != CLAVE_OK && s->err == CLAVE_OK)
        s->err = res->err;
    if (s->pending == 0)
        lookup_listed(s, c);
}

/* Lists the directories of a semaphore, the leases first. */
static void lookup_list_sides(struct token_lookup *s, clave_async_client *c)
{
    for (enum lock_side side = LOCK_SIDE_LEASES; side < LOCK_SIDES; side++)
        if (side == LOCK_SIDE_KAZOO ? s->kazoo : s->counted)
            lookup_expect(s, clave_async_children(c, s->sides[side], NULL, lookup_on_names, s));
    s->counted = s->kazoo = false;
    lookup_sent(s);
}

/* All answers to a group of requests have come. If its commit was lost, the group is sent again. */
static void lookup_listed(struct token_lookup *s, clave_async_client *c)
{
    if (clave_err_classify(s->err) == CLAVE_CLASS_UNKNOWN && s->tries < MOST_TRIES)
        lookup_list(s, c);
    else if (s->err != CLAVE_OK)
        lookup_fail(s, s->err);
    else if (s->counted || s->kazoo)
        lookup_list_sides(s, c);
    else if (lookup_collect(s, s->q.any) == CLAVE_OK)
        lookup_next(s, c);
    else
        lookup_fail(s, CLAVE_ENOMEM);
}

/* Begins the search anew. The first listing is taken as it comes; later ones follow a commit. */
static void lookup_list(struct token_lookup *s, clave_async_client *c)
{
    static const clave_op nothing = {.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
    s->fresh = s->q.any || s->tries > 0;
    s->tries++;
    s->err = CLAVE_OK;
    s->hidden = s->counted = s->kazoo = s->slotted = false;
    lookup_drop_nodes(s);
    clave__lock_model_clear(&s->listing.model);
    if (s->fresh)
        lookup_expect(s, clave_async_multi(c, &nothing, 1, lookup_on_committed, s));
    lookup_expect(s, clave_async_children(c, s->q.path, NULL, lookup_on_names, s));
    lookup_expect(s, clave_async_get(c, s->mark, NULL, lookup_on_mark, s));
    lookup_sent(s);
}

void clave__place_search(struct web_exchange *x, clave_async_client *c,
                         const struct place_question *q)
{
    struct web *w = x->web;
    struct token_lookup *s = clave__mem_zalloc(&w->mem, sizeof *s);
    x->only_reads = true;
    if (!s) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "look for the token at", q->path);
        return;
    }
    *s = (struct token_lookup){.x = x, .mem = w->mem, .q = *q};
    clave_err err =
        clave__lock_listing_init(&s->listing, &s->mem, clave__rand_u64(&w->rand), q->path);
    s->listing.certain = true;
    s->mark = clave__lock_mark_path(&s->mem, q->path);
    bool made = err == CLAVE_OK && s->mark;
    for (int i = 0; i < LOCK_SIDES; i++) {
        s->sides[i] = clave__lock_side_path(&s->mem, q->path, (enum lock_side)i);
        made = made && s->sides[i];
    }
    if (made)
        lookup_list(s, c);
    else
        lookup_fail(s, CLAVE_ENOMEM);
}

/* ==== Clave-Guard ============================================================================= */

/* ---- the header ----------------------------------------------------------------------------- */

/* Reads the guard at *text, whose path has *len bytes, and moves on to the next. Returns false if
 * there is no guard. */
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
    do {
        const char *begin = text, *fault = "";
        struct guard *g = &out->list[out->n];
        size_t len = 0;
        if (out->n == MOST_GUARDS)
            return clave__web_bad_request(x, "at most %d locks can guard a write",
                                          (int)MOST_GUARDS);
        if (!guard_parse(&text, &len, &g->token) ||
            (fault = clave__path_fault(begin, len, false)) != NULL)
            return clave__web_bad_request(
                x,
                "Clave-Guard must be PATH;token=NUMBER, or several of them, "
                "separated by commas%s%s",
                *fault ? "; the path " : "", fault);
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
    clave__web_refuse(x, 410, CLAVE_ELOST, g->path,
                      "not done: the lock %s is not held with token %lld any more", g->path,
                      (long long)g->token);
}

static void guards_go_on(struct web_exchange *x, clave_async_client *c, struct guards *g);

static void on_guard_found(struct web_exchange *x, clave_async_client *c, void *arg,
                           enum place_found found, const char *node)
{
    struct guards *all = arg;
    assert(all->at < all->n);
    struct guard *g = &all->list[all->at];
    g->node = node;
    switch (found) {
    case PLACE_HOLDS:
        all->at++;
        guards_go_on(x, c, all);
        break;
    case PLACE_WAITS:
        clave__web_refuse(x, 409, CLAVE_EBUSY, g->path,
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
    assert(g->at == g->n); /* clave__guards_find has found all of them */
    for (size_t i = 0; i < g->n; i++)
        ops[i] = (clave_op){.kind = CLAVE_OP_CHECK, .path = g->list[i].node, .version = -1};
}

/* The operations before the failed one would have succeeded. */
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

/* ==== ?token= ================================================================================= */

static void token_tell(struct web_exchange *x, const struct place_question *q, bool holds)
{
    struct json *j = &x->json;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "path", q->path);
    clave__json_int64(j, "token", q->token);
    clave__json_bool(j, "holds", holds);
    clave__web_answer_object(x, 200);
}

static void on_token_checked(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE)
        token_tell(x, x->state, res->err == CLAVE_OK);
    else
        clave__web_problem_err(x, res->err, "check the holder of", x->params[0]);
}

static void on_token_found(struct web_exchange *x, clave_async_client *c, void *arg,
                           enum place_found found, const char *node)
{
    const clave_op check = {.kind = CLAVE_OP_CHECK, .path = node, .version = -1};
    if (found != PLACE_HOLDS) {
        token_tell(x, arg, false);
        return;
    }
    clave_err err = clave_async_multi(c, &check, 1, on_token_checked, x);
    clave__request_client_sent(x, c, err, "check the holder of", x->params[0]);
}

static void token_begin(struct web_exchange *x, clave_async_client *c)
{
    clave__place_search(x, c, x->state);
}

static void token_ask(struct web_exchange *x)
{
    int64_t token;
    if (!clave__web_parse_int(clave__web_query(x, "token"), &token) || token <= 0) {
        clave__web_bad_request(x, "\"token\" must be a number above 0");
        return;
    }
    struct place_question *q = x->state = clave__web_must_alloc(x, sizeof *q);
    if (!q)
        return;
    *q = (struct place_question){x->params[0], token, false, on_token_found, q};
    clave__request_client(x, token_begin);
}

void clave__web_get_lock_or_token(struct web_exchange *x)
{
    if (!clave__web_query(x, "token"))
        clave__web_get_lock(x);
    else if (clave__param_path(x))
        token_ask(x);
}
