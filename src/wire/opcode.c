/* opcode.c - the table of opcodes, see opcode.h, and requests read and written by it. A new opcode
 * is a number in proto.h and a line here; the formats of bodies are in record.c,
 * that of a multi is here. Records of the log have opcodes too, so some are here that no client
 * sends. */
#include "wire/opcode.h"

#include <assert.h>
#include <string.h>

#include "wire/record_internal.h"

/* The body of a multi is made of bodies. */
static void opcode_get_ops(struct jreader *r, union wire_body *b);
static void opcode_put_ops(struct jwriter *w, const union wire_body *b);
static const struct body_format body_ops = {opcode_get_ops, opcode_put_ops};

/* Short names, for one line an opcode. */
enum {
    AT = -OPCODE_FIRST,
    CREATE = EFFECT_CREATE,
    DELETE = EFFECT_DELETE,
    WRITE = OPCODE_WRITE,
    PART = OPCODE_WRITE | OPCODE_IN_MULTI,
    READ_PART = OPCODE_IN_MULTI_READ,
    ON_DATA = OPCODE_WATCH_DATA,
    ON_CHILD = OPCODE_WATCH_CHILD,
    ABSENT = OPCODE_WATCH_ABSENT,
    CREATED = REPLY_PATH | REPLY_STAT,
    DATA = REPLY_DATA,
    NAMES = REPLY_NAMES,
    NUMBER = REPLY_NUMBER,
    STAT = REPLY_STAT,
};

static const struct opcode opcodes[] = {
    [AT + OP_CREATE] = {"create", &clave__body_create, CREATE, PART, REPLY_PATH},
    [AT + OP_CREATE2] = {"create2", &clave__body_create, CREATE, PART, CREATED},
    [AT + OP_CREATE_CONTAINER] = {"createContainer", &clave__body_create, CREATE, PART, CREATED},
    [AT + OP_CREATE_TTL] = {"createTTL", &clave__body_create_ttl, CREATE, PART, CREATED},
    [AT + OP_DELETE] = {"delete", &clave__body_path_version, DELETE, PART, 0},
    [AT + OP_DELETE_CONTAINER] = {"deleteContainer", &clave__body_container, DELETE, WRITE, 0},
    [AT + OP_SET_DATA] = {"setData", &clave__body_set_data, EFFECT_SET_DATA, PART, STAT},
    [AT + OP_SET_ACL] = {"setACL", &clave__body_set_acl, EFFECT_SET_ACL, WRITE, STAT},
    [AT + OP_CHECK] = {"check", &clave__body_path_version, 0, PART, 0},
    [AT + OP_MULTI] = {"multi", &body_ops, 0, WRITE, REPLY_RESULTS},
    [AT + OP_RECONFIG] = {"reconfig", &clave__body_reconfig, 0, WRITE, DATA | STAT},

    [AT + OP_EXISTS] = {"exists", &clave__body_read, 0, ON_DATA | ABSENT, STAT},
    [AT + OP_GET_DATA] = {"getData", &clave__body_read, 0, ON_DATA | READ_PART, DATA | STAT},
    [AT + OP_GET_CHILDREN] = {"getChildren", &clave__body_read, 0, ON_CHILD | READ_PART, NAMES},
    [AT + OP_GET_CHILDREN2] = {"getChildren2", &clave__body_read, 0, ON_CHILD, NAMES | STAT},
    [AT + OP_GET_ACL] = {"getACL", &clave__body_path, 0, 0, REPLY_ACL | STAT},
    [AT + OP_GET_EPHEMERALS] = {"getEphemerals", &clave__body_path, 0, 0, NAMES},
    [AT + OP_GET_ALL_CHILDREN_NUMBER] = {"getAllChildrenNumber", &clave__body_path, 0, 0, NUMBER},
    [AT + OP_MULTI_READ] = {"multiRead", &body_ops, 0, 0, REPLY_RESULTS},
    [AT + OP_SYNC] = {"sync", &clave__body_path, 0, 0, REPLY_PATH},

    [AT + OP_SET_WATCHES] = {"setWatches", &clave__body_set_watches, 0, 0, 0},
    [AT + OP_SET_WATCHES2] = {"setWatches2", &clave__body_set_watches2, 0, 0, 0},
    [AT + OP_ADD_WATCH] = {"addWatch", &clave__body_path_type, 0, 0, NUMBER},
    [AT + OP_CHECK_WATCHES] = {"checkWatches", &clave__body_path_type, 0, 0, 0},
    [AT + OP_REMOVE_WATCHES] = {"removeWatches", &clave__body_path_type, 0, 0, 0},

    [AT + OP_PING] = {"ping", &clave__body_none, 0, 0, 0},
    [AT + OP_AUTH] = {"auth", &clave__body_auth, 0, 0, 0},
    [AT + OP_SASL] = {"sasl", &clave__body_path, 0, 0, DATA},
    [AT + OP_WHO_AM_I] = {"whoAmI", &clave__body_none, 0, 0, REPLY_IDS},
    [AT + OP_CREATE_SESSION] = {"createSession", NULL, 0, WRITE, 0},
    [AT + OP_CLOSE_SESSION] = {"closeSession", &clave__body_none, 0, WRITE, 0},
    [AT + OP_ERROR] = {"error", NULL, 0, WRITE, 0},
};

static_assert((int)OP_CLOSE_SESSION < (int)OP_CREATE_SESSION &&
                  (int)OP_CREATE_SESSION < (int)OP_ERROR,
              "the table begins with OPCODE_FIRST");

const struct opcode *clave__opcode(int32_t op)
{
    static const struct opcode unknown = {"unknown", NULL, EFFECT_NONE, 0, 0};
    size_t at = clave__opcode_place(op);
    bool known = at < sizeof opcodes / sizeof *opcodes && opcodes[at].name;
    return known ? &opcodes[at] : &unknown;
}

/* ---- requests -------------------------------------------------------------------------------- */

void clave__wire_get_body(struct jreader *r, int32_t op, union wire_body *b)
{
    const struct body_format *format = clave__opcode(op)->body;
    memset(b, 0, sizeof *b);
    if (format)
        format->get(r, b);
}

void clave__wire_put_body(struct jwriter *w, int32_t op, const union wire_body *b)
{
    const struct body_format *format = clave__opcode(op)->body;
    if (format)
        format->put(w, b);
}

struct wire_request clave__wire_get_request(struct jreader *r)
{
    struct wire_request q;
    q.xid = clave__jget_int(r);
    q.op = clave__jget_int(r);
    clave__wire_get_body(r, q.op, &q.body);
    q.malformed = r->bad;
    return q;
}

void clave__wire_put_request(struct jwriter *w, const struct wire_request *q)
{
    clave__wire_put_request_header(w, q->xid, q->op);
    clave__wire_put_body(w, q->op, &q->body);
}

/* ---- multi ----------------------------------------------------------------------------------- */

bool clave__wire_get_op(struct jreader *r, struct wire_op *op)
{
    struct multi_header h = clave__multi_get_header(r);
    if (r->bad || h.done)
        return false;
    if (!clave__multi_may_have(h.type)) {
        r->bad = true;
        return false;
    }
    op->op = h.type;
    clave__wire_get_body(r, h.type, &op->body);
    return !r->bad;
}

void clave__wire_put_op(struct jwriter *w, const struct wire_op *op)
{
    clave__multi_put_header(w, op->op, false, -1);
    clave__wire_put_body(w, op->op, &op->body);
}

/* The ops run up to the MultiHeader with done set. */
static void opcode_get_ops(struct jreader *r, union wire_body *b)
{
    struct wire_ops ops = {.count = 0, .p = r->p};
    struct wire_op op;
    while (clave__wire_get_op(r, &op))
        ops.count++;
    ops.n = r->bad ? 0 : (size_t)(r->p - ops.p);
    b->multi = ops;
}

static void opcode_put_ops(struct jwriter *w, const union wire_body *b)
{
    struct jreader r = clave__wire_ops_reader(&b->multi);
    struct wire_op op;
    while (clave__wire_get_op(&r, &op))
        clave__wire_put_op(w, &op);
    clave__wire_put_ops_end(w);
}
