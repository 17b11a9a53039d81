/* time_text.h - a time as text. */
#ifndef CLAVE_CMD_CLI_TIME_TEXT_H
#define CLAVE_CMD_CLI_TIME_TEXT_H

#include <stdint.h>

/* Milliseconds since the epoch as "2024-05-01T12:00:00.123Z". Returns buf. */
enum { TIME_TEXT_CAP = 40 };
const char *time_text(int64_t ms, char buf[TIME_TEXT_CAP]);

#endif
