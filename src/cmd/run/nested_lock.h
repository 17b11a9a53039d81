/* nested_lock.h - does a `clave lock` wait for the one that it runs under? A command under a lock
 * that takes the same lock again would wait forever: the lock it waits for is released only when it
 * ends.
 *
 * The nodes tell, since each names its owner: so the servers' names do not matter,
 * nor that a lock of the same path may be on other servers. Readers below readers may be nested,
 * and leases as long as others are free. */
#ifndef CLAVE_CMD_RUN_NESTED_LOCK_H
#define CLAVE_CMD_RUN_NESTED_LOCK_H

#include <stdbool.h>

#include "cmd/run/run_recipe.h"

/* Makes the owner of a lock, part of the one in the environment (CLAVE_OWNER) if there is one. By
 * it a search for deadlocks sees, too, that the outer lock waits for the inner one
 * (clave_identity.owner). */
void nested_make_owner(char out[RUN_OWNER_CAP]);

struct nested {
    const struct run_plan *plan;
    const struct acquisition *acquisition;
    void (*found)(void *arg, const clave_participant *outer);
    void *arg;
    bool asking, answered;
};

/* Call it while waiting: checks, once, whether this `clave lock` runs under another one and waits
 * for it; then `found` is called. If the connection fails there is no answer: call it again. */
void nested_look(struct nested *n, clave_async_client *c);

#endif
