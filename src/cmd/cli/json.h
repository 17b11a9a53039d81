/* json.h - JSON on a stream, one object per line, and a form that only this program needs: bytes
 * that may not be text are written as base64. */
#ifndef CLAVE_CMD_CLI_JSON_H
#define CLAVE_CMD_CLI_JSON_H

#include <stdint.h>
#include <stdio.h>

#include "base/json_writer.h"
#include "clave/async/client.h"

struct json json_to(FILE *out);
void json_begin(struct json *j, FILE *out); /* opens an object */
void json_end(struct json *j);              /* closes it, ends the line, flushes */

void json_hex(struct json *j, const char *key, int64_t n); /* "0x1f": zxids, session ids */
/* With the key `key` if the bytes are text, else as base64 with the key `key`_base64; null if `p`
 * is NULL. */
void json_bytes(struct json *j, const char *key, const void *p, size_t n);
void json_stat(struct json *j, const char *key, const clave_stat *st);

#endif
