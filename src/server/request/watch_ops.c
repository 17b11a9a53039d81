/* watch_ops.c - requests that concern only watches: setWatches, addWatch, checkWatches,
 * removeWatches. request.c dispatches to it; the table of watches is tree/watch.c. */
#include "server/request/read.h"

/* ---- setWatches ------------------------------------------------------------------------------ */

/* For each path a re-attached client gets the event that it missed, or its watch again. */
struct catch_up {
    struct server_conn *c;
    int64_t since; /* the newest zxid it has seen */
    unsigned mark;
    int32_t (*missed)(const struct node *n, int64_t since); /* 0: nothing */
};

static int32_t missed_by_data(const struct node *n, int64_t since)
{
    if (!n)
        return EVENT_DELETED;
    return n->stat.mzxid > since ? EVENT_DATA_CHANGED : 0;
}

static int32_t missed_by_exist(const struct node *n, int64_t since)
{
    (void)since;
    return n ? EVENT_CREATED : 0;
}

static int32_t missed_by_child(const struct node *n, int64_t since)
{
    if (!n)
        return EVENT_DELETED;
    return n->stat.pzxid > since ? EVENT_CHILDREN_CHANGED : 0;
}

/* A persistent watch is set again; it reports no past events. */
static int32_t missed_by_persistent(const struct node *n, int64_t since)
{
    (void)n;
    (void)since;
    return 0;
}

static clave_err catch_up(const struct catch_up *u, struct jvec paths)
{
    struct server *s = u->c->s;
    struct jreader r = clave__jvec_reader(paths);
    for (int32_t i = 0; i < paths.count; i++) {
        struct jbytes path = clave__jget_bytes(&r);
        if (path.n < 0)
            return CLAVE_EMARSHALLING;
        int32_t type = u->missed(clave__tree_find(&s->tree, path), u->since);
        struct watch_event ev = {.type = type, .path = path};
        clave_err err = CLAVE_OK;
        if (type != 0)
            clave__conn_send_event(u->c, -1, &ev);
        else
            err = clave__watch_add(&s->watches, &u->c->watcher, path, u->mark);
        if (err != CLAVE_OK)
            return err;
    }
    return CLAVE_OK;
}

static clave_err set_watches(struct server_conn *c, const struct wire_set_watches *m)
{
    const struct {
        struct jvec paths;
        unsigned mark;
        int32_t (*missed)(const struct node *n, int64_t since);
    } lists[] = {
        {m->data, WATCH_DATA, missed_by_data},
        {m->exist, WATCH_DATA, missed_by_exist},
        {m->child, WATCH_CHILD, missed_by_child},
        {m->persistent, WATCH_PERSISTENT, missed_by_persistent},
        {m->persistent_recursive, WATCH_RECURSIVE, missed_by_persistent},
    };
    clave_err err = CLAVE_OK;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && err == CLAVE_OK; i++) {
        struct catch_up u = {c, m->relative_zxid, lists[i].mark, lists[i].missed};
        err = catch_up(&u, lists[i].paths);
    }
    return err;
}

/* ---- the others ------------------------------------------------------------------------------ */

static clave_err add_watch(struct server_conn *c, const struct wire_path_type *m)
{
    static const unsigned marks[] = {WATCH_PERSISTENT, WATCH_RECURSIVE};
    if (m->path.n < 0)
        return CLAVE_EMARSHALLING;
    if (m->type != ADD_WATCH_PERSISTENT && m->type != ADD_WATCH_PERSISTENT_RECURSIVE)
        return CLAVE_EMARSHALLING;
    return clave__watch_add(&c->s->watches, &c->watcher, m->path, marks[m->type]);
}

static unsigned marks_of_type(int32_t type)
{
    switch (type) {
    case WATCHER_CHILDREN:
        return WATCH_CHILD;
    case WATCHER_DATA:
        return WATCH_DATA;
    case WATCHER_ANY:
        return WATCH_ALL;
    case WATCHER_PERSISTENT:
        return WATCH_PERSISTENT;
    case WATCHER_PERSISTENT_RECURSIVE:
        return WATCH_RECURSIVE;
    default:
        return 0;
    }
}

static clave_err check_or_remove(struct server_conn *c, int32_t op, const struct wire_path_type *m)
{
    struct watches *t = &c->s->watches;
    unsigned marks = marks_of_type(m->type);
    if (marks == 0 || (m->path.n < 0 && op == OP_CHECK_WATCHES))
        return CLAVE_EMARSHALLING;
    if (m->path.n < 0)
        return CLAVE_ENOWATCHER;
    if (clave__watch_marks(t, &c->watcher, m->path, marks) == 0)
        return CLAVE_ENOWATCHER;
    if (op == OP_REMOVE_WATCHES)
        clave__watch_remove(t, &c->watcher, m->path, marks);
    return CLAVE_OK;
}

void clave__conn_watch(struct server_conn *c, const struct wire_request *q, bool malformed)
{
    clave_err err;
    if (malformed)
        err = CLAVE_EMARSHALLING;
    else if (q->op == OP_SET_WATCHES || q->op == OP_SET_WATCHES2)
        err = set_watches(c, &q->body.watches);
    else if (q->op == OP_ADD_WATCH)
        err = add_watch(c, &q->body.typed);
    else
        err = check_or_remove(c, q->op, &q->body.typed);
    if (err == CLAVE_ENOMEM) {
        clave__conn_cut(c);
        return;
    }
    struct message m = clave__message_begin(c);
    clave__message_header(&m, q->xid, c->s->last_zxid, err);
    if (err == CLAVE_OK && q->op == OP_ADD_WATCH)
        clave__jput_int(&m.w, 0); /* an ErrorResponse with code OK */
    clave__message_end(&m, true);
}
