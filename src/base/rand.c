/* rand.c - the generator behind every jitter, shuffle and UUID. Its state depends on the seed
 * alone, so a run of the simulated world can be replayed. Equal seeds draw equal UUIDs too, so a
 * user that may share its seed mixes in what differs. */
#include "base/rand.h"

/* splitmix64 seeds the state of xoshiro256** (both are public domain algorithms). */
void clave__rand_seed(struct rand_state *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r->s[i] = z ^ (z >> 31);
    }
}

static uint64_t rand_rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t clave__rand_u64(struct rand_state *r)
{
    uint64_t result = rand_rotate_left(r->s[1] * 5, 7) * 9;
    uint64_t t = r->s[1] << 17;
    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = rand_rotate_left(r->s[3], 45);
    return result;
}

uint64_t clave__rand_below(struct rand_state *r, uint64_t n)
{
    if (n == 0)
        return 0;
    uint64_t floor = (0 - n) % n; /* keeping values below it would make the remainders uneven */
    uint64_t x = clave__rand_u64(r);
    while (x < floor)
        x = clave__rand_u64(r);
    return x % n;
}

/* ---- UUIDs ----------------------------------------------------------------------------------- */

static const char uuid_hex[] = "0123456789abcdef";

void clave__rand_uuid(struct rand_state *r, char out[CLAVE_UUID_TEXT + 1])
{
    uint64_t hi = (clave__rand_u64(r) & ~UINT64_C(0xf000)) | 0x8000;
    uint64_t lo = (clave__rand_u64(r) & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62);
    int at = 0;
    for (int i = 0; i < 32; i++) {
        uint64_t word = i < 16 ? hi : lo;
        if (i == 8 || i == 12 || i == 16 || i == 20)
            out[at++] = '-';
        out[at++] = uuid_hex[(word >> (60 - 4 * (i & 15))) & 15];
    }
    out[at] = '\0';
}

/* Digits 12 and 16 hold the version and the variant and are left alone. */
void clave__uuid_mix(char *uuid, uint64_t a, uint64_t b)
{
    int digit = 0, mixed = 0;
    for (char *at = uuid; *at && digit < 32; at++) {
        if (*at == '-')
            continue;
        if (digit != 12 && digit != 16) {
            uint64_t bits = mixed < 16 ? a >> (60 - 4 * mixed) : b >> (52 - 4 * (mixed - 16));
            unsigned value = (unsigned)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
            *at = uuid_hex[(value ^ bits) & 15];
            mixed++;
        }
        digit++;
    }
}
