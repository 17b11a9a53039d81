/* jobs.h - many seeds in several processes, and the totals. */
#ifndef CLAVE_SIM_JOBS_H
#define CLAVE_SIM_JOBS_H

#include <stdbool.h>
#include <stdint.h>

struct jobs_options {
    uint64_t seeds;
    uint64_t first;
    uint64_t jobs;
    uint64_t minutes; /* 0: as many seeds as said */
    uint64_t drift;   /* permille, of the clocks */
    bool aloud;
    bool twice;
};

/* 0: no violation; 1: there are some, and that of the lowest seed was told. */
int jobs_run(const struct jobs_options *o);

#endif
