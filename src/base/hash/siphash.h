/* siphash.h - SipHash-1-3: a hash that others cannot predict without its key, so that nobody can
 * choose names that all fall into one bucket. */
#ifndef CLAVE_BASE_HASH_SIPHASH_H
#define CLAVE_BASE_HASH_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
    uint64_t k0, k1;
};

/* The key that belongs to a seed. A seed that nobody can guess makes a key that nobody can guess.
 */
struct siphash_key clave__siphash_key(uint64_t seed);

uint64_t clave__siphash(struct siphash_key key, const void *p, size_t n);

#endif
