/* shared_count.h - a number that processes share in a node, followed as it changes: Curator's
 * SharedCount, as far as a semaphore needs it. */
#ifndef CLAVE_RECIPE_SEMAPHORE_SHARED_COUNT_H
#define CLAVE_RECIPE_SEMAPHORE_SHARED_COUNT_H

#include <stdint.h>

#include "client/client_for_recipes.h"
#include "recipe/contender/node_watch.h"

enum { SHARED_COUNT_SIZE = 4 };
/* Converts the number to and from the node's data. Data that is not a positive number reads as 0,
 * which lets nobody in. */
void clave__shared_count_encode(uint32_t value, uint8_t out[SHARED_COUNT_SIZE]);
uint32_t clave__shared_count_decode(const void *data, size_t len);

struct shared_count_events {
    void (*changed)(void *owner, uint32_t value); /* the number is known, or has changed */
    void (*failed)(void *owner, clave_err err);   /* it cannot be read or created */
};

struct shared_count {
    clave_async_client *client;
    const struct clave_mem *mem;
    const struct shared_count_events *events;
    void *owner; /* NULL: given up, and only waiting for what is under way */
    struct node_watch node;
    struct listener listener;
    struct timer later; /* there was no memory for a read */
    uint32_t seed;      /* the number with which a missing node is created; 0: wait for somebody to
                           create it */
    int64_t mzxid;      /* of the newest value */
    unsigned busy;      /* creates under way, and running calls */
};

/* Begins to read. ENOMEM, EPATH, ECLOSED. */
clave_err clave__shared_count_new(struct shared_count **out, clave_async_client *c,
                                  const char *path, uint32_t seed,
                                  const struct shared_count_events *events, void *owner);
/* No event comes after this. NULL is ignored. */
void clave__shared_count_free(struct shared_count *c);
/* Reads the number again, unless it is being read or watched. */
clave_err clave__shared_count_refresh(struct shared_count *c);
/* Errors as clave_async_set. */
clave_err clave__shared_count_set(struct shared_count *c, uint32_t value, clave_result_cb *cb,
                                  void *arg);

#endif
