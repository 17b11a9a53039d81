/* duration.c - durations such as "4s", to and from milliseconds; see duration.h. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}, {"d", 24 * 3600 * 1000},
};

static int64_t unit_ms(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, name) == 0)
            return units[i].ms;
    return 0;
}

bool clave__duration_parse(const char *text, int64_t *ms, const char **fault)
{
    const char *p = text;
    int64_t n = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (n > INT64_MAX / 10 - 1) {
            *fault = "too long";
            return false;
        }
        n = n * 10 + (*p - '0');
    }
    int64_t unit = *p == '\0' && n == 0 ? 1 : unit_ms(p); /* "0" needs no unit */
    if (p == text || unit == 0) {
        *fault = "a duration is a whole number and a unit: 500ms, 4s, 3m, 1h, 2d";
        return false;
    }
    if (n > INT64_MAX / unit) {
        *fault = "too long";
        return false;
    }
    *ms = n * unit;
    return true;
}

const char *clave__duration_format(int64_t ms, char out[DURATION_CAP])
{
    size_t i = sizeof units / sizeof *units - 1;
    while (i > 0 && (ms < units[i].ms || ms % units[i].ms != 0))
        i--;
    snprintf(out, DURATION_CAP, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
    return out;
}
