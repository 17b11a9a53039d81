/* sha1.c - SHA-1 of a whole message in memory (FIPS 180-4), and HMAC (RFC 2104); see sha1.h. */
#include "base/hash/sha1.h"

#include <assert.h>
#include <string.h>

enum { BLOCK = 64, LENGTH = 8 };

static uint32_t sha1_rotate(uint32_t v, unsigned bits)
{
    return v << bits | v >> (32 - bits);
}

static uint32_t sha1_load(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

struct sha1_state {
    uint32_t a, b, c, d, e;
};

static void sha1_turn(struct sha1_state *s, uint32_t f, uint32_t w)
{
    uint32_t next = sha1_rotate(s->a, 5) + f + s->e + w;
    s->e = s->d;
    s->d = s->c;
    s->c = sha1_rotate(s->b, 30);
    s->b = s->a;
    s->a = next;
}

/* FIPS 180-4, 6.1.2. */
static void sha1_mix(uint32_t h[5], const uint8_t *block)
{
    uint32_t w[80];
    struct sha1_state s = {h[0], h[1], h[2], h[3], h[4]};
    size_t i = 0;
    for (; i < 16; i++)
        w[i] = sha1_load(block + 4 * i);
    for (; i < 80; i++)
        w[i] = sha1_rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (i = 0; i < 20; i++)
        sha1_turn(&s, 0x5a827999u + ((s.b & s.c) | (~s.b & s.d)), w[i]);
    for (; i < 40; i++)
        sha1_turn(&s, 0x6ed9eba1u + (s.b ^ s.c ^ s.d), w[i]);
    for (; i < 60; i++)
        sha1_turn(&s, 0x8f1bbcdcu + ((s.b & s.c) | (s.b & s.d) | (s.c & s.d)), w[i]);
    for (; i < 80; i++)
        sha1_turn(&s, 0xca62c1d6u + (s.b ^ s.c ^ s.d), w[i]);
    h[0] += s.a;
    h[1] += s.b;
    h[2] += s.c;
    h[3] += s.d;
    h[4] += s.e;
}

static const uint32_t sha1_start[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u,
                                       0xc3d2e1f0u};

/* Hashes the rest of a message, of which `start` has taken in the first `before` bytes: whole
 * blocks. */
static void sha1_finish(const uint32_t start[5], size_t before, const void *p, size_t n,
                        uint8_t out[SHA1_LEN])
{
    uint32_t h[5];
    uint8_t last[2 * BLOCK] = {0};
    const uint8_t *bytes = p;
    size_t rest = n % BLOCK;
    memcpy(h, start, sizeof h);
    for (size_t i = 0; i < n / BLOCK; i++)
        sha1_mix(h, bytes + i * BLOCK);
    if (rest > 0)
        memcpy(last, bytes + (n - rest), rest);
    last[rest] = 0x80;
    size_t end = rest + 1 + LENGTH <= BLOCK ? BLOCK : 2 * BLOCK;
    for (size_t i = 0; i < LENGTH; i++)
        last[end - 1 - i] = (uint8_t)((uint64_t)(before + n) * 8 >> (8 * i));
    for (size_t at = 0; at < end; at += BLOCK)
        sha1_mix(h, last + at);
    for (size_t i = 0; i < SHA1_LEN; i++)
        out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

void clave__sha1(const void *p, size_t n, uint8_t out[SHA1_LEN])
{
    sha1_finish(sha1_start, 0, p, n, out);
}

/* ---- HMAC ------------------------------------------------------------------------------------ */

static void hmac_take_pad(uint32_t h[5], const uint8_t *key, size_t n, uint8_t pad)
{
    uint8_t block[BLOCK];
    memset(block, pad, sizeof block);
    for (size_t i = 0; i < n; i++)
        block[i] ^= key[i];
    memcpy(h, sha1_start, sizeof sha1_start);
    sha1_mix(h, block);
}

void clave__hmac_take_key(struct hmac_key *k, const void *key, size_t n)
{
    assert(n <= BLOCK);
    hmac_take_pad(k->inner, key, n, 0x36);
    hmac_take_pad(k->outer, key, n, 0x5c);
}

void clave__hmac(const struct hmac_key *k, const void *p, size_t n, uint8_t out[SHA1_LEN])
{
    uint8_t inner[SHA1_LEN];
    sha1_finish(k->inner, BLOCK, p, n, inner);
    sha1_finish(k->outer, BLOCK, inner, sizeof inner, out);
}
