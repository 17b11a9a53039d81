/* deadlock_cycle.h - clients of a memnet in a circle: each holds a lock, and waits for the next
 * one's. */
#ifndef CLAVE_TEST_DEADLOCK_CYCLE_H
#define CLAVE_TEST_DEADLOCK_CYCLE_H

#include "lib/mutex_owner.h"

enum { CYCLE_MAX = 4, CYCLE_TIMEOUT = 6000 };

/* A memnet of clients with sessions of CYCLE_TIMEOUT. */
struct memnet *cycle_world(size_t clients);
/* "/locks/a" for 0. */
void cycle_path(char out[32], size_t i);
/* Data of clave's form, and nothing else. */
clave_mutex_options cycle_options(void);

/* Client i, named 'A' + i, holds lock i. */
struct deadlock_cycle {
    struct memnet *p;
    size_t n;
    struct mutex_owner has[CYCLE_MAX], wants[CYCLE_MAX];
};
/* Options may be NULL; their data is set here. */
void cycle_open(struct deadlock_cycle *r, struct memnet *p, size_t n, const clave_mutex_options *o);
/* Client i waits for the lock of the next, the last for the first's. */
void cycle_wait(struct deadlock_cycle *r, size_t i);
/* Nothing may be left at the server. Frees the world. */
void cycle_close(struct deadlock_cycle *r);

#endif
