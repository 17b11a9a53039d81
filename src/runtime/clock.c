/* clock.c - the clocks (clock.h), and the two functions of clave/uv.h that every driver needs:
 * clave_now, which is CLOCK_BOOTTIME and continues while the machine sleeps, and clave_random_seed,
 * randomness from the kernel for what has to differ between processes. */
#include "runtime/clock.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "clave/uv.h"

static int64_t clock_read_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clave_now(void)
{
    return clock_read_ms(CLOCK_BOOTTIME);
}

int64_t clave__clock_wall(void)
{
    return clock_read_ms(CLOCK_REALTIME);
}

int64_t clave__clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct timespec clave__clock_after(int64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (ms < 0)
        ms = 0;
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* ---- randomness ------------------------------------------------------------------------------ */

uint64_t clave_random_seed(void)
{
    uint64_t seed = 0;
    ssize_t n;
    do
        n = getrandom(&seed, sizeof seed, 0);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof seed)
        return seed ? seed : 1; /* 0 means that there is no seed */
    /* The kernel has no getrandom, or a filter forbids it. Two processes must still not try hosts
     * in lockstep, or draw the same names. */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    seed = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    seed = seed * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)&seed ^ (uint64_t)getpid() << 48;
    return seed ? seed : 1;
}
