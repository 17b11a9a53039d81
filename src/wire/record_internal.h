/* record_internal.h - the bodies of requests: how each is read and written. opcode.c has one of
 * them for every opcode; several opcodes share one. */
#ifndef CLAVE_WIRE_RECORD_INTERNAL_H
#define CLAVE_WIRE_RECORD_INTERNAL_H

#include "wire/opcode.h"
#include "wire/record.h"

struct body_format {
    void (*get)(struct jreader *r, union wire_body *b); /* *b is all zero */
    void (*put)(struct jwriter *w, const union wire_body *b);
};

extern const struct body_format clave__body_none;
extern const struct body_format clave__body_path; /* or any other single string */
extern const struct body_format clave__body_read;
extern const struct body_format clave__body_path_version;
extern const struct body_format clave__body_path_type;
extern const struct body_format clave__body_create;
extern const struct body_format clave__body_create_ttl;
extern const struct body_format clave__body_container;
extern const struct body_format clave__body_set_data;
extern const struct body_format clave__body_set_acl;
extern const struct body_format clave__body_auth;
extern const struct body_format clave__body_set_watches;
extern const struct body_format clave__body_set_watches2;
extern const struct body_format clave__body_reconfig;

/* In front of each op of a multi, and of each result. */
struct multi_header {
    int32_t type;
    bool done;
    int32_t err;
};

struct multi_header clave__multi_get_header(struct jreader *r);
void clave__multi_put_header(struct jwriter *w, int32_t type, bool done, int32_t err);

/* Of any other opcode the end of the body is unknown in a multi: it makes the whole list bad. */
static inline bool clave__multi_may_have(int32_t op)
{
    return clave__opcode(op)->flags & (OPCODE_IN_MULTI | OPCODE_IN_MULTI_READ);
}

#endif
