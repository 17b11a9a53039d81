/* http_body.h - where the body of a request ends: after a length, or after its chunks. It is not
 * left to the parser's library, which as Debian builds it (not strict) takes any two bytes for the
 * end of a line between chunks, so that a proxy could see the next request elsewhere. */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_BODY_H
#define CLAVE_RUNTIME_HTTP_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_body_state {
    HTTP_BODY_DATA, /* `left` bytes are to come, and that is all */
    HTTP_BODY_SIZE,
    HTTP_BODY_EXTENSION,
    HTTP_BODY_SIZE_LF,
    HTTP_BODY_CHUNK,
    HTTP_BODY_CHUNK_CR,
    HTTP_BODY_CHUNK_LF,
    HTTP_BODY_TRAILER, /* a line of it begins */
    HTTP_BODY_TRAILER_LINE,
    HTTP_BODY_TRAILER_LF,
    HTTP_BODY_LAST_LF,
    HTTP_BODY_END,
    HTTP_BODY_FAULT
};

struct http_body {
    enum http_body_state state;
    int64_t left;    /* of the data */
    unsigned digits; /* of a size */
    size_t ignored;  /* bytes of extensions and trailers, which are bounded */
    bool is_last;    /* the chunk */
};

/* length: -1: in chunks. */
void clave__http_body_begin(struct http_body *b, int64_t length);
/* How many bytes it has used up, of which the last *len are data; more may follow unless the state
 * is HTTP_BODY_END or HTTP_BODY_FAULT. */
size_t clave__http_body_read(struct http_body *b, const char *p, size_t n, size_t *len);

#endif
