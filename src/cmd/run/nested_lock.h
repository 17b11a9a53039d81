/* nested_lock.h - finds out whether a `clave lock` waits for the one that it runs under. A command
 * under a lock that takes the same lock again would wait forever, since the lock it waits for is
 * released only when the command ends.
 *
 * The data of each node names its owner, so this works whatever names the servers were given, and
 * does not mistake a lock with the same path on other servers for this one. Readers may be nested
 * in readers, and leases in leases as long as others are free. */
#ifndef CLAVE_CMD_RUN_NESTED_LOCK_H
#define CLAVE_CMD_RUN_NESTED_LOCK_H

#include <stdbool.h>

#include "cmd/run/run_recipe.h"

/* Makes the owner of a lock: a new random number, below the owner in the environment (CLAVE_OWNER)
 * if there is one. This also tells a search for deadlocks that the outer lock waits for the inner
 * one (clave_identity.owner). */
void nested_make_owner(char out[RUN_OWNER_CAP]);

struct nested {
    const struct run_plan *plan;
    const struct acquisition *acquisition;
    void (*found)(void *arg, const clave_participant *outer);
    void *arg;
    bool asking, answered;
};

/* Checks whether this `clave lock` runs under another one and waits for it; if so, calls `found`.
 * Call this while waiting, as often as you like: it asks again until an answer has come, since a
 * request gets none if the connection fails. */
void nested_look(struct nested *n, clave_async_client *c);

#endif
