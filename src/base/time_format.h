/* time_format.h - times as text: durations such as "4s", to and from milliseconds, and moments of
 * wall clock, "2026-11-23T09:35:19.120Z" (RFC 3339). */
#ifndef CLAVE_BASE_TIME_FORMAT_H
#define CLAVE_BASE_TIME_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

/* ---- durations ------------------------------------------------------------------------------- */

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

/* ---- moments --------------------------------------------------------------------------------- */

enum { RFC3339_CAP = 32 };

/* Milliseconds since 1970, UTC. Beyond the years 1 to 9999 it is the nearest moment of those.
 * Returns out. */
const char *clave__rfc3339_format(int64_t ms, char out[RFC3339_CAP]);
/* Takes that form, with or without the fraction; UTC only. false: it is not one. */
bool clave__rfc3339_parse(const char *text, int64_t *ms);

#endif
