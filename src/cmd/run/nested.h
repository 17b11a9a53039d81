/* nested.h - does a `clave lock` wait for the one that it runs under? A command under a lock that
 * takes the same lock again would wait for ever: what it waits for waits for its end.
 *
 * The nodes tell: whose they are stands in them (owner.h), so it does not matter what the servers
 * are called, nor that a lock of the same path may be on others. Readers beside readers, and leases
 * as long as there are others, may be nested. */
#ifndef CLAVE_CMD_RUN_NESTED_H
#define CLAVE_CMD_RUN_NESTED_H

#include <stdbool.h>

#include "cmd/run/acquisition.h"

struct nested {
    const struct lock_plan *plan;
    const struct acquisition *acquisition;
    void (*found)(void *arg, const clave_participant *outer);
    void *arg;
    bool asking, answered;
};

/* It is being waited: looks, once, if this one runs under another at all. `found` is called when it
 * waits for that. Nothing is answered when the connection fails: it is to be called again. */
void nested_look(struct nested *n, clave_async_client *c);

#endif
