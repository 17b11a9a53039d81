/* The wait for an answer in the Python package's bridge: a step of the wall clock neither ends nor
 * prolongs it. This program's wall clock is set back by an hour each time that it was read. */
#include <stdio.h>
#include <time.h>

#include "bridge.h"

enum { HOUR_S = 3600, WAIT_MS = 50 };

/* The linker gives these names (--wrap). */
int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    int result = __real_clock_gettime(id, out);
    if (id == CLOCK_REALTIME)
        out->tv_sec -= HOUR_S;
    return result;
}

static long long wait_now_ms(void)
{
    struct timespec now;
    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

int main(void)
{
    struct bridge_call call = {0};
    sem_init(&call.begun, 0, 1);
    sem_init(&call.done, 0, 0);
    long long start = wait_now_ms();
    bool came = bridge_wait(&call, WAIT_MS);
    long long waited = wait_now_ms() - start;
    sem_post(&call.done);
    bool found = bridge_wait(&call, WAIT_MS);
    sem_destroy(&call.begun);
    sem_destroy(&call.done);
    if (came || waited < WAIT_MS - 1 || !found) {
        fprintf(stderr, "no answer: %d after %lld of %d ms; an answer: %d\n", came, waited, WAIT_MS,
                found);
        return 1;
    }
    return 0;
}
