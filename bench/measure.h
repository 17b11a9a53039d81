/* measure.h - what the measuring programs of bench/ share: the time, the order of many times, and
 * what /proc tells of this process. */
#ifndef CLAVE_BENCH_MEASURE_H
#define CLAVE_BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of CLOCK_MONOTONIC. */
static inline double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double now_us(void)
{
    return now_s() * 1e6;
}

static inline int times_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static inline void times_sort(double *times, size_t n)
{
    qsort(times, n, sizeof *times, times_compare);
}

/* Of n that are sorted, n > 0. */
static inline double times_p50(const double *times, size_t n)
{
    return times[n / 2];
}

static inline double times_p99(const double *times, size_t n)
{
    return times[n * 99 / 100];
}

/* A field of /proc/self/status, such as "VmRSS:", which is in KiB; -1: it is not there. */
static inline long own_status(const char *field)
{
    char line[256];
    long v = -1;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0)
            v = atol(line + strlen(field));
    if (f)
        fclose(f);
    return v;
}

#endif
