/* format.h - output that several verbs share. */
#ifndef CLAVE_CMD_CLI_FORMAT_H
#define CLAVE_CMD_CLI_FORMAT_H

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

#endif
