#include "inspector.h"

#include <stdio.h>
#include <stdlib.h>

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

void inspector_check_snapshot(const struct server_host *h, int64_t zxid)
{
    const struct server *s = h->server;
    if (s->fuzzy_zxid > zxid)
        world_break(h->w, "a snapshot is exact", "snapshot.%llx has a node of zxid 0x%llx",
                    (unsigned long long)zxid, (unsigned long long)s->fuzzy_zxid);
    if (s->digest_mismatches > 0 && !h->counter_was_set)
        world_break(h->w, "a snapshot is exact", "snapshot.%llx has not the digest of its tree",
                    (unsigned long long)zxid);
}
