/* shared_count.c - follows Curator's SharedCount, the shared limit. Called by semaphore.c.
 * Invariant: the value reported is one that the node had, and a failed read keeps the previous one.
 */
#include "recipe/semaphore/shared_count.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"

enum { SIZE = 4, LATER_MS = 1000 };

static void shared_count_encode(uint32_t value, uint8_t out[SIZE])
{
    for (int i = 0; i < SIZE; i++)
        out[i] = (uint8_t)(value >> (8 * (SIZE - 1 - i)));
}

/* Anything but a positive number lets nobody in. */
static uint32_t decode(const void *data, size_t len)
{
    const uint8_t *b = data;
    if (len != SIZE || b[0] > 127)
        return 0;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void shared_count_begin(struct shared_count *q)
{
    q->busy++;
}

static void shared_count_end(struct shared_count *q)
{
    assert(q->busy > 0);
    if (--q->busy > 0 || q->owner || q->node.asking)
        return;
    clave__client_unlisten(&q->listener);
    clave__node_watch_fini(&q->node);
    clave__mem_free(q->mem, q);
}

/* Only the watch would report another value, and it may be gone. */
static void shared_count_look_later(struct shared_count *q)
{
    if (q->owner)
        clave__client_timer_set(q->client, &q->later, clave__client_now(q->client) + LATER_MS);
}

static void shared_count_fail(struct shared_count *q, clave_err err)
{
    if (err == CLAVE_ENOMEM)
        shared_count_look_later(q);
    if (q->owner)
        q->events->failed(q->owner, err);
}

static void shared_count_look(struct shared_count *q)
{
    clave_err err = q->owner ? clave__node_watch_read(&q->node) : CLAVE_OK;
    if (err != CLAVE_OK)
        shared_count_fail(q, err);
}

static void on_later(struct timer *t, int64_t now)
{
    (void)now;
    struct shared_count *q = LIST_ENTRY(t, struct shared_count, later);
    shared_count_begin(q);
    shared_count_look(q);
    shared_count_end(q);
}

static void on_made(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct shared_count *q = arg;
    clave_err_class class_ = clave_err_classify(res->err);
    /* It exists, whoever created it; if not, reading it will tell. */
    if (res->err == CLAVE_OK || res->err == CLAVE_ENODEEXISTS || class_ == CLAVE_CLASS_UNKNOWN)
        shared_count_look(q);
    else if (res->err == CLAVE_ENOMEM)
        shared_count_look_later(q);
    else if (class_ == CLAVE_CLASS_FINAL)
        shared_count_fail(q, res->err);
    shared_count_end(q);
}

static void on_awaited(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct shared_count *q = arg;
    if (res->err == CLAVE_OK)
        shared_count_look(q); /* it was created meanwhile; if not, the watch will tell */
    else if (res->err == CLAVE_ENOMEM)
        shared_count_look_later(q);
    shared_count_end(q);
}

/* Creates the missing node, or waits until somebody does. */
static void make(struct shared_count *q)
{
    uint8_t data[SIZE];
    clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PARENTS};
    clave_err err;
    if (q->seed > 0) {
        shared_count_encode(q->seed, data);
        err = clave_async_create(q->client, q->node.path, data, SIZE, &o, on_made, q);
    } else {
        err = clave_async_exists(q->client, q->node.path, q->node.watch, on_awaited, q);
    }
    if (err == CLAVE_OK)
        shared_count_begin(q);
    else
        shared_count_fail(q, err);
}

static void found(struct shared_count *q, const clave_result *res)
{
    if (res->stat->mzxid < q->mzxid)
        return; /* the server lags behind */
    q->mzxid = res->stat->mzxid;
    q->events->changed(q->owner, decode(res->data, res->len));
}

static void shared_count_on_reply(struct node_watch *l, const clave_result *res)
{
    struct shared_count *q = LIST_ENTRY(l, struct shared_count, node);
    shared_count_begin(q);
    if (q->owner && res->err == CLAVE_ENONODE)
        make(q);
    else if (q->owner && res->err == CLAVE_OK)
        found(q, res);
    else if (res->err == CLAVE_ENOMEM)
        shared_count_look_later(q);
    else if (clave_err_classify(res->err) == CLAVE_CLASS_FINAL)
        shared_count_fail(q, res->err);
    /* Otherwise the reconnect reads again. */
    shared_count_end(q);
}

static void shared_count_on_event(struct node_watch *l, const clave_event *ev)
{
    (void)ev;
    struct shared_count *q = LIST_ENTRY(l, struct shared_count, node);
    shared_count_begin(q);
    shared_count_look(q);
    shared_count_end(q);
}

static void shared_count_on_state(struct listener *l, clave_state state, clave_err why)
{
    (void)why;
    struct shared_count *q = LIST_ENTRY(l, struct shared_count, listener);
    shared_count_begin(q);
    if (state == CLAVE_STATE_RECONNECTED || state == CLAVE_STATE_CONNECTED)
        shared_count_look(q);
    shared_count_end(q);
}

clave_err clave__shared_count_new(struct shared_count **out, clave_async_client *c,
                                  const char *path, uint32_t seed,
                                  const struct shared_count_events *events, void *owner)
{
    const struct clave_mem *mem = clave__client_mem(c);
    *out = NULL;
    const char *fault = clave__path_fault(path, strlen(path), false);
    if (fault) {
        clave__client_fault(c, "the limit's path \"%s\" %s", path, fault);
        return CLAVE_EPATH;
    }
    struct shared_count *q = clave__mem_zalloc(mem, sizeof *q);
    if (!q)
        return CLAVE_ENOMEM;
    *q = (struct shared_count){.client = c, .mem = mem, .events = events, .seed = seed};
    list_init(&q->listener.link);
    q->listener.on_state = shared_count_on_state;
    clave__timer_init(&q->later, on_later);
    shared_count_begin(q);
    clave_err err = clave__node_watch_init(&q->node, c, mem, strlen(path) + 2);
    q->node.on_reply = shared_count_on_reply;
    q->node.on_event = shared_count_on_event;
    if (err == CLAVE_OK)
        err = clave__node_watch_set(&q->node, path, NULL);
    if (err == CLAVE_OK)
        err = clave__node_watch_read(&q->node);
    if (err == CLAVE_OK) {
        clave__client_listen(c, &q->listener);
        q->owner = owner;
        *out = q;
    }
    shared_count_end(q);
    return err;
}

void clave__shared_count_free(struct shared_count *q)
{
    if (!q)
        return;
    shared_count_begin(q);
    q->owner = NULL;
    clave__client_timer_clear(q->client, &q->later);
    clave_async_watch_disarm(q->node.watch);
    shared_count_end(q);
}

clave_err clave__shared_count_refresh(struct shared_count *q)
{
    bool follows = q->node.asking || clave_async_watch_is_armed(q->node.watch);
    return follows ? CLAVE_OK : clave__node_watch_read(&q->node);
}

clave_err clave__shared_count_set(struct shared_count *q, uint32_t value, clave_result_cb *cb,
                                  void *arg)
{
    uint8_t data[SIZE];
    shared_count_encode(value, data);
    return clave_async_set(q->client, q->node.path, data, SIZE, -1, cb, arg);
}
