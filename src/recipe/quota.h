/* quota.h - a number that processes share in a node, and follow as it changes: Curator's
 * SharedCount, as far as a semaphore needs it. */
#ifndef CLAVE_RECIPE_QUOTA_H
#define CLAVE_RECIPE_QUOTA_H

#include <stdint.h>

#include "core/client.h"
#include "recipe/lookout.h"

struct quota_events {
    void (*changed)(void *owner, uint32_t value); /* known, or another one */
    void (*failed)(void *owner, clave_err err);   /* it cannot be read or made */
};

struct quota {
    clave_client *client;
    const struct clave_mem *mem;
    const struct quota_events *events;
    void *owner; /* NULL: given up, waits only for what is under way */
    struct lookout node;
    struct listener listener;
    struct timer later; /* there was no memory to look */
    uint32_t seed;      /* what a missing node is made with; 0: it is waited for */
    int64_t mzxid;      /* of the newest value */
    unsigned busy;      /* creates under way, and calls that run */
};

/* Begins to read. ENOMEM, EPATH, ECLOSED. */
clave_err clave__quota_new(struct quota **out, clave_client *c, const char *path, uint32_t seed,
                           const struct quota_events *events, void *owner);
/* No event after this. NULL is ignored. */
void clave__quota_free(struct quota *q);
/* Reads again unless it is being read or watched. */
clave_err clave__quota_refresh(struct quota *q);
/* As clave_set. */
clave_err clave__quota_set(struct quota *q, uint32_t value, clave_result_cb *cb, void *arg);

#endif
