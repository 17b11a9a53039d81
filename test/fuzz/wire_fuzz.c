/* wire_fuzz.c - every reader of a record on any bytes: what it takes can be written again, and is
 * then read as the same. The first byte says which record, the second which operation. */
#include <string.h>

#include "base/memory.h"
#include "fuzz/fuzz.h"
#include "wire/record.h"

enum { REQUEST, REPLY, CONNECT, CONNECTED, EVENT, KINDS };

/* Operations in the order of the second byte. */
static const int32_t ops[] = {
    OP_CREATE,
    OP_DELETE,
    OP_EXISTS,
    OP_GET_DATA,
    OP_SET_DATA,
    OP_GET_ACL,
    OP_SET_ACL,
    OP_GET_CHILDREN,
    OP_SYNC,
    OP_PING,
    OP_GET_CHILDREN2,
    OP_CHECK,
    OP_MULTI,
    OP_CREATE2,
    OP_RECONFIG,
    OP_CHECK_WATCHES,
    OP_REMOVE_WATCHES,
    OP_CREATE_CONTAINER,
    OP_DELETE_CONTAINER,
    OP_CREATE_TTL,
    OP_MULTI_READ,
    OP_AUTH,
    OP_SET_WATCHES,
    OP_SASL,
    OP_GET_EPHEMERALS,
    OP_GET_ALL_CHILDREN_NUMBER,
    OP_SET_WATCHES2,
    OP_ADD_WATCH,
    OP_WHO_AM_I,
    OP_CLOSE_SESSION,
};

/* Reads one and writes it again; false when it could not be read. */
static bool again(uint8_t kind, int32_t op, struct jreader *r, struct jwriter *w)
{
    switch (kind) {
    case REQUEST: {
        union wire_body body;
        clave__wire_get_body(r, op, &body);
        if (!r->bad)
            clave__wire_put_body(w, op, &body);
        break;
    }
    case REPLY: {
        struct wire_reply reply = clave__wire_get_reply(r, op);
        if (!r->bad)
            clave__wire_put_reply(w, op, &reply);
        break;
    }
    case CONNECT: {
        struct wire_connect_request q = clave__wire_get_connect_request(r);
        if (!r->bad)
            clave__wire_put_connect_request(w, &q);
        break;
    }
    case CONNECTED: {
        struct wire_connect_response p = clave__wire_get_connect_response(r);
        if (!r->bad)
            clave__wire_put_connect_response(w, &p);
        break;
    }
    default: {
        struct wire_reply_header h = clave__wire_get_reply_header(r);
        struct wire_event e = clave__wire_get_event(r);
        if (r->bad)
            break;
        clave__wire_put_reply_header(w, &h);
        clave__wire_put_event(w, &e);
        break;
    }
    }
    return !r->bad;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct input in = {data, size};
    uint8_t kind = input_byte(&in) % KINDS;
    int32_t op = ops[input_byte(&in) % (sizeof ops / sizeof *ops)];
    struct buf first, second;
    clave__buf_init(&first, &mem, SIZE_MAX / 4);
    clave__buf_init(&second, &mem, SIZE_MAX / 4);
    struct jreader r = clave__jreader(in.p, in.n);
    struct jwriter w = clave__jwriter(&first);
    if (again(kind, op, &r, &w)) {
        must(w.err == CLAVE_OK);
        r = clave__jreader(clave__buf_bytes(&first), clave__buf_len(&first));
        w = clave__jwriter(&second);
        must(again(kind, op, &r, &w) && r.n == 0);
        must(clave__buf_len(&first) == clave__buf_len(&second));
        must(clave__buf_len(&first) == 0 ||
             memcmp(first.data, second.data, clave__buf_len(&first)) == 0);
    }
    clave__buf_fini(&first);
    clave__buf_fini(&second);
    return 0;
}
