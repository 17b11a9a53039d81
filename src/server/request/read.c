/* read.c - requests that change nothing: exists, getData, getChildren, getACL, sync and so on, and
 * multiRead. request.c dispatches to it. The reply waits until everything it shows is durable,
 * which is what makes sync work. */
#include "server/request/read.h"

#include <string.h>

/* ---- finding --------------------------------------------------------------------------------- */

/* The permissions of which the client needs at least one. */
static int32_t perms_for(int32_t op)
{
    return op == OP_GET_ACL ? PERM_READ | PERM_ADMIN : PERM_READ;
}

static clave_err read_find(struct server_conn *c, int32_t op, struct jbytes path, struct node **out)
{
    *out = NULL;
    if (path.n < 0)
        return CLAVE_EMARSHALLING;
    if (op == OP_EXISTS && path.n > 0 && memchr(path.p, '\0', (size_t)path.n))
        return CLAVE_EBADARGS;
    *out = clave__tree_find(&c->s->tree, path);
    if (!*out)
        return CLAVE_ENONODE;
    return clave__acl_allows((*out)->acl, &c->who, perms_for(op)) ? CLAVE_OK : CLAVE_ENOAUTH;
}

static unsigned mark_for(int32_t op)
{
    return op == OP_GET_CHILDREN || op == OP_GET_CHILDREN2 ? WATCH_CHILD : WATCH_DATA;
}

static bool takes_watch(int32_t op)
{
    return op == OP_EXISTS || op == OP_GET_DATA || op == OP_GET_CHILDREN || op == OP_GET_CHILDREN2;
}

/* Only exists can watch a node that does not exist. */
static clave_err watch(struct server_conn *c, const struct wire_request *q, clave_err found)
{
    bool wanted = takes_watch(q->op) && q->body.read.watch &&
                  (found == CLAVE_OK || (found == CLAVE_ENONODE && q->op == OP_EXISTS));
    if (!wanted)
        return CLAVE_OK;
    return clave__watch_add(&c->s->watches, &c->watcher, q->body.read.path, mark_for(q->op));
}

/* ---- answers --------------------------------------------------------------------------------- */

static void read_put_names(struct jwriter *w, const struct node *n)
{
    clave__jput_int(w, n->stat.num_children);
    for (struct list *e = n->children.next; e != &n->children; e = e->next)
        clave__jput_bytes(w, clave__node_name(LIST_ENTRY(e, struct node, sibling)));
}

static void put_acl(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    if (clave__acl_allows(n->acl, &c->who, PERM_ADMIN))
        clave__jput_vec(w, clave__acl_entries(n->acl));
    else
        clave__acl_put_masked(w, n->acl);
    clave__node_put_stat(w, n);
}

static int32_t count_below(const struct tree *t, const struct node *top)
{
    int32_t count = 0;
    if (top == t->root)
        return (int32_t)t->nodes.count;
    for (const struct node *n = top; (n = clave__tree_next(n, top));)
        count++;
    return count;
}

static void read_put_node(struct jwriter *w, const struct server_conn *c, int32_t op,
                          const struct node *n)
{
    switch (op) {
    case OP_EXISTS:
        clave__node_put_stat(w, n);
        break;
    case OP_GET_DATA:
        clave__jput_bytes(w, clave__node_data(n));
        clave__node_put_stat(w, n);
        break;
    case OP_GET_CHILDREN:
        read_put_names(w, n);
        break;
    case OP_GET_CHILDREN2:
        read_put_names(w, n);
        clave__node_put_stat(w, n);
        break;
    case OP_GET_ACL:
        put_acl(w, c, n);
        break;
    default: /* getAllChildrenNumber */
        clave__jput_int(w, count_below(&c->s->tree, n));
        break;
    }
}

static bool read_is_blank(struct jbytes s)
{
    for (int32_t i = 0; i < s.n; i++)
        if (s.p[i] != ' ')
            return false;
    return true;
}

/* The prefix is one of the text, not of the path; an empty prefix and "/" match everything. */
static void read_put_ephemerals(struct jwriter *w, const struct server_conn *c,
                                struct jbytes prefix)
{
    const struct owner *o = clave__tree_find_owner(&c->s->tree, c->session->id);
    size_t at = clave__buf_len(w->b);
    size_t len = read_is_blank(prefix) ? 0 : (size_t)prefix.n;
    int32_t count = 0;
    clave__jput_int(w, 0);
    for (struct list *e = o ? o->nodes.next : NULL; e && e != &o->nodes; e = e->next) {
        const struct node *n = &LIST_ENTRY(e, struct owned_node, link)->node;
        if (len > 0 && (n->path_len < len || memcmp(clave__node_path(n), prefix.p, len) != 0))
            continue;
        clave__jput_bytes(w, clave__node_path_bytes(n));
        count++;
    }
    clave__jput_int_at(w, at, count);
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool names_node(int32_t op)
{
    return op != OP_SYNC && op != OP_GET_EPHEMERALS;
}

void clave__conn_read(struct server_conn *c, const struct wire_request *q, bool malformed)
{
    struct node *n = NULL;
    struct jbytes path = takes_watch(q->op) ? q->body.read.path : q->body.path;
    clave_err err = malformed ? CLAVE_EMARSHALLING : CLAVE_OK;
    if (err == CLAVE_OK && names_node(q->op))
        err = read_find(c, q->op, path, &n);
    if (!malformed && watch(c, q, err) != CLAVE_OK) {
        clave__conn_cut(c);
        return;
    }
    struct message m = clave__message_begin(c);
    clave__message_header(&m, q->xid, c->s->last_zxid, err);
    if (err == CLAVE_OK && n)
        read_put_node(&m.w, c, q->op, n);
    else if (err == CLAVE_OK && q->op == OP_SYNC)
        clave__jput_bytes(&m.w, path); /* when it leaves, everything before it is durable */
    else if (err == CLAVE_OK)
        read_put_ephemerals(&m.w, c, path);
    clave__message_end(&m, true);
}

static void put_read_result(struct jwriter *w, struct server_conn *c, const struct wire_op *op)
{
    struct node *n;
    struct wire_result res = {.op = op->op};
    res.err = read_find(c, op->op, op->body.read.path, &n);
    if (res.err != CLAVE_OK)
        res.op = OP_ERROR;
    if (res.err != CLAVE_OK || op->op == OP_GET_DATA) {
        if (n && res.err == CLAVE_OK) {
            res.reply.data = clave__node_data(n);
            res.reply.stat = clave__node_wire_stat(n);
        }
        clave__wire_put_result(w, &res);
        return;
    }
    clave__jput_int(w, op->op);
    clave__jput_bool(w, false);
    clave__jput_int(w, CLAVE_OK);
    read_put_names(w, n);
}

/* Each read has an error of its own. Their watch flags are ignored. */
void clave__conn_multi_read(struct server_conn *c, const struct wire_request *q, bool malformed)
{
    struct jreader r = clave__wire_ops_reader(&q->body.multi);
    struct wire_op op;
    while (!malformed && clave__wire_get_op(&r, &op))
        malformed = op.op != OP_GET_DATA && op.op != OP_GET_CHILDREN;
    if (malformed) {
        clave__conn_reply(c, q->xid, c->s->last_zxid, CLAVE_EMARSHALLING);
        return;
    }
    struct message m = clave__message_begin(c);
    clave__message_header(&m, q->xid, c->s->last_zxid, CLAVE_OK);
    r = clave__wire_ops_reader(&q->body.multi);
    while (clave__wire_get_op(&r, &op))
        put_read_result(&m.w, c, &op);
    clave__wire_put_ops_end(&m.w);
    clave__message_end(&m, true);
}
