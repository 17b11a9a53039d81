/* node.h - one znode: its stored Stat, its data, its place in the tree. */
#ifndef CLAVE_SERVER_TREE_NODE_H
#define CLAVE_SERVER_TREE_NODE_H

#include "base/hash/crc32.h"
#include "base/list.h"
#include "base/map.h"
#include "wire/record.h"

struct acl;

/* The stored ephemeralOwner tells the kind of a node. */
#define OWNER_CONTAINER INT64_MIN

enum node_kind { NODE_PLAIN, NODE_EPHEMERAL, NODE_CONTAINER, NODE_TTL };

enum node_kind clave__owner_kind(int64_t owner);
/* Of a NODE_TTL. */
int64_t clave__owner_ttl_ms(int64_t owner);
/* 1 ms to OWNER_MOST_TTL_MS. */
#define OWNER_MOST_TTL_MS 0xffffffffff
int64_t clave__owner_of_ttl(int64_t ttl_ms);

/* The Stat as it is stored: cversion counts creations only. */
struct node_stat {
    int64_t czxid;
    int64_t mzxid;
    int64_t pzxid;
    int64_t ctime;
    int64_t mtime;
    int64_t owner;
    int32_t version;
    int32_t cversion;
    int32_t aversion;
    int32_t num_children;
};

/* The path's bytes follow the struct directly, and short data follow the path: one
 * allocation for the common node. The root's path is empty. */
struct node {
    struct map_node in_tree;
    struct node *parent; /* NULL: the root, or not in the tree */
    struct list sibling;
    struct list children;
    struct node_stat stat;
    struct acl *acl;
    uint8_t *data;    /* NULL when there are no bytes */
    int32_t data_len; /* -1: null, which is not the same as empty */
    uint32_t path_len : 31;
    /* Equal to the tree's: the snapshot being written has the node, or was begun before it. */
    uint32_t saved : 1;
    uint32_t head_crc; /* over path and data, which seldom change */
    uint32_t digest;   /* its part of the digest of the tree */
};

/* A node with a stored owner is in a list: that of its session, or tree.swept. Others have no link.
 */
struct owned_node {
    struct list link;
    struct node node;
};

static inline const char *clave__node_path(const struct node *n)
{
    return (const char *)(n + 1);
}

static inline struct jbytes clave__node_path_bytes(const struct node *n)
{
    return (struct jbytes){clave__node_path(n), (int32_t)n->path_len};
}

static inline struct jbytes clave__node_data(const struct node *n)
{
    return (struct jbytes){(const char *)n->data, n->data_len};
}

/* How many nodes are below it, in the tree; tree.c counts them in the node's spare bytes. */
static inline int32_t clave__node_below(const struct node *n)
{
    return (int32_t)n->in_tree.user;
}

static inline struct owned_node *clave__node_owned(struct node *n)
{
    return LIST_ENTRY(n, struct owned_node, node);
}

/* The part of the path after the last '/'. */
struct jbytes clave__node_name(const struct node *n);
/* The Stat as clients see it. */
struct wire_stat clave__node_wire_stat(const struct node *n);
void clave__node_put_stat(struct jwriter *w, const struct node *n);
/* Sets head_crc; call it whenever the data have changed. */
void clave__node_update_head(struct node *n, const struct crc32 *by);
/* Apache's digest of a node, from head_crc and the Stat; 0 below /zookeeper. */
uint32_t clave__node_digest(const struct node *n, const struct crc32 *by);

#endif
