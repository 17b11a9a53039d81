/* shrink.h - a failing seed with as few faults as will do: those of its plan are left out, by
 * halves and then one by one, while the same invariant breaks. */
#ifndef CLAVE_SIM_SHRINK_H
#define CLAVE_SIM_SHRINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shrunk {
    const char *broken; /* the invariant, or how the process died; NULL: the seed does not fail */
    bool *skip;         /* by index of the plan */
    size_t planned;
    size_t struck; /* before */
    size_t left;
    unsigned plays;
};

void shrink(uint64_t seed, int64_t drift_ppm, struct shrunk *out);
void shrink_fini(struct shrunk *s);

#endif
