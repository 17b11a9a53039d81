/* replay.h - one seed once more: with as few faults as still break it, as text, as a picture. */
#ifndef CLAVE_SIM_REPLAY_H
#define CLAVE_SIM_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "subset.h"

struct replay {
    uint64_t seed;
    int64_t drift_ppm;
    struct subset subset;
    bool shrink;
    bool text;
    bool aloud;      /* everything that happens, as it happens */
    const char *svg; /* file; NULL: none */
};

/* As jobs_run; 74 when the file cannot be written. */
int replay_run(const struct replay *c);

#endif
