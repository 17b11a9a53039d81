/* rand.h - seeded random numbers: the same seed gives the same run. */
#ifndef CLAVE_BASE_RAND_H
#define CLAVE_BASE_RAND_H

#include <stdint.h>

struct rand_state {
    uint64_t s[4];
};

void clave__rand_seed(struct rand_state *r, uint64_t seed);
uint64_t clave__rand_u64(struct rand_state *r);
/* Uniform in [0, n); 0 when n is 0. */
uint64_t clave__rand_below(struct rand_state *r, uint64_t n);

#endif
