/* time_text.h - times and durations as text. */
#ifndef CLAVE_CMD_CLI_TIME_TEXT_H
#define CLAVE_CMD_CLI_TIME_TEXT_H

#include <stdint.h>

/* Milliseconds since the epoch as "2024-05-01T12:00:00.123Z". Returns buf. */
enum { TIME_TEXT_CAP = 40 };
const char *time_text(int64_t ms, char buf[TIME_TEXT_CAP]);

/* A duration such as "850ms", "12s", "3m05s", "7h02m" or "3d04h"; a negative one counts as 0.
 * Returns out. */
enum { AGE_CAP = 32 };
const char *age_format(int64_t ms, char out[AGE_CAP]);

#endif
