/* scenario.h - one seed from beginning to end: everything is drawn from it, a day with
 * faults, then time in which all that wait are served, and the final checks. */
#ifndef CLAVE_SIM_SCENARIO_H
#define CLAVE_SIM_SCENARIO_H

#include "nemesis.h"
#include "recording.h"

/* What a run adds to the totals. */
struct totals {
    uint64_t seeds;
    uint64_t traces; /* their sum: equal on every machine and in every build */
    uint64_t virtual_ms;
    uint64_t steps;
    uint64_t requests;
    uint64_t starts; /* of the server */
    uint64_t torn_tails;
    struct workload_stats work;
    uint64_t witnessed_answers; /* held against the past of their znodes */
    uint64_t witnessed_events;
    uint64_t overlaps; /* moments of holds that were over in truth: see --drift */
    uint64_t faults[FAULTS];
};

struct outcome {
    uint64_t trace;
    const char *broken; /* the invariant; NULL: none */
    struct fault_list happened;
    uint64_t sizes[SIZES]; /* as it was played */
    struct totals totals;
};

struct play {
    uint64_t seed;
    int64_t drift_ppm;           /* clocks are off by up to so much */
    bool aloud;                  /* its log goes to stdout line by line */
    bool quiet;                  /* a violation is not told there */
    const struct subset *subset; /* NULL: the whole world */
    struct recording *record;    /* NULL: nobody looks at it afterwards */
};

/* Plays a seed. A violation is told on stdout, with the last events and how to replay it. */
void scenario_play(const struct play *p, struct outcome *out);

void totals_add(struct totals *t, const struct totals *more);
void totals_print(const struct totals *t);

#endif
