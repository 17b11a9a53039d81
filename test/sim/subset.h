/* subset.h - the part of a seed's world that is run: by default all of it. Shrinking finds a small
 * part that still fails. The command line of clave_sim takes it, so that it can be run again. */
#ifndef CLAVE_SIM_SUBSET_H
#define CLAVE_SIM_SUBSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SUBSET_FAULTS = 4096,
    DRIFT_PERMILLE = 65, /* of clocks, unless said otherwise */
};

/* Faults by their number in the plan of the whole day, in their order. */
struct fault_list {
    size_t n;
    uint16_t numbers[SUBSET_FAULTS];
};

enum size { SIZE_CLIENTS, SIZE_ACTORS /* a client */, SIZE_LOCKS, SIZE_DAY_MS, SIZES };

struct subset {
    bool chosen; /* only these faults */
    struct fault_list faults;
    uint64_t salt; /* of all random numbers but those that drew the world and its faults; 0: the
                      seed's own */
    uint64_t sizes[SIZES]; /* at most; 0: as drawn */
};

bool subset_is_all(const struct subset *p);
bool subset_take_number(const char *text, uint64_t *out);
/* Takes an option of the command line; false: it is none of these, or its value is not. */
bool subset_take(struct subset *p, const char *option, const char *value);
/* The command that plays it. */
void subset_print_command(uint64_t seed, int64_t drift_ppm, const struct subset *p);

#endif
