/* format.h - output that several verbs share. */
#ifndef CLAVE_CMD_CLI_FORMAT_H
#define CLAVE_CMD_CLI_FORMAT_H

#include <stdio.h>

#include "clave/async/mutex.h"
#include "cmd/cli/json.h"
#include "cmd/cli/time_text.h"

/* One "name value" a line, in a fixed order. */
void format_stat(FILE *out, const clave_stat *st);
/* Bytes on one line: those that are not printable ASCII become
 * , \t, \\ or \xNN. */
void format_bytes(FILE *out, const void *p, size_t n);
/* Text that other clients wrote; what a terminal would obey becomes a ?. */
void format_text(FILE *out, const char *text);
/* "persistent" or "ephemeral"; a Stat does not distinguish containers from persistent nodes. */
const char *format_kind(const clave_stat *st);

/* A participant's place in a queue: token, node, session, since_ms; all but the node are null if it
 * may not be read. */
void format_place(struct json *j, const char *node, const clave_stat *st);
/* host, pid, name, command, text, traceparent: null, and pid 0, for what is not known. */
void format_identity(struct json *j, const clave_identity *id);
/* revocable: null if its node does not say. */
void format_revocable(struct json *j, const clave_identity *id);
/* age_ms, by this machine's clock; null likewise. */
void format_age(struct json *j, const clave_stat *st);

#endif
