/* create_parents.c - the missing ancestors of a create (CLAVE_CREATE_PARENTS), which create_steps.c
 * sends before the create itself. It never ends a creation: its caller does. */
#include <string.h>

#include "base/err_class.h"
#include "client/client_internal.h"
#include "client/request/create_steps.h"

enum { MAX_PARENT_ATTEMPTS = 5 };

/* The path as the server knows it, in k->found. */
static clave_err create_parents_full_path(struct creation *k, struct jbytes *full)
{
    clave_err err = clave__path_to_create(k->client, k->what.path, k->what.mode, full);
    if (err != CLAVE_OK || full->n >= (int32_t)k->found_cap)
        return CLAVE_ENOMEM;
    memcpy(k->found, full->p, (size_t)full->n);
    return CLAVE_OK;
}

/* Without waiting for answers: for existing ones the server answers NODEEXISTS. */
clave_err clave__creation_send_parents(struct creation *k, clave_result_cb *cb)
{
    clave_async_client *c = k->client;
    struct jbytes full;
    k->ancestors.attempts++;
    k->ancestors.err = CLAVE_OK;
    if (create_parents_full_path(k, &full) != CLAVE_OK)
        return CLAVE_ENOMEM;
    /* Empty data, as Curator and kazoo write it: kazoo cannot read null data. */
    struct submit_create parent = {
        .path = k->found, .data = "", .raw = true, .place = CREATE_ANCESTOR};
    parent.mode = c->no_containers ? CLAVE_PERSISTENT : CLAVE_CONTAINER;
    for (int32_t i = 1; i < full.n; i++) {
        if (k->found[i] != '/')
            continue;
        k->found[i] = '\0';
        if (clave__submit_create(c, &parent, cb, k) == CLAVE_OK)
            k->busy++;
        else
            k->ancestors.err = CLAVE_ENOMEM;
        k->found[i] = '/';
    }
    return CLAVE_OK;
}

void clave__creation_parent_answered(struct creation *k, const clave_result *res)
{
    if (res->err == CLAVE_EUNIMPLEMENTED)
        k->client->no_containers = true; /* a server before 3.5: use persistent nodes */
    else if (res->err != CLAVE_OK && res->err != CLAVE_ENODEEXISTS &&
             k->ancestors.err == CLAVE_OK) {
        k->ancestors.err = res->err; /* the first error causes the others */
        k->ancestors.len = strlen(res->path);
    }
}

bool clave__creation_may_retry_parents(const struct creation *k)
{
    return (k->flags & CLAVE_CREATE_PARENTS) && k->ancestors.attempts < MAX_PARENT_ATTEMPTS &&
           (k->ancestors.err == CLAVE_OK || clave__err_passes(k->ancestors.err));
}

/* Without an answer, the fault that the link has set says more. */
void clave__creation_tell_parent(struct creation *k)
{
    struct jbytes full;
    bool answered = clave_err_classify(k->ancestors.err) == CLAVE_CLASS_FINAL;
    if (answered && create_parents_full_path(k, &full) == CLAVE_OK) {
        k->found[k->ancestors.len] = '\0';
        clave__request_tell_ancestor(k->client, k->found, k->ancestors.err);
    }
}
