/* deadlock_cycle.h - clients of a paired world in a circle: each holds a lock, and wants the next
 * one's. */
#ifndef CLAVE_TEST_DEADLOCK_CYCLE_H
#define CLAVE_TEST_DEADLOCK_CYCLE_H

#include "lib/mutex_owner.h"

enum { RING_MAX = 4, RING_TIMEOUT = 6000 };

/* Clients with sessions of RING_TIMEOUT. */
struct pair *ring_world(size_t clients);
/* "/locks/a" for 0. */
void ring_path(char out[32], size_t i);
/* Data of clave's form, and nothing else. */
clave_mutex_options ring_options(void);

/* Client i, named 'A' + i, holds lock i. */
struct ring {
    struct pair *p;
    size_t n;
    struct seat has[RING_MAX], wants[RING_MAX];
};
/* Options may be NULL; their data is the ring's. */
void ring_open(struct ring *r, struct pair *p, size_t n, const clave_mutex_options *o);
/* Client i waits for the lock of the next, the last for the first's. */
void ring_want(struct ring *r, size_t i);
/* Nothing may be left at the server. Frees the world. */
void ring_close(struct ring *r);

#endif
