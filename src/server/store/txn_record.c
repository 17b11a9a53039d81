/* txn_record.c - the bytes of transactions; see txn_record.h. txn_log_append.c writes them,
 * txn_log_replay.c replays them, txn_log_read.c shows them. Invariant: it changes no tree. */
#include "server/store/txn_record.h"

#include <assert.h>

#include "server/store/txn_redo.h"

/* ---- the kinds ------------------------------------------------------------------------------- */

enum { NEW_NODE = TXN_PATH | TXN_DATA | TXN_ACL | TXN_PARENT_CVERSION };

/* The usual ones first. */
static const struct txn_kind kinds[] = {
    {OP_CREATE, "create", NEW_NODE | TXN_EPHEMERAL, clave__txn_redo_create},
    {OP_SET_DATA, "setData", TXN_PATH | TXN_DATA | TXN_VERSION, clave__txn_redo_set},
    {OP_DELETE, "delete", TXN_PATH, clave__txn_redo_delete},
    {OP_CREATE2, "create2", NEW_NODE | TXN_EPHEMERAL, clave__txn_redo_create},
    {OP_CHECK, "check", TXN_PATH | TXN_VERSION, NULL},
    {OP_MULTI, "multi", 0, NULL},
    {OP_ERROR, "error", TXN_ERR, NULL},
    {OP_CREATE_SESSION, "createSession", 0, NULL},
    {OP_CLOSE_SESSION, "closeSession", 0, NULL},
    {OP_SET_ACL, "setACL", TXN_PATH | TXN_ACL | TXN_VERSION, clave__txn_redo_set},
    {OP_CREATE_CONTAINER, "createContainer", NEW_NODE, clave__txn_redo_create},
    {OP_DELETE_CONTAINER, "deleteContainer", TXN_PATH, clave__txn_redo_delete},
    {OP_CREATE_TTL, "createTTL", NEW_NODE | TXN_TTL, clave__txn_redo_create},
    {OP_RECONFIG, "reconfig", TXN_PATH | TXN_DATA | TXN_VERSION, clave__txn_redo_set},
};

static const struct txn_kind *txn_kind(int32_t type)
{
    static const struct txn_kind never_recorded = {0, "unknown", 0, NULL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type)
            return &kinds[i];
    return &never_recorded;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void txn_put_change(struct jwriter *w, const struct change *c)
{
    unsigned has = txn_kind(c->type)->fields;
    assert(has != 0); /* or nobody could read it */
    if (has & TXN_PATH)
        clave__jput_bytes(w, c->path);
    if (has & TXN_DATA)
        clave__jput_bytes(w, c->data);
    if (has & TXN_ACL)
        clave__jput_vec(w, clave__acl_entries(c->acl));
    if (has & TXN_EPHEMERAL)
        clave__jput_bool(w, c->owner != 0);
    if (has & (TXN_PARENT_CVERSION | TXN_VERSION))
        clave__jput_int(w, c->version);
    if (has & TXN_TTL)
        clave__jput_long(w, clave__owner_ttl_ms(c->owner));
    if (has & TXN_ERR)
        clave__jput_int(w, c->err);
}

/* Releases before 3.8.2 cannot read a create2 in a multi. */
static int32_t txn_type_in_multi(const struct change *c)
{
    return c->type == OP_CREATE2 ? OP_CREATE : c->type;
}

static void txn_put_multi(struct jwriter *w, const struct txn *t)
{
    clave__jput_int(w, (int32_t)t->count);
    for (size_t i = 0; i < t->count; i++) {
        clave__jput_int(w, txn_type_in_multi(&t->changes[i]));
        size_t at = clave__buf_len(w->b);
        clave__jput_int(w, 0);
        txn_put_change(w, &t->changes[i]);
        clave__jput_int_at(w, at, (int32_t)(clave__buf_len(w->b) - at - 4));
    }
}

static void txn_put_paths(struct jwriter *w, const struct txn *t)
{
    clave__jput_int(w, (int32_t)t->count);
    for (size_t i = 0; i < t->count; i++)
        clave__jput_bytes(w, t->changes[i].path);
}

void clave__txn_write(struct jwriter *w, const struct txn *t)
{
    clave__jput_long(w, t->head.client);
    clave__jput_int(w, t->head.cxid);
    clave__jput_long(w, t->head.zxid);
    clave__jput_long(w, t->head.time);
    clave__jput_int(w, t->head.type);
    switch (t->head.type) {
    case OP_CREATE_SESSION:
        clave__jput_int(w, t->timeout_ms);
        break;
    case OP_CLOSE_SESSION:
        txn_put_paths(w, t);
        break;
    case OP_ERROR:
        clave__jput_int(w, t->err);
        break;
    case OP_MULTI:
        txn_put_multi(w, t);
        break;
    default:
        assert(t->count == 1);
        txn_put_change(w, &t->changes[0]);
        break;
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* false: the bytes are cut short, or no such change is ever recorded. */
static bool txn_get_change(struct jreader *r, int32_t type, struct change_record *c)
{
    const struct txn_kind *kind = txn_kind(type);
    unsigned has = kind->fields;
    *c = (struct change_record){.kind = kind, .version = -1};
    if (has & TXN_PATH)
        c->path = clave__jget_bytes(r);
    if (has & TXN_DATA)
        c->data = clave__jget_bytes(r);
    if (has & TXN_ACL)
        c->acl = clave__wire_get_acls(r);
    if (has & TXN_EPHEMERAL)
        c->ephemeral = clave__jget_bool(r);
    if (has & TXN_VERSION || (has & TXN_PARENT_CVERSION && r->n >= 4))
        c->version = clave__jget_int(r);
    if (has & TXN_TTL)
        c->ttl_ms = clave__jget_long(r);
    if (has & TXN_ERR)
        c->err = clave__jget_int(r);
    return has != 0 && !r->bad;
}

/* One of a multi. */
static bool txn_get_op(struct jreader *r, struct change_record *c)
{
    int32_t type = clave__jget_int(r);
    struct jbytes raw = clave__jget_bytes(r);
    struct jreader sub = clave__jreader(raw.p, raw.n > 0 ? (size_t)raw.n : 0);
    return !r->bad && txn_get_change(&sub, type, c);
}

static bool txn_get_multi(struct jreader *r, struct txn_record *t)
{
    struct change_record c;
    int32_t count = clave__jget_count(r, 8);
    t->body = *r;
    for (; t->changes < count; t->changes++) {
        if (!txn_get_op(r, &c))
            return false;
        t->failed = t->failed || c.kind->type == OP_ERROR;
    }
    t->body.n -= r->n;
    return !r->bad;
}

/* The list of paths came with 3.6. */
static void txn_get_paths(struct jreader *r, struct txn_record *t)
{
    struct jreader ahead = *r;
    struct jvec paths = clave__jget_strings(&ahead);
    if (ahead.bad)
        return;
    *r = ahead;
    t->changes = paths.count > 0 ? paths.count : 0;
    t->body = clave__jvec_reader(paths);
}

static bool txn_get_body(struct jreader *r, struct txn_record *t)
{
    switch (t->head.type) {
    case OP_CREATE_SESSION:
        t->timeout_ms = clave__jget_int(r);
        return !r->bad;
    case OP_CLOSE_SESSION:
        txn_get_paths(r, t);
        return true;
    case OP_ERROR:
        t->err = clave__jget_int(r);
        return !r->bad;
    case OP_MULTI:
        return txn_get_multi(r, t);
    default: {
        struct change_record c;
        t->body = *r;
        t->changes = 1;
        if (!txn_get_change(r, t->head.type, &c))
            return false;
        t->body.n -= r->n;
        return true;
    }
    }
}

bool clave__txn_record_read(struct txn_record *t, const void *p, size_t n)
{
    struct jreader r = clave__jreader(p, n);
    *t = (struct txn_record){.head.client = clave__jget_long(&r)};
    t->head.cxid = clave__jget_int(&r);
    t->head.zxid = clave__jget_long(&r);
    t->head.time = clave__jget_long(&r);
    t->head.type = clave__jget_int(&r);
    t->kind = txn_kind(t->head.type);
    if (r.bad || !txn_get_body(&r, t))
        return false;
    if (r.n < 12 || clave__jget_int(&r) != TXN_DIGEST_VERSION)
        return true;
    t->has_digest = true;
    t->digest = (uint64_t)clave__jget_long(&r);
    return true;
}

bool clave__txn_record_next(const struct txn_record *t, struct jreader *at,
                            struct change_record *out)
{
    if (at->n == 0)
        return false;
    if (t->head.type == OP_MULTI)
        return txn_get_op(at, out);
    if (t->head.type != OP_CLOSE_SESSION)
        return txn_get_change(at, t->head.type, out);
    *out = (struct change_record){.kind = txn_kind(OP_DELETE), .path = clave__jget_bytes(at)};
    return true;
}
