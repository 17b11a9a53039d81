/* shared_count.c - follows the limit in a node as Curator's SharedCount does. Called by
 * semaphore.c. What must stay true: a value that is reported was in the node at some time, and a
 * failed read keeps the previous value. */
#include "recipe/semaphore/shared_count.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"

enum { LATER_MS = 1000 };

void clave__shared_count_encode(uint32_t value, uint8_t out[SHARED_COUNT_SIZE])
{
    for (int i = 0; i < SHARED_COUNT_SIZE; i++)
        out[i] = (uint8_t)(value >> (8 * (SHARED_COUNT_SIZE - 1 - i)));
}

uint32_t clave__shared_count_decode(const void *data, size_t len)
{
    const uint8_t *b = data;
    if (len != SHARED_COUNT_SIZE || b[0] > 127)
        return 0;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* An error that may pass without a reconnect, after which the count is read anyway. */
static bool shared_count_may_go_on(clave_err err)
{
    return err == CLAVE_ENOMEM || err == CLAVE_ETHROTTLED;
}

static void shared_count_begin(struct shared_count *c)
{
    c->busy++;
}

static void shared_count_end(struct shared_count *c)
{
    assert(c->busy > 0);
    if (--c->busy > 0 || c->owner || c->node.asking)
        return;
    clave__client_unlisten(&c->listener);
    clave__node_watch_fini(&c->node);
    clave__mem_free(c->mem, c);
}

/* Only the watch would report another value, and it may be gone, so look later. */
static void shared_count_look_later(struct shared_count *c)
{
    if (c->owner)
        clave__client_timer_set(c->client, &c->later, clave__client_now(c->client) + LATER_MS);
}

static void shared_count_fail(struct shared_count *c, clave_err err)
{
    if (shared_count_may_go_on(err))
        shared_count_look_later(c);
    if (c->owner)
        c->events->failed(c->owner, err);
}

static void shared_count_look(struct shared_count *c)
{
    clave_err err = c->owner ? clave__node_watch_read(&c->node) : CLAVE_OK;
    if (err != CLAVE_OK)
        shared_count_fail(c, err);
}

static void shared_count_on_later(struct timer *t, int64_t now)
{
    (void)now;
    struct shared_count *c = LIST_ENTRY(t, struct shared_count, later);
    shared_count_begin(c);
    shared_count_look(c);
    shared_count_end(c);
}

static void shared_count_on_made(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct shared_count *count = arg;
    clave_err_class class_ = clave_err_classify(res->err);
    /* The node exists, whoever created it; if the outcome is unknown, reading it will tell. */
    if (res->err == CLAVE_OK || res->err == CLAVE_ENODEEXISTS || class_ == CLAVE_CLASS_UNKNOWN)
        shared_count_look(count);
    else if (shared_count_may_go_on(res->err))
        shared_count_look_later(count);
    else if (class_ == CLAVE_CLASS_FINAL)
        shared_count_fail(count, res->err);
    shared_count_end(count);
}

static void shared_count_on_awaited(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct shared_count *count = arg;
    if (res->err == CLAVE_OK)
        shared_count_look(
            count); /* the node was created in the meantime; otherwise the watch will report it */
    else if (shared_count_may_go_on(res->err))
        shared_count_look_later(count);
    shared_count_end(count);
}

/* Creates the missing node, or waits until somebody else does. */
static void shared_count_make(struct shared_count *c)
{
    uint8_t data[SHARED_COUNT_SIZE];
    clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PARENTS};
    clave_err err;
    if (c->seed > 0) {
        clave__shared_count_encode(c->seed, data);
        err = clave_async_create(c->client, c->node.path, data, SHARED_COUNT_SIZE, &o,
                                 shared_count_on_made, c);
    } else {
        err =
            clave_async_exists(c->client, c->node.path, c->node.watch, shared_count_on_awaited, c);
    }
    if (err == CLAVE_OK)
        shared_count_begin(c);
    else
        shared_count_fail(c, err);
}

static void shared_count_found(struct shared_count *c, const clave_result *res)
{
    if (res->stat->mzxid < c->mzxid)
        return; /* the server lags behind */
    c->mzxid = res->stat->mzxid;
    c->events->changed(c->owner, clave__shared_count_decode(res->data, res->len));
}

static void shared_count_on_reply(struct node_watch *w, const clave_result *res)
{
    struct shared_count *c = LIST_ENTRY(w, struct shared_count, node);
    shared_count_begin(c);
    if (c->owner && res->err == CLAVE_ENONODE)
        shared_count_make(c);
    else if (c->owner && res->err == CLAVE_OK)
        shared_count_found(c, res);
    else if (shared_count_may_go_on(res->err))
        shared_count_look_later(c);
    else if (clave_err_classify(res->err) == CLAVE_CLASS_FINAL)
        shared_count_fail(c, res->err);
    /* otherwise the reconnect reads again */
    shared_count_end(c);
}

static void shared_count_on_event(struct node_watch *w, const clave_event *ev)
{
    (void)ev;
    struct shared_count *c = LIST_ENTRY(w, struct shared_count, node);
    shared_count_begin(c);
    shared_count_look(c);
    shared_count_end(c);
}

static void shared_count_on_state(struct listener *l, clave_state state, clave_err why)
{
    (void)why;
    struct shared_count *c = LIST_ENTRY(l, struct shared_count, listener);
    shared_count_begin(c);
    if (state == CLAVE_STATE_RECONNECTED || state == CLAVE_STATE_CONNECTED)
        shared_count_look(c);
    shared_count_end(c);
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
    struct shared_count *count = clave__mem_zalloc(mem, sizeof *count);
    if (!count)
        return CLAVE_ENOMEM;
    *count = (struct shared_count){.client = c, .mem = mem, .events = events, .seed = seed};
    list_init(&count->listener.link);
    count->listener.on_state = shared_count_on_state;
    clave__timer_init(&count->later, shared_count_on_later);
    shared_count_begin(count);
    clave_err err = clave__node_watch_init(&count->node, c, mem, strlen(path) + 2);
    count->node.on_reply = shared_count_on_reply;
    count->node.on_event = shared_count_on_event;
    if (err == CLAVE_OK)
        err = clave__node_watch_set(&count->node, path, NULL);
    if (err == CLAVE_OK)
        err = clave__node_watch_read(&count->node);
    if (err == CLAVE_OK) {
        clave__client_listen(c, &count->listener);
        count->owner = owner;
        *out = count;
    }
    shared_count_end(count);
    return err;
}

void clave__shared_count_free(struct shared_count *c)
{
    if (!c)
        return;
    shared_count_begin(c);
    c->owner = NULL;
    clave__client_timer_clear(c->client, &c->later);
    clave_async_watch_disarm(c->node.watch);
    shared_count_end(c);
}

clave_err clave__shared_count_refresh(struct shared_count *c)
{
    bool follows = c->node.asking || clave_async_watch_is_armed(c->node.watch);
    return follows ? CLAVE_OK : clave__node_watch_read(&c->node);
}

clave_err clave__shared_count_set(struct shared_count *c, uint32_t value, clave_result_cb *cb,
                                  void *arg)
{
    uint8_t data[SHARED_COUNT_SIZE];
    clave__shared_count_encode(value, data);
    return clave_async_set(c->client, c->node.path, data, SHARED_COUNT_SIZE, -1, cb, arg);
}
