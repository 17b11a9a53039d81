/* json.h - JSON, written piece by piece. Texts are UTF-8; a byte that is none becomes U+FFFD. */
#ifndef CLAVE_BASE_JSON_H
#define CLAVE_BASE_JSON_H

#include <stdbool.h>

#include "base/buf.h"

struct json {
    clave_err (*put)(void *to, const void *p, size_t n);
    void *to;
    bool comma;    /* the next value needs one before it */
    clave_err err; /* the first one; nothing is written behind it */
};

struct json clave__json_to(struct buf *out);

/* The length of the UTF-8 sequence at p (n >= 1), 0 when it is none: surrogates and overlong forms
 * are none, JSON readers refuse them. */
size_t clave__utf8_len(const void *p, size_t n);
/* The first character of p (n >= 1) as it stands in a JSON string; its length here in *taken. */
enum { JSON_ESCAPE_CAP = 8 };
size_t clave__json_escape(const void *p, size_t n, char out[JSON_ESCAPE_CAP], size_t *taken);

/* Keys are static names; NULL: an element of an array, or a value behind _key. */
void clave__json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void clave__json_close(struct json *j, char bracket);                 /* '}' or ']' */
void clave__json_key(struct json *j, const void *p, size_t n);        /* of any bytes */
void clave__json_bytes(struct json *j, const char *key, const void *p, size_t n);
void clave__json_string(struct json *j, const char *key, const char *text); /* NULL: null */
void clave__json_int(struct json *j, const char *key, int64_t n);
void clave__json_bool(struct json *j, const char *key, bool b);
/* A number that is in digits already: "4.25". */
void clave__json_number(struct json *j, const char *key, const char *digits);

#endif
