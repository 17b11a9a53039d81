/* cache_read.c - what a cache asks the server for, and in which order. cache_reply.c and
 * cache_watched_event.c say what is wanted, cache_watch.c when there is a connection. Invariant: a
 * node that may differ from the tree is QUEUED or ASKED, or its parent is. */
#include <assert.h>

#include "base/err_class.h"
#include "recipe/cache/cache_internal.h"
#include "wire/jute.h"
#include "wire/proto.h"

enum { PAUSE_MS = 1000, QUEUE_MIN = 64 };

/* ---- the queue ------------------------------------------------------------------------------- */

static bool cache_queue_push(clave_async_cache *cache, struct cache_node *n)
{
    struct cache_queue *q = &cache->queue;
    if (q->count == q->cap) {
        size_t cap = q->cap ? q->cap * 2 : QUEUE_MIN;
        struct cache_node **at = clave__mem_alloc(&cache->mem, cap * sizeof *at);
        if (!at)
            return false;
        for (size_t i = 0; i < q->count; i++)
            at[i] = q->at[(q->first + i) % q->cap];
        clave__mem_free(&cache->mem, q->at);
        *q = (struct cache_queue){.at = at, .cap = cap, .count = q->count};
    }
    q->at[(q->first + q->count++) % q->cap] = n;
    return true;
}

static struct cache_node *cache_queue_pop(clave_async_cache *cache)
{
    assert(cache->queue.count > 0);
    struct cache_queue *q = &cache->queue;
    struct cache_node *n = q->at[q->first];
    q->first = (q->first + 1) % q->cap;
    if (--q->count == 0 && q->cap > QUEUE_MIN) {
        clave__mem_free(&cache->mem, q->at);
        *q = (struct cache_queue){0};
    }
    return n;
}

/* The only function that changes a node's phase. */
static void cache_node_enter(struct cache_node *n, enum cache_node_phase phase)
{
    n->phase = phase & 3u;
}

/* ---- what is wanted -------------------------------------------------------------------------- */

/* The user may just have freed the cache, and nobody clears the timer again. */
void clave__cache_pause(clave_async_cache *cache)
{
    if (cache->freed)
        return;
    clave__client_timer_set(cache->client, &cache->pause,
                            clave__client_now(cache->client) + PAUSE_MS);
}

/* Something about the node, or a child of `up`, could not be noted for want of memory: later
 * everything is compared once more, and listed where a child may be missing. */
void clave__cache_missed(clave_async_cache *cache, struct cache_node *up)
{
    if (up)
        up->listed = false;
    cache->must_resync = true;
    clave__cache_become_stale(cache);
    clave__cache_pause(cache);
}

void clave__cache_owe(clave_async_cache *cache, struct cache_node *n)
{
    cache->owed += !n->owed;
    n->owed = true;
}

static void cache_acquit(clave_async_cache *cache, struct cache_node *n)
{
    assert(cache->owed >= n->owed);
    cache->owed -= n->owed;
    n->owed = false;
}

static bool cache_wants_anything(const struct cache_node *n)
{
    return n->wants_read || n->wants_list;
}

/* An idle node that wants something waits in the queue; one that is of no use goes. */
static void cache_settle(clave_async_cache *cache, struct cache_node *n)
{
    if (n->phase != CACHE_NODE_IDLE)
        return;
    clave__cache_note_as_of(cache);
    if (cache_wants_anything(n) && cache_queue_push(cache, n)) {
        cache_node_enter(n, CACHE_NODE_QUEUED);
        return;
    }
    cache_acquit(cache, n);
    if (cache_wants_anything(n))
        clave__cache_missed(cache, clave__cache_tree_parent(n));
    else
        clave__cache_tree_prune(&cache->tree, n);
}

void clave__cache_want(clave_async_cache *cache, struct cache_node *n, unsigned wants)
{
    if (wants & (CACHE_WANT_STAT | CACHE_WANT_DATA))
        n->wants_read = true;
    if (wants & CACHE_WANT_DATA)
        n->wants_data = true;
    if (wants & CACHE_WANT_LIST)
        n->wants_list = true;
    if (cache->syncs > 0 || (n->parent && n->parent->owner->owed))
        clave__cache_owe(cache, n);
    cache_settle(cache, n);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void cache_on_answer(clave_async_client *c, const clave_result *res, void *arg);
static void cache_on_answers(clave_async_client *c, const clave_result *res, void *arg);

/* A node that is known is only compared, unless its data is known to be new. The root needs a watch
 * also while it is missing. */
static int32_t cache_op_of(const clave_async_cache *cache, const struct cache_node *n)
{
    if (!n->wants_read)
        return OP_GET_CHILDREN2;
    if (!clave__cache_keeps_data(cache, n))
        return OP_EXISTS;
    if (cache->watches_each)
        return n->parent || n->wants_data || n->present ? OP_GET_DATA : OP_EXISTS;
    return n->present && !n->wants_data ? OP_EXISTS : OP_GET_DATA;
}

/* The node is ASKED from now on, for what `op` reads. */
static struct cache_request *cache_request_new(clave_async_cache *cache, struct cache_node *n,
                                               int32_t op)
{
    assert(cache->nfree > 0 && n->phase == CACHE_NODE_IDLE);
    struct cache_request *q = cache->free_requests;
    cache->free_requests = q->next;
    cache->nfree--;
    *q = (struct cache_request){.cache = cache, .node = n, .op = op};
    n->asked_list = op == OP_GET_CHILDREN2;
    if (n->asked_list)
        n->wants_list = false;
    else
        n->wants_read = n->wants_data = false;
    cache_node_enter(n, CACHE_NODE_ASKED);
    return q;
}

/* Its node may want something again. */
static void cache_request_end(struct cache_request *q)
{
    assert(q->node && q->node->phase == CACHE_NODE_ASKED);
    clave_async_cache *cache = q->cache;
    cache_node_enter(q->node, CACHE_NODE_IDLE);
    cache_settle(cache, q->node);
    q->node = NULL;
    q->next = cache->free_requests;
    cache->free_requests = q;
    cache->nfree++;
}

/* It could not be sent. */
static void cache_request_fail(struct cache_request *q, clave_err err)
{
    clave_async_cache *cache = q->cache;
    struct cache_node *n = q->node;
    n->wants_read = n->wants_data = n->wants_list = false;
    if (err == CLAVE_ECLOSED)
        clave__cache_end(cache, err);
    else if (clave__err_passes(err))
        clave__cache_missed(cache, clave__cache_tree_parent(n));
    cache_request_end(q); /* else it has a name that no client may ask for */
}

/* A multiRead or its answer is longer than it may be, or the server does not take it: from now on
 * each node is read by itself. */
static void cache_read_alone(clave_async_cache *cache, struct cache_request *q)
{
    struct cache_request *next;
    cache->batch = 1;
    for (; q; q = next) {
        next = q->next;
        q->node->wants_read = q->node->wants_data = true;
        cache_request_end(q);
    }
}

static clave_err cache_send_one(clave_async_cache *cache, struct cache_request *q)
{
    clave_async_watch *watch = NULL;
    clave_err err = CLAVE_OK;
    if (cache->watches_each || (q->op == OP_GET_CHILDREN2 && q->node->child_watch))
        err = clave__cache_watch_of(cache, q->node, q->op == OP_GET_CHILDREN2, &watch);
    const char *path = clave__cache_tree_path(q->node, cache->tree.path.data);
    return err ? err
               : clave__client_read_once(cache->client, q->op, path, watch, cache_on_answer, q);
}

static clave_err cache_send_many(clave_async_cache *cache, struct cache_request *first, size_t n)
{
    clave_err err = CLAVE_OK;
    clave__client_gets_begin(cache->client);
    for (struct cache_request *q = first; q && err == CLAVE_OK; q = q->next)
        err = clave__client_gets_add(cache->client,
                                     clave__cache_tree_path(q->node, cache->tree.path.data));
    return err ? err : clave__client_gets_submit(cache->client, n, cache_on_answers, first);
}

static void cache_send(clave_async_cache *cache, struct cache_request *first, size_t n)
{
    assert(first && n > 0);
    clave_err err = n > 1 ? cache_send_many(cache, first, n) : cache_send_one(cache, first);
    if (err == CLAVE_OK) {
        clave__cache_enter(cache);
        cache->under_way++;
    } else if (n > 1 && err != CLAVE_ECLOSED && !clave__err_passes(err)) {
        cache_read_alone(cache, first);
    } else {
        for (struct cache_request *next; first; first = next) {
            next = first->next;
            cache_request_fail(first, err);
        }
    }
}

/* Sends what was gathered for one multiRead. */
static void cache_flush(clave_async_cache *cache)
{
    struct cache_request *first = cache->gathered;
    size_t n = cache->ngathered;
    cache->gathered = NULL;
    cache->ngathered = 0;
    if (first)
        cache_send(cache, first, n);
}

/* Requests are sent in the order in which they are asked for. */
static void cache_ask(clave_async_cache *cache, struct cache_node *n)
{
    struct cache_request *q = cache_request_new(cache, n, cache_op_of(cache, n));
    if (q->op != OP_GET_DATA || cache->batch == 1) {
        cache_flush(cache);
        cache_send(cache, q, 1);
        return;
    }
    *(cache->gathered ? &cache->last_gathered->next : &cache->gathered) = q;
    cache->last_gathered = q;
    cache->ngathered++;
}

/* What is below a node that is gone went with it. */
static bool cache_is_orphan(const struct cache_node *n)
{
    const struct cache_node *up = clave__cache_tree_parent(n);
    return up && !n->present && !up->present && up->phase == CACHE_NODE_IDLE;
}

static void cache_ask_next(clave_async_cache *cache)
{
    struct cache_node *n = cache_queue_pop(cache);
    cache_node_enter(n, CACHE_NODE_IDLE);
    if (cache_is_orphan(n))
        n->wants_read = n->wants_data = n->wants_list = false;
    if (cache_wants_anything(n))
        cache_ask(cache, n);
    else
        cache_settle(cache, n);
}

/* Asks for a whole multiRead, or for all that waits. Were each answer followed by one request,
 * there would be no second multiRead. */
bool clave__cache_ask_some(clave_async_cache *cache)
{
    size_t n = cache->queue.count < cache->batch ? cache->queue.count : cache->batch;
    if (n == 0 || cache->nfree < n || cache->pause.armed)
        return false;
    while (n-- > 0 && cache->queue.count > 0)
        cache_ask_next(cache);
    cache_flush(cache);
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The node stays ASKED, and so in its place, until the answer is taken. */
static void cache_take_answer(struct cache_request *q, const clave_result *res)
{
    if (q->cache->freed)
        return;
    clave__cache_take(q->cache, q, res);
    cache_request_end(q);
}

static void cache_on_answer(clave_async_client *c, const clave_result *res, void *arg)
{
    struct cache_request *q = arg;
    clave_async_cache *cache = q->cache;
    assert(cache->under_way > 0);
    (void)c;
    cache_take_answer(q, res);
    cache->under_way--;
    clave__cache_leave(cache); /* what cache_send entered */
}

static void cache_on_answers(clave_async_client *c, const clave_result *res, void *arg)
{
    struct cache_request *q = arg, *next;
    clave_async_cache *cache = q->cache;
    assert(cache->under_way > 0);
    struct jreader r = clave__client_gets_reader(res);
    bool refused =
        res->err != CLAVE_OK && res->err != CLAVE_ECLOSED && !clave__err_passes(res->err);
    (void)c;
    for (; q && !refused; q = next) {
        clave_result part = *res;
        clave_stat stat;
        next = q->next;
        if (res->err == CLAVE_OK)
            clave__client_gets_take(&r, &part, &stat);
        cache_take_answer(q, &part);
    }
    if (refused && !cache->freed)
        cache_read_alone(cache, q);
    cache->under_way--;
    clave__cache_leave(cache); /* what cache_send entered */
}
