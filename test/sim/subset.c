#include "subset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const size_names[SIZES] = {"--clients", "--actors", "--locks", "--day"};

bool subset_is_all(const struct subset *p)
{
    bool all = !p->chosen && p->salt == 0;
    for (size_t i = 0; i < SIZES; i++)
        all = all && p->sizes[i] == 0;
    return all;
}

/* Digits; what follows them, or NULL: there are none. */
static const char *take_digits(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *text >= '0' && *text <= '9' ? end : NULL;
}

bool subset_take_number(const char *text, uint64_t *out)
{
    const char *end = take_digits(text, out);
    return end && *end == '\0';
}

/* "3,17,40", or "none". */
static bool take_faults(struct fault_list *l, const char *text)
{
    uint64_t number, last = 0;
    l->n = 0;
    if (strcmp(text, "none") == 0)
        return true;
    for (; (text = take_digits(text, &number)); text++) {
        if (number >= SUBSET_FAULTS || (l->n > 0 && number <= last))
            return false;
        l->numbers[l->n++] = (uint16_t)number;
        last = number;
        if (*text != ',')
            return *text == '\0';
    }
    return false;
}

bool subset_take(struct subset *p, const char *option, const char *value)
{
    if (!value)
        return false;
    if (strcmp(option, "--faults") == 0)
        return p->chosen = take_faults(&p->faults, value);
    if (strcmp(option, "--salt") == 0)
        return subset_take_number(value, &p->salt);
    for (size_t i = 0; i < SIZES; i++)
        if (strcmp(option, size_names[i]) == 0)
            return subset_take_number(value, &p->sizes[i]);
    return false;
}

void subset_print_command(uint64_t seed, int64_t drift_ppm, const struct subset *p)
{
    printf("clave_sim --seed %" PRIu64, seed);
    if (drift_ppm != DRIFT_PERMILLE * 1000)
        printf(" --drift %" PRId64, drift_ppm / 1000);
    if (p->chosen)
        printf(" --faults %s", p->faults.n == 0 ? "none" : "");
    for (size_t i = 0; p->chosen && i < p->faults.n; i++)
        printf("%s%u", i ? "," : "", (unsigned)p->faults.numbers[i]);
    if (p->salt > 0)
        printf(" --salt %" PRIu64, p->salt);
    for (size_t i = 0; i < SIZES; i++)
        if (p->sizes[i] > 0)
            printf(" %s %" PRIu64, size_names[i], p->sizes[i]);
}
