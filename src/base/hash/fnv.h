/* fnv.h - FNV-1a: a hash of short texts, for what nobody has a reason to make collide. Where that
 * may be somebody's aim, siphash.h has a key. */
#ifndef CLAVE_BASE_HASH_FNV_H
#define CLAVE_BASE_HASH_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV1A_BASIS UINT64_C(0xcbf29ce484222325)

/* Goes on from `hash`, which is FNV1A_BASIS at the beginning. */
static inline uint64_t clave__fnv1a(uint64_t hash, const void *p, size_t n)
{
    const uint8_t *byte = p;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
