/* client_auth.c - identities (clave_client_options.auths, clave_async_add_auth). Each is sent on
 * every connection, before any request that may need it. pipeline.c sends them, driver_calls.c
 * passes in the answers. Those in the options are essential: until all of them are accepted the
 * session is not reported as connected (client_connection.c), and if one is refused, the client is
 * closed. */
#include <assert.h>
#include <string.h>

#include "client/client_internal.h"

enum auth_phase { AUTH_UNSENT, AUTH_SENT, AUTH_ACCEPTED };

struct auth {
    struct list link;
    enum auth_phase phase;
    bool needed;         /* it comes from the options */
    clave_result_cb *cb; /* NULL once it was called */
    void *arg;
    const char *scheme; /* NUL-terminated, after the bytes */
    size_t len;
    char bytes[];
};

bool clave__auth_is_settled(clave_async_client *c)
{
    for (struct list *l = c->auths.list.next; l != &c->auths.list; l = l->next) {
        struct auth *a = LIST_ENTRY(l, struct auth, link);
        if (a->needed && a->phase != AUTH_ACCEPTED)
            return false;
    }
    return true;
}

static struct auth *auth_first_in(clave_async_client *c, enum auth_phase phase)
{
    for (struct list *l = c->auths.list.next; l != &c->auths.list; l = l->next) {
        struct auth *a = LIST_ENTRY(l, struct auth, link);
        if (a->phase == phase)
            return a;
    }
    return NULL;
}

/* Wipes the secret before freeing its memory. */
static void free_auth(clave_async_client *c, struct auth *a)
{
    volatile char *p = a->bytes;
    for (size_t i = 0; i < a->len; i++)
        p[i] = 0;
    list_remove(&a->link);
    clave__mem_free(&c->base.mem, a);
}

static void client_auth_complete(clave_async_client *c, struct auth *a, clave_err err)
{
    clave_result_cb *cb = a->cb;
    clave_result res = {.err = err, .path = "/"};
    a->cb = NULL;
    if (cb)
        cb(c, &res, a->arg);
}

void clave__auth_fini(clave_async_client *c)
{
    while (!list_empty(&c->auths.list))
        free_auth(c, LIST_ENTRY(c->auths.list.next, struct auth, link));
}

void clave__auth_detached(clave_async_client *c)
{
    for (struct list *l = c->auths.list.next; l != &c->auths.list; l = l->next)
        LIST_ENTRY(l, struct auth, link)->phase = AUTH_UNSENT;
}

static clave_err send_auth(clave_async_client *c, struct auth *a)
{
    struct wire_request q = {
        .xid = XID_AUTH,
        .op = OP_AUTH,
        .body.auth = {.scheme = clave__jbytes(a->scheme),
                      .auth = clave__jbytes_n(a->bytes, a->len)},
    };
    clave_err err = clave__unqueued_request_put(c, &q);
    if (err == CLAVE_OK)
        a->phase = AUTH_SENT;
    return err;
}

clave_err clave__auth_fill(clave_async_client *c)
{
    struct auth *a;
    clave_err err = CLAVE_OK;
    while (err == CLAVE_OK && (a = auth_first_in(c, AUTH_UNSENT)))
        err = send_auth(c, a);
    return err;
}

struct auth *clave__auth_asked(clave_async_client *c)
{
    return auth_first_in(c, AUTH_SENT);
}

void clave__auth_accepted(clave_async_client *c, struct auth *a)
{
    assert(a->phase == AUTH_SENT);
    a->phase = AUTH_ACCEPTED;
    client_auth_complete(c, a, CLAVE_OK);
}

bool clave__auth_refused(clave_async_client *c, const struct auth *a)
{
    assert(a->phase == AUTH_SENT);
    clave__client_fault(c,
                        "the server refused the identity of scheme %s: it does not support the "
                        "scheme, or the credentials are wrong",
                        a->scheme);
    return a->needed;
}

void clave__auth_forget(clave_async_client *c, struct auth *a)
{
    assert(!a->needed);
    list_remove(&a->link);
    client_auth_complete(c, a, CLAVE_EAUTHFAILED);
    free_auth(c, a);
}

void clave__auth_end(clave_async_client *c)
{
    for (struct list *l = c->auths.list.next, *next; l != &c->auths.list; l = next) {
        next = l->next; /* a callback cannot add one any more */
        client_auth_complete(c, LIST_ENTRY(l, struct auth, link), CLAVE_ECLOSED);
    }
}

static clave_err auth_new(clave_async_client *c, const clave_auth *q, struct auth **out)
{
    size_t nscheme = strlen(q->scheme) + 1;
    if (q->len > c->max_frame / 2 || nscheme > c->max_frame / 2)
        return CLAVE_ETOOBIG;
    struct auth *a = clave__mem_zalloc(&c->base.mem, sizeof *a + q->len + nscheme);
    if (!a)
        return CLAVE_ENOMEM;
    a->len = q->len;
    if (q->len > 0)
        memcpy(a->bytes, q->auth, q->len);
    a->scheme = memcpy(a->bytes + q->len, q->scheme, nscheme);
    list_push_back(&c->auths.list, &a->link);
    *out = a;
    return CLAVE_OK;
}

clave_err clave__auth_need(clave_async_client *c, const clave_auth *auths, size_t n)
{
    clave_err err = CLAVE_OK;
    for (size_t i = 0; i < n && err == CLAVE_OK; i++) {
        struct auth *a;
        err = auth_new(c, &auths[i], &a);
        if (err == CLAVE_OK)
            a->needed = true;
    }
    return err;
}

clave_err clave__auth_add(clave_async_client *c, const clave_auth *q, clave_result_cb *cb,
                          void *arg)
{
    struct auth *a;
    clave_err err = auth_new(c, q, &a);
    if (err != CLAVE_OK)
        return err;
    a->cb = cb;
    a->arg = arg;
    return CLAVE_OK;
}
