/* tree.h - the znodes. A single node has its stored Stat, its data and its place; the tree has all
 * nodes by path, the owners of the ephemeral ones, and the digest over all of them.
 *
 * Only _new_node and _copy_data allocate. Linking, unlinking and swapping cannot fail, so a
 * transaction can always be undone. */
#ifndef CLAVE_SERVER_TREE_TREE_H
#define CLAVE_SERVER_TREE_TREE_H

#include "base/hash/crc32.h"
#include "base/list.h"
#include "base/map.h"
#include "server/access/acl.h"
#include "wire/record.h"

/* ---- one znode ------------------------------------------------------------------------------- */

struct acl;

/* The stored ephemeralOwner also encodes the kind of the node. */
#define OWNER_CONTAINER INT64_MIN

enum node_kind { NODE_PLAIN, NODE_EPHEMERAL, NODE_CONTAINER, NODE_TTL };

enum node_kind clave__owner_kind(int64_t owner);
/* The time to live of a NODE_TTL. */
int64_t clave__owner_ttl_ms(int64_t owner);
/* A time to live is 1 ms to OWNER_MOST_TTL_MS. */
#define OWNER_MOST_TTL_MS 0xffffffffff
int64_t clave__owner_of_ttl(int64_t ttl_ms);

/* The Stat as it is stored; here, cversion counts only creations. */
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

/* A znode. The bytes of its path follow the struct, and short data follows the path, so that the
 * usual node is a single allocation. The root's path is empty. */
struct node {
    struct map_node in_tree;
    struct node *parent; /* NULL: the root, or not in the tree */
    struct list sibling;
    struct list children;
    struct node_stat stat;
    struct acl *acl;
    uint8_t *data;    /* NULL when there are no bytes */
    int32_t data_len; /* -1: null, which is different from empty */
    uint32_t path_len : 31;
    /* Equal to the tree's `saved` if the snapshot being written already has the node, or began
     * before the node existed. */
    uint32_t saved : 1;
    uint32_t head_crc; /* CRC of the path and the data, which seldom change */
    uint32_t digest;   /* the node's part in the digest of the tree */
};

/* A node that has a stored owner is in a list as well: that of its session, or tree.swept. Other
 * nodes are allocated without the link. */
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

/* The number of nodes below this one, while it is in the tree; tree.c keeps it in spare bytes of
 * the node. */
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

/* ---- the tree -------------------------------------------------------------------------------- */

/* A session that owns ephemeral nodes, which are removed with it. The session itself may be
 * unknown, or not known yet. */
struct owner {
    struct map_node in_tree;
    int64_t id;
    size_t refs; /* its nodes, whether linked in the tree or not */
    struct list nodes;
};

struct snapshot_save;

struct tree {
    const struct clave_mem *mem;
    struct node *root;
    struct map nodes;
    struct map owners;
    struct list swept;   /* containers and nodes with a TTL */
    struct list cursors; /* cursors walking the lists of owners */
    struct acls acls;
    int64_t acl_zxid; /* the zxid of the newest setACL, which leaves none in its node */
    uint64_t digest;
    struct crc32 crc; /* for the digest */
    size_t ephemerals;
    size_t data_bytes; /* total size of paths and data */
    bool saved;        /* see struct node */
    /* Called before a stored field of a linked node changes, and before the node is unlinked; may
     * be NULL. */
    void (*before_change)(struct tree *t, struct node *n);
    struct snapshot_save *observer;
};

/* A tree with /zookeeper, /zookeeper/config and /zookeeper/quota, like Apache's. `seed` keys the
 * hash of the paths. ENOMEM. */
clave_err clave__tree_init(struct tree *t, const struct clave_mem *mem, uint64_t seed);
/* A tree with only a bare root, for loading a snapshot. */
clave_err clave__tree_init_bare(struct tree *t, const struct clave_mem *mem, uint64_t seed);
void clave__tree_fini(struct tree *t);

/* Finds a node; "/" and "" are the root. NULL: there is none. */
struct node *clave__tree_find(const struct tree *t, struct jbytes path);
/* The parent of the node at this path. NULL: there is none, or the path has no '/'. */
struct node *clave__tree_find_parent(const struct tree *t, struct jbytes path);

struct node_spec {
    struct jbytes path;
    struct jbytes data;
    struct node_stat stat; /* its num_children is ignored */
    struct acl *acl;       /* the node takes a reference of its own */
};
/* Makes a node that is not linked in the tree yet. NULL: no memory. */
struct node *clave__tree_new_node(struct tree *t, const struct node_spec *spec);
/* Frees a node that is not linked in the tree. */
void clave__tree_free_node(struct tree *t, struct node *n);
void clave__tree_link(struct tree *t, struct node *parent, struct node *n);
/* The node must have no children. */
void clave__tree_unlink(struct tree *t, struct node *n);

/* Copies data for _swap_data; *out is NULL if there are no bytes. ENOMEM. */
clave_err clave__tree_copy_data(struct tree *t, struct jbytes data, uint8_t **out);
/* Exchanges the node's data for `*data` of *len bytes. */
void clave__tree_swap_data(struct tree *t, struct node *n, uint8_t **data, int32_t *len);
/* Frees data that _swap_data has returned. */
void clave__tree_free_data(struct tree *t, struct node *n, uint8_t *data);
/* Call it before changing a Stat or an access list; the other functions call it themselves. */
static inline void clave__tree_before_change(struct tree *t, struct node *n)
{
    if (t->before_change)
        t->before_change(t, n);
}
/* Updates the digest after a Stat has changed. */
void clave__tree_changed(struct tree *t, struct node *n);

/* The owner record of a session; NULL: the session owns nothing. */
struct owner *clave__tree_find_owner(const struct tree *t, int64_t id);
/* The node after n in depth-first order below `top`, parents first; NULL after the last one. */
struct node *clave__tree_next(const struct node *n, const struct node *top);

#endif
