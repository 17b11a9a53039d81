/* duration.h - durations such as "4s", to and from milliseconds. */
#ifndef CLAVE_BASE_DURATION_H
#define CLAVE_BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* "500ms", "0.5s", "1h30m", "2 days", and "10" for ten seconds, to milliseconds, rounded up.
 * Otherwise false, and *fault says why. */
bool clave__duration_parse(const char *text, int64_t *ms, const char **fault);
/* The same, from bounds[0] to bounds[1]. NULL, or what is wrong, perhaps in `out`. */
enum { DURATION_FAULT_CAP = 160 };
const char *clave__duration_within(const char *text, const int64_t bounds[2], int64_t *ms,
                                   char out[DURATION_FAULT_CAP]);
/* And back, in the largest unit that needs no fraction. Returns out. */
enum { DURATION_CAP = 32 };
const char *clave__duration_format(int64_t ms, char out[DURATION_CAP]);

#endif
