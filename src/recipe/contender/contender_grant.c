/* contender_grant.c - clave_async_grant: counted copies of what a holder has, and writes under
 * them; also the limits of a hold, which may end it before its session ends. Mutex, semaphore and
 * latch make grants; the contender tells when the hold is over.
 *
 * What must stay true: a grant watches its place exactly as long as the hold lasts. A hold whose
 * work was silent for too long stays over: no later sign of life moves silent_at any more. */
#include "recipe/contender/contender_grant.h"

#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "recipe/contender/contender.h"
#include "recipe/contender/guarded_write.h"
#include "recipe/grant_held.h"

struct clave_async_grant {
    struct hold_watcher watcher; /* watches the place until the hold is over */
    struct contender *place;     /* NULL: the hold is over, or no session keeps it */
    bool resumed;                /* the hold of another process goes on */
    bool kept; /* kept by the server alone, so only the server knows when the hold is over */
    clave_async_client *client; /* holds a reference */
    unsigned refs;
    int64_t token;
    int64_t session_id;
    grant_over *on_over; /* may be NULL */
    void *over_arg;
    char node[];
};

/* ---- the limits of a hold -------------------------------------------------------------------- */

static int64_t contender_grant_silent_at(const struct contender *c)
{
    return c->grant.depend_ms > 0 ? c->grant.silent_at : CLAVE_NEVER;
}

/* The earlier of the hold's own limits; the session's deadline is not among them. */
static int64_t contender_grant_limit(const struct contender *c)
{
    return deadline_earlier(c->grant.end, contender_grant_silent_at(c));
}

int64_t clave__contender_deadline(const struct contender *c)
{
    return deadline_earlier(clave_async_client_hold_deadline(c->client), contender_grant_limit(c));
}

int64_t clave__contender_deadline_if_alive(const struct contender *c)
{
    return deadline_earlier(clave_async_client_hold_deadline(c->client), c->grant.end);
}

static void contender_grant_arm_limit(struct contender *c)
{
    int64_t limit = contender_grant_limit(c);
    if (limit != CLAVE_NEVER)
        clave__client_timer_set(c->client, &c->acquire.limit, limit);
    else
        clave__client_timer_clear(c->client, &c->acquire.limit);
}

void clave__contender_limit(struct contender *c, int64_t max)
{
    assert(max >= 0);
    int64_t end = max > 0 ? deadline_after(clave__client_now(c->client), max) : CLAVE_NEVER;
    c->grant.end = deadline_earlier(end, c->grant.ends_by);
    contender_grant_arm_limit(c);
}

clave_err clave__contender_limit_cause(const struct contender *c)
{
    return contender_grant_silent_at(c) < c->grant.end ? CLAVE_ESILENT : CLAVE_EMAXHOLD;
}

int64_t clave__contender_silence_over(const struct contender *c)
{
    return deadline_after(c->grant.silent_at, clave__client_hold_margin(c->client));
}

struct grant_facts clave__contender_facts(struct contender *c)
{
    return (struct grant_facts){
        .place = c,
        .token = c->node.token,
        .session_id = c->node.session_id,
        .deadline = clave__contender_deadline(c),
        .node = c->node.watch.path,
        .count = 1,
        .resumed = c->handed,
    };
}

/* ---- creating and freeing -------------------------------------------------------------------- */

static void contender_grant_over(struct hold_watcher *w)
{
    clave_async_grant *g = LIST_ENTRY(w, clave_async_grant, watcher);
    g->place = NULL;
    if (g->on_over)
        g->on_over(g->over_arg);
}

static clave_async_grant *contender_grant_alloc(clave_async_client *c, const char *node,
                                                int64_t token)
{
    size_t len = strlen(node) + 1;
    clave_async_grant *g = clave__mem_zalloc(clave__client_mem(c), sizeof *g + len);
    if (!g)
        return NULL;
    g->client = c;
    clave__client_ref(c);
    g->refs = 1;
    g->token = token;
    memcpy(g->node, node, len);
    g->watcher.over = contender_grant_over;
    list_init(&g->watcher.link);
    return g;
}

clave_err clave__grant_new(clave_async_grant **out, const struct grant_facts *f)
{
    struct contender *place = f->place;
    assert(place->state == CONTENDER_HELD);
    clave_async_grant *g = contender_grant_alloc(place->client, f->node, f->token);
    *out = g;
    if (!g)
        return CLAVE_ENOMEM;
    g->place = place;
    g->session_id = f->session_id;
    g->resumed = f->resumed;
    list_push_back(&place->grant.watchers, &g->watcher.link);
    return CLAVE_OK;
}

clave_err clave__grant_new_kept(clave_async_grant **out, clave_async_client *c, const char *node,
                                int64_t token)
{
    clave_async_grant *g = contender_grant_alloc(c, node, token);
    *out = g;
    if (!g)
        return CLAVE_ENOMEM;
    g->kept = true;
    return CLAVE_OK;
}

static bool contender_grant_is_over(const clave_async_grant *g)
{
    return !g->place && !g->kept;
}

void clave__grant_observe(clave_async_grant *g, grant_over *on_over, void *arg)
{
    g->on_over = on_over;
    g->over_arg = arg;
}

clave_async_grant *clave_async_grant_ref(clave_async_grant *g)
{
    g->refs++;
    return g;
}

void clave_async_grant_free(clave_async_grant *g)
{
    if (!g)
        return;
    assert(g->refs > 0);
    if (--g->refs > 0)
        return;
    clave_async_client *c = g->client;
    list_remove(&g->watcher.link);
    clave__mem_free(clave__client_mem(c), g);
    clave__client_unref(c);
}

bool clave_async_grant_is_resumed(const clave_async_grant *g)
{
    return g->resumed;
}

clave_async_client *clave__grant_client(const clave_async_grant *g)
{
    return g->client;
}

/* ---- its node and its validity --------------------------------------------------------------- */

const char *clave_async_grant_node(const clave_async_grant *g)
{
    return g->node;
}

int64_t clave_async_grant_token(const clave_async_grant *g)
{
    return g->token;
}

int64_t clave_async_grant_session_id(const clave_async_grant *g)
{
    return g->session_id;
}

int64_t clave_async_grant_deadline(const clave_async_grant *g)
{
    if (g->kept)
        return CLAVE_NEVER;
    return g->place ? clave__contender_deadline(g->place) : INT64_MIN;
}

bool clave_async_grant_valid_for(const clave_async_grant *g, int64_t now, int64_t ms)
{
    return !contender_grant_is_over(g) && deadline_lasts(clave_async_grant_deadline(g), now, ms);
}

/* ---- signs of life --------------------------------------------------------------------------- */

/* ELOST also if the work was silent for too long and the timer, which will say so, is late. */
static clave_err contender_grant_check_alive(const clave_async_grant *g, int64_t now)
{
    return g->place && now <= contender_grant_silent_at(g->place) ? CLAVE_OK : CLAVE_ELOST;
}

static void contender_grant_promise(struct contender *c, int64_t now, int64_t ms)
{
    c->grant.depend_ms = ms;
    c->grant.silent_at = deadline_after(now, ms);
    contender_grant_arm_limit(c);
}

clave_err clave_async_grant_depend(clave_async_grant *g, int64_t now, int64_t ms)
{
    if (ms < 0 || g->kept) {
        clave__client_fault(g->client,
                            ms < 0 ? "a hold cannot depend on a sign of life every "
                                     "%lld ms: give 1 or more, or 0 to end that"
                                   : "a slot has no deadline, so it cannot depend on a "
                                     "sign of life every %lld ms",
                            (long long)ms);
        return CLAVE_EINVAL;
    }
    clave_err err = contender_grant_check_alive(g, now);
    if (err == CLAVE_OK)
        contender_grant_promise(g->place, now, ms);
    return err;
}

clave_err clave_async_grant_alive(clave_async_grant *g, int64_t now)
{
    clave_err err = g->kept ? CLAVE_OK : contender_grant_check_alive(g, now);
    if (err == CLAVE_OK && g->place && g->place->grant.depend_ms > 0)
        contender_grant_promise(g->place, now, g->place->grant.depend_ms);
    return err;
}

/* ---- guarded writes -------------------------------------------------------------------------- */

clave_err clave__grant_write(clave_async_grant *g, const clave_op *op, clave_result_cb *cb,
                             void *arg)
{
    struct write_guard guard = {.nodes = (const char *const[]){g->node}, .n = 1, .kept = g->kept};
    return contender_grant_is_over(g) ? CLAVE_ELOST
                                      : clave__guarded_write_one(g->client, guard, op, cb, arg);
}

clave_err clave_async_grant_create(clave_async_grant *g, const char *path, const void *data,
                                   size_t len, clave_create_mode mode, clave_result_cb *cb,
                                   void *arg)
{
    clave_op op = {.kind = CLAVE_OP_CREATE, .path = path, .data = data, .len = len, .mode = mode};
    return clave__grant_write(g, &op, cb, arg);
}

clave_err clave_async_grant_set(clave_async_grant *g, const char *path, const void *data,
                                size_t len, int32_t version, clave_result_cb *cb, void *arg)
{
    clave_op op = {
        .kind = CLAVE_OP_SET, .path = path, .data = data, .len = len, .version = version};
    return clave__grant_write(g, &op, cb, arg);
}

clave_err clave_async_grant_delete(clave_async_grant *g, const char *path, int32_t version,
                                   clave_result_cb *cb, void *arg)
{
    clave_op op = {.kind = CLAVE_OP_DELETE, .path = path, .version = version};
    return clave__grant_write(g, &op, cb, arg);
}

static clave_err place_grants_check(clave_async_grant *const *grants, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (grants[i]->client != grants[0]->client)
            return CLAVE_EINVAL;
    for (size_t i = 0; i < n; i++)
        if (contender_grant_is_over(grants[i]))
            return CLAVE_ELOST;
    return n > 0 ? CLAVE_OK : CLAVE_EINVAL;
}

clave_err clave_async_grant_multi(clave_async_grant *const *grants, size_t n, const clave_op *ops,
                                  size_t nops, clave_result_cb *cb, void *arg)
{
    clave_err err = place_grants_check(grants, n);
    if (err != CLAVE_OK)
        return err;
    clave_async_client *c = grants[0]->client;
    const struct clave_mem *mem = clave__client_mem(c);
    if (n > SIZE_MAX / sizeof(char *))
        return CLAVE_ETOOBIG;
    const char **nodes = clave__mem_alloc(mem, n * sizeof *nodes);
    if (!nodes)
        return CLAVE_ENOMEM;
    struct write_guard guard = {.nodes = nodes, .n = n, .kept = true};
    for (size_t i = 0; i < n; i++) {
        nodes[i] = grants[i]->node;
        guard.kept = guard.kept && grants[i]->kept;
    }
    err = clave__guarded_write_multi(c, guard, ops, nops, cb, arg);
    clave__mem_free(mem, nodes);
    return err;
}
