/* sha1.c - SHA-1 of a whole message in memory (FIPS 180-4); see sha1.h. */
#include "base/hash/sha1.h"

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

/* FIPS 180-4, 6.1.2. */
static void sha1_mix(uint32_t h[5], const uint8_t *block)
{
    uint32_t w[80];
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (size_t i = 0; i < 16; i++)
        w[i] = sha1_load(block + 4 * i);
    for (size_t i = 16; i < 80; i++)
        w[i] = sha1_rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (size_t i = 0; i < 80; i++) {
        uint32_t f = 0xca62c1d6u + (b ^ c ^ d);
        if (i < 20)
            f = 0x5a827999u + ((b & c) | (~b & d));
        else if (i < 40)
            f = 0x6ed9eba1u + (b ^ c ^ d);
        else if (i < 60)
            f = 0x8f1bbcdcu + ((b & c) | (b & d) | (c & d));
        uint32_t next = sha1_rotate(a, 5) + f + e + w[i];
        e = d;
        d = c;
        c = sha1_rotate(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void clave__sha1(const void *p, size_t n, uint8_t out[SHA1_LEN])
{
    uint32_t h[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    uint8_t last[2 * BLOCK] = {0};
    const uint8_t *bytes = p;
    size_t rest = n % BLOCK;
    for (size_t i = 0; i < n / BLOCK; i++)
        sha1_mix(h, bytes + i * BLOCK);
    if (rest > 0)
        memcpy(last, bytes + (n - rest), rest);
    last[rest] = 0x80;
    size_t end = rest + 1 + LENGTH <= BLOCK ? BLOCK : 2 * BLOCK;
    for (size_t i = 0; i < LENGTH; i++)
        last[end - 1 - i] = (uint8_t)((uint64_t)n * 8 >> (8 * i));
    for (size_t at = 0; at < end; at += BLOCK)
        sha1_mix(h, last + at);
    for (size_t i = 0; i < SHA1_LEN; i++)
        out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
