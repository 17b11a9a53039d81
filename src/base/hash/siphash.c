/* siphash.c - SipHash with one round per word and three at the end (Aumasson and Bernstein, 2012),
 * as Python and Rust use it for their tables; map.c calls it. */
#include "base/hash/siphash.h"

#include <string.h>

struct siphash {
    uint64_t v0, v1, v2, v3;
};

struct siphash_key clave__siphash_key(uint64_t seed)
{
    static const struct siphash_key plain = {0x243f6a8885a308d3u, 0x13198a2e03707344u};
    const uint64_t words[2] = {seed, ~seed};
    return (struct siphash_key){clave__siphash(plain, &words[0], sizeof words[0]),
                                clave__siphash(plain, words, sizeof words)};
}

static inline uint64_t siphash_rotate_left(uint64_t v, unsigned bits)
{
    return v << bits | v >> (64 - bits);
}

static inline void siphash_round(struct siphash *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = siphash_rotate_left(s->v1, 13) ^ s->v0;
    s->v3 = siphash_rotate_left(s->v3, 16) ^ s->v2;
    s->v0 = siphash_rotate_left(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = siphash_rotate_left(s->v1, 17) ^ s->v2;
    s->v3 = siphash_rotate_left(s->v3, 21) ^ s->v0;
    s->v2 = siphash_rotate_left(s->v2, 32);
}

static inline void siphash_word(struct siphash *s, uint64_t word)
{
    s->v3 ^= word;
    siphash_round(s);
    s->v0 ^= word;
}

/* Little-endian on every machine, as the definition has it; one load on most. */
static inline uint64_t siphash_load_word(const uint8_t *p, size_t n)
{
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

uint64_t clave__siphash(struct siphash_key key, const void *p, size_t n)
{
    const uint8_t *at = p;
    size_t left = n;
    struct siphash s = {key.k0 ^ 0x736f6d6570736575u, key.k1 ^ 0x646f72616e646f6du,
                        key.k0 ^ 0x6c7967656e657261u, key.k1 ^ 0x7465646279746573u};
    for (; left >= 8; at += 8, left -= 8)
        siphash_word(&s, siphash_load_word(at, 8));
    siphash_word(&s, (uint64_t)n << 56 | siphash_load_word(at, left));
    s.v2 ^= 0xff;
    for (int i = 0; i < 3; i++)
        siphash_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
