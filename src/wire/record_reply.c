/* record_reply.c - bodies of successful replies: the server writes them, the client reads them.
 * They consist of the parts that the table in opcode.c names, in the order of enum reply_part. */
#include "wire/record_internal.h"

static struct jvec get_ids(struct jreader *r)
{
    enum { LEAST = 8 }; /* two empty strings */
    struct jvec v = {.count = clave__jget_count(r, LEAST), .p = r->p};
    for (int32_t i = 0; i < v.count && !r->bad; i++) {
        clave__jget_bytes(r);
        clave__jget_bytes(r);
    }
    if (r->bad)
        return (struct jvec){0, NULL, 0};
    v.n = (size_t)(r->p - v.p);
    return v;
}

struct wire_reply clave__wire_get_reply(struct jreader *r, int32_t op)
{
    struct wire_reply m = {.path = JBYTES_NULL, .data = JBYTES_NULL};
    unsigned parts = clave__opcode(op)->reply;
    if (parts & REPLY_PATH)
        m.path = clave__jget_bytes(r);
    if (parts & REPLY_DATA)
        m.data = clave__jget_bytes(r);
    if (parts & REPLY_ACL)
        m.acl = clave__wire_get_acls(r);
    if (parts & REPLY_NAMES)
        m.names = clave__jget_strings(r);
    if (parts & REPLY_IDS)
        m.ids = get_ids(r);
    if (parts & REPLY_NUMBER)
        m.number = clave__jget_int(r);
    if (parts & REPLY_RESULTS)
        m.results = clave__wire_get_results(r);
    if (parts & REPLY_STAT)
        m.stat = clave__wire_get_stat(r);
    return m;
}

void clave__wire_put_reply(struct jwriter *w, int32_t op, const struct wire_reply *m)
{
    unsigned parts = clave__opcode(op)->reply;
    if (parts & REPLY_PATH)
        clave__jput_bytes(w, m->path);
    if (parts & REPLY_DATA)
        clave__jput_bytes(w, m->data);
    if (parts & REPLY_ACL)
        clave__jput_vec(w, m->acl);
    if (parts & REPLY_NAMES)
        clave__jput_vec(w, m->names);
    if (parts & REPLY_IDS)
        clave__jput_vec(w, m->ids);
    if (parts & REPLY_NUMBER)
        clave__jput_int(w, m->number);
    if (parts & REPLY_RESULTS)
        clave__wire_put_results(w, &m->results);
    if (parts & REPLY_STAT)
        clave__wire_put_stat(w, &m->stat);
}
