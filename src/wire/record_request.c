/* record_request.c - the bodies of requests: the client writes them, the server reads them. Each is
 * a pair of functions; the table in opcode.c says which opcodes have it. */
#include "wire/record_internal.h"

/* ---- simple bodies --------------------------------------------------------------------------- */

static void request_get_none(struct jreader *r, union wire_body *b)
{
    (void)r;
    (void)b;
}

static void request_put_none(struct jwriter *w, const union wire_body *b)
{
    (void)w;
    (void)b;
}

const struct body_format clave__body_none = {request_get_none, request_put_none};

static void request_get_path(struct jreader *r, union wire_body *b)
{
    b->path = clave__jget_bytes(r);
}

static void request_put_path(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->path);
}

const struct body_format clave__body_path = {request_get_path, request_put_path};

static void request_get_read(struct jreader *r, union wire_body *b)
{
    b->read.path = clave__jget_bytes(r);
    b->read.watch = clave__jget_bool(r);
}

static void request_put_read(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->read.path);
    clave__jput_bool(w, b->read.watch);
}

const struct body_format clave__body_read = {request_get_read, request_put_read};

static void request_get_path_version(struct jreader *r, union wire_body *b)
{
    b->check.path = clave__jget_bytes(r);
    b->check.version = clave__jget_int(r);
}

static void request_put_path_version(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->check.path);
    clave__jput_int(w, b->check.version);
}

const struct body_format clave__body_path_version = {request_get_path_version,
                                                     request_put_path_version};

static void request_get_path_type(struct jreader *r, union wire_body *b)
{
    b->typed.path = clave__jget_bytes(r);
    b->typed.type = clave__jget_int(r);
}

static void request_put_path_type(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->typed.path);
    clave__jput_int(w, b->typed.type);
}

const struct body_format clave__body_path_type = {request_get_path_type, request_put_path_type};

/* ---- writes ---------------------------------------------------------------------------------- */

static void request_get_create(struct jreader *r, union wire_body *b)
{
    b->create.path = clave__jget_bytes(r);
    b->create.data = clave__jget_bytes(r);
    b->create.acl = clave__wire_get_acls(r);
    b->create.flags = clave__jget_int(r);
}

static void request_put_create(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->create.path);
    clave__jput_bytes(w, b->create.data);
    clave__jput_vec(w, b->create.acl);
    clave__jput_int(w, b->create.flags);
}

const struct body_format clave__body_create = {request_get_create, request_put_create};

static void request_get_create_ttl(struct jreader *r, union wire_body *b)
{
    request_get_create(r, b);
    b->create.ttl_ms = clave__jget_long(r);
}

static void request_put_create_ttl(struct jwriter *w, const union wire_body *b)
{
    request_put_create(w, b);
    clave__jput_long(w, b->create.ttl_ms);
}

const struct body_format clave__body_create_ttl = {request_get_create_ttl, request_put_create_ttl};

/* Up to 3.8 the rest of the frame is the path's bytes; from 3.9 on the path is a buffer. */
static void request_get_container(struct jreader *r, union wire_body *b)
{
    struct jreader peek = *r;
    struct jbytes path = clave__jget_bytes(&peek);
    if (!peek.bad && path.n >= 0 && peek.n == 0) {
        *r = peek;
        b->path = path;
        return;
    }
    b->path = clave__jbytes_n(r->p, r->n);
    r->p += r->n;
    r->n = 0;
}

const struct body_format clave__body_container = {request_get_container, request_put_path};

static void request_get_set_data(struct jreader *r, union wire_body *b)
{
    b->set.path = clave__jget_bytes(r);
    b->set.data = clave__jget_bytes(r);
    b->set.version = clave__jget_int(r);
}

static void request_put_set_data(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->set.path);
    clave__jput_bytes(w, b->set.data);
    clave__jput_int(w, b->set.version);
}

const struct body_format clave__body_set_data = {request_get_set_data, request_put_set_data};

static void request_get_set_acl(struct jreader *r, union wire_body *b)
{
    b->set_acl.path = clave__jget_bytes(r);
    b->set_acl.acl = clave__wire_get_acls(r);
    b->set_acl.version = clave__jget_int(r);
}

static void request_put_set_acl(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->set_acl.path);
    clave__jput_vec(w, b->set_acl.acl);
    clave__jput_int(w, b->set_acl.version);
}

const struct body_format clave__body_set_acl = {request_get_set_acl, request_put_set_acl};

static void request_get_reconfig(struct jreader *r, union wire_body *b)
{
    b->reconfig.joining = clave__jget_bytes(r);
    b->reconfig.leaving = clave__jget_bytes(r);
    b->reconfig.members = clave__jget_bytes(r);
    b->reconfig.config_id = clave__jget_long(r);
}

static void request_put_reconfig(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->reconfig.joining);
    clave__jput_bytes(w, b->reconfig.leaving);
    clave__jput_bytes(w, b->reconfig.members);
    clave__jput_long(w, b->reconfig.config_id);
}

const struct body_format clave__body_reconfig = {request_get_reconfig, request_put_reconfig};

/* ---- watches, authentication ----------------------------------------------------------------- */

static void request_get_set_watches(struct jreader *r, union wire_body *b)
{
    b->watches.relative_zxid = clave__jget_long(r);
    b->watches.data = clave__jget_strings(r);
    b->watches.exist = clave__jget_strings(r);
    b->watches.child = clave__jget_strings(r);
}

static void request_put_set_watches(struct jwriter *w, const union wire_body *b)
{
    clave__jput_long(w, b->watches.relative_zxid);
    clave__jput_vec(w, b->watches.data);
    clave__jput_vec(w, b->watches.exist);
    clave__jput_vec(w, b->watches.child);
}

const struct body_format clave__body_set_watches = {request_get_set_watches,
                                                    request_put_set_watches};

static void request_get_set_watches2(struct jreader *r, union wire_body *b)
{
    request_get_set_watches(r, b);
    b->watches.persistent = clave__jget_strings(r);
    b->watches.persistent_recursive = clave__jget_strings(r);
}

static void request_put_set_watches2(struct jwriter *w, const union wire_body *b)
{
    request_put_set_watches(w, b);
    clave__jput_vec(w, b->watches.persistent);
    clave__jput_vec(w, b->watches.persistent_recursive);
}

const struct body_format clave__body_set_watches2 = {request_get_set_watches2,
                                                     request_put_set_watches2};

static void request_get_auth(struct jreader *r, union wire_body *b)
{
    b->auth.type = clave__jget_int(r);
    b->auth.scheme = clave__jget_bytes(r);
    b->auth.auth = clave__jget_bytes(r);
}

static void request_put_auth(struct jwriter *w, const union wire_body *b)
{
    clave__jput_int(w, b->auth.type);
    clave__jput_bytes(w, b->auth.scheme);
    clave__jput_bytes(w, b->auth.auth);
}

const struct body_format clave__body_auth = {request_get_auth, request_put_auth};
