/* lost_create_by_name.c - finds the node of a protected create by its name, when the answer was
 * lost. The states are those of create_steps.c.
 *
 * An ephemeral node found is ours only if it belongs to the present session. A node of the older
 * session in which the create was sent is about to vanish and is removed, never adopted
 * (CURATOR-604). A node of any other session is another client's, whatever its name says, and the
 * search goes on. */
#include <assert.h>
#include <string.h>

#include "client/client_internal.h"
#include "client/request/create_steps.h"

static void lost_create_by_name_on_removed(clave_async_client *c, const clave_result *res,
                                           void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->busy--;
    if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE)
        clave__creation_create(k);
    else
        clave__creation_step_failed(k, res->err);
}

/* Whose node is it? For a node that is not ephemeral only the name can tell. */
enum whose { WHOSE_OURS, WHOSE_OLDER, WHOSE_OTHERS };

static enum whose lost_create_by_name_whose_node(const struct creation *k, const clave_stat *stat)
{
    bool ephemeral = k->what.mode == CLAVE_EPHEMERAL || k->what.mode == CLAVE_EPHEMERAL_SEQUENTIAL;
    if (!ephemeral || stat->ephemeral_owner == k->client->session.id)
        return WHOSE_OURS;
    return stat->ephemeral_owner == k->sent_in ? WHOSE_OLDER : WHOSE_OTHERS;
}

static void lost_create_by_name_remove_found(struct creation *k)
{
    clave__creation_enter(k, CREATION_REMOVING);
    clave_err err =
        clave__submit_delete(k->client, k->found, -1, lost_create_by_name_on_removed, k);
    k->busy += err == CLAVE_OK;
    if (err)
        clave__creation_step_failed(k, err);
}

static void lost_create_by_name_check_next(struct creation *k);

static void lost_create_by_name_on_checked(clave_async_client *c, const clave_result *res,
                                           void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->busy--;
    if (res->err == CLAVE_ENONODE) {
        lost_create_by_name_check_next(k);
        return;
    }
    if (res->err != CLAVE_OK) {
        clave__creation_step_failed(k, res->err);
        return;
    }
    switch (lost_create_by_name_whose_node(k, res->stat)) {
    case WHOSE_OURS:
        k->stat = *res->stat;
        k->zxid = res->zxid;
        clave__creation_finish(k, CLAVE_OK, NULL);
        break;
    case WHOSE_OLDER:
        lost_create_by_name_remove_found(k);
        break;
    case WHOSE_OTHERS:
        lost_create_by_name_check_next(k);
        break;
    }
}

/* The proof that there is none of our name; between two connections another process that has the
 * session may have made one, which the server of the second need not know yet. */
static bool lost_create_by_name_search_is_proven(const struct creation *k)
{
    return k->lost.proven && (!k->lost.named || k->lost.proven_on == k->client->link.connections);
}

/* Checks the next name of the listing that begins as ours does. When none is left, our node does
 * not exist, provided that the listing proves it. */
static void lost_create_by_name_check_next(struct creation *k)
{
    assert(k->busy == 0 && k->lost.next_match);
    size_t n = strlen(k->lost.next_match);
    if (n == 0 && lost_create_by_name_search_is_proven(k))
        clave__creation_create(k);
    else if (n == 0)
        clave__creation_pause(k);
    if (n == 0)
        return;
    size_t dir = (size_t)(k->name - k->what.path);
    memcpy(k->found, k->what.path, dir);
    memcpy(k->found + dir, k->lost.next_match, n + 1);
    k->lost.next_match += n + 1;
    clave__creation_enter(k, CREATION_CHECKING);
    struct request_spec spec = {.again = AGAIN_ALWAYS,
                                .path = k->found,
                                .cb = lost_create_by_name_on_checked,
                                .arg = k,
                                .quiet = true};
    clave_err err = clave__submit_read(k->client, OP_EXISTS, &spec);
    k->busy += err == CLAVE_OK;
    if (err)
        clave__creation_step_failed(k, err);
}

static bool lost_create_by_name_is_match(const struct creation *k, const char *name)
{
    size_t dir = (size_t)(k->name - k->what.path);
    return name && strncmp(name, k->name, CLAVE_PROTECTED_PREFIX) == 0 &&
           dir + strlen(name) < k->found_cap;
}

/* The listing is of the session's ephemeral nodes, else of the parent. */
static bool lost_create_by_name_search_lists_own(const struct creation *k)
{
    return k->lost.below && !k->client->no_ephemerals;
}

/* What of a listed name may be the name of our node; NULL: nothing. */
static const char *lost_create_by_name_search_name_of(const struct creation *k, const char *listed)
{
    size_t dir = (size_t)(k->name - k->what.path);
    struct jbytes path = clave__strip_chroot(k->client, clave__jbytes(listed));
    if (!lost_create_by_name_search_lists_own(k))
        return listed;
    return path.n > 0 && strncmp(path.p, k->what.path, dir) == 0 ? path.p + dir : NULL;
}

/* Usually there is one match or none. Others come from clients that drew the same name or copied
 * ours. */
static clave_err lost_create_by_name_take_matches(struct creation *k, const clave_result *res)
{
    const struct clave_mem *mem = &k->client->mem;
    size_t size = 1;
    for (size_t i = 0; i < res->nnames; i++) {
        const char *name = lost_create_by_name_search_name_of(k, res->names[i]);
        size += lost_create_by_name_is_match(k, name) ? strlen(name) + 1 : 0;
    }
    clave__mem_free(mem, k->lost.matches);
    k->lost.matches = clave__mem_zalloc(mem, size);
    if (!k->lost.matches)
        return CLAVE_ENOMEM;
    char *at = k->lost.matches;
    for (size_t i = 0; i < res->nnames; i++) {
        const char *name = lost_create_by_name_search_name_of(k, res->names[i]);
        if (!lost_create_by_name_is_match(k, name))
            continue;
        memcpy(at, name, strlen(name) + 1);
        at += strlen(name) + 1;
    }
    k->lost.next_match = k->lost.matches;
    return CLAVE_OK;
}

/* Asks for each of them. */
static bool lost_create_by_name_search_is_excluded(const struct creation *k,
                                                   const clave_result *res)
{
    bool excluded = false;
    size_t n = k->lost.below ? strlen(k->lost.below) : 0;
    for (size_t i = 0; lost_create_by_name_search_lists_own(k) && i < res->nnames; i++) {
        struct jbytes path = clave__strip_chroot(k->client, clave__jbytes(res->names[i]));
        /* A server takes the path for the beginning of any text. */
        bool below = path.n > 0 && strncmp(path.p, k->lost.below, n) == 0 && path.p[n] == '/';
        excluded |= below && k->lost.excludes(k->lost.excludes_arg, path.p);
    }
    return excluded;
}

static void lost_create_by_name_on_searched(clave_async_client *c, const clave_result *res,
                                            void *arg)
{
    struct creation *k = arg;
    static const clave_result nobody = {0};
    k->busy--;
    if (res->err == CLAVE_EUNIMPLEMENTED && lost_create_by_name_search_lists_own(k)) {
        c->no_ephemerals = true;
        clave__creation_search(k);
        return;
    }
    clave_err err = res->err == CLAVE_ENONODE ? CLAVE_OK : res->err;
    if (err == CLAVE_OK)
        err = lost_create_by_name_take_matches(k, res->err == CLAVE_OK ? res : &nobody);
    if (err != CLAVE_OK)
        clave__creation_step_failed(k, err);
    else if (!clave__creation_is_unwanted(k) && lost_create_by_name_search_is_excluded(k, res) &&
             lost_create_by_name_search_is_proven(k))
        clave__creation_finish(k, CLAVE_ENODEEXISTS, NULL);
    else
        lost_create_by_name_check_next(k);
}

/* The listing sent right after it decides. */
static void lost_create_by_name_search_on_proven(clave_async_client *c, const clave_result *res,
                                                 void *arg)
{
    struct creation *k = arg;
    k->lost.proven = clave__creation_proves(res->err);
    k->lost.proven_on = c->link.connections;
    if (--k->busy > 0)
        return;
    if (res->err == CLAVE_ECLOSED)
        clave__creation_finish(k, CLAVE_ECLOSED, NULL);
    else
        clave__creation_pause(k); /* there was no memory for the listing */
}

void clave__creation_search(struct creation *k)
{
    assert(k->flags & CLAVE_CREATE_PROTECTED);
    clave_err err = clave__creation_prove(k, lost_create_by_name_search_on_proven);
    if (err) {
        clave__creation_step_failed(k, err);
        return;
    }
    struct request_spec spec = {
        .again = AGAIN_ALWAYS,
        .op = OP_GET_EPHEMERALS,
        .path = lost_create_by_name_search_lists_own(k) ? k->lost.below : clave__creation_parent(k),
        .cb = lost_create_by_name_on_searched,
        .arg = k,
        .quiet = true};
    err = lost_create_by_name_search_lists_own(k)
              ? clave__submit_path(k->client, &spec)
              : clave__submit_read(k->client, OP_GET_CHILDREN2, &spec);
    k->busy += err == CLAVE_OK;
}
