/* json_writer.h - a JSON writer that emits one piece at a time. Texts are UTF-8; a byte that is not
 * part of a valid sequence becomes U+FFFD. */
#ifndef CLAVE_BASE_JSON_WRITER_H
#define CLAVE_BASE_JSON_WRITER_H

#include <stdbool.h>

#include "base/buf.h"

struct json {
    clave_err (*put)(void *to, const void *p, size_t n);
    void *to;
    bool comma;    /* the next value needs one before it */
    clave_err err; /* the first error; nothing is written after it */
};

struct json clave__json_to(struct buf *out);

/* The first character of p (n >= 1) as written in a JSON string; *taken is the number of bytes of
 * p it used. Returns the length of out. */
enum { JSON_ESCAPE_CAP = 8 };
size_t clave__json_escape(const void *p, size_t n, char out[JSON_ESCAPE_CAP], size_t *taken);

/* Keys are static names. NULL: an element of an array, or the value after _key. */
void clave__json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void clave__json_close(struct json *j, char bracket);                 /* '}' or ']' */
void clave__json_key(struct json *j, const void *p, size_t n);        /* of any bytes */
void clave__json_int_key(struct json *j, int64_t n);
void clave__json_bytes(struct json *j, const char *key, const void *p, size_t n);
void clave__json_string(struct json *j, const char *key, const char *text); /* NULL: null */
void clave__json_int(struct json *j, const char *key, int64_t n);
/* A number of 64 bits as a string, since JavaScript keeps only 53 bits of a number. */
void clave__json_int64(struct json *j, const char *key, int64_t n);
void clave__json_bool(struct json *j, const char *key, bool b);
/* A number already in digits: "4.25". */
void clave__json_number(struct json *j, const char *key, const char *digits);

#endif
