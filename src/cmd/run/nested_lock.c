/* nested_lock.c - compares the owners of the participants ahead with our own CLAVE_OWNER. runner.c
 * calls it whenever the place in the queue changes or the connection is back. It answers at most
 * once. */
#include "cmd/run/nested_lock.h"

#include <assert.h>
#include <string.h>

#include "recipe/queue/queue_order.h"

/* The owners "a" and "a/b" are outer ones of "a/b/c". */
static bool is_outer(const struct nested *n, const clave_participant *p)
{
    const char *theirs = p->identity.owner, *own = n->plan->owner;
    size_t len = theirs ? strlen(theirs) : 0;
    return len > 0 && strncmp(own, theirs, len) == 0 && own[len] == '/';
}

static bool nested_is_own(const struct nested *n, const clave_participant *p)
{
    return p->identity.owner && strcmp(p->identity.owner, n->plan->owner) == 0;
}

/* Before us in the queue, and blocking us: a reader does not block a reader. */
static const clave_participant *nested_find_before(const struct nested *n,
                                                   const clave_participant *list, size_t count)
{
    for (size_t i = 0; i < count && !nested_is_own(n, &list[i]); i++) {
        bool shares = n->plan->kind == KIND_READ &&
                      clave__queue_order_is_kind(&clave__queue_order_read, list[i].node);
        if (is_outer(n, &list[i]) && !shares)
            return &list[i];
    }
    return NULL;
}

/* All leases are held by outer ones. */
static const clave_participant *find_leases(const struct nested *n, const clave_participant *list,
                                            size_t count)
{
    assert(n->acquisition->semaphore);
    const clave_participant *outer = NULL;
    uint32_t limit = clave_async_semaphore_limit(n->acquisition->semaphore), held = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_outer(n, &list[i]))
            continue;
        outer = &list[i];
        held++;
    }
    return limit > 0 && held >= limit ? outer : NULL;
}

static void nested_on_participants(clave_async_client *c, clave_err err,
                                   const clave_participant *list, size_t n, void *arg)
{
    struct nested *nested = arg;
    assert(nested->asking && !nested->answered);
    (void)c;
    nested->asking = false;
    nested->answered = err == CLAVE_OK;
    if (err != CLAVE_OK)
        return;
    bool leases = nested->plan->kind == KIND_LEASE;
    const clave_participant *outer = (leases ? find_leases : nested_find_before)(nested, list, n);
    if (outer)
        nested->found(nested->arg, outer);
}

void nested_look(struct nested *n, clave_async_client *c)
{
    const char *path = n->plan->path;
    if (n->asking || n->answered || !strchr(n->plan->owner, '/'))
        return;
    clave_err err;
    if (n->plan->kind == KIND_LEASE)
        err = clave_async_semaphore_participants(c, path, nested_on_participants, n);
    else if (n->plan->kind == KIND_MUTEX)
        err = clave_async_participants(c, path, nested_on_participants, n);
    else
        err =
            clave_async_rwlock_participants(c, path, CLAVE_RWLOCK_BOTH, nested_on_participants, n);
    n->asking = err == CLAVE_OK;
}
