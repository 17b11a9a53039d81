/* record_multi.c - what frames the ops of a multi (opcode.c) and their results (record_reply.c):
 * each follows a MultiHeader {type, done, err}; the header with done set ends the list. */
#include "wire/record_internal.h"

struct multi_header clave__multi_get_header(struct jreader *r)
{
    struct multi_header h;
    h.type = clave__jget_int(r);
    h.done = clave__jget_bool(r);
    h.err = clave__jget_int(r);
    return h;
}

void clave__multi_put_header(struct jwriter *w, int32_t type, bool done, int32_t err)
{
    clave__jput_int(w, type);
    clave__jput_bool(w, done);
    clave__jput_int(w, err);
}

struct jreader clave__wire_ops_reader(const struct wire_ops *ops)
{
    return clave__jreader(ops->p, ops->n);
}

void clave__wire_put_ops_end(struct jwriter *w)
{
    clave__multi_put_header(w, -1, true, -1);
}
