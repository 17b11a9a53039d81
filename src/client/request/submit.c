/* submit.c - the public requests: each checks its arguments, encodes itself and goes to the
 * pipeline. The composed ones are in create.c, lost_create_by_czxid.c and guaranteed_delete.c. A
 * request that cannot be submitted returns an error and never runs its callback. */
#include "client/request/submit.h"

#include <string.h>

#include "client/client_internal.h"

/* ---- plain requests -------------------------------------------------------------------------- */

clave_err clave__submit(clave_async_client *c, const struct request_spec *spec,
                        const union wire_body *body)
{
    struct request *r;
    if (c->session.state == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED; /* nothing would answer it */
    clave_err err = clave__request_new(c, spec, body, &r);
    if (err == CLAVE_OK && spec->watch)
        clave__client_watch_asked(spec->watch, r);
    if (err == CLAVE_OK)
        clave__pipeline_submit(c, r);
    return err == CLAVE_ETOOBIG ? clave__encode_too_big(c, spec->path) : err;
}

/* Checks client and path, and makes the full path. */
static clave_err submit_begin(clave_async_client *c, const char *path, struct jbytes *full)
{
    clave_err err = clave__encode_check(c, path, false);
    return err ? err : clave__full_path(c, path, full);
}

clave_err clave__submit_create(clave_async_client *c, const struct submit_create *s,
                               clave_result_cb *cb, void *arg)
{
    struct wire_create q = {.flags = (int32_t)s->mode, .ttl_ms = s->ttl_ms};
    clave_err err = clave__encode_data(c, s->path, s->data, s->len, &q.data);
    if (s->raw)
        q.path = clave__jbytes(s->path);
    else if (err == CLAVE_OK)
        err = clave__path_to_create(c, s->path, s->mode, &q.path);
    if (err == CLAVE_OK)
        err = clave__encode_acls(c, s->acls, s->nacls, &q.acl);
    if (err)
        return err;
    struct request_spec spec = {.again = s->again,
                                .op = OP_CREATE2,
                                .path = s->path,
                                .cb = cb,
                                .arg = arg,
                                .quiet = s->quiet,
                                .raw = s->raw,
                                .place = s->place};
    if (s->mode == CLAVE_CONTAINER)
        spec.op = OP_CREATE_CONTAINER;
    else if (s->mode >= CLAVE_PERSISTENT_TTL)
        spec.op = OP_CREATE_TTL;
    union wire_body body = {.create = q};
    return clave__submit(c, &spec, &body);
}

clave_err clave__submit_delete(clave_async_client *c, const char *path, int32_t version,
                               clave_result_cb *cb, void *arg)
{
    union wire_body body = {.check = {.version = version}};
    clave_err err = submit_begin(c, path, &body.check.path);
    struct request_spec spec = {.op = OP_DELETE, .path = path, .cb = cb, .arg = arg};
    return err ? err : clave__submit(c, &spec, &body);
}

clave_err clave_async_delete(clave_async_client *c, const char *path, int32_t version,
                             clave_result_cb *cb, void *arg)
{
    return clave__submit_delete(c, path, version, cb, arg);
}

clave_err clave__submit_read(clave_async_client *c, int32_t op, struct request_spec *spec)
{
    union wire_body body = {.read = {.watch = spec->watch != NULL}};
    clave_err err = submit_begin(c, spec->path, &body.read.path);
    if (err == CLAVE_OK && spec->watch)
        err = clave__client_watch_prepare(spec->watch, spec->path, clave__client_watch_kind(op));
    spec->op = op;
    return err ? err : clave__submit(c, spec, &body);
}

clave_err clave_async_exists(clave_async_client *c, const char *path, clave_async_watch *watch,
                             clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.path = path, .cb = cb, .arg = arg, .watch = watch};
    return clave__submit_read(c, OP_EXISTS, &spec);
}

clave_err clave_async_get(clave_async_client *c, const char *path, clave_async_watch *watch,
                          clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.path = path, .cb = cb, .arg = arg, .watch = watch};
    return clave__submit_read(c, OP_GET_DATA, &spec);
}

clave_err clave_async_children(clave_async_client *c, const char *path, clave_async_watch *watch,
                               clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.path = path, .cb = cb, .arg = arg, .watch = watch};
    return clave__submit_read(c, OP_GET_CHILDREN2, &spec);
}

clave_err clave__client_read_once(clave_async_client *c, int32_t op, const char *path,
                                  clave_async_watch *watch, clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {
        .again = AGAIN_NEVER, .path = path, .cb = cb, .arg = arg, .watch = watch, .quiet = true};
    return clave__submit_read(c, op, &spec);
}

/* The ops are gathered in c->multi. */
void clave__client_gets_begin(clave_async_client *c)
{
    clave__buf_clear(&c->multi);
}

clave_err clave__client_gets_add(clave_async_client *c, const char *path)
{
    struct wire_op op = {.op = OP_GET_DATA};
    struct jwriter w = clave__jwriter(&c->multi);
    clave_err err = submit_begin(c, path, &op.body.read.path);
    if (err == CLAVE_OK)
        clave__wire_put_op(&w, &op);
    return err ? err : w.err;
}

clave_err clave__client_gets_submit(clave_async_client *c, size_t n, clave_result_cb *cb, void *arg)
{
    struct jwriter w = clave__jwriter(&c->multi);
    clave__wire_put_ops_end(&w);
    union wire_body body = {
        .multi = {(int32_t)n, clave__buf_bytes(&c->multi), clave__buf_len(&c->multi)}};
    struct request_spec spec = {.again = AGAIN_NEVER,
                                .op = OP_MULTI_READ,
                                .path = "/",
                                .cb = cb,
                                .arg = arg,
                                .nops = n,
                                .quiet = true};
    return w.err ? w.err : clave__submit(c, &spec, &body);
}

clave_err clave_async_add_watch(clave_async_client *c, const char *path, clave_watch_mode mode,
                                clave_async_watch *watch, clave_result_cb *cb, void *arg)
{
    bool recursive = mode == CLAVE_WATCH_PERSISTENT_RECURSIVE;
    union wire_body body = {.typed = {.type = (int32_t)mode}};
    if (!watch || (mode != CLAVE_WATCH_PERSISTENT && !recursive))
        return CLAVE_EINVAL;
    clave_err err = submit_begin(c, path, &body.typed.path);
    if (err == CLAVE_OK)
        err = clave__client_watch_prepare(watch, path,
                                          recursive ? WATCH_RECURSIVE : WATCH_PERSISTENT);
    struct request_spec spec = {
        .op = OP_ADD_WATCH, .path = path, .cb = cb, .arg = arg, .watch = watch};
    return err ? err : clave__submit(c, &spec, &body);
}

clave_err clave_async_set(clave_async_client *c, const char *path, const void *data, size_t len,
                          int32_t version, clave_result_cb *cb, void *arg)
{
    union wire_body body = {.set = {.version = version}};
    clave_err err = submit_begin(c, path, &body.set.path);
    if (err == CLAVE_OK)
        err = clave__encode_data(c, path, data, len, &body.set.data);
    struct request_spec spec = {.op = OP_SET_DATA, .path = path, .cb = cb, .arg = arg};
    return err ? err : clave__submit(c, &spec, &body);
}

clave_err clave__submit_path(clave_async_client *c, const struct request_spec *spec)
{
    union wire_body body;
    clave_err err = submit_begin(c, spec->path, &body.path);
    return err ? err : clave__submit(c, spec, &body);
}

clave_err clave_async_get_acl(clave_async_client *c, const char *path, clave_result_cb *cb,
                              void *arg)
{
    struct request_spec spec = {.op = OP_GET_ACL, .path = path, .cb = cb, .arg = arg};
    return clave__submit_path(c, &spec);
}

clave_err clave_async_set_acl(clave_async_client *c, const char *path, const clave_acl *acls,
                              size_t nacls, int32_t version, clave_result_cb *cb, void *arg)
{
    union wire_body body = {.set_acl = {.version = version}};
    clave_err err = submit_begin(c, path, &body.set_acl.path);
    if (err == CLAVE_OK)
        err = clave__encode_acls(c, acls, nacls, &body.set_acl.acl);
    struct request_spec spec = {.op = OP_SET_ACL, .path = path, .cb = cb, .arg = arg};
    return err ? err : clave__submit(c, &spec, &body);
}

clave_err clave_async_sync(clave_async_client *c, const char *path, clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.op = OP_SYNC, .path = path, .cb = cb, .arg = arg};
    return clave__submit_path(c, &spec);
}

clave_err clave__submit_multi(clave_async_client *c, struct request_spec *spec)
{
    union wire_body body;
    clave_err err = clave__encode_multi(c, spec, &body);
    if (err == CLAVE_ETOOBIG)
        return clave__encode_too_big(c, spec->path);
    return err ? err : clave__submit(c, spec, &body);
}

clave_err clave_async_multi(clave_async_client *c, const clave_op *ops, size_t nops,
                            clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.ops = ops, .nops = nops, .cb = cb, .arg = arg};
    return clave__submit_multi(c, &spec);
}

clave_err clave_async_add_auth(clave_async_client *c, const char *scheme, const void *auth,
                               size_t len, clave_result_cb *cb, void *arg)
{
    const clave_auth q = {.scheme = scheme, .auth = auth, .len = len};
    if (c->session.closing || c->session.state == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    clave_err err = clave__auth_add(c, &q, cb, arg);
    if (err == CLAVE_OK)
        clave__pipeline_fill(c);
    return err;
}
