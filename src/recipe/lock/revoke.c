/* revoke.c - asks the owner of a lock node to release it (clave/async/mutex.h). A request is a
 * write to the node: Curator's owners look for its bytes, clave's for any write at all. What must
 * stay true: what one of clave's nodes says about its owner is still there afterwards, and a node
 * that another client has written in the meantime is read again, never overwritten. */
#include <string.h>

#include "base/path.h"
#include "client/client_for_recipes.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_kind.h"

/* Only one write by the owner can get in the way, after its grant. */
enum { REVOKE_TRIES = 8 };

struct revoke {
    const struct clave_mem *mem;
    char *path;
    int tries;
    char *data; /* the node's data before the request; owned */
    size_t len;
    clave_result_cb *cb; /* may be NULL */
    void *arg;
};

static void revoke_free(struct revoke *r)
{
    clave__mem_free(r->mem, r->data);
    clave__mem_free(r->mem, r->path);
    clave__mem_free(r->mem, r);
}

static void revoke_finish(clave_async_client *c, struct revoke *r, const clave_result *res)
{
    clave_result own = *res;
    own.path = r->path;
    own.data = r->data;
    own.len = r->len;
    if (r->cb)
        r->cb(c, &own, r->arg);
    revoke_free(r);
}

static clave_err revoke_read(clave_async_client *c, struct revoke *r);

static void revoke_on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    struct revoke *r = arg;
    clave_err err = res->err;
    if (err == CLAVE_EBADVERSION && ++r->tries < REVOKE_TRIES) {
        err = revoke_read(c, r);
        if (err == CLAVE_OK)
            return;
        revoke_finish(c, r, &(clave_result){.err = err});
        return;
    }
    revoke_finish(c, r, res);
}

/* The reason why the owner cannot be asked; NULL if it may be listening. */
static const char *revoke_fault(const struct revoke *r, const clave_identity *id)
{
    if (id->revocable < 0)
        return "its owner takes no requests";
    if (clave__kazoo_is_name(clave__path_name(r->path)))
        return "kazoo's locks take no requests";
    return NULL;
}

/* The bytes of the request: Curator's word, unless the node is clave's or a candidate's. *own must
 * be freed. NULL: no memory. */
static const void *revoke_request(const struct revoke *r, const clave_identity *id, void **own,
                                  size_t *len)
{
    const clave_identity more = {.asked = true};
    bool latch = clave__queue_kind_of(clave__path_name(r->path)) == QUEUE_LATCH;
    bool form = clave__identity_is_form(r->data, r->len);
    *own = NULL;
    *len = r->len;
    if (latch || (form && id->asked))
        return r->data;
    if (form)
        return *own = clave__identity_extend(r->mem, r->data, r->len, &more, len);
    *len = strlen(CLAVE_REVOKE_WORD);
    return CLAVE_REVOKE_WORD;
}

static clave_err revoke_write(clave_async_client *c, struct revoke *r, int32_t version)
{
    clave_identity id;
    void *own = NULL;
    size_t len = 0;
    char *text = clave__mem_strndup(r->mem, r->data, r->len);
    if (!text)
        return CLAVE_ENOMEM;
    clave__identity_parse(text, r->len, &id);
    const char *fault = revoke_fault(r, &id);
    const void *data = fault ? NULL : revoke_request(r, &id, &own, &len);
    clave_err err = data ? CLAVE_OK : CLAVE_ENOMEM;
    if (fault) {
        err = CLAVE_EINVAL;
        clave__client_fault(c, "cannot ask for %s: %s", r->path, fault);
    }
    if (err == CLAVE_OK)
        err = clave_async_set(c, r->path, data, len, version, revoke_on_written, r);
    clave__mem_free(r->mem, own);
    clave__mem_free(r->mem, text);
    return err;
}

static void revoke_on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    struct revoke *r = arg;
    clave_err err = res->err;
    if (err == CLAVE_OK) {
        clave__mem_free(r->mem, r->data);
        r->len = res->len;
        r->data = clave__mem_strndup(r->mem, res->len ? res->data : "", res->len);
        err = r->data ? revoke_write(c, r, res->stat->version) : CLAVE_ENOMEM;
        if (err == CLAVE_OK)
            return;
    }
    revoke_finish(c, r, &(clave_result){.err = err});
}

static clave_err revoke_read(clave_async_client *c, struct revoke *r)
{
    return clave_async_get(c, r->path, NULL, revoke_on_read, r);
}

clave_err clave_async_revoke(clave_async_client *c, const char *node, clave_result_cb *cb,
                             void *arg)
{
    const struct clave_mem *mem = clave__client_mem(c);
    struct revoke *r = clave__mem_alloc(mem, sizeof *r);
    if (!r)
        return CLAVE_ENOMEM;
    *r = (struct revoke){.mem = mem, .cb = cb, .arg = arg};
    r->path = clave__mem_strdup(mem, node);
    clave_err err = r->path ? revoke_read(c, r) : CLAVE_ENOMEM;
    if (err != CLAVE_OK)
        revoke_free(r);
    return err;
}
