/* clock.h - the only place that reads clocks (and the seed, if the kernel has no randomness).
 * Engines and deadlines use clave_now() of clave/uv.h. */
#ifndef CLAVE_RUNTIME_CLOCK_H
#define CLAVE_RUNTIME_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Milliseconds since the epoch: for display, and for ctime and mtime, but never for deadlines. */
int64_t clave__clock_wall(void);

/* Microseconds of CLOCK_MONOTONIC, for measuring durations. */
int64_t clave__clock_us(void);

/* The time `ms` from now on CLOCK_MONOTONIC, for pthread_cond_timedwait. (Condition variables do
 * not support CLOCK_BOOTTIME, so a waiter checks clave_now() again.) */
struct timespec clave__clock_after(int64_t ms);

#endif
