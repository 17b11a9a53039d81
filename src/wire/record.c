/* record.c - readers and writers of Stat and ACL, the handshake, the headers and the watch event.
 * Client and server both use them; the format is that of zookeeper.jute. */
#include "wire/record.h"

struct wire_stat clave__wire_get_stat(struct jreader *r)
{
    struct wire_stat s;
    s.czxid = clave__jget_long(r);
    s.mzxid = clave__jget_long(r);
    s.ctime = clave__jget_long(r);
    s.mtime = clave__jget_long(r);
    s.version = clave__jget_int(r);
    s.cversion = clave__jget_int(r);
    s.aversion = clave__jget_int(r);
    s.ephemeral_owner = clave__jget_long(r);
    s.data_length = clave__jget_int(r);
    s.num_children = clave__jget_int(r);
    s.pzxid = clave__jget_long(r);
    return s;
}

void clave__wire_put_stat(struct jwriter *w, const struct wire_stat *s)
{
    clave__jput_long(w, s->czxid);
    clave__jput_long(w, s->mzxid);
    clave__jput_long(w, s->ctime);
    clave__jput_long(w, s->mtime);
    clave__jput_int(w, s->version);
    clave__jput_int(w, s->cversion);
    clave__jput_int(w, s->aversion);
    clave__jput_long(w, s->ephemeral_owner);
    clave__jput_int(w, s->data_length);
    clave__jput_int(w, s->num_children);
    clave__jput_long(w, s->pzxid);
}

struct wire_acl clave__wire_get_acl(struct jreader *r)
{
    struct wire_acl a;
    a.perms = clave__jget_int(r);
    a.scheme = clave__jget_bytes(r);
    a.id = clave__jget_bytes(r);
    return a;
}

void clave__wire_put_acl(struct jwriter *w, const struct wire_acl *a)
{
    clave__jput_int(w, a->perms);
    clave__jput_bytes(w, a->scheme);
    clave__jput_bytes(w, a->id);
}

struct jvec clave__wire_get_acls(struct jreader *r)
{
    enum { LEAST = 12 }; /* perms and two empty strings */
    struct jvec v = {.count = clave__jget_count(r, LEAST), .p = r->p};
    for (int32_t i = 0; i < v.count && !r->bad; i++)
        clave__wire_get_acl(r);
    if (r->bad)
        return (struct jvec){0, NULL, 0};
    v.n = (size_t)(r->p - v.p);
    return v;
}

struct wire_connect_request clave__wire_get_connect_request(struct jreader *r)
{
    struct wire_connect_request m;
    m.protocol_version = clave__jget_int(r);
    m.last_zxid_seen = clave__jget_long(r);
    m.timeout_ms = clave__jget_int(r);
    m.session_id = clave__jget_long(r);
    m.passwd = clave__jget_bytes(r);
    m.has_read_only = !r->bad && r->n > 0;
    m.read_only = m.has_read_only && clave__jget_bool(r);
    return m;
}

void clave__wire_put_connect_request(struct jwriter *w, const struct wire_connect_request *m)
{
    clave__jput_int(w, m->protocol_version);
    clave__jput_long(w, m->last_zxid_seen);
    clave__jput_int(w, m->timeout_ms);
    clave__jput_long(w, m->session_id);
    clave__jput_bytes(w, m->passwd);
    if (m->has_read_only)
        clave__jput_bool(w, m->read_only);
}

struct wire_connect_response clave__wire_get_connect_response(struct jreader *r)
{
    struct wire_connect_response m;
    m.protocol_version = clave__jget_int(r);
    m.timeout_ms = clave__jget_int(r);
    m.session_id = clave__jget_long(r);
    m.passwd = clave__jget_bytes(r);
    m.has_read_only = !r->bad && r->n > 0;
    m.read_only = m.has_read_only && clave__jget_bool(r);
    return m;
}

void clave__wire_put_connect_response(struct jwriter *w, const struct wire_connect_response *m)
{
    clave__jput_int(w, m->protocol_version);
    clave__jput_int(w, m->timeout_ms);
    clave__jput_long(w, m->session_id);
    clave__jput_bytes(w, m->passwd);
    if (m->has_read_only)
        clave__jput_bool(w, m->read_only);
}

void clave__wire_put_request_header(struct jwriter *w, int32_t xid, int32_t op)
{
    clave__jput_int(w, xid);
    clave__jput_int(w, op);
}

struct wire_reply_header clave__wire_get_reply_header(struct jreader *r)
{
    struct wire_reply_header h;
    h.xid = clave__jget_int(r);
    h.zxid = clave__jget_long(r);
    h.err = clave__jget_int(r);
    return h;
}

void clave__wire_put_reply_header(struct jwriter *w, const struct wire_reply_header *h)
{
    clave__jput_int(w, h->xid);
    clave__jput_long(w, h->zxid);
    clave__jput_int(w, h->err);
}

struct wire_event clave__wire_get_event(struct jreader *r)
{
    struct wire_event e;
    e.type = clave__jget_int(r);
    e.state = clave__jget_int(r);
    e.path = clave__jget_bytes(r);
    return e;
}

void clave__wire_put_event(struct jwriter *w, const struct wire_event *e)
{
    clave__jput_int(w, e->type);
    clave__jput_int(w, e->state);
    clave__jput_bytes(w, e->path);
}
