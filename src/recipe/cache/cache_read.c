/* cache_read.c - what a cache asks the server for, in which order, and when nothing is left to be
 * asked. cache_answer.c says what is wanted, cache_watch.c when there is a connection. Invariant: a
 * node that may differ from the tree is QUEUED or ASKED, or its parent is; so when no node is, the
 * cache equals the tree as of the newest answer. Under a steady stream of changes that may never
 * be: so the cache is current as soon as no node is owed: all was read that had no event. From then
 * on rounds say how old it is at most: each owes what waits when it begins. */
#include <assert.h>
#include <string.h>

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

/* ---- how old it is at most ------------------------------------------------------------------- */

/* Events come before every answer to what was sent after the change. So without anything to be
 * read the cache has all that was changed before the newest answered request was sent. */
static bool cache_is_idle(const clave_async_cache *cache)
{
    return cache->queue.count == 0 && cache->under_way == 0 && !cache->pause.armed;
}

int64_t clave__cache_as_of(const clave_async_cache *cache)
{
    bool equals = cache->phase == CACHE_CURRENT && cache->up && cache_is_idle(cache);
    return equals ? clave__client_contact(cache->client) : cache->as_of;
}

static void cache_note_as_of(clave_async_cache *cache)
{
    cache->as_of = clave__cache_as_of(cache);
}

/* A round: what is owed now shows, once it is read, all that was changed before. */
static void cache_begin_round(clave_async_cache *cache)
{
    cache->since = clave__client_contact(cache->client);
    for (size_t i = 0; i < cache->queue.count; i++)
        clave__cache_owe(cache, cache->queue.at[(cache->queue.first + i) % cache->queue.cap]);
    for (size_t i = 0; i < cache->o.window; i++)
        if (cache->requests[i].node)
            clave__cache_owe(cache, cache->requests[i].node);
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static void cache_become_stale(clave_async_cache *cache)
{
    if (cache->phase != CACHE_CURRENT)
        return;
    cache_note_as_of(cache);
    cache->phase = CACHE_STALE;
    clave__cache_tell(cache, CLAVE_CACHE_STALE, CLAVE_OK);
}

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
    cache_become_stale(cache);
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
    cache_note_as_of(cache);
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

/* ---- when everything is answered ------------------------------------------------------------- */

/* An eighth of the bound was freed: what was left out is tried again. */
static bool cache_has_made_room(const clave_async_cache *cache)
{
    const clave_cache_options *o = &cache->o;
    return cache->left_out > 0 && ((o->max_nodes && cache->places_made * 8 >= o->max_nodes) ||
                                   (o->max_bytes && cache->room_made * 8 >= o->max_bytes));
}

/* Nothing is missing any more as soon as nothing is owed again. */
static bool cache_try_again(clave_async_cache *cache)
{
    struct cache_node *top = cache->tree.root;
    if (cache->owed > 0 || cache->pause.armed || !cache_has_made_room(cache))
        return false;
    cache->room_made = cache->places_made = 0;
    for (struct cache_node *n = top->present ? top : NULL; n;
         n = clave__cache_tree_down(&cache->tree, top, n)) {
        unsigned wants = (n->left_out && !n->no_list ? CACHE_WANT_LIST : 0) |
                         (n->lacks_data ? CACHE_WANT_DATA : 0);
        if (!wants)
            continue;
        clave__cache_owe(cache, n);
        clave__cache_want(cache, n, wants);
    }
    return true;
}

static void cache_become_current(clave_async_cache *cache, bool equals)
{
    bool was_loading = cache->phase == CACHE_LOADING, was_current = cache->phase == CACHE_CURRENT;
    bool has_room_again = cache->full && cache->left_out == 0;
    if (equals)
        cache->zxid = cache->answer_zxid;
    cache->phase = CACHE_CURRENT;
    cache->full = cache->full && !has_room_again;
    if (was_loading)
        clave__cache_tell(cache, CLAVE_CACHE_INITIALIZED, CLAVE_OK);
    else if (!was_current || has_room_again)
        clave__cache_tell(cache, CLAVE_CACHE_RESYNCED, CLAVE_OK);
}

/* Asks for a whole multiRead, or for all that waits. Were each answer followed by one request,
 * there would be no second multiRead. */
static bool cache_ask_some(clave_async_cache *cache)
{
    size_t n = cache->queue.count < cache->batch ? cache->queue.count : cache->batch;
    if (n == 0 || cache->nfree < n || cache->pause.armed)
        return false;
    while (n-- > 0 && cache->queue.count > 0)
        cache_ask_next(cache);
    cache_flush(cache);
    return true;
}

void clave__cache_pump(clave_async_cache *cache)
{
    if (cache->freed || !cache->up)
        return;
    while (cache_ask_some(cache) || cache_try_again(cache)) {
    }
    bool is_idle = cache->queue.count == 0 && cache->under_way == 0;
    bool is_read = cache->owed == 0 && cache->syncs == 0 && !cache->pause.armed;
    if (!is_read || cache->phase == CACHE_ENDED)
        return;
    if (cache->since > cache->as_of)
        cache->as_of = cache->since;
    if (!is_idle)
        cache_begin_round(cache);
    cache_become_current(cache, is_idle);
}

static void cache_on_synced(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_cache *cache = arg;
    assert(cache->syncs > 0 && cache->under_way > 0);
    (void)c;
    (void)res; /* if it failed, the reads are as good as without it */
    cache->under_way--;
    cache->syncs--;
    clave__cache_leave(cache); /* what _sync entered */
}

void clave__cache_sync(clave_async_cache *cache)
{
    const char *path = clave__cache_tree_path(cache->tree.root, cache->tree.path.data);
    if (clave_async_sync(cache->client, path, cache_on_synced, cache) != CLAVE_OK) {
        clave__cache_missed(cache, NULL); /* a resync begins with another one */
        return;
    }
    clave__cache_enter(cache);
    cache->since = clave__client_contact(cache->client);
    cache->under_way++;
    cache->syncs++;
}

void clave__cache_compare(clave_async_cache *cache, struct cache_node *n)
{
    n->check = true;
    if (n->unreadable)
        n->denied = n->no_data = false;
    n->no_list = n->no_list && n->left_out; /* a list that is too long stays so */
    clave__cache_want(cache, n, n->unreadable ? CACHE_WANT_DATA : CACHE_WANT_STAT);
}

void clave__cache_resync(clave_async_cache *cache)
{
    struct cache_node *top = cache->tree.root;
    cache->must_resync = false;
    cache->up = true;
    cache->since = clave__client_contact(cache->client);
    if (cache->phase != CACHE_LOADING)
        clave__cache_sync(cache);
    clave__cache_owe(cache, top);
    for (struct cache_node *n = top->present ? top : NULL; n;
         n = clave__cache_tree_down(&cache->tree, top, n)) {
        clave__cache_compare(cache, n);
    }
    if (!top->present)
        clave__cache_want(cache, top, CACHE_WANT_STAT);
}

/* What waits now is owed when events come again. */
void clave__cache_suspend(clave_async_cache *cache)
{
    const struct cache_queue *q = &cache->queue;
    for (size_t i = 0; i < q->count; i++)
        clave__cache_owe(cache, q->at[(q->first + i) % q->cap]);
    cache_become_stale(cache);
    cache->up = false;
}

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
