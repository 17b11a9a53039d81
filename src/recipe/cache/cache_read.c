/* cache_read.c - what a cache requests from the server in which order, and what the answers mean.
 *
 * How it works. What has to be read of a node is noted at the node, which then waits in the queue.
 * As many requests are under way as the window allows, and a multiRead reads the data of several
 * nodes. An answer is compared with what the cache has by czxid and mzxid; a different czxid means
 * a different node. Children are listed again only if pzxid or cversion changed while there were no
 * events. A parent is reported before its children: whatever is below a node that has not been
 * reported yet will be found by listing that node. What does not fit into max_nodes and max_bytes
 * is left out, and tried again when an eighth of the bound has been freed.
 *
 * What must stay true: a node that may differ from the tree is QUEUED or ASKED, or its parent
 * is. */
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

/* Changes a node's phase; nothing else does. */
static void cache_node_enter(struct cache_node *n, enum cache_node_phase phase)
{
    n->phase = phase & 3u;
}

/* ---- what is wanted -------------------------------------------------------------------------- */

/* Pauses. The user may just have freed the cache; then nobody would clear the timer. */
static void cache_pause(clave_async_cache *cache)
{
    if (cache->freed)
        return;
    clave__client_timer_set(cache->client, &cache->pause,
                            clave__client_now(cache->client) + PAUSE_MS);
}

/* Something about the node, or a child of `up`, could not be noted for want of memory. Later
 * everything is compared once more, and children are listed wherever one may be missing. */
void clave__cache_missed(clave_async_cache *cache, struct cache_node *up)
{
    if (up)
        up->listed = false;
    cache->must_resync = true;
    clave__cache_become_stale(cache);
    cache_pause(cache);
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

/* Queues an idle node that wants something; frees one that is not needed. */
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

/* ---- requesting ------------------------------------------------------------------------------ */

static void cache_on_answer(clave_async_client *c, const clave_result *res, void *arg);
static void cache_on_answers(clave_async_client *c, const clave_result *res, void *arg);

static bool cache_keeps_data(const clave_async_cache *cache, const struct cache_node *n)
{
    return !cache->o.without_data && !n->no_data;
}

/* Chooses the request. A node that is known is only compared, unless its data is known to be new.
 * The root needs a watch even while it does not exist. */
static int32_t cache_op_of(const clave_async_cache *cache, const struct cache_node *n)
{
    if (!n->wants_read)
        return OP_GET_CHILDREN2;
    if (!cache_keeps_data(cache, n))
        return OP_EXISTS;
    if (cache->watches_each)
        return n->parent || n->wants_data || n->present ? OP_GET_DATA : OP_EXISTS;
    return n->present && !n->wants_data ? OP_EXISTS : OP_GET_DATA;
}

/* Makes a request for what `op` reads; the node is ASKED from now on. */
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

/* Ends a request, after which its node may want something again. */
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

/* The request could not be sent. */
static void cache_request_fail(struct cache_request *q, clave_err err)
{
    clave_async_cache *cache = q->cache;
    struct cache_node *n = q->node;
    n->wants_read = n->wants_data = n->wants_list = false;
    if (err == CLAVE_ECLOSED)
        clave__cache_end(cache, err);
    else if (clave__err_passes(err))
        clave__cache_missed(cache, clave__cache_tree_parent(n));
    cache_request_end(q); /* otherwise no client can ask for its name */
}

/* A multiRead or its answer is too long, or the server does not support it: from now on each node
 * is read separately. */
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

/* Sends what was collected for a multiRead. */
static void cache_flush(clave_async_cache *cache)
{
    struct cache_request *first = cache->gathered;
    size_t n = cache->ngathered;
    cache->gathered = NULL;
    cache->ngathered = 0;
    if (first)
        cache_send(cache, first, n);
}

/* Adds a request; requests are sent in the order in which they are made. */
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

/* True if the node was below one that is gone, and so is gone too. */
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

/* Requests a full multiRead, or everything that is waiting. If each answer were followed by a
 * single request, there would never be a second multiRead. */
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

/* ---- answers on their way -------------------------------------------------------------------- */

/* The node stays ASKED, and therefore in its place, until the answer is processed. */

/* ---- the bounds ------------------------------------------------------------------------------ */

static bool bounds_have_place(const clave_async_cache *cache)
{
    return !cache->o.max_nodes || cache->tree.nodes < cache->o.max_nodes;
}

static bool bounds_have_room(const clave_async_cache *cache, size_t bytes)
{
    return !cache->o.max_bytes || cache->tree.bytes + bytes <= cache->o.max_bytes;
}

static void cache_forget_left_out(clave_async_cache *cache, struct cache_node *n)
{
    cache->left_out -= (size_t)n->left_out + n->lacks_data;
    n->left_out = n->lacks_data = false;
}

static void cache_leave_out(clave_async_cache *cache)
{
    cache->left_out++;
    if (cache->full)
        return;
    cache->full = true;
    clave__cache_tell(cache, CLAVE_CACHE_FULL, CLAVE_OK);
}

/* True if an eighth of the bound has been freed, so that what was left out is tried again. */
bool clave__cache_has_made_room(const clave_async_cache *cache)
{
    const clave_cache_options *o = &cache->o;
    return cache->left_out > 0 && ((o->max_nodes && cache->places_made * 8 >= o->max_nodes) ||
                                   (o->max_bytes && cache->room_made * 8 >= o->max_bytes));
}

/* ---- nodes that come and go ------------------------------------------------------------------ */

static void cache_delete_one(clave_async_cache *cache, struct cache_node *n)
{
    struct cache_value was = clave__cache_tree_value(n);
    cache_forget_left_out(cache, n);
    clave__cache_drop_child_watch(cache, n);
    n->listed = n->moved = n->check = n->no_data = n->no_list = false;
    n->denied = n->unreadable = false;
    clave__cache_tree_set_present(&cache->tree, n, false);
    clave__cache_tell_node(cache, CLAVE_CACHE_DELETED, n, NULL, &was);
    clave__cache_tree_prune(&cache->tree, n);
}

void clave__cache_delete(clave_async_cache *cache, struct cache_node *top)
{
    struct cache_tree *t = &cache->tree;
    struct cache_node *up = clave__cache_tree_parent(top);
    size_t bytes = t->bytes, nodes = t->nodes;
    struct cache_node *n = clave__cache_tree_deepest(top);
    if (up)
        up->moved = true;
    while (n != top) {
        struct cache_children *parent = n->parent;
        uint32_t slot = clave__cache_tree_slot(t, n);
        cache_delete_one(cache, n);
        n = clave__cache_tree_after(parent, slot);
    }
    cache_delete_one(cache, top);
    cache->room_made += bytes - t->bytes;
    cache->places_made += nodes - t->nodes;
}

/* Makes a place for a new child, unless the filter rejects it or there is no room. */
void clave__cache_add_child(clave_async_cache *cache, struct cache_node *parent, const char *name,
                            size_t len)
{
    struct cache_node *n;
    const clave_cache_options *o = &cache->o;
    clave_cache_take take = CLAVE_CACHE_TAKE_TREE;
    bool fits = bounds_have_place(cache) && bounds_have_room(cache, clave__cache_tree_room(len));
    if (!fits && parent->left_out)
        return;
    if (clave__cache_tree_add(&cache->tree, parent, name, len, &n) != CLAVE_OK) {
        clave__cache_missed(cache, parent);
        return;
    }
    if (o->filter)
        take = o->filter(clave__cache_tree_path(n, cache->tree.path.data), o->filter_arg);
    n->followed = take == CLAVE_CACHE_TAKE_TREE;
    if (take != CLAVE_CACHE_TAKE_NOTHING && fits) {
        clave__cache_want(cache, n, CACHE_WANT_STAT);
        return;
    }
    clave__cache_tree_prune(&cache->tree, n);
    if (take != CLAVE_CACHE_TAKE_NOTHING) {
        parent->left_out = true;
        cache_leave_out(cache);
    }
}

/* ---- a node's Stat and data ------------------------------------------------------------------ */

/* How much of the data has to be kept. */
static size_t cache_kept(const clave_async_cache *cache, const struct cache_node *n, size_t len)
{
    size_t most = cache->o.max_data;
    if (most == 0 || len <= most)
        return len;
    return cache->cuts && cache->cuts(clave__cache_tree_path(n, cache->tree.path.data)) ? most : 0;
}

/* *lacks is set if there is no room for the data. */
static struct cache_value cache_value_of(const clave_async_cache *cache, const struct cache_node *n,
                                         const clave_result *res, int32_t op, bool *lacks)
{
    struct cache_value v = {.stat = *res->stat};
    size_t kept = op == OP_GET_DATA ? cache_kept(cache, n, res->len) : 0;
    bool wanted = op == OP_GET_DATA && (kept > 0 || res->len == 0);
    v.has_data = wanted && bounds_have_room(cache, kept);
    *lacks = wanted && !v.has_data;
    if (v.has_data) {
        v.data = res->data;
        v.len = kept;
    }
    return v;
}

/* True if pzxid is not that of the last listing: nothing else shows that a child that may not be
 * read has come or gone. */
static bool cache_has_moved(const struct cache_node *n, const clave_stat *s)
{
    clave_stat known = clave__cache_tree_stat(n);
    return n->moved || known.pzxid != s->pzxid || known.cversion != s->cversion;
}

/* Stores what was read, and reports it. false: no memory. */
static bool cache_store(clave_async_cache *cache, struct cache_node **n, const clave_result *res,
                        int32_t op)
{
    struct cache_node *old;
    bool is_new = !(*n)->present;
    bool lacks;
    struct cache_value v = cache_value_of(cache, *n, res, op, &lacks);
    bool moved = !is_new && cache_has_moved(*n, res->stat);
    v.unreadable = (*n)->denied;
    if (clave__cache_tree_store(&cache->tree, n, &v, &old) != CLAVE_OK) {
        clave__cache_missed(cache, clave__cache_tree_parent(*n));
        return false;
    }
    cache->left_out -= (*n)->lacks_data;
    (*n)->lacks_data = false;
    (*n)->moved = moved;
    clave__cache_tree_set_present(&cache->tree, *n, true);
    struct cache_value now = clave__cache_tree_value(*n);
    if (is_new) {
        clave__cache_tell_node(cache, CLAVE_CACHE_CREATED, *n, &now, NULL);
    } else {
        struct cache_value was = clave__cache_tree_value(old);
        clave__cache_tell_node(cache, CLAVE_CACHE_CHANGED, *n, &now, &was);
    }
    clave__cache_tree_discard(&cache->tree, old);
    if (lacks) {
        (*n)->lacks_data = true;
        cache_leave_out(cache);
    }
    return true;
}

/* Takes over a Stat for the same node with the same data, because fields that cause no event may
 * have changed. */
static void cache_refresh(clave_async_cache *cache, struct cache_node **n, const clave_stat *s)
{
    struct cache_node *old;
    clave_stat known = clave__cache_tree_stat(*n);
    struct cache_value v = clave__cache_tree_value(*n);
    if (known.pzxid == s->pzxid && known.cversion == s->cversion && known.aversion == s->aversion &&
        known.num_children == s->num_children)
        return;
    v.stat = *s;
    bool moved = cache_has_moved(*n, s);
    if (clave__cache_tree_store(&cache->tree, n, &v, &old) != CLAVE_OK)
        return;
    clave__cache_tree_discard(&cache->tree, old);
    (*n)->moved = moved;
}

/* True if the children have to be listed, now that the node's Stat is known. */
static bool cache_must_list(const clave_async_cache *cache, struct cache_node *n,
                            const clave_stat *s, bool may_lack_some)
{
    if (!n->followed || n->no_list || n->unreadable)
        return false;
    if (n->child_watch && may_lack_some)
        clave__cache_drop_child_watch(cache, n);
    if (cache->watches_each || n->child_watch)
        return !clave__cache_watches_children(cache, n);
    if (s->num_children > 0 || (n->dir && n->dir->present > 0))
        return !n->listed || may_lack_some;
    n->listed = true; /* children that appear later cause events */
    n->moved = false;
    return false;
}

/* True if children may be missing. The node was already known when there were no events for a
 * while. With the same pzxid it has the same children, unless the tree was reset to an earlier
 * state, or the server lags behind. */
static bool cache_may_lack_children(const struct cache_node *n, const clave_stat *s)
{
    return n->left_out || cache_has_moved(n, s);
}

/* True if the node can be reported: its parent is reported first, and nothing is known below a node
 * that may not be read. Otherwise it may have to be read again later. */
static bool cache_has_place(struct cache_node *n)
{
    const struct cache_node *up = clave__cache_tree_parent(n);
    if (!up || (up->present && !up->unreadable))
        return true;
    n->wants_read = !up->present && up->phase != CACHE_NODE_IDLE;
    return false;
}

/* The answer says that the node exists. */
static void cache_take_stat(clave_async_cache *cache, struct cache_request *q,
                            const clave_result *res)
{
    const clave_stat *s = res->stat;
    struct cache_node *n = q->node;
    bool check = n->check, was_known = n->present;
    clave_stat known = was_known ? clave__cache_tree_stat(n) : (clave_stat){0};
    bool may_lack_some = check && was_known && cache_may_lack_children(n, s);
    n->check = false;
    if (was_known && (known.czxid != s->czxid || n->unreadable != n->denied)) {
        clave__cache_delete(cache, n);
        was_known = check = may_lack_some = false;
    }
    if (!was_known && !cache_has_place(n))
        return;
    bool is_same = was_known && known.mzxid == s->mzxid;
    if (!is_same && q->op == OP_EXISTS && cache_keeps_data(cache, n)) {
        n->check = check;
        n->wants_read = n->wants_data = true;
        return;
    }
    if (is_same && !(n->lacks_data && q->op == OP_GET_DATA))
        cache_refresh(cache, &q->node, s);
    else if (!cache_store(cache, &q->node, res, q->op))
        return;
    if (cache_must_list(cache, q->node, s, may_lack_some))
        q->node->wants_list = true;
}

/* True if the node could not be read and will not be readable next time either: permission is
 * missing, or the answer is too long for the client, or for the server, which then says
 * EMARSHALLING. */
static bool cache_cannot_be_read(clave_err err)
{
    return err == CLAVE_ENOAUTH || err == CLAVE_ETOOBIG || err == CLAVE_EMARSHALLING;
}

/* No event tells when an unreadable node is deleted, or when others like it appear. A child watch
 * on its parent does; the next listing will set it. */
static void cache_want_child_watch(clave_async_cache *cache, struct cache_node *up)
{
    if (!up || up->child_watch)
        return;
    up->child_watch = true;
    if (!cache->watches_each)
        clave__cache_want(cache, up, CACHE_WANT_LIST);
}

/* The node exists, but nothing beyond its name may be known. */
static void cache_take_unreadable(clave_async_cache *cache, struct cache_request *q)
{
    struct cache_node *n = q->node, *old;
    n->check = false;
    if (n->present && n->unreadable && clave__cache_tree_stat(n).czxid == 0)
        return;
    if (n->present)
        clave__cache_delete(cache, n);
    n->denied = n->no_data = true;
    if (!cache_has_place(n))
        return;
    const struct cache_value nothing = {.unreadable = true};
    if (clave__cache_tree_store(&cache->tree, &q->node, &nothing, &old) != CLAVE_OK) {
        clave__cache_missed(cache, n->parent->owner);
        return;
    }
    clave__cache_tree_discard(&cache->tree, old);
    clave__cache_tree_set_present(&cache->tree, q->node, true);
    clave__cache_tell_node(cache, CLAVE_CACHE_CREATED, q->node, &nothing, NULL);
}

static void cache_take_node(clave_async_cache *cache, struct cache_request *q,
                            const clave_result *res)
{
    struct cache_node *n = q->node;
    n->denied = n->denied || res->err == CLAVE_ENOAUTH;
    if (n->denied)
        cache_want_child_watch(cache, clave__cache_tree_parent(n));
    if (res->err == CLAVE_OK) {
        cache_take_stat(cache, q, res);
    } else if (cache_cannot_be_read(res->err) && q->op == OP_GET_DATA) {
        n->no_data = n->wants_read = true;
    } else if (res->err == CLAVE_ENOAUTH && n->parent) {
        cache_take_unreadable(cache, q);
    } else {
        if (n->present)
            clave__cache_delete(cache, n);
        n->denied = n->no_data = false; /* these belonged to the node that was there before */
        if (cache_cannot_be_read(res->err) && !n->parent)
            clave__cache_end(cache, res->err);
        if (!n->parent && cache->watches_each && q->op == OP_GET_DATA)
            n->wants_read = true; /* to set a watch for its creation */
    }
}

/* ---- a node's children ----------------------------------------------------------------------- */

/* True if the answer under way was sent for after the listing. A deleted node may still have a
 * request for its children under way, which does not bring it back. */
static bool cache_is_being_read(const struct cache_node *n)
{
    return n->phase == CACHE_NODE_ASKED && !n->asked_list;
}

/* Deletes the children that are not in the listing, since the end of a node that may not be read
 * causes no event. Removing one moves what was behind it into its slot. */
static void cache_drop_unnamed(clave_async_cache *cache, const struct cache_node *n)
{
    const struct cache_children *d = n->dir;
    for (uint32_t i = 0; d && i < d->nslots;) {
        struct cache_node *child = d->slots[i];
        if (child && child->present && !child->named)
            clave__cache_delete(cache, child);
        i += d->slots[i] == child;
    }
    for (uint32_t i = 0; d && i < d->nslots; i++)
        if (d->slots[i])
            d->slots[i]->named = false;
}

static void cache_take_names(clave_async_cache *cache, struct cache_request *q,
                             const clave_result *res)
{
    struct cache_node *n = q->node;
    if (!n->present)
        return; /* it has to be read first, and listed afterwards */
    clave_stat known = clave__cache_tree_stat(n);
    if (known.czxid != res->stat->czxid) {
        n->wants_read = true;
        return;
    }
    if (known.mzxid == res->stat->mzxid)
        cache_refresh(cache, &q->node, res->stat);
    n = q->node;
    n->listed = true;
    cache->left_out -= n->left_out;
    n->left_out = false;
    for (size_t i = 0; i < res->nnames; i++) {
        struct cache_node *child =
            clave__cache_tree_child(&cache->tree, n, res->names[i], strlen(res->names[i]));
        if (child)
            child->named = true;
    }
    cache_drop_unnamed(cache, n);
    n->moved = false;
    for (size_t i = 0; i < res->nnames; i++) {
        size_t len = strlen(res->names[i]);
        struct cache_node *child = clave__cache_tree_child(&cache->tree, n, res->names[i], len);
        if (!child)
            clave__cache_add_child(cache, n, res->names[i], len);
        else if (!child->present && !cache_is_being_read(child))
            clave__cache_want(cache, child, CACHE_WANT_STAT);
        else if (!child->present && n->owed)
            clave__cache_owe(cache, child);
    }
}

/* The children of a node whose listing is too long are left out. With ENOAUTH nothing is left out:
 * for this client there is nothing. */
static void cache_cannot_list(clave_async_cache *cache, struct cache_node *n, clave_err err)
{
    bool lacks_some = err != CLAVE_ENOAUTH && !n->left_out;
    n->no_list = true;
    n->left_out = n->left_out || lacks_some;
    if (lacks_some)
        cache_leave_out(cache);
}

static void cache_take_children(clave_async_cache *cache, struct cache_request *q,
                                const clave_result *res)
{
    if (res->err == CLAVE_OK)
        cache_take_names(cache, q, res);
    else if (q->node->present && cache_cannot_be_read(res->err))
        cache_cannot_list(cache, q->node, res->err);
    else if (q->node->present)
        q->node->wants_read = true;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* True if the answer says what exists. Any other answer, such as EBADARGS for a watch beyond the
 * server's limit, says nothing about the node. */
static bool cache_is_about_the_node(clave_err err)
{
    return err == CLAVE_OK || err == CLAVE_ENONODE || cache_cannot_be_read(err);
}

/* The request got no usable answer. If the connection is gone, it is repeated once events arrive
 * again; otherwise the server has put it off or refused it, so we pause. */
static void cache_take_nothing(clave_async_cache *cache, struct cache_request *q)
{
    if (q->op == OP_GET_CHILDREN2)
        q->node->wants_list = true;
    else
        q->node->wants_read = true;
    if (q->op == OP_GET_DATA)
        q->node->wants_data = true;
    clave__cache_owe(cache, q->node);
    if (cache->up)
        cache_pause(cache);
}

static void cache_take(clave_async_cache *cache, struct cache_request *q, const clave_result *res)
{
    if (res->zxid > 0)
        cache->answer_zxid = res->zxid;
    if (res->err == CLAVE_ECLOSED)
        clave__cache_end(cache, res->err);
    else if (!cache_is_about_the_node(res->err))
        cache_take_nothing(cache, q);
    else if (q->op == OP_GET_CHILDREN2)
        cache_take_children(cache, q, res);
    else
        cache_take_node(cache, q, res);
}

/* ---- answers arriving ------------------------------------------------------------------------ */

static void cache_take_answer(struct cache_request *q, const clave_result *res)
{
    if (q->cache->freed)
        return;
    cache_take(q->cache, q, res);
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
    clave__cache_leave(cache); /* matches the _enter in cache_send */
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
    clave__cache_leave(cache); /* matches the _enter in cache_send */
}
