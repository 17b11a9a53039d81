/* cache_reply.c - what answers mean to a cache. Called by cache_read.c with each. Compared by
 * czxid and mzxid: a node of another czxid is another node. A listing is needed again only when
 * pzxid or cversion moved while there were no events. A parent is told before its children: what is
 * below a node that is not told of yet is found by its listing. */
#include <string.h>

#include "recipe/cache/cache_children.h"
#include "recipe/cache/cache_internal.h"
#include "wire/proto.h"

/* ---- a node's Stat and data ------------------------------------------------------------------ */

/* How much of the data is to be kept. */
static size_t cache_kept(const clave_async_cache *cache, const struct cache_node *n, size_t len)
{
    size_t most = cache->o.max_data;
    if (most == 0 || len <= most)
        return len;
    return cache->cuts && cache->cuts(clave__cache_tree_path(n, cache->tree.path.data)) ? most : 0;
}

/* *lacks: there is no room for its data. */
static struct cache_value cache_value_of(const clave_async_cache *cache, const struct cache_node *n,
                                         const clave_result *res, int32_t op, bool *lacks)
{
    struct cache_value v = {.stat = *res->stat};
    size_t kept = op == OP_GET_DATA ? cache_kept(cache, n, res->len) : 0;
    bool wanted = op == OP_GET_DATA && (kept > 0 || res->len == 0);
    v.has_data = wanted && clave__cache_has_room(cache, kept);
    *lacks = wanted && !v.has_data;
    if (v.has_data) {
        v.data = res->data;
        v.len = kept;
    }
    return v;
}

/* Another pzxid than that of the last listing: nobody else tells of a child that may not be read.
 */
static bool cache_has_moved(const struct cache_node *n, const clave_stat *s)
{
    clave_stat known = clave__cache_tree_stat(n);
    return n->moved || known.pzxid != s->pzxid || known.cversion != s->cversion;
}

/* Stores what was read, and tells it. false: there is no memory. */
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
        clave__cache_leave_out(cache);
    }
    return true;
}

/* The same node with the same data: what no event tells of may have changed. */
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

/* Whether the children have to be listed, now that the node's Stat is known. */
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
    n->listed = true; /* children that come later have events */
    n->moved = false;
    return false;
}

/* The node was known before there were no events for a while. With the same pzxid it has the same
 * children, unless the tree was set back to what it was, or a server is late. */
static bool cache_may_lack_children(const struct cache_node *n, const clave_stat *s)
{
    return n->left_out || cache_has_moved(n, s);
}

/* Its parent is told first, and nothing is known below one that may not be read. false: it is not
 * to be told now, and perhaps read again later. */
static bool cache_has_place(struct cache_node *n)
{
    const struct cache_node *up = clave__cache_tree_parent(n);
    if (!up || (up->present && !up->unreadable))
        return true;
    n->wants_read = !up->present && up->phase != CACHE_NODE_IDLE;
    return false;
}

/* It exists. */
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
    if (!is_same && q->op == OP_EXISTS && clave__cache_keeps_data(cache, n)) {
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

/* And will not be the next time: an answer that is too long for the client, or for the server,
 * which says EMARSHALLING. */
static bool cache_cannot_be_read(clave_err err)
{
    return err == CLAVE_ENOAUTH || err == CLAVE_ETOOBIG || err == CLAVE_EMARSHALLING;
}

/* No event tells when it is deleted, nor when others like it come: a child watch of its parent
 * does, which the next listing leaves. */
static void cache_want_child_watch(clave_async_cache *cache, struct cache_node *up)
{
    if (!up || up->child_watch)
        return;
    up->child_watch = true;
    if (!cache->watches_each)
        clave__cache_want(cache, up, CACHE_WANT_LIST);
}

/* It exists, and its name is all that may be known of it. */
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
        n->denied = n->no_data = false; /* of the one that was there */
        if (cache_cannot_be_read(res->err) && !n->parent)
            clave__cache_end(cache, res->err);
        if (!n->parent && cache->watches_each && q->op == OP_GET_DATA)
            n->wants_read = true; /* to leave a watch for its creation */
    }
}

/* ---- a node's children ----------------------------------------------------------------------- */

/* The answer under way is after that of the listing. A node that was deleted may still be asked for
 * its children, which does not bring it back. */
static bool cache_is_being_read(const struct cache_node *n)
{
    return n->phase == CACHE_NODE_ASKED && !n->asked_list;
}

/* What is not in the listing is gone: that of a node which may not be read has no event. One that
 * is removed leaves its slot to what was behind it. */
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
        return; /* it is to be read, and listed after that */
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

/* What is below a listing that is too long is left out: with ENOAUTH nothing is, for this client.
 */
static void cache_cannot_list(clave_async_cache *cache, struct cache_node *n, clave_err err)
{
    bool lacks_some = err != CLAVE_ENOAUTH && !n->left_out;
    n->no_list = true;
    n->left_out = n->left_out || lacks_some;
    if (lacks_some)
        clave__cache_leave_out(cache);
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

/* Whether it says what there is. Any other answer, such as EBADARGS for a watch beyond the server's
 * bound, says nothing of the node. */
static bool cache_is_about_the_node(clave_err err)
{
    return err == CLAVE_OK || err == CLAVE_ENONODE || cache_cannot_be_read(err);
}

/* There was no answer. With the connection gone it is asked for again when events come again;
 * otherwise the server put it off, or refused it. */
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
        clave__cache_pause(cache);
}

void clave__cache_take(clave_async_cache *cache, struct cache_request *q, const clave_result *res)
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
