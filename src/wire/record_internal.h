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

/* record_request.c */
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
/* record_multi.c */
extern const struct body_format clave__body_ops;

/* The results in the reply to a multi: record_multi.c. */
struct wire_ops clave__wire_get_results(struct jreader *r);
void clave__wire_put_results(struct jwriter *w, const struct wire_ops *ops);

#endif
