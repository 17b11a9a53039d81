/* duration.h - durations such as "4s", to and from milliseconds. */
#ifndef CLAVE_BASE_DURATION_H
#define CLAVE_BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* "500ms", "4s", "3m", "1h", "2d" to milliseconds. Otherwise false, and *fault says why. */
bool clave__duration_parse(const char *text, int64_t *ms, const char **fault);
/* And back, in the largest unit that needs no fraction. Returns out. */
enum { DURATION_CAP = 32 };
const char *clave__duration_format(int64_t ms, char out[DURATION_CAP]);

#endif
