/* encode.c - what requests are made of: paths under the chroot, data, ACLs, the operations of a
 * multi. Nothing here is submitted. */
#include "client/request/encode.h"

#include <string.h>

#include "base/path.h"
#include "client/client_internal.h"

clave_err clave__full_path(clave_async_client *c, const char *path, struct jbytes *out)
{
    const struct hosts *h = &c->hosts;
    bool root = strcmp(path, "/") == 0;
    clave__buf_clear(&c->path);
    clave_err err = clave__buf_append(&c->path, h->chroot, h->chroot_len);
    if (err == CLAVE_OK && !(root && h->chroot_len))
        err = clave__buf_append(&c->path, path, strlen(path));
    *out = clave__jbytes_n(clave__buf_bytes(&c->path), clave__buf_len(&c->path));
    return err;
}

clave_err clave__path_to_create(clave_async_client *c, const char *path, clave_create_mode mode,
                                struct jbytes *out)
{
    clave_err err = clave__full_path(c, path, out);
    if (err == CLAVE_OK && path[1] == '\0' && c->hosts.chroot_len &&
        clave__mode_is_sequential(mode))
        err = clave__buf_append(&c->path, "/", 1);
    *out = clave__jbytes_n(clave__buf_bytes(&c->path), clave__buf_len(&c->path));
    return err;
}

struct jbytes clave__strip_chroot(const clave_async_client *c, struct jbytes full)
{
    const struct hosts *h = &c->hosts;
    size_t n = h->chroot_len;
    if (full.n < 0 || (size_t)full.n < n || memcmp(full.p, h->chroot, n) != 0)
        return JBYTES_NULL;
    if (n == 0)
        return full;
    if ((size_t)full.n == n)
        return clave__jbytes("/");
    return full.p[n] == '/' ? clave__jbytes_n(full.p + n, (size_t)full.n - n) : JBYTES_NULL;
}

clave_err clave__encode_check(clave_async_client *c, const char *path, bool sequential)
{
    if (c->session.closing || c->session.state == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    const char *fault = path ? clave__path_fault(path, strlen(path), sequential) : "is missing";
    if (!fault)
        return CLAVE_OK;
    clave__client_fault(c, "the path \"%s\" is not valid: %s", path ? path : "", fault);
    return CLAVE_EPATH;
}

clave_err clave__encode_too_big(clave_async_client *c, const char *path)
{
    char shown[PATH_SHOWN_CAP];
    clave__client_fault_of(c, CLAVE_ETOOBIG, "",
                           "the request for %s is larger than the %zu bytes of one frame",
                           clave__path_shown(path, shown), c->max_frame);
    return CLAVE_ETOOBIG;
}

clave_err clave__encode_data(clave_async_client *c, const char *path, const void *data, size_t len,
                             struct jbytes *out)
{
    if (len > c->max_frame)
        return clave__encode_too_big(c, path);
    *out = data ? clave__jbytes_n(data, len) : JBYTES_NULL;
    return CLAVE_OK;
}

/* ---- ACLs ------------------------------------------------------------------------------------ */

size_t clave__acls_size(const clave_acl *acls, size_t n)
{
    size_t size = n * sizeof *acls;
    for (size_t i = 0; i < n; i++)
        size += strlen(acls[i].scheme) + strlen(acls[i].id) + 2;
    return size;
}

char *clave__acls_copy(clave_acl *to, const clave_acl *acls, size_t n)
{
    char *text = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        size_t nscheme = strlen(acls[i].scheme) + 1, nid = strlen(acls[i].id) + 1;
        to[i] = (clave_acl){acls[i].perms, text, text + nscheme};
        memcpy(text, acls[i].scheme, nscheme);
        memcpy(text + nscheme, acls[i].id, nid);
        text += nscheme + nid;
    }
    return text;
}

clave_err clave__encode_acls(clave_async_client *c, const clave_acl *acls, size_t n,
                             struct jvec *out)
{
    static const clave_acl open_acl = {CLAVE_PERM_ALL, "world", "anyone"};
    if (!acls) {
        acls = &open_acl;
        n = 1;
    }
    clave__buf_clear(&c->acls);
    struct jwriter w = clave__jwriter(&c->acls);
    for (size_t i = 0; i < n; i++) {
        struct wire_acl a = {acls[i].perms, clave__jbytes(acls[i].scheme),
                             clave__jbytes(acls[i].id)};
        clave__wire_put_acl(&w, &a);
    }
    *out = (struct jvec){(int32_t)n, clave__buf_bytes(&c->acls), clave__buf_len(&c->acls)};
    return w.err;
}

/* ---- multi ----------------------------------------------------------------------------------- */

static bool encode_op_is_possible(const clave_op *op)
{
    bool ttl = op->mode == CLAVE_PERSISTENT_TTL || op->mode == CLAVE_PERSISTENT_SEQUENTIAL_TTL;
    return op->kind != CLAVE_OP_CREATE ||
           (op->mode <= CLAVE_PERSISTENT_SEQUENTIAL_TTL && (ttl ? op->ttl_ms > 0 : !op->ttl_ms));
}

/* Every server accepts the first in a multi; Curator sends it too. */
static int32_t encode_create_part(clave_create_mode mode)
{
    if (mode == CLAVE_CONTAINER)
        return OP_CREATE_CONTAINER;
    return mode > CLAVE_CONTAINER ? OP_CREATE_TTL : OP_CREATE;
}

static clave_err encode_put_op(clave_async_client *c, struct jwriter *w, const clave_op *op)
{
    struct jbytes path, data = JBYTES_NULL;
    struct wire_op out = {0};
    clave_create_mode mode = op->kind == CLAVE_OP_CREATE ? op->mode : CLAVE_PERSISTENT;
    clave_err err = clave__path_to_create(c, op->path, mode, &path);
    if (err == CLAVE_OK)
        err = clave__encode_data(c, op->path, op->data, op->len, &data);
    switch (op->kind) {
    case CLAVE_OP_CREATE:
        out.op = encode_create_part(op->mode);
        out.body.create = (struct wire_create){
            .path = path, .data = data, .flags = (int32_t)op->mode, .ttl_ms = op->ttl_ms};
        if (err == CLAVE_OK)
            err = clave__encode_acls(c, op->acls, op->nacls, &out.body.create.acl);
        break;
    case CLAVE_OP_SET:
        out.op = OP_SET_DATA;
        out.body.set = (struct wire_set_data){path, data, op->version};
        break;
    case CLAVE_OP_DELETE:
    case CLAVE_OP_CHECK:
        out.op = op->kind == CLAVE_OP_DELETE ? OP_DELETE : OP_CHECK;
        out.body.check = (struct wire_path_version){path, op->version};
        break;
    default:
        return CLAVE_EINVAL;
    }
    if (err == CLAVE_OK)
        clave__wire_put_op(w, &out);
    return err;
}

/* Encodes the ops in c->multi. */
static clave_err encode_ops(clave_async_client *c, const clave_op *ops, size_t nops,
                            struct wire_ops *out)
{
    clave__buf_clear(&c->multi);
    struct jwriter w = clave__jwriter(&c->multi);
    for (size_t i = 0; i < nops; i++) {
        bool sequential = ops[i].kind == CLAVE_OP_CREATE && clave__mode_is_sequential(ops[i].mode);
        clave_err err = encode_op_is_possible(&ops[i])
                            ? clave__encode_check(c, ops[i].path, sequential)
                            : CLAVE_EINVAL;
        if (err == CLAVE_OK)
            err = encode_put_op(c, &w, &ops[i]);
        if (err)
            return err;
    }
    clave__wire_put_ops_end(&w);
    *out = (struct wire_ops){(int32_t)nops, clave__buf_bytes(&c->multi), clave__buf_len(&c->multi)};
    return w.err;
}

clave_err clave__encode_multi(clave_async_client *c, struct request_spec *spec,
                              union wire_body *body)
{
    clave_err err = clave__encode_check(c, "/", false);
    if (err == CLAVE_OK)
        err = encode_ops(c, spec->ops, spec->nops, &body->multi);
    spec->op = OP_MULTI;
    spec->path = spec->nops ? spec->ops[0].path : "/";
    return err;
}
