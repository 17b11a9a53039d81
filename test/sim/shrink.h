/* shrink.h - a failing seed made small: as few of its faults as will do, as few clients, actors
 * and locks, and no longer a day, while the same invariant breaks. */
#ifndef CLAVE_SIM_SHRINK_H
#define CLAVE_SIM_SHRINK_H

#include "subset.h"

struct shrunk {
    const char *broken;  /* the invariant, or how the process died; NULL: it does not fail */
    struct subset least; /* that still fails so */
    size_t happened;     /* faults before */
    unsigned plays;
};

/* Of this subset, which may be all. The same on every machine. */
void shrink(uint64_t seed, int64_t drift_ppm, const struct subset *from, struct shrunk *out);

#endif
