/* rand.c - the generator behind every jitter, shuffle and UUID (uuid.c). Its state depends on the
 * seed alone, so a run of the simulated world can be replayed. */
#include "base/rand.h"

/* splitmix64 seeds the state of xoshiro256** (both are public domain algorithms). */
static uint64_t rand_splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void clave__rand_seed(struct rand_state *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = rand_splitmix(&seed);
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
