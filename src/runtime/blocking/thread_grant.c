/* thread_grant.c - clave_grant: clave_async_grant for threads. When a thread asks how long a grant
 * is valid, the answer comes from a copy of the deadline, which the loop's thread updates after
 * every pass, compared with the asking thread's own reading of the clock. So a thread that was
 * stopped past the deadline gets the truth at once, whatever the loop has had time to notice. */
#include "runtime/blocking/thread_grant.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "recipe/contender/contender_grant.h"

struct clave_grant {
    unsigned refs; /* atomic */
    struct child child;
    clave_async_grant *grant; /* used by the loop's thread only; NULL: the session has ended */
    int64_t deadline;         /* under the loop's mutex, and written by the loop's thread only */
    int64_t token;
    int64_t session_id;
    bool resumed;
    char node[];
};

/* ---- publishing, on the loop's thread -------------------------------------------------------- */

static void thread_grant_publish(clave_grant *g, int64_t deadline)
{
    assert(clave__loop_is_current(g->child.client->loop));
    if (g->deadline == deadline)
        return;
    clave__loop_lock(g->child.client->loop);
    g->deadline = deadline;
    clave__loop_unlock(g->child.client->loop);
}

static void thread_grant_on_settled(struct child *c)
{
    clave_grant *g = LIST_ENTRY(c, clave_grant, child);
    thread_grant_publish(g, clave_async_grant_deadline(g->grant));
}

/* This runs before the user's callback acts on the loss. */
static void thread_grant_on_over(void *arg)
{
    thread_grant_publish(arg, INT64_MIN);
}

static void thread_grant_on_ended(struct child *c)
{
    clave_grant *g = LIST_ENTRY(c, clave_grant, child);
    clave__grant_observe(g->grant, NULL, NULL);
    clave_async_grant_free(g->grant);
    g->grant = NULL;
    thread_grant_publish(g, INT64_MIN);
}

static const struct child_kind thread_grant_kind = {.settled = thread_grant_on_settled,
                                                    .ended = thread_grant_on_ended};

/* ---- creating and freeing -------------------------------------------------------------------- */

struct thread_grant_request {
    clave_client *client;
    thread_grant_find *find;
    void *holder;
    uint64_t owner;
    clave_grant *made;
};

static clave_err thread_grant_make(clave_async_client *c, const struct args *a)
{
    struct thread_grant_request *r = a->of;
    clave_async_grant *found;
    (void)c;
    clave_err err = r->find(r->holder, r->owner, &found);
    if (err != CLAVE_OK)
        return err;
    const char *node = clave_async_grant_node(found);
    size_t len = strlen(node) + 1;
    clave_grant *g = calloc(1, sizeof *g + len);
    if (!g) {
        clave_async_grant_free(found);
        return CLAVE_ENOMEM;
    }
    g->refs = 1;
    g->grant = found;
    g->token = clave_async_grant_token(found);
    g->session_id = clave_async_grant_session_id(found);
    g->resumed = clave_async_grant_is_resumed(found);
    g->deadline = clave_async_grant_deadline(found);
    memcpy(g->node, node, len);
    clave__grant_observe(found, thread_grant_on_over, g);
    clave__child_adopt(&g->child, r->client, &thread_grant_kind);
    r->made = g;
    return CLAVE_OK;
}

clave_err clave__thread_grant_take(clave_grant **out, clave_client *c, thread_grant_find *find,
                                   void *holder, uint64_t owner)
{
    struct thread_grant_request r = {.client = c, .find = find, .holder = holder, .owner = owner};
    clave_err err = clave__visit(c, thread_grant_make, &(struct args){.of = &r});
    *out = r.made;
    return err;
}

clave_grant *clave_grant_ref(clave_grant *g)
{
    (void)__atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
    return g;
}

void clave_grant_free(clave_grant *g)
{
    if (!g || !clave__loop_is_here(g->child.client->loop))
        return;
    assert(__atomic_load_n(&g->refs, __ATOMIC_RELAXED) > 0);
    if (__atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    (void)clave__child_close(&g->child);
    free(g);
}

/* ---- its node and its validity --------------------------------------------------------------- */

const char *clave_grant_node(const clave_grant *g)
{
    return g->node;
}

int64_t clave_grant_token(const clave_grant *g)
{
    return g->token;
}

int64_t clave_grant_session_id(const clave_grant *g)
{
    return g->session_id;
}

bool clave_grant_is_resumed(const clave_grant *g)
{
    return g->resumed;
}

int64_t clave__thread_grant_deadline_locked(const clave_grant *g)
{
    return g->deadline;
}

int64_t clave_grant_deadline(clave_grant *g)
{
    clave_loop *loop = g->child.client->loop;
    if (!clave__loop_is_here(loop))
        return INT64_MIN;
    clave__loop_lock(loop);
    int64_t deadline = g->deadline;
    clave__loop_unlock(loop);
    return deadline;
}

bool clave_grant_valid_for(clave_grant *g, int64_t ms)
{
    int64_t deadline = clave_grant_deadline(g);
    int64_t now = clave_now(); /* read after the copy, so that a pause in between counts */
    return deadline_lasts(deadline, now, ms);
}

static clave_err thread_grant_depend(clave_async_client *c, const struct args *a)
{
    clave_grant *g = a->of;
    (void)c;
    clave_err err = clave_async_grant_depend(g->grant, clave_now(), a->deadline);
    clave__blocking_publish(g->child.client);
    return err;
}

clave_err clave_grant_depend(clave_grant *g, int64_t ms)
{
    return clave__visit(g->child.client, thread_grant_depend,
                        &(struct args){.of = g, .deadline = ms});
}

static clave_err thread_grant_alive(clave_async_client *c, const struct args *a)
{
    clave_grant *g = a->of;
    (void)c;
    clave_err err = clave_async_grant_alive(g->grant, clave_now());
    clave__blocking_publish(g->child.client);
    return err;
}

clave_err clave_grant_alive(clave_grant *g)
{
    return clave__visit(g->child.client, thread_grant_alive, &(struct args){.of = g});
}

clave_async_grant *clave__thread_grant_of_engine(const clave_grant *g)
{
    assert(clave__loop_is_current(g->child.client->loop));
    return g->grant;
}

clave_client *clave__thread_grant_session(const clave_grant *g)
{
    return g->child.client;
}

/* ---- guarded writes ------------------------------------------------------------------------- */

static clave_err begin_write(struct call *c, const struct args *a)
{
    const clave_grant *g = a->of;
    return clave__grant_write(g->grant, a->ops, clave__call_on_result, c);
}

clave_err clave_grant_create(clave_grant *g, const char *path, const void *data, size_t len,
                             clave_create_mode mode, int64_t timeout_ms, clave_reply **out)
{
    clave_op op = {.kind = CLAVE_OP_CREATE, .path = path, .data = data, .len = len, .mode = mode};
    struct args a = {.of = g, .path = path, .ops = &op};
    return clave__call_create(g->child.client, begin_write, &a, timeout_ms, out);
}

clave_err clave_grant_set(clave_grant *g, const char *path, const void *data, size_t len,
                          int32_t version, int64_t timeout_ms)
{
    clave_op op = {
        .kind = CLAVE_OP_SET, .path = path, .data = data, .len = len, .version = version};
    struct args a = {.of = g, .ops = &op};
    return clave__call(g->child.client, begin_write, &a, timeout_ms, NULL);
}

clave_err clave_grant_delete(clave_grant *g, const char *path, int32_t version, int64_t timeout_ms)
{
    clave_op op = {.kind = CLAVE_OP_DELETE, .path = path, .version = version};
    struct args a = {.of = g, .ops = &op};
    return clave__call(g->child.client, begin_write, &a, timeout_ms, NULL);
}

struct grants {
    clave_grant *const *list;
    clave_async_grant **found; /* room for n */
    size_t n;
};

static clave_err begin_multi(struct call *c, const struct args *a)
{
    const struct grants *w = a->of;
    for (size_t i = 0; i < w->n; i++)
        w->found[i] = w->list[i]->grant;
    return clave_async_grant_multi(w->found, w->n, a->ops, a->nops, clave__call_on_result, c);
}

clave_err clave_grant_multi(clave_grant *const *grants, size_t n, const clave_op *ops, size_t nops,
                            int64_t timeout_ms, clave_reply **out)
{
    if (out)
        *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (grants[i]->child.client != grants[0]->child.client)
            return CLAVE_EINVAL;
    if (n == 0)
        return CLAVE_EINVAL;
    struct grants w = {.list = grants, .n = n, .found = calloc(n, sizeof *w.found)};
    struct args a = {.of = &w, .ops = ops, .nops = nops};
    if (!w.found)
        return CLAVE_ENOMEM;
    clave_err err = clave__call(grants[0]->child.client, begin_multi, &a, timeout_ms, out);
    free(w.found);
    return err;
}
