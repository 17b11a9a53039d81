#include "inspector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/queue/identity.h"
#include "server/server_internal.h"

bool inspector_has_session(const struct server_host *h, int64_t session)
{
    return clave__sessions_find(&h->server->sessions, session) != NULL;
}

bool inspector_has_node(const struct server_host *h, const char *path, int64_t session)
{
    const struct node *n = clave__tree_find(&h->server->tree, clave__jbytes(path));
    return n && (session == 0 || n->stat.owner == session);
}

bool inspector_read(const struct server_host *h, const char *path, int64_t *value, int32_t *version)
{
    const struct node *n = clave__tree_find(&h->server->tree, clave__jbytes(path));
    if (!n)
        return false;
    char text[32];
    struct jbytes data = clave__node_data(n);
    snprintf(text, sizeof text, "%.*s", data.n > 0 ? (int)data.n : 0, data.n > 0 ? data.p : "");
    *value = atoll(text);
    *version = n->stat.version;
    return true;
}

int64_t inspector_mark_token(const struct server_host *h, const char *path)
{
    const struct node *n = clave__tree_find(&h->server->tree, clave__jbytes(path));
    struct jbytes data = n ? clave__node_data(n) : clave__jbytes("");
    return n && data.n > 0 ? clave__lock_delay_mark_token(data.p, (size_t)data.n) : 0;
}

struct node *inspector_child(const struct server_host *h, const char *path, size_t nth)
{
    const struct node *top = clave__tree_find(&h->server->tree, clave__jbytes(path));
    struct node *n = top ? clave__tree_next(top, top) : NULL;
    for (; n && nth > 0; nth--)
        n = clave__tree_next(n, top);
    return n;
}

int64_t inspector_first_child(const struct server_host *h, const char *path, char *out, size_t cap)
{
    const struct node *top = clave__tree_find(&h->server->tree, clave__jbytes(path));
    const struct node *first = NULL;
    for (const struct node *n = top; n && (n = clave__tree_next(n, top));)
        if (!first || n->stat.czxid < first->stat.czxid)
            first = n;
    out[0] = '\0';
    if (!first)
        return 0;
    snprintf(out, cap, "%.*s", (int)first->path_len, clave__node_path(first));
    return clave__owner_kind(first->stat.owner) == NODE_EPHEMERAL ? first->stat.owner : 0;
}

int64_t inspector_zxid(const struct server_host *h)
{
    return h->server->last_zxid;
}

struct server_stats inspector_stats(const struct server_host *h)
{
    struct server_stats st;
    clave__server_stats(h->server, &st);
    return st;
}

/* ---- caches ---------------------------------------------------------------------------- */

struct comparison {
    const clave_async_cache *cache;
    const clave_cache_options *o;
    char *out;
    size_t cap;
    size_t nodes;
};

/* No client of the world has an identity. */
static bool is_unreadable(const struct node *n)
{
    static const struct identities nobody;
    return !clave__acl_allows(n->acl, &nobody, PERM_READ);
}

static bool is_below_unreadable(const struct node *n, const struct node *top)
{
    for (; n != top; n = n->parent)
        if (is_unreadable(n->parent))
            return true;
    return false;
}

static void compare_values(struct comparison *k, const struct node *n,
                           const clave_cache_node *known, int64_t owner)
{
    struct jbytes data = clave__node_data(n);
    size_t len = data.n > 0 ? (size_t)data.n : 0;
    const char *path = known->path;
    if (known->stat.czxid != n->stat.czxid || known->stat.mzxid != n->stat.mzxid ||
        known->stat.version != n->stat.version || known->stat.ephemeral_owner != owner)
        snprintf(k->out, k->cap,
                 "it has another %s: czxid 0x%llx, mzxid 0x%llx, not 0x%llx, 0x%llx", path,
                 (unsigned long long)known->stat.czxid, (unsigned long long)known->stat.mzxid,
                 (unsigned long long)n->stat.czxid, (unsigned long long)n->stat.mzxid);
    else if (known->has_data == k->o->without_data ||
             (known->has_data &&
              (known->len != len || (len && memcmp(known->data, data.p, len) != 0))))
        snprintf(k->out, k->cap, "it has other data of %s", path);
}

static void compare_node(struct comparison *k, const struct node *n, const char *path)
{
    clave_cache_node known;
    /* Others are no client's business. */
    bool is_ephemeral = clave__owner_kind(n->stat.owner) == NODE_EPHEMERAL;
    bool unreadable = is_unreadable(n);
    k->nodes++;
    if (clave_async_cache_get(k->cache, path, &known) != CLAVE_OK)
        snprintf(k->out, k->cap, "it has no %s", path);
    else if (unreadable && is_ephemeral && !known.unreadable)
        return; /* it was readable, and is not read again */
    else if (unreadable != known.unreadable)
        snprintf(k->out, k->cap, "it has %s as %sreadable", path, known.unreadable ? "un" : "");
    else if (!unreadable)
        compare_values(k, n, &known, is_ephemeral ? n->stat.owner : 0);
}

void inspector_compare(const struct server_host *h, const clave_async_cache *cache,
                       const char *path, const clave_cache_options *o, char *out, size_t cap)
{
    struct comparison k = {.cache = cache, .o = o, .out = out, .cap = cap};
    const struct node *top =
        h->server ? clave__tree_find(&h->server->tree, clave__jbytes(path)) : NULL;
    out[0] = '\0';
    for (const struct node *n = top; n && !out[0]; n = clave__tree_next(n, top)) {
        char at[1024];
        snprintf(at, sizeof at, "%.*s", (int)n->path_len, clave__node_path(n));
        if (o->filter(at[0] ? at : "/", o->filter_arg) != CLAVE_CACHE_TAKE_NOTHING &&
            !is_below_unreadable(n, top))
            compare_node(&k, n, at[0] ? at : "/");
        if (o->single_node)
            break;
    }
    if (!out[0] && k.nodes != clave_async_cache_status_of(cache).count)
        snprintf(out, cap, "it has %zu nodes, the tree %zu",
                 clave_async_cache_status_of(cache).count, k.nodes);
}

void inspector_check_snapshot(const struct server_host *h, int64_t zxid)
{
    const struct server *s = h->server;
    if (s->replay.fuzzy_zxid > zxid)
        world_break(h->w, "a snapshot is exact", "snapshot.%llx has a node of zxid 0x%llx",
                    (unsigned long long)zxid, (unsigned long long)s->replay.fuzzy_zxid);
    if (s->replay.digest_mismatches > 0 && !h->counter_was_set)
        world_break(h->w, "a snapshot is exact", "snapshot.%llx has not the digest of its tree",
                    (unsigned long long)zxid);
}
