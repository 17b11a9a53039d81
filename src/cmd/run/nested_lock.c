/* nested_lock.c - builds CLAVE_OWNER, which has the form "OUTER/INNER" with random numbers in
 * hexadecimal, and compares the owners of the participants ahead with it. The runner asks for this
 * whenever the place in the queue changes or the connection is back; there is at most one
 * answer. */
#include "cmd/run/nested_lock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clave/uv.h"

#include "recipe/queue/queue_order.h"

enum { SELF_CAP = 20 };

void nested_make_owner(char out[RUN_OWNER_CAP])
{
    const char *whole = getenv("CLAVE_OWNER");
    /* Nested too deeply to fit: starts afresh, so deadlocks that involve this lock and an outer one
     * are not detected. */
    if (!whole || strlen(whole) > RUN_OWNER_CAP - SELF_CAP)
        whole = "";
    snprintf(out, RUN_OWNER_CAP, "%s%s%016" PRIx64, whole, *whole ? "/" : "", clave_random_seed());
}

/* The owners "a" and "a/b" are the outer ones of "a/b/c". */
static bool nested_is_outer(const struct nested *n, const clave_participant *p)
{
    const char *theirs = p->identity.owner, *own = n->plan->owner;
    size_t len = theirs ? strlen(theirs) : 0;
    return len > 0 && strncmp(own, theirs, len) == 0 && own[len] == '/';
}

static bool nested_is_own(const struct nested *n, const clave_participant *p)
{
    return p->identity.owner && strcmp(p->identity.owner, n->plan->owner) == 0;
}

/* The first outer participant before us in the queue that blocks us. A reader does not block a
 * reader. */
static const clave_participant *nested_find_before(const struct nested *n,
                                                   const clave_participant *list, size_t count)
{
    for (size_t i = 0; i < count && !nested_is_own(n, &list[i]); i++) {
        bool shares = n->plan->kind == KIND_READ &&
                      clave__queue_order_is_kind(&clave__queue_order_read, list[i].node);
        if (nested_is_outer(n, &list[i]) && !shares)
            return &list[i];
    }
    return NULL;
}

/* An outer participant, if all leases are held by outer ones. */
static const clave_participant *nested_find_leases(const struct nested *n,
                                                   const clave_participant *list, size_t count)
{
    assert(n->acquisition->semaphore);
    const clave_participant *outer = NULL;
    uint32_t limit = clave_async_semaphore_limit(n->acquisition->semaphore), held = 0;
    for (size_t i = 0; i < count; i++) {
        if (!nested_is_outer(n, &list[i]))
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
    const clave_participant *outer =
        (leases ? nested_find_leases : nested_find_before)(nested, list, n);
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
