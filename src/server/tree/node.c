/* node.c - the Stat that clients see, the meaning of a stored owner, and Apache's digest of one
 * node; see node.h. The digest must match Apache's bit by bit, since both check it in the log. */
#include "server/tree/node.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

/* ---- owners ---------------------------------------------------------------------------------- */

enum { TTL_BITS = 40 };

enum node_kind clave__owner_kind(int64_t owner)
{
    if (owner == 0)
        return NODE_PLAIN;
    if (owner == OWNER_CONTAINER)
        return NODE_CONTAINER;
    return (uint64_t)owner >> 56 == 0xff ? NODE_TTL : NODE_EPHEMERAL;
}

int64_t clave__owner_ttl_ms(int64_t owner)
{
    assert(clave__owner_kind(owner) == NODE_TTL);
    return owner & (((int64_t)1 << TTL_BITS) - 1);
}

int64_t clave__owner_of_ttl(int64_t ttl_ms)
{
    return (int64_t)((uint64_t)0xff << 56 | (uint64_t)ttl_ms);
}

/* ---- the Stat -------------------------------------------------------------------------------- */

struct jbytes clave__node_name(const struct node *n)
{
    const char *path = clave__node_path(n);
    size_t at = n->path_len;
    while (at > 0 && path[at - 1] != '/')
        at--;
    return clave__jbytes_n(path + at, n->path_len - at);
}

struct wire_stat clave__node_wire_stat(const struct node *n)
{
    const struct node_stat *s = &n->stat;
    bool ephemeral = clave__owner_kind(s->owner) == NODE_EPHEMERAL;
    /* The cversion that clients see counts creations and deletions: the creations, plus those
     * children that no longer exist. */
    uint32_t cversion = (uint32_t)s->cversion * 2u - (uint32_t)s->num_children;
    return (struct wire_stat){
        .czxid = s->czxid,
        .mzxid = s->mzxid,
        .ctime = s->ctime,
        .mtime = s->mtime,
        .version = s->version,
        .cversion = (int32_t)cversion,
        .aversion = s->aversion,
        .ephemeral_owner = ephemeral ? s->owner : 0,
        .data_length = n->data_len > 0 ? n->data_len : 0,
        .num_children = s->num_children,
        .pzxid = s->pzxid,
    };
}

void clave__node_put_stat(struct jwriter *w, const struct node *n)
{
    struct wire_stat s = clave__node_wire_stat(n);
    clave__wire_put_stat(w, &s);
}

/* ---- the digest ------------------------------------------------------------------------------ */

static uint8_t *node_put_long(uint8_t *p, int64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)((uint64_t)v >> (56 - 8 * i));
    return p + 8;
}

static uint8_t *node_put_int(uint8_t *p, int32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)((uint32_t)v >> (24 - 8 * i));
    return p + 4;
}

void clave__node_update_head(struct node *n, const struct crc32 *by)
{
    enum { LONG_DATA = 1024 }; /* for which zlib is faster */
    uint32_t crc = clave__crc32(by, 0, clave__node_path(n), n->path_len);
    if (n->data_len >= LONG_DATA && !by->folds)
        crc = (uint32_t)crc32(crc, n->data, (uInt)n->data_len);
    else if (n->data_len > 0)
        crc = clave__crc32(by, crc, n->data, (size_t)n->data_len);
    n->head_crc = crc;
}

uint32_t clave__node_digest(const struct node *n, const struct crc32 *by)
{
    static const char system[] = "/zookeeper/";
    enum { SYSTEM = sizeof system - 1, STAT = 60 };
    const struct node_stat *s = &n->stat;
    uint8_t stat[STAT], *p = stat;
    if (n->path_len >= SYSTEM && memcmp(clave__node_path(n), system, SYSTEM) == 0)
        return 0;
    p = node_put_long(p, s->czxid);
    p = node_put_long(p, s->mzxid);
    p = node_put_long(p, s->pzxid);
    p = node_put_long(p, s->ctime);
    p = node_put_long(p, s->mtime);
    p = node_put_int(p, s->version);
    p = node_put_int(p, s->cversion);
    p = node_put_int(p, s->aversion);
    node_put_long(p, s->owner);
    return clave__crc32(by, n->head_crc, stat, STAT);
}
