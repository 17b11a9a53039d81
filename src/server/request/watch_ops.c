/* watch_ops.c - requests that concern only watches: setWatches, addWatch, checkWatches,
 * removeWatches. The table in request.c refers to them; that of watches is tree/watch.c. */
#include "server/connection/client_limits.h"

#include <assert.h>

#include "server/request/read.h"

/* ---- bounds ---------------------------------------------------------------------------------- */

/* A watch that is set already costs nothing more. Beyond a bound: BADARGUMENTS. QUOTAEXCEEDED would
 * say more, but clients of before 3.7, and kazoo up to 2.8, break at a code they do not know. */
clave_err clave__conn_add_watch(struct server_conn *c, struct jbytes path, unsigned marks)
{
    struct server *s = c->s;
    bool room = s->watches.count < s->refused.bounds[BOUND_WATCHES].most &&
                c->watcher.count < s->refused.bounds[BOUND_CONNECTION_WATCHES].most;
    if (!room && clave__watch_marks(&s->watches, &c->watcher, path, marks) != marks &&
        (!clave__client_limit_allows(c, BOUND_CONNECTION_WATCHES, c->watcher.count + 1) ||
         !clave__client_limit_allows(c, BOUND_WATCHES, s->watches.count + 1)))
        return CLAVE_EBADARGS;
    if (path.n > 0 && !clave__client_limit_allows(c, BOUND_PATH, (size_t)path.n))
        return CLAVE_EBADARGS;
    return clave__watch_add(&s->watches, &c->watcher, path, marks);
}

/* ---- setWatches ------------------------------------------------------------------------------ */

/* For each path a re-attached client gets the event that it missed, or its watch again. */
struct catch_up {
    struct server_conn *c;
    int64_t since; /* the newest zxid it has seen */
    unsigned mark;
    int32_t (*missed)(const struct node *n, int64_t since); /* 0: nothing */
};

static int32_t watch_missed_by_data(const struct node *n, int64_t since)
{
    if (!n)
        return EVENT_DELETED;
    return n->stat.mzxid > since ? EVENT_DATA_CHANGED : 0;
}

static int32_t watch_missed_by_exist(const struct node *n, int64_t since)
{
    (void)since;
    return n ? EVENT_CREATED : 0;
}

static int32_t watch_missed_by_child(const struct node *n, int64_t since)
{
    if (!n)
        return EVENT_DELETED;
    return n->stat.pzxid > since ? EVENT_CHILDREN_CHANGED : 0;
}

/* A persistent watch is set again; it reports no past events. */
static int32_t watch_missed_by_persistent(const struct node *n, int64_t since)
{
    (void)n;
    (void)since;
    return 0;
}

static clave_err watch_catch_up_paths(const struct catch_up *u, struct jvec paths)
{
    assert(u->mark != 0 && u->missed);
    struct server *s = u->c->s;
    struct jreader r = clave__jvec_reader(paths);
    for (int32_t i = 0; i < paths.count; i++) {
        s->turn.looks += LOOKS_A_READ;
        struct jbytes path = clave__jget_bytes(&r);
        if (path.n < 0)
            return CLAVE_EMARSHALLING;
        const struct node *n = clave__tree_find(&s->tree, path);
        int32_t type = u->missed(n, u->since);
        struct watch_event ev = {.type = type, .path = path};
        clave_err err = CLAVE_OK;
        if (type != 0)
            clave__conn_send_event(u->c, clave__visible_zxid_at(s, path, n), -1, &ev);
        else
            err = clave__conn_add_watch(u->c, path, u->mark);
        if (err != CLAVE_OK)
            return err;
    }
    return CLAVE_OK;
}

clave_err clave__watch_op_set(struct server_conn *c, int32_t op, const union wire_body *body)
{
    const struct wire_set_watches *m = &body->watches;
    (void)op;
    const struct {
        struct jvec paths;
        unsigned mark;
        int32_t (*missed)(const struct node *n, int64_t since);
    } lists[] = {
        {m->data, WATCH_DATA, watch_missed_by_data},
        {m->exist, WATCH_DATA, watch_missed_by_exist},
        {m->child, WATCH_CHILD, watch_missed_by_child},
        {m->persistent, WATCH_PERSISTENT, watch_missed_by_persistent},
        {m->persistent_recursive, WATCH_RECURSIVE, watch_missed_by_persistent},
    };
    clave_err err = CLAVE_OK;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && err == CLAVE_OK; i++) {
        struct catch_up u = {c, m->relative_zxid, lists[i].mark, lists[i].missed};
        err = watch_catch_up_paths(&u, lists[i].paths);
    }
    /* No client looks at this answer, so a watch that is not set again would be an event that never
     * comes. Beyond a bound the client is disconnected, as without memory. */
    return err == CLAVE_EBADARGS ? CLAVE_ENOMEM : err;
}

/* ---- the others ------------------------------------------------------------------------------ */

clave_err clave__watch_op_add(struct server_conn *c, int32_t op, const union wire_body *body)
{
    static const unsigned marks[] = {WATCH_PERSISTENT, WATCH_RECURSIVE};
    static_assert(ADD_WATCH_PERSISTENT == 0 && ADD_WATCH_PERSISTENT_RECURSIVE == 1,
                  "the types are the indices");
    const struct wire_path_type *m = &body->typed;
    (void)op;
    if (m->path.n < 0)
        return CLAVE_EMARSHALLING;
    if (m->type != ADD_WATCH_PERSISTENT && m->type != ADD_WATCH_PERSISTENT_RECURSIVE)
        return CLAVE_EMARSHALLING;
    return clave__conn_add_watch(c, m->path, marks[m->type]);
}

static unsigned watch_marks_of_type(int32_t type)
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

clave_err clave__watch_op_check(struct server_conn *c, int32_t op, const union wire_body *body)
{
    const struct wire_path_type *m = &body->typed;
    unsigned marks = watch_marks_of_type(m->type);
    (void)op;
    if (marks == 0 || m->path.n < 0)
        return CLAVE_EMARSHALLING;
    bool set = clave__watch_marks(&c->s->watches, &c->watcher, m->path, marks) != 0;
    return set ? CLAVE_OK : CLAVE_ENOWATCHER;
}

clave_err clave__watch_op_remove(struct server_conn *c, int32_t op, const union wire_body *body)
{
    const struct wire_path_type *m = &body->typed;
    unsigned marks = watch_marks_of_type(m->type);
    if (marks != 0 && m->path.n < 0)
        return CLAVE_ENOWATCHER;
    clave_err err = clave__watch_op_check(c, op, body);
    if (err == CLAVE_OK)
        clave__watch_remove(&c->s->watches, &c->watcher, m->path, marks);
    return err;
}

/* ---- a request ------------------------------------------------------------------------------- */

void clave__conn_watch(struct server_conn *c, const struct wire_request *q,
                       const struct request_op *op)
{
    static const struct wire_reply none;
    clave_err err = q->malformed ? CLAVE_EMARSHALLING : op->act(c, q->op, &q->body);
    if (err == CLAVE_ENOMEM) {
        clave__conn_cut(c);
        return;
    }
    /* Watches are no part of what a power cut could undo; the events before this have waited. */
    struct message m = clave__message_begin(c, SHOWS_NOTHING);
    clave__message_header(&m, q->xid, m.zxid, err);
    if (err == CLAVE_OK)
        clave__wire_put_reply(&m.w, q->op, &none); /* of addWatch: an ErrorResponse with code OK */
    clave__message_end(&m, true);
}
