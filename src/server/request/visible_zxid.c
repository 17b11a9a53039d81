/* visible_zxid.c - the newest transaction of which an answer about a znode can show anything: what
 * the answer has to wait for (conn.h). read.c, multi.c and watch_ops.c ask for it. A zxid too new
 * only delays an answer; one too old would show what a power cut may undo. */
#include <string.h>

#include "base/path.h"
#include "server/request/read.h"

/* A node that was deleted has left the zxid of that in its parent's pzxid; if the parent is gone
 * too, in that of the parent's parent. */
static int64_t visible_by_absence(const struct server *s, struct jbytes path)
{
    enum { MOST_STEPS = 8 }; /* each is a hash of the path */
    const struct node *living = NULL;
    for (int left = MOST_STEPS; !living && left > 0; left--) {
        path.n = (int32_t)clave__path_parent_len(path.p, (size_t)path.n);
        living = clave__tree_find(&s->tree, path);
    }
    return living ? living->stat.pzxid : s->last_zxid;
}

/* The server writes the figures of quotas by itself, and leaves no zxid. */
static bool visible_is_of_quota(const struct node *n)
{
    static const char quota[] = "/zookeeper/quota/";
    enum { LEN = sizeof quota - 1 };
    return n->path_len > LEN && memcmp(clave__node_path(n), quota, LEN) == 0;
}

int64_t clave__visible_zxid_at(const struct server *s, struct jbytes path, const struct node *n)
{
    if (s->last_zxid == s->txn_log.durable_zxid || path.n < 0)
        return SHOWS_NOTHING;
    if (!n)
        return visible_by_absence(s, path);
    if (visible_is_of_quota(n))
        return s->last_zxid;
    /* setACL leaves no zxid in the node: any may be why a node is shown, or is not. */
    int64_t newest = s->tree.acl_zxid;
    newest = n->stat.mzxid > newest ? n->stat.mzxid : newest;
    return n->stat.pzxid > newest ? n->stat.pzxid : newest;
}
