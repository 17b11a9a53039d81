/* request.c - the blocking requests of a client (clave_create, clave_get, ...). Each wraps its
 * asynchronous form, which BEGIN names with its arguments, in one call of call.h. */
#include "runtime/blocking/call.h"

/* Defines begin_NAME(c, a), which submits the request with the arguments `a` on the loop's
 * thread. */
#define BEGIN(name, submitted)                                                                     \
    static clave_err begin_##name(struct call *c, const struct args *a)                            \
    {                                                                                              \
        return submitted;                                                                          \
    }
#define TO_CALL clave__call_on_result, c /* the callback of the request */

BEGIN(create, clave_async_create(c->client->async, a->path, a->data, a->len, a->options, TO_CALL))
BEGIN(delete, clave_async_delete(c->client->async, a->path, a->version, TO_CALL))
BEGIN(exists, clave_async_exists(c->client->async, a->path, NULL, TO_CALL))
BEGIN(get, clave_async_get(c->client->async, a->path, NULL, TO_CALL))
BEGIN(set, clave_async_set(c->client->async, a->path, a->data, a->len, a->version, TO_CALL))
BEGIN(children, clave_async_children(c->client->async, a->path, NULL, TO_CALL))
BEGIN(get_acl, clave_async_get_acl(c->client->async, a->path, TO_CALL))
BEGIN(set_acl,
      clave_async_set_acl(c->client->async, a->path, a->acls, a->nacls, a->version, TO_CALL))
BEGIN(multi, clave_async_multi(c->client->async, a->ops, a->nops, TO_CALL))
BEGIN(sync, clave_async_sync(c->client->async, a->path, TO_CALL))
BEGIN(add_auth, clave_async_add_auth(c->client->async, a->text, a->data, a->len, TO_CALL))

clave_err clave_create(clave_client *c, const char *path, const void *data, size_t len,
                       const clave_create_options *o, int64_t timeout_ms, clave_reply **out)
{
    clave_create_options own;
    clave_err err = clave__blocking_take_options(c, &own, sizeof own, o, "clave_create_options");
    struct args a = {.path = path, .data = data, .len = len, .options = &own};
    if (out)
        *out = NULL;
    return err == CLAVE_OK ? clave__call_create(c, begin_create, &a, timeout_ms, out) : err;
}

clave_err clave_delete(clave_client *c, const char *path, int32_t version, int64_t timeout_ms)
{
    struct args a = {.path = path, .version = version};
    return clave__call(c, begin_delete, &a, timeout_ms, NULL);
}

clave_err clave_exists(clave_client *c, const char *path, int64_t timeout_ms, clave_reply **out)
{
    return clave__call(c, begin_exists, &(struct args){.path = path}, timeout_ms, out);
}

clave_err clave_get(clave_client *c, const char *path, int64_t timeout_ms, clave_reply **out)
{
    return clave__call(c, begin_get, &(struct args){.path = path}, timeout_ms, out);
}

clave_err clave_set(clave_client *c, const char *path, const void *data, size_t len,
                    int32_t version, int64_t timeout_ms, clave_reply **out)
{
    struct args a = {.path = path, .data = data, .len = len, .version = version};
    return clave__call(c, begin_set, &a, timeout_ms, out);
}

clave_err clave_children(clave_client *c, const char *path, int64_t timeout_ms, clave_reply **out)
{
    return clave__call(c, begin_children, &(struct args){.path = path}, timeout_ms, out);
}

clave_err clave_get_acl(clave_client *c, const char *path, int64_t timeout_ms, clave_reply **out)
{
    return clave__call(c, begin_get_acl, &(struct args){.path = path}, timeout_ms, out);
}

clave_err clave_set_acl(clave_client *c, const char *path, const clave_acl *acls, size_t nacls,
                        int32_t version, int64_t timeout_ms, clave_reply **out)
{
    struct args a = {.path = path, .acls = acls, .nacls = nacls, .version = version};
    return clave__call(c, begin_set_acl, &a, timeout_ms, out);
}

clave_err clave_multi(clave_client *c, const clave_op *ops, size_t nops, int64_t timeout_ms,
                      clave_reply **out)
{
    struct args a = {.ops = ops, .nops = nops};
    return clave__call(c, begin_multi, &a, timeout_ms, out);
}

clave_err clave_sync(clave_client *c, const char *path, int64_t timeout_ms)
{
    return clave__call(c, begin_sync, &(struct args){.path = path}, timeout_ms, NULL);
}

clave_err clave_add_auth(clave_client *c, const char *scheme, const void *auth, size_t len,
                         int64_t timeout_ms)
{
    struct args a = {.text = scheme, .data = auth, .len = len};
    return clave__call(c, begin_add_auth, &a, timeout_ms, NULL);
}

static clave_err set_hosts(clave_async_client *c, const struct args *a)
{
    return clave_async_client_set_hosts(c, a->text, clave_now());
}

clave_err clave_client_set_hosts(clave_client *c, const char *connect)
{
    return clave__visit(c, set_hosts, &(struct args){.text = connect});
}
