/* inspect.c - reads the records of a log without applying them, and walks a loaded server; see
 * inspect.h. `clave data` and the tests call it. It shares log_read.c with recovery, so both agree
 * on what is a record, a torn tail or damage. */
#include "server/store/inspect.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/server_internal.h"
#include "server/store/log_read.h"

enum { DIGEST_VERSION = 2 };

/* ---- one change ------------------------------------------------------------------------------ */

static void get_new_node(struct jreader *r, struct log_change *c)
{
    c->data = clave__jget_bytes(r);
    c->acl = clave__wire_get_acls(r);
    if (c->type == OP_CREATE || c->type == OP_CREATE2)
        c->ephemeral = clave__jget_bool(r);
    c->version = r->n >= 4 ? clave__jget_int(r) : -1; /* before ZooKeeper 3.3 there was none */
    if (c->type == OP_CREATE_TTL)
        c->ttl_ms = clave__jget_long(r);
}

/* false: the bytes are cut short, or no such type is ever recorded. */
static bool get_change(struct jreader *r, int32_t type, struct log_change *c)
{
    *c = (struct log_change){.type = type};
    if (type == OP_ERROR) {
        c->err = clave__jget_int(r);
        return !r->bad;
    }
    c->path = clave__jget_bytes(r);
    switch (type) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        get_new_node(r, c);
        break;
    case OP_DELETE:
    case OP_DELETE_CONTAINER:
        break;
    case OP_SET_ACL:
        c->acl = clave__wire_get_acls(r);
        c->version = clave__jget_int(r);
        break;
    case OP_SET_DATA:
    case OP_RECONFIG:
        c->data = clave__jget_bytes(r);
        c->version = clave__jget_int(r);
        break;
    case OP_CHECK:
        c->version = clave__jget_int(r);
        break;
    default:
        return false;
    }
    return !r->bad;
}

/* ---- an entry -------------------------------------------------------------------------------- */

static bool get_multi(struct jreader *r, struct log_entry *e)
{
    struct log_change c;
    int32_t count = clave__jget_count(r, 8);
    e->changes = count > 0 ? count : 0;
    for (int32_t i = 0; i < e->changes && !r->bad; i++) {
        int32_t type = clave__jget_int(r);
        struct jbytes raw = clave__jget_bytes(r);
        struct jreader sub = clave__jreader(raw.p, raw.n > 0 ? (size_t)raw.n : 0);
        if (!r->bad && !get_change(&sub, type, &c))
            return false;
    }
    return !r->bad;
}

/* The list of paths came with 3.6. */
static void get_close(struct jreader *r, struct log_entry *e)
{
    struct jreader ahead = *r;
    struct jvec paths = clave__jget_strings(&ahead);
    if (ahead.bad)
        return;
    *r = ahead;
    e->changes = paths.count > 0 ? paths.count : 0;
}

static bool get_body(struct jreader *r, struct log_entry *e)
{
    struct log_change c;
    switch (e->type) {
    case OP_CREATE_SESSION:
        e->timeout_ms = clave__jget_int(r);
        return !r->bad;
    case OP_CLOSE_SESSION:
        get_close(r, e);
        return true;
    case OP_ERROR:
        e->err = clave__jget_int(r);
        return !r->bad;
    case OP_MULTI:
        return get_multi(r, e);
    default:
        e->changes = 1;
        return get_change(r, e->type, &c);
    }
}

/* false: the record is not a transaction. */
static bool get_entry(const struct record *rec, struct log_entry *e)
{
    struct jreader r = clave__jreader(rec->payload, rec->n);
    e->client = clave__jget_long(&r);
    e->cxid = clave__jget_int(&r);
    e->zxid = clave__jget_long(&r);
    e->time = clave__jget_long(&r);
    e->type = clave__jget_int(&r);
    e->body = r.p;
    e->body_len = r.n;
    if (r.bad || !get_body(&r, e))
        return false;
    if (r.n < 12 || clave__jget_int(&r) != DIGEST_VERSION)
        return true;
    e->has_digest = true;
    e->digest = (uint64_t)clave__jget_long(&r);
    return true;
}

bool clave__log_entry_change(const struct log_entry *e, int32_t i, struct log_change *out)
{
    struct jreader r = clave__jreader(e->body, e->body_len);
    if (i >= e->changes)
        return false;
    if (e->type != OP_MULTI && e->type != OP_CLOSE_SESSION)
        return get_change(&r, e->type, out);
    clave__jget_int(&r);
    if (e->type == OP_CLOSE_SESSION) {
        while (i-- > 0)
            clave__jget_bytes(&r);
        *out = (struct log_change){.type = OP_DELETE, .path = clave__jget_bytes(&r)};
        return !r.bad;
    }
    for (;; i--) {
        int32_t type = clave__jget_int(&r);
        struct jbytes raw = clave__jget_bytes(&r);
        struct jreader sub = clave__jreader(raw.p, raw.n > 0 ? (size_t)raw.n : 0);
        if (r.bad || i <= 0)
            return !r.bad && get_change(&sub, type, out);
    }
}

/* ---- a file ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static enum log_step damaged(struct log_walk *w,
                                                                   const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->fault, sizeof w->fault, fmt, ap);
    va_end(ap);
    return LOG_STEP_DAMAGED;
}

bool clave__log_walk(struct log_walk *w, const void *p, size_t n)
{
    *w = (struct log_walk){.p = p, .n = n, .at = SERVER_LOG_HEADER};
    if (clave__log_has_torn_header(p, n) || (n < SERVER_LOG_HEADER && n < 4)) {
        w->at = w->n = 0;
        return true;
    }
    if (memcmp(p, "ZKLG", 4) == 0 && n >= SERVER_LOG_HEADER)
        return true;
    w->at = 0;
    damaged(w, "it does not begin with ZKLG and a whole header, as a transaction log does");
    return false;
}

static enum log_step inspect_end_torn(struct log_walk *w)
{
    struct log_tail tail = clave__log_tail(w->p, w->at, w->n, w->last_zxid);
    switch (tail.kind) {
    case TAIL_PADDING:
        return LOG_STEP_END;
    case TAIL_TORN:
        return LOG_STEP_TORN;
    case TAIL_DAMAGED:
        break;
    }
    return damaged(w, "%s", tail.fault);
}

enum log_step clave__log_walk_next(struct log_walk *w, struct log_entry *out)
{
    struct record rec;
    *out = (struct log_entry){.offset = w->at};
    switch (clave__log_look_at(w->p + w->at, w->n - w->at, &rec)) {
    case FOUND_END:
        return LOG_STEP_END;
    case FOUND_TORN:
    case FOUND_DAMAGED:
        return inspect_end_torn(w);
    case FOUND_RECORD:
        break;
    }
    if (rec.zxid == INT64_MAX)
        return damaged(w, "the record at offset %zu has the largest possible zxid", w->at);
    bool gap = w->last_zxid != 0 && !clave__log_follows(w->last_zxid, rec.zxid);
    if (gap && rec.zxid <= w->last_zxid)
        return damaged(w, "the record at offset %zu has zxid 0x%llx, after 0x%llx", w->at,
                       (unsigned long long)rec.zxid, (unsigned long long)w->last_zxid);
    if (!get_entry(&rec, out))
        return damaged(w, "the record at offset %zu, zxid 0x%llx, is not a transaction", w->at,
                       (unsigned long long)rec.zxid);
    out->size = LOG_RECORD_HEAD + rec.n + 1;
    w->at += out->size;
    if (gap && w->gap == 0)
        w->gap = w->last_zxid + 1;
    w->last_zxid = rec.zxid;
    return LOG_STEP_ENTRY;
}

/* ---- what a server has loaded ---------------------------------------------------------------- */

void clave__server_each_node(const struct server *s,
                             void (*visit)(void *arg, const struct node_view *n), void *arg)
{
    for (const struct node *n = s->tree.root; n; n = clave__tree_next(n, s->tree.root)) {
        struct node_view v = {
            .path = clave__node_path_bytes(n),
            .data = clave__node_data(n),
            .acl = clave__acl_entries(n->acl),
            .stat = clave__node_wire_stat(n),
            .stored_cversion = n->stat.cversion,
            .stored_owner = n->stat.owner,
        };
        visit(arg, &v);
    }
}

void clave__server_each_session(const struct server *s,
                                void (*visit)(void *arg, int64_t id, int32_t timeout_ms), void *arg)
{
    const struct map *table = &s->sessions.table;
    for (struct map_node *at = NULL; (at = clave__map_next(table, at));) {
        const struct session *session = MAP_ENTRY(at, struct session, in_table);
        visit(arg, session->id, session->logged_timeout_ms);
    }
}
