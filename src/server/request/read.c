/* read.c - requests that change nothing: exists, getData, getChildren, getACL, sync and so on. The
 * table in request.c refers to them; multiRead is in multi.c. A reply waits until what it shows is
 * durable, and for nothing else; that of sync, until everything before it is. */
#include "server/request/read.h"

#include <string.h>

/* ---- finding --------------------------------------------------------------------------------- */

clave_err clave__read_find(const struct server_conn *c, const struct request_op *op,
                           struct jbytes path, struct node **out)
{
    *out = NULL;
    if (path.n < 0)
        return CLAVE_EMARSHALLING;
    *out = clave__tree_find(&c->s->tree, path);
    if (!*out)
        return CLAVE_ENONODE;
    return clave__acl_allows((*out)->acl, &c->who, op->perms) ? CLAVE_OK : CLAVE_ENOAUTH;
}

/* Leaves the watch that the request asks for, if it is one that can. */
static clave_err read_watch(struct server_conn *c, const struct wire_request *q, clave_err found)
{
    unsigned flags = clave__opcode(q->op)->flags;
    bool wanted = (flags & OPCODE_WATCH_ANY) && q->body.read.watch;
    bool absent = found == CLAVE_ENONODE && (flags & OPCODE_WATCH_ABSENT);
    if (!wanted || (found != CLAVE_OK && !absent))
        return CLAVE_OK;
    return clave__conn_add_watch(c, q->body.read.path,
                                 flags & OPCODE_WATCH_CHILD ? WATCH_CHILD : WATCH_DATA);
}

/* ---- what is shown of a node ----------------------------------------------------------------- */

void clave__read_exists(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__node_put_stat(w, n);
}

void clave__read_data(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__jput_bytes(w, clave__node_data(n));
    clave__node_put_stat(w, n);
}

void clave__read_children(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__jput_int(w, n->stat.num_children);
    for (struct list *e = n->children.next; e != &n->children && !clave__jwriter_is_full(w);
         e = e->next)
        clave__jput_bytes(w, clave__node_name(LIST_ENTRY(e, struct node, sibling)));
}

void clave__read_children2(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    clave__read_children(w, c, n);
    clave__node_put_stat(w, n);
}

void clave__read_acl(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    if (clave__acl_allows(n->acl, &c->who, PERM_ADMIN))
        clave__jput_vec(w, clave__acl_entries(n->acl));
    else
        clave__acl_put_masked(w, n->acl);
    clave__node_put_stat(w, n);
}

void clave__read_number_below(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__jput_int(w, clave__node_below(n));
}

/* ---- requests -------------------------------------------------------------------------------- */

/* As in Apache, of all reads only exists looks at the path's bytes. */
static bool read_is_bad_path(const struct wire_request *q)
{
    struct jbytes path = q->body.path;
    return q->op == OP_EXISTS && path.n > 0 && memchr(path.p, '\0', (size_t)path.n);
}

static int64_t read_shows(const struct server *s, const struct request_op *op,
                          const struct wire_request *q, const struct node *n, clave_err err)
{
    if (err == CLAVE_EMARSHALLING || err == CLAVE_EBADARGS)
        return SHOWS_NOTHING;
    return op->shows_others ? s->last_zxid : clave__visible_zxid_at(s, q->body.path, n);
}

void clave__conn_read(struct server_conn *c, const struct wire_request *q,
                      const struct request_op *op)
{
    struct node *n = NULL;
    clave_err err = q->malformed          ? CLAVE_EMARSHALLING
                    : read_is_bad_path(q) ? CLAVE_EBADARGS
                                          : clave__read_find(c, op, q->body.path, &n);
    clave_err watched = q->malformed ? CLAVE_OK : read_watch(c, q, err);
    if (watched == CLAVE_ENOMEM) {
        clave__conn_cut(c);
        return;
    }
    if (watched != CLAVE_OK)
        err = watched;
    struct message m = clave__message_begin(c, read_shows(c->s, op, q, n, err));
    clave__message_header(&m, q->xid, m.zxid, err);
    if (err == CLAVE_OK)
        op->show(&m.w, c, n);
    clave__message_bound(&m);
    clave__message_end(&m, true);
}

/* When the reply leaves, everything before it is durable. */
void clave__conn_sync(struct server_conn *c, const struct wire_request *q,
                      const struct request_op *op)
{
    (void)op;
    struct message m = clave__message_begin(c, c->s->last_zxid);
    clave__message_header(&m, q->xid, m.zxid, q->malformed ? CLAVE_EMARSHALLING : CLAVE_OK);
    if (!q->malformed)
        clave__jput_bytes(&m.w, q->body.path);
    clave__message_end(&m, true);
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
    for (struct list *e = o ? o->nodes.next : NULL;
         e && e != &o->nodes && !clave__jwriter_is_full(w); e = e->next) {
        const struct node *n = &LIST_ENTRY(e, struct owned_node, link)->node;
        if (len > 0 && (n->path_len < len || memcmp(clave__node_path(n), prefix.p, len) != 0))
            continue;
        clave__jput_bytes(w, clave__node_path_bytes(n));
        count++;
    }
    clave__jput_int_at(w, at, count);
}

void clave__conn_ephemerals(struct server_conn *c, const struct wire_request *q,
                            const struct request_op *op)
{
    (void)op;
    struct message m = clave__message_begin(c, c->s->last_zxid);
    clave__message_header(&m, q->xid, m.zxid, q->malformed ? CLAVE_EMARSHALLING : CLAVE_OK);
    if (!q->malformed)
        read_put_ephemerals(&m.w, c, q->body.path);
    clave__message_bound(&m);
    clave__message_end(&m, true);
}
