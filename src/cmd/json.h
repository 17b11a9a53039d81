/* json.h - JSON on a stream, one value a line. Keys are static names; texts are UTF-8, and
 * bytes that are not go out as base64. NULL as a key: an element of an array. */
#ifndef CLAVE_CMD_JSON_H
#define CLAVE_CMD_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "clave/client.h"

struct json {
    FILE *out;
    bool comma; /* the next value needs one before it */
};

void json_begin(struct json *j, FILE *out); /* opens an object */
void json_end(struct json *j);              /* closes it, ends the line and flushes */

void json_open(struct json *j, const char *key, char bracket);     /* '{' or '[' */
void json_close(struct json *j, char bracket);                     /* '}' or ']' */
void json_text(struct json *j, const char *key, const char *text); /* NULL: null */
void json_int(struct json *j, const char *key, int64_t n);
void json_hex(struct json *j, const char *key, int64_t n); /* "0x1f": zxids, session ids */
void json_bool(struct json *j, const char *key, bool b);
/* `key`: text, or `key`_base64; null when p is NULL. */
void json_bytes(struct json *j, const char *key, const void *p, size_t n);
void json_stat(struct json *j, const char *key, const clave_stat *st);

#endif
