/* create.c - clave_async_create and its kin: what is asked, and which search
 * (lost_create_by_name.c, lost_create_by_czxid.c) finds the node when the answer is lost.
 * create_steps.c does the rest. */
#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "client/client_internal.h"
#include "client/request/create_steps.h"

enum { UUID_AT = 3 };

static char *create_put_acls(struct creation *k, const clave_create_options *o)
{
    clave_acl *acls = (clave_acl *)(void *)(k + 1);
    k->what.acls = o->acls ? acls : NULL;
    k->what.nacls = o->nacls;
    return clave__acls_copy(acls, o->acls, o->nacls);
}

/* Writes the path the caller gave, with Curator's prefix before the name if it is protected. */
static char *client_create_put_path(struct creation *k, char *at, const char *path,
                                    const char *uuid)
{
    size_t dir = (size_t)(clave__path_name(path) - path);
    k->what.path = at;
    memcpy(at, path, dir);
    at += dir;
    k->name = at;
    if (k->flags & CLAVE_CREATE_PROTECTED) {
        clave__client_protect(k->client, at);
        if (uuid)
            memcpy(at + UUID_AT, uuid, CLAVE_UUID_TEXT);
        at += CLAVE_PROTECTED_PREFIX;
    }
    size_t nname = strlen(path + dir) + 1;
    memcpy(at, path + dir, nname);
    return at + nname;
}

/* Allocates one block: the creation, ACLs, path, room for the path found, data. */
static struct creation *create_new(clave_async_client *c, const char *path,
                                   const struct jbytes *data, const clave_create_options *o,
                                   const char *uuid)
{
    size_t npath = strlen(path) + CLAVE_PROTECTED_PREFIX + 1;
    size_t nfound = npath + c->hosts.chroot_len + SEQUENCE_ROOM;
    size_t len = data->n > 0 ? (size_t)data->n : 0;
    struct creation *k = clave__mem_zalloc(
        &c->mem, sizeof *k + clave__acls_size(o->acls, o->nacls) + npath + nfound + len);
    if (!k)
        return NULL;
    k->client = c;
    k->flags = o->flags;
    k->with_names = o->with_names;
    if (o->flags & CLAVE_CREATE_PROTECTED)
        k->search = clave__creation_search;
    else if (o->flags & CLAVE_CREATE_CERTAIN)
        k->search = clave__creation_identify;
    k->what.mode = o->mode;
    k->what.ttl_ms = o->ttl_ms;
    clave__creation_init(k);
    char *at = create_put_acls(k, o);
    at = client_create_put_path(k, at, path, uuid);
    k->lost.named = uuid != NULL;
    k->what.place = o->flags & CLAVE_CREATE_PARENTS ? CREATE_BELOW : CREATE_ALONE;
    k->what.again = uuid ? AGAIN_NOT_UNSENT : AGAIN_BY_OPCODE;
    k->found = at;
    k->found_cap = nfound;
    if (data->n >= 0) {
        k->what.data = memcpy(at + nfound, data->p, len);
        k->what.len = len;
    }
    list_push_back(&c->creations, &k->link);
    return k;
}

static clave_err create_start(struct creation *k, clave_result_cb *cb, void *arg)
{
    k->cb = cb;
    k->arg = arg;
    clave_err err = clave__creation_submit(k);
    if (err) {
        list_remove(&k->link);
        clave__mem_free(&k->client->mem, k);
    }
    return err;
}

static clave_err client_create_check(clave_async_client *c, const char *path,
                                     const clave_create_options *o)
{
    bool ttl = o->mode >= CLAVE_PERSISTENT_TTL;
    /* CLAVE_CREATE_CERTAIN recognises its node by the session, so the node must be ephemeral; a
     * protected name does the same better. */
    bool ephemeral = o->mode == CLAVE_EPHEMERAL || o->mode == CLAVE_EPHEMERAL_SEQUENTIAL;
    if ((o->flags & CLAVE_CREATE_CERTAIN) && (!ephemeral || (o->flags & CLAVE_CREATE_PROTECTED)))
        return CLAVE_EINVAL;
    if (o->mode > CLAVE_PERSISTENT_SEQUENTIAL_TTL || (ttl && o->ttl_ms <= 0))
        return CLAVE_EINVAL;
    return clave__encode_check(c, path, clave__mode_is_sequential(o->mode));
}

clave_err clave_async_create(clave_async_client *c, const char *path, const void *data, size_t len,
                             const clave_create_options *given, clave_result_cb *cb, void *arg)
{
    clave_create_options o;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_create_options");
    if (!o.acls)
        o.nacls = 0;
    struct jbytes bytes;
    if (err == CLAVE_OK)
        err = client_create_check(c, path, &o);
    if (err == CLAVE_OK)
        err = clave__encode_data(c, path, data, len, &bytes);
    if (err)
        return err;
    if (!o.flags && !o.with_names) {
        struct submit_create what = {.path = path,
                                     .data = data,
                                     .len = len,
                                     .mode = o.mode,
                                     .ttl_ms = o.ttl_ms,
                                     .acls = o.acls,
                                     .nacls = o.nacls};
        return clave__submit_create(c, &what, cb, arg);
    }
    struct creation *k = create_new(c, path, &bytes, &o, NULL);
    if (!k)
        return CLAVE_ENOMEM;
    return create_start(k, cb, arg);
}

/* The search that follows a lost answer does the same for a node that another process made: it may
 * begin with it. */
clave_err clave__client_create_named(clave_async_client *c, const struct client_named_create *n,
                                     clave_result_cb *cb, void *arg)
{
    assert(!n->search || (n->o->flags & CLAVE_CREATE_PROTECTED));
    assert(!n->below || n->excludes);
    assert(!n->search || (n->o->flags & CLAVE_CREATE_PROTECTED));
    assert(!n->below || n->excludes);
    struct jbytes bytes;
    assert(!n->uuid ||
           ((n->o->flags & CLAVE_CREATE_PROTECTED) && strlen(n->uuid) == CLAVE_UUID_TEXT));
    clave_err err = client_create_check(c, n->path, n->o);
    if (err == CLAVE_OK)
        err = clave__encode_data(c, n->path, n->data, n->len, &bytes);
    if (err)
        return err;
    struct creation *k = create_new(c, n->path, &bytes, n->o, n->uuid);
    if (!k)
        return CLAVE_ENOMEM;
    k->once = n->once;
    k->lost.below = n->below;
    k->lost.excludes = n->excludes;
    k->lost.excludes_arg = n->excludes_arg;
    k->stake = n->stake;
    if (!n->search)
        return create_start(k, cb, arg);
    k->cb = cb;
    k->arg = arg;
    k->sent_in = c->session.id;
    k->lost.only_found = n->only_found;
    k->search(k);
    return CLAVE_OK;
}
