/* format.h - output that several verbs share. */
#ifndef CLAVE_CMD_CLI_FORMAT_H
#define CLAVE_CMD_CLI_FORMAT_H

#include <stdint.h>
#include <stdio.h>

#include "clave/async/client.h"

/* One "name value" per line, in a fixed order. */
void format_stat(FILE *out, const clave_stat *st);
/* Bytes on a single line: those that are not printable ASCII are written as \n, \t, \\ or \xNN. */
void format_bytes(FILE *out, const void *p, size_t n);
/* Text that other clients wrote: characters that a terminal would obey become '?'. */
void format_text(FILE *out, const char *text);
/* The name or path of a node that others created: on a terminal like format_text, elsewhere
 * unchanged, since scripts read it. */
void format_name(FILE *out, const char *name);
/* "persistent" or "ephemeral"; a Stat does not distinguish containers from persistent nodes. */
const char *format_kind(const clave_stat *st);

/* Milliseconds since the epoch as "2024-05-01T12:00:00.123Z". Returns buf. */
enum { TIME_TEXT_CAP = 40 };
const char *time_text(int64_t ms, char buf[TIME_TEXT_CAP]);

/* A duration such as "850ms", "12s", "3m05s", "7h02m" or "3d04h"; a negative one counts as 0.
 * Returns out. */
enum { AGE_CAP = 32 };
const char *age_format(int64_t ms, char out[AGE_CAP]);

#endif
