/* request.c - the blocking requests of a client (clave_create, clave_get, ...): each is one call of
 * call.h around its asynchronous form. */
#include "runtime/blocking/call.h"

struct args {
    const char *path;
    const void *data;
    size_t len;
    int32_t version;
    const clave_create_options *create;
    const clave_op *ops;
    size_t nops;
    const clave_acl *acls;
    size_t nacls;
    const char *scheme;
};

static clave_err blocking_request_begin_create(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_create(c->client->async, a->path, a->data, a->len, a->create,
                              clave__call_on_result, c);
}

clave_err clave_create(clave_client *c, const char *path, const void *data, size_t len,
                       const clave_create_options *o, int64_t timeout_ms, clave_reply **out)
{
    clave_create_options own;
    clave_err err = clave__session_take_options(c, &own, sizeof own, o, "clave_create_options");
    if (out)
        *out = NULL;
    if (err != CLAVE_OK)
        return err;
    struct args a = {.path = path, .data = data, .len = len, .create = &own};
    struct call_spec spec = {.begin = blocking_request_begin_create, .args = &a, .path = path};
    return clave__call(c, &spec, timeout_ms, out);
}

static clave_err blocking_request_begin_delete(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_delete(c->client->async, a->path, a->version, clave__call_on_result, c);
}

clave_err clave_delete(clave_client *c, const char *path, int32_t version, int64_t timeout_ms)
{
    struct args a = {.path = path, .version = version};
    struct call_spec spec = {.begin = blocking_request_begin_delete, .args = &a};
    return clave__call(c, &spec, timeout_ms, NULL);
}

static clave_err request_begin_exists(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_exists(c->client->async, a->path, NULL, clave__call_on_result, c);
}

clave_err clave_exists(clave_client *c, const char *path, int64_t timeout_ms, clave_reply **out)
{
    struct args a = {.path = path};
    struct call_spec spec = {.begin = request_begin_exists, .args = &a};
    return clave__call(c, &spec, timeout_ms, out);
}

static clave_err request_begin_get(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_get(c->client->async, a->path, NULL, clave__call_on_result, c);
}

clave_err clave_get(clave_client *c, const char *path, int64_t timeout_ms, clave_reply **out)
{
    struct args a = {.path = path};
    struct call_spec spec = {.begin = request_begin_get, .args = &a};
    return clave__call(c, &spec, timeout_ms, out);
}

static clave_err blocking_request_begin_set(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_set(c->client->async, a->path, a->data, a->len, a->version,
                           clave__call_on_result, c);
}

clave_err clave_set(clave_client *c, const char *path, const void *data, size_t len,
                    int32_t version, int64_t timeout_ms, clave_reply **out)
{
    struct args a = {.path = path, .data = data, .len = len, .version = version};
    struct call_spec spec = {.begin = blocking_request_begin_set, .args = &a};
    return clave__call(c, &spec, timeout_ms, out);
}

static clave_err request_begin_children(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_children(c->client->async, a->path, NULL, clave__call_on_result, c);
}

clave_err clave_children(clave_client *c, const char *path, int64_t timeout_ms, clave_reply **out)
{
    struct args a = {.path = path};
    struct call_spec spec = {.begin = request_begin_children, .args = &a};
    return clave__call(c, &spec, timeout_ms, out);
}

static clave_err request_begin_get_acl(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_get_acl(c->client->async, a->path, clave__call_on_result, c);
}

clave_err clave_get_acl(clave_client *c, const char *path, int64_t timeout_ms, clave_reply **out)
{
    struct args a = {.path = path};
    struct call_spec spec = {.begin = request_begin_get_acl, .args = &a};
    return clave__call(c, &spec, timeout_ms, out);
}

static clave_err request_begin_set_acl(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_set_acl(c->client->async, a->path, a->acls, a->nacls, a->version,
                               clave__call_on_result, c);
}

clave_err clave_set_acl(clave_client *c, const char *path, const clave_acl *acls, size_t nacls,
                        int32_t version, int64_t timeout_ms, clave_reply **out)
{
    struct args a = {.path = path, .acls = acls, .nacls = nacls, .version = version};
    struct call_spec spec = {.begin = request_begin_set_acl, .args = &a};
    return clave__call(c, &spec, timeout_ms, out);
}

static clave_err blocking_request_begin_multi(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_multi(c->client->async, a->ops, a->nops, clave__call_on_result, c);
}

clave_err clave_multi(clave_client *c, const clave_op *ops, size_t nops, int64_t timeout_ms,
                      clave_reply **out)
{
    struct args a = {.ops = ops, .nops = nops};
    struct call_spec spec = {.begin = blocking_request_begin_multi, .args = &a, .nops = nops};
    return clave__call(c, &spec, timeout_ms, out);
}

static clave_err request_begin_sync(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_sync(c->client->async, a->path, clave__call_on_result, c);
}

clave_err clave_sync(clave_client *c, const char *path, int64_t timeout_ms)
{
    struct args a = {.path = path};
    struct call_spec spec = {.begin = request_begin_sync, .args = &a};
    return clave__call(c, &spec, timeout_ms, NULL);
}

struct set_hosts_args {
    const char *connect;
    clave_err err;
};

static void request_set_hosts(clave_async_client *c, void *arg)
{
    struct set_hosts_args *m = arg;
    m->err = clave_async_client_set_hosts(c, m->connect, clave_now());
}

clave_err clave_client_set_hosts(clave_client *c, const char *connect)
{
    struct set_hosts_args m = {.connect = connect, .err = CLAVE_ECLOSED};
    clave__blocking_do(c, request_set_hosts, &m);
    return m.err;
}

static clave_err request_begin_add_auth(struct call *c, void *args)
{
    const struct args *a = args;
    return clave_async_add_auth(c->client->async, a->scheme, a->data, a->len, clave__call_on_result,
                                c);
}

clave_err clave_add_auth(clave_client *c, const char *scheme, const void *auth, size_t len,
                         int64_t timeout_ms)
{
    struct args a = {.scheme = scheme, .data = auth, .len = len};
    struct call_spec spec = {.begin = request_begin_add_auth, .args = &a};
    return clave__call(c, &spec, timeout_ms, NULL);
}
