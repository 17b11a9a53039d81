/* clock.h - the one place that reads clocks and asks the kernel for randomness. The clock
 * of engines and deadlines is clave_now() of clave/uv.h. */
#ifndef CLAVE_RUNTIME_CLOCK_H
#define CLAVE_RUNTIME_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Milliseconds since the epoch: for what is shown and for ctime and mtime, never for
 * deadlines. */
int64_t clave__clock_wall(void);

/* The moment `ms` from now on CLOCK_MONOTONIC, for pthread_cond_timedwait. (Condition
 * variables do not know CLOCK_BOOTTIME; who waits looks at clave_now() again.) */
struct timespec clave__clock_after(int64_t ms);

#endif
