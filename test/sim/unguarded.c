#include "unguarded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/server_internal.h"

void unguarded_fini(struct unguarded *u)
{
    free(u->writes);
    free(u->made_by);
}

size_t unguarded_add(struct unguarded *u, const struct unguarded_write *write)
{
    if (u->nwrites == u->writes_cap) {
        u->writes_cap = u->writes_cap ? 2 * u->writes_cap : 64;
        u->writes = world_grow(u->writes, u->writes_cap * sizeof *u->writes);
    }
    u->writes[u->nwrites++] = *write;
    return u->nwrites;
}

void unguarded_made(struct unguarded *u, size_t write, int32_t version)
{
    size_t at = (size_t)version;
    if (version <= 0 || write == 0 || write > u->nwrites)
        return;
    if (at > u->nmade) {
        u->made_by = world_grow(u->made_by, (at + 64) * sizeof *u->made_by);
        memset(u->made_by + u->nmade, 0, (at + 64 - u->nmade) * sizeof *u->made_by);
        u->nmade = at + 64;
    }
    u->made_by[at - 1] = write;
}

/* A leader that is deposed takes back what was not committed. */
static void take_back(struct unguarded *u, int32_t version)
{
    for (size_t i = (size_t)version; i < u->nmade; i++)
        u->made_by[i] = 0;
}

void unguarded_look(struct unguarded *u, const struct server_host *h, const char *path)
{
    int64_t zxid = inspector_zxid(h);
    if (zxid == u->seen_zxid)
        return;
    u->seen_zxid = zxid;
    const struct node *n = clave__tree_find(&h->server->tree, clave__jbytes(path));
    int32_t version = n ? n->stat.version : 0;
    if (version == u->version)
        return;
    if (version < u->version)
        take_back(u, version);
    u->version = version;
    if (!n)
        return;
    char text[64];
    struct jbytes data = clave__node_data(n);
    snprintf(text, sizeof text, "%.*s", data.n > 0 ? (int)data.n : 0, data.n > 0 ? data.p : "");
    const char *number = strchr(text, ' ');
    unguarded_made(u, number ? strtoull(number, NULL, 10) : 0, version);
}

void unguarded_taken(struct unguarded *u, const char *node)
{
    for (size_t i = 0; i < u->nwrites; i++)
        u->writes[i].late |= strcmp(u->writes[i].node, node) == 0;
}

/* ---- the end of the day ---------------------------------------------------------------- */

static const struct unguarded_write *maker(const struct unguarded *u, int32_t version)
{
    size_t at = (size_t)version;
    size_t write = version > 0 && at <= u->nmade ? u->made_by[at - 1] : 0;
    return write ? &u->writes[write - 1] : NULL;
}

/* One that nobody saw may be anybody's. */
static bool has_late_one(const struct unguarded *u, int32_t from, int32_t to)
{
    for (int32_t v = from; v <= to; v++) {
        const struct unguarded_write *w = maker(u, v);
        if (!w || w->late)
            return true;
    }
    return false;
}

uint64_t unguarded_count(const struct unguarded *u, struct world *w, const char *path)
{
    uint64_t lost = 0;
    int64_t newest = 0;
    for (int32_t v = 1; v <= u->version; v++) {
        const struct unguarded_write *now = maker(u, v), *before = maker(u, v - 1);
        if (!now)
            continue;
        if (!now->late && now->token < newest)
            world_break(w, "a write requested in time is done before the next grant",
                        "version %d of %s was written with token %lld, after %lld", (int)v, path,
                        (long long)now->token, (long long)newest);
        newest = now->token > newest ? now->token : newest;
        bool known = before || v == 1;
        if (!known || now->value == (before ? before->value : 0) + 1)
            continue;
        lost++;
        if (!has_late_one(u, now->base + 1, v))
            world_break(w, "no update is lost in time", "%s is %lld in version %d, after %lld",
                        path, (long long)now->value, (int)v,
                        (long long)(before ? before->value : 0));
    }
    return lost;
}
