/* persistent_node.c - clave_persistent_node: clave_async_persistent_node for threads. Whether the
 * node is there is published under the loop's mutex with each event. */
#include "clave/persistent_node.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/blocking/call.h"

struct clave_persistent_node {
    struct child child;
    clave_async_persistent_node *node; /* used by the loop's thread only; NULL: it has ended */
    struct list waiting;               /* of struct node_wait; used by the loop's thread only */
    clave_persistent_node_event_cb *event_cb; /* the user's */
    void *event_arg;
    bool present; /* under the loop's mutex, as is everything below */
    bool conflict;
    clave_err err; /* the error of the latest refusal; CLAVE_OK: there was none since the node was
                      there */
    struct cell changed;
};

/* A set or a close under way; its thread may have given up. */
struct node_wait {
    struct list link;
    struct call *call;
};

/* ---- publishing, on the loop's thread -------------------------------------------------------- */

static void persistent_node_publish(clave_persistent_node *n, bool present, bool conflict,
                                    clave_err err)
{
    assert(clave__loop_is_current(n->child.client->loop));
    clave__loop_lock(n->child.client->loop);
    n->present = present;
    n->conflict = conflict;
    n->err = err;
    clave__cell_wake(&n->changed);
    clave__loop_unlock(n->child.client->loop);
}

static void persistent_node_on_event(clave_async_persistent_node *node,
                                     const clave_persistent_node_event *ev, void *arg)
{
    clave_persistent_node *n = arg;
    bool failed = ev->type == CLAVE_PERSISTENT_NODE_FAILED;
    bool present = ev->type == CLAVE_PERSISTENT_NODE_PRESENT ||
                   (failed && clave_async_persistent_node_is_present(node));
    persistent_node_publish(n, present, ev->type == CLAVE_PERSISTENT_NODE_CONFLICT,
                            failed ? ev->err : CLAVE_OK);
    if (n->event_cb)
        n->event_cb(node, ev, n->event_arg);
}

/* ---- creating and freeing -------------------------------------------------------------------- */

static clave_err persistent_node_make(clave_async_client *c, const struct args *a)
{
    clave_persistent_node *n = a->of;
    return clave_async_persistent_node_new(&n->node, c, a->path, a->options);
}

static void persistent_node_on_ended(struct child *c)
{
    clave_persistent_node *n = LIST_ENTRY(c, clave_persistent_node, child);
    clave_async_persistent_node_free(n->node);
    n->node = NULL;
    for (struct list *e; (e = list_pop_front(&n->waiting));) {
        struct node_wait *w = LIST_ENTRY(e, struct node_wait, link);
        clave__call_finish(w->call, CLAVE_ECLOSED);
        free(w);
    }
    persistent_node_publish(n, false, false, CLAVE_ECLOSED);
}

static void persistent_node_destroy(clave_persistent_node *n)
{
    clave__cell_fini(&n->changed);
    free(n);
}

clave_err clave_persistent_node_new(clave_persistent_node **out, clave_client *c, const char *path,
                                    const clave_persistent_node_options *o)
{
    static const struct child_kind kind = {.ended = persistent_node_on_ended};
    clave_persistent_node_options own;
    *out = NULL;
    clave_err err =
        clave__blocking_take_options(c, &own, sizeof own, o, "clave_persistent_node_options");
    if (err != CLAVE_OK)
        return err;
    clave_persistent_node *n = calloc(1, sizeof *n);
    if (!n)
        return CLAVE_ENOMEM;
    n->event_cb = own.event_cb;
    n->event_arg = own.event_arg;
    own.event_cb = persistent_node_on_event;
    own.event_arg = n;
    list_init(&n->waiting);
    clave__cell_init(&n->changed);
    err = clave__child_open(&n->child, c, &kind, persistent_node_make,
                            &(struct args){.of = n, .path = path, .options = &own});
    if (err == CLAVE_OK)
        *out = n;
    else
        persistent_node_destroy(n);
    return err;
}

void clave_persistent_node_free(clave_persistent_node *n)
{
    if (n && clave__child_close(&n->child))
        persistent_node_destroy(n);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void persistent_node_on_done(clave_async_persistent_node *node, clave_err err, void *arg)
{
    struct node_wait *w = arg;
    (void)node;
    list_remove(&w->link);
    clave__call_finish(w->call, err);
    free(w);
}

static clave_err persistent_node_begin(struct call *call, const struct args *a)
{
    clave_persistent_node *n = a->of;
    bool closes = a->version;
    struct node_wait *w = malloc(sizeof *w);
    if (!w)
        return CLAVE_ENOMEM;
    w->call = call;
    list_push_back(&n->waiting, &w->link);
    clave_err err = closes ? clave_async_persistent_node_close(n->node, persistent_node_on_done, w)
                           : clave_async_persistent_node_set(n->node, a->data, a->len,
                                                             persistent_node_on_done, w);
    if (err != CLAVE_OK) {
        list_remove(&w->link);
        free(w);
    } else if (closes) {
        persistent_node_publish(n, false, false, CLAVE_EINVAL);
    }
    return err;
}

clave_err clave_persistent_node_set(clave_persistent_node *n, const void *data, size_t len,
                                    int64_t timeout_ms)
{
    struct args a = {.of = n, .data = data, .len = len};
    return clave__call(n->child.client, persistent_node_begin, &a, timeout_ms, NULL);
}

clave_err clave_persistent_node_close(clave_persistent_node *n, int64_t timeout_ms)
{
    struct args a = {.of = n, .version = true};
    return clave__call(n->child.client, persistent_node_begin, &a, timeout_ms, NULL);
}

clave_err clave_persistent_node_await(clave_persistent_node *n, int64_t timeout_ms)
{
    int64_t deadline = clave__deadline_after(timeout_ms);
    clave_err err = clave__wait_enter(n->child.client);
    if (err != CLAVE_OK)
        return err;
    bool in_time = true;
    while (in_time && !n->present && n->err == CLAVE_OK)
        in_time = clave__cell_wait(&n->changed, n->child.client->loop, deadline);
    if (!n->present)
        err = n->err;
    if (!n->present && err == CLAVE_OK)
        err = n->conflict ? CLAVE_EBUSY : CLAVE_ETIMEDOUT;
    clave__wait_leave(n->child.client);
    return err;
}

struct node_path {
    clave_persistent_node *n;
    char *out;
    size_t cap;
    size_t len;
};

static clave_err persistent_node_copy_path(clave_async_client *c, const struct args *a)
{
    struct node_path *p = a->of;
    (void)c;
    p->len = (size_t)snprintf(p->out, p->cap, "%s", clave_async_persistent_node_path(p->n->node));
    return CLAVE_OK;
}

bool clave_persistent_node_is_present(clave_persistent_node *n)
{
    clave_loop *loop = n->child.client->loop;
    if (!clave__loop_is_here(loop))
        return false;
    clave__loop_lock(loop);
    bool present = n->present;
    clave__loop_unlock(loop);
    return present;
}

size_t clave_persistent_node_path(clave_persistent_node *n, char *out, size_t cap)
{
    struct node_path p = {.n = n, .out = out, .cap = cap};
    if (cap > 0)
        out[0] = '\0';
    (void)clave__visit(n->child.client, persistent_node_copy_path, &(struct args){.of = &p});
    return p.len;
}
