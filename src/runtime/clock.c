/* clock.c - see clock.h and clave/uv.h. clave_now() is CLOCK_BOOTTIME: it goes on while the machine
 * sleeps. */
#include "runtime/clock.h"

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
