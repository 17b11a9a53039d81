/* opcode.h - what the protocol says of each opcode, in one table with one line for each. Client,
 * server and program look up properties here and have no switch on opcodes of their own. What a
 * request does in the server is in its table, server/request/request.c. */
#ifndef CLAVE_WIRE_OPCODE_H
#define CLAVE_WIRE_OPCODE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/proto.h"

/* What a request does to the tree when it succeeds. */
enum opcode_effect { EFFECT_NONE, EFFECT_CREATE, EFFECT_DELETE, EFFECT_SET_DATA, EFFECT_SET_ACL };

enum opcode_flag {
    /* The request is logged with a zxid of its own, even if it fails: an answer proves that it has
     * passed the leader, and if it is sent twice it may be done twice. */
    OPCODE_WRITE = 1,
    OPCODE_IN_MULTI = 2,
    OPCODE_IN_MULTI_READ = 4,
    /* Which watch the request can leave. */
    OPCODE_WATCH_DATA = 8,
    OPCODE_WATCH_CHILD = 16,
    OPCODE_WATCH_ABSENT = 32, /* also on a node that does not exist */
    OPCODE_WATCH_ANY = OPCODE_WATCH_DATA | OPCODE_WATCH_CHILD,
};

/* What the body of a reply consists of, in this order. */
enum reply_part {
    REPLY_PATH = 1,
    REPLY_DATA = 2,
    REPLY_ACL = 4,
    REPLY_NAMES = 8,
    REPLY_IDS = 16,
    REPLY_NUMBER = 32,
    REPLY_RESULTS = 64,
    REPLY_STAT = 128,
};

struct opcode {
    const char *name;               /* as Apache writes it: "createTTL" */
    const struct body_format *body; /* NULL: no client sends it */
    uint8_t effect;                 /* an opcode_effect */
    uint8_t flags;                  /* of opcode_flag */
    uint8_t reply;                  /* of reply_part; 0: the header is all */
};

/* Never NULL: for a number that is no opcode, returns one that is named "unknown" and has no
 * properties. */
const struct opcode *clave__opcode(int32_t op);

/* The lowest opcode in use; tables indexed by opcode start here. */
enum { OPCODE_FIRST = OP_CLOSE_SESSION };

/* The index into such a table. A number below OPCODE_FIRST wraps to an index past the end of any
 * table. */
static inline size_t clave__opcode_place(int32_t op)
{
    return (uint32_t)op - (uint32_t)OPCODE_FIRST;
}

#endif
