/* lost_create_by_czxid.c - finds the node of a create whose answer was lost, when its name does not
 * identify it (CLAVE_CREATE_CERTAIN). The states are those of create_steps.c.
 *
 * The server executes the requests of one session in the order in which they were sent. So the
 * node, if it exists, belongs to the present session, and its czxid is above every zxid answered
 * before the create was sent and below the czxid of every create sent after it. A node in between
 * is ours, or that of a later create whose answer was lost as well. So of several the one with the
 * least czxid is ours, and creates sent before ours must have found theirs first.
 *
 * A node of an older session is about to vanish: as in lost_create_by_name.c it is never adopted;
 * removing it is left to the server. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "client/client_internal.h"
#include "client/request/create_steps.h"

static bool lost_create_by_czxid_is_certain(const struct creation *k)
{
    return k->flags & CLAVE_CREATE_CERTAIN;
}

static bool lost_create_by_czxid_is_sequential(const struct creation *k)
{
    return k->what.mode == CLAVE_EPHEMERAL_SEQUENTIAL;
}

/* Whether a create that was sent earlier still has an unknown outcome. */
static bool lost_create_by_czxid_has_to_wait(const struct creation *k)
{
    for (struct list *l = k->client->creations.next; l != &k->link; l = l->next)
        if (lost_create_by_czxid_is_certain(LIST_ENTRY(l, struct creation, link)))
            return true;
    return false;
}

static void lost_create_by_czxid_decide(struct creation *k)
{
    assert(k->certain.numbers);
    if (!k->certain.matched) {
        clave__creation_create(k);
        return;
    }
    snprintf(k->found, k->found_cap, "%s%010ld", k->what.path, (long)k->certain.match);
    clave__creation_finish(k, CLAVE_OK, NULL);
}

/* ---- one node after another ------------------------------------------------------------------ */

static void lost_create_by_czxid_on_looked(clave_async_client *c, const clave_result *res,
                                           void *arg);

static void lost_create_by_czxid_look_at(struct creation *k)
{
    clave__creation_enter(k, CREATION_CHECKING);
    struct request_spec spec = {.again = AGAIN_ALWAYS,
                                .path = k->found,
                                .cb = lost_create_by_czxid_on_looked,
                                .arg = k,
                                .quiet = true};
    clave_err err = clave__submit_read(k->client, OP_EXISTS, &spec);
    k->busy += err == CLAVE_OK;
    if (err)
        clave__creation_step_failed(k, err);
}

/* The counter wraps from 2147483647 to -2147483648. */
static bool lost_create_by_czxid_is_newer(int32_t a, int32_t b)
{
    return (uint32_t)a > (uint32_t)b;
}

/* Looks at the newest number first, so that it can stop at the first node that is too old. */
static void lost_create_by_czxid_look_at_next(struct creation *k)
{
    if (k->certain.nnumbers == 0) {
        lost_create_by_czxid_decide(k);
        return;
    }
    size_t newest = 0;
    for (size_t i = 1; i < k->certain.nnumbers; i++)
        if (lost_create_by_czxid_is_newer(k->certain.numbers[i], k->certain.numbers[newest]))
            newest = i;
    int32_t number = k->certain.numbers[newest];
    k->certain.numbers[newest] = k->certain.numbers[--k->certain.nnumbers];
    k->certain.numbers[k->certain.nnumbers] = number;
    snprintf(k->found, k->found_cap, "%s%010ld", k->what.path, (long)number);
    lost_create_by_czxid_look_at(k);
}

static void lost_create_by_czxid_looked_at_one_of_many(struct creation *k, const clave_result *res,
                                                       bool ours)
{
    if (ours) {
        k->certain.matched = true;
        k->certain.match = k->certain.numbers[k->certain.nnumbers];
        k->stat = *res->stat;
        k->zxid = res->zxid;
    }
    if (res->err == CLAVE_OK && res->stat->czxid <= k->certain.after)
        lost_create_by_czxid_decide(k);
    else
        lost_create_by_czxid_look_at_next(k);
}

static void lost_create_by_czxid_on_looked(clave_async_client *c, const clave_result *res,
                                           void *arg)
{
    struct creation *k = arg;
    k->busy--;
    if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE) {
        clave__creation_step_failed(k, res->err);
        return;
    }
    bool ours = res->err == CLAVE_OK && res->stat->ephemeral_owner == c->session.id &&
                res->stat->czxid > k->certain.after && res->stat->czxid < k->certain.before;
    if (lost_create_by_czxid_is_sequential(k)) {
        lost_create_by_czxid_looked_at_one_of_many(k, res, ours);
    } else if (ours) {
        k->stat = *res->stat;
        k->zxid = res->zxid;
        clave__creation_finish(k, CLAVE_OK, NULL);
    } else if (res->err == CLAVE_OK) {
        clave__creation_finish(k, CLAVE_ENODEEXISTS, NULL);
    } else {
        clave__creation_create(k);
    }
}

/* ---- the listing ----------------------------------------------------------------------------- */

static bool lost_create_by_czxid_parse_number(const char *name, const char *prefix, int32_t *out)
{
    size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0)
        return false;
    char *end, made[SEQUENCE_ROOM + 1];
    long number = strtol(name + n, &end, 10);
    if (*end != '\0' || number < INT32_MIN || number > INT32_MAX)
        return false;
    *out = (int32_t)number;
    /* Only in the form in which the server writes it. */
    snprintf(made, sizeof made, "%010ld", number);
    return strcmp(made, name + n) == 0;
}

static clave_err lost_create_by_czxid_take_numbers(struct creation *k, const clave_result *res)
{
    const struct clave_mem *mem = &k->client->mem;
    const char *prefix = clave__path_name(k->what.path);
    clave__mem_free(mem, k->certain.numbers);
    k->certain.nnumbers = 0;
    k->certain.matched = false;
    /* At least one element, so that NULL means out of memory. */
    k->certain.numbers = clave__mem_alloc(mem, (res->nnames + 1) * sizeof *k->certain.numbers);
    if (!k->certain.numbers)
        return CLAVE_ENOMEM;
    for (size_t i = 0; i < res->nnames; i++)
        if (lost_create_by_czxid_parse_number(res->names[i], prefix,
                                              &k->certain.numbers[k->certain.nnumbers]))
            k->certain.nnumbers++;
    return CLAVE_OK;
}

static void lost_create_by_czxid_on_listed(clave_async_client *c, const clave_result *res,
                                           void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->busy--;
    clave_err err = res->err;
    if (err == CLAVE_OK)
        err = lost_create_by_czxid_take_numbers(k, res);
    if (err == CLAVE_OK)
        lost_create_by_czxid_look_at_next(k);
    else if (err == CLAVE_ENONODE)
        clave__creation_create(k);
    else
        clave__creation_step_failed(k, err);
}

static void lost_create_by_czxid_on_proven(clave_async_client *c, const clave_result *res,
                                           void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->busy--;
    k->lost.proven = clave__creation_proves(res->err);
    if (!k->lost.proven) {
        clave__creation_step_failed(k, res->err);
        return;
    }
    if (!lost_create_by_czxid_is_sequential(k)) {
        memcpy(k->found, k->what.path, strlen(k->what.path) + 1);
        lost_create_by_czxid_look_at(k);
        return;
    }
    struct request_spec spec = {.again = AGAIN_ALWAYS,
                                .path = clave__creation_parent(k),
                                .cb = lost_create_by_czxid_on_listed,
                                .arg = k,
                                .quiet = true};
    clave_err err = clave__submit_read(k->client, OP_GET_CHILDREN2, &spec);
    k->busy += err == CLAVE_OK;
    if (err)
        clave__creation_step_failed(k, err);
}

void clave__creation_identify(struct creation *k)
{
    assert(lost_create_by_czxid_is_certain(k));
    if (lost_create_by_czxid_has_to_wait(k)) {
        clave__creation_pause(k);
        return;
    }
    clave_err err = clave__creation_prove(k, lost_create_by_czxid_on_proven);
    if (err)
        clave__creation_step_failed(k, err);
}
