/* rfc3339.h - a moment of wall clock as text: "2026-11-23T09:35:19.120Z". */
#ifndef CLAVE_BASE_RFC3339_H
#define CLAVE_BASE_RFC3339_H

#include <stdbool.h>
#include <stdint.h>

enum { RFC3339_CAP = 32 };

/* Milliseconds since 1970, UTC. Beyond the years 1 to 9999 it is the nearest moment of those.
 * Returns out. */
const char *clave__rfc3339_format(int64_t ms, char out[RFC3339_CAP]);
/* Takes that form, with or without the fraction; UTC only. false: it is not one. */
bool clave__rfc3339_parse(const char *text, int64_t *ms);

#endif
