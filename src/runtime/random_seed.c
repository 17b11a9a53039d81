/* random_seed.c - clave_random_seed of clave/uv.h: randomness of the kernel, for what has to differ
 * between processes. */
#include <errno.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "clave/uv.h"

uint64_t clave_random_seed(void)
{
    uint64_t seed = 0;
    ssize_t n;
    do
        n = getrandom(&seed, sizeof seed, 0);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof seed)
        return seed ? seed : 1; /* 0 means "no seed" */
    /* A kernel without getrandom, or a filter that forbids it: two processes must still not try the
     * hosts in step, nor draw the same names. */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    seed = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    seed = seed * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)&seed ^ (uint64_t)getpid() << 48;
    return seed ? seed : 1;
}
