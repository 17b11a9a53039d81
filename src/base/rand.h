/* rand.h - seeded random numbers, the same seed gives the same run; and UUIDs in canonical text. */
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

/* ---- UUIDs ----------------------------------------------------------------------------------- */

enum { CLAVE_UUID_TEXT = 36 }; /* characters, without the NUL */

/* A UUID in lower-case canonical text, NUL-terminated. Its version is 8, for a form of one's own,
 * though it is drawn as one of version 4 is: so clave's nodes can be told from Curator's. */
void clave__rand_uuid(struct rand_state *r, char out[CLAVE_UUID_TEXT + 1]);
/* Turns the UUID at `uuid`, in that form, into another of its version by mixing in 120 bits: all of
 * `a` and the low 56 of `b`. Equal UUIDs mixed with different bits become different; mixing in 0, 0
 * changes nothing. */
void clave__uuid_mix(char *uuid, uint64_t a, uint64_t b);

#endif
