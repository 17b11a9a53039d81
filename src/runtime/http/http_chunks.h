/* http_chunks.h - a body in chunks: what of it is data, and where it ends. It is not left to the
 * parser's library: as Debian builds it (not strict), it takes any two bytes between chunks for the
 * end of a line, so a proxy could see the next request elsewhere. */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_CHUNKS_H
#define CLAVE_RUNTIME_HTTP_HTTP_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

enum http_chunks_state {
    HTTP_CHUNKS_SIZE,
    HTTP_CHUNKS_EXTENSION,
    HTTP_CHUNKS_SIZE_LF,
    HTTP_CHUNKS_DATA,
    HTTP_CHUNKS_DATA_CR,
    HTTP_CHUNKS_DATA_LF,
    HTTP_CHUNKS_TRAILER, /* a line of it begins */
    HTTP_CHUNKS_TRAILER_LINE,
    HTTP_CHUNKS_TRAILER_LF,
    HTTP_CHUNKS_LAST_LF,
    HTTP_CHUNKS_END,
    HTTP_CHUNKS_FAULT
};

struct http_chunks {
    enum http_chunks_state state;
    int64_t left;    /* of the chunk */
    unsigned digits; /* of a size */
    size_t ignored;  /* bytes of extensions and trailers, which are bounded */
};

void clave__http_chunks_begin(struct http_chunks *t);
/* How many bytes it has used up, of which the last *len are data; more may follow unless the state
 * is HTTP_CHUNKS_END or HTTP_CHUNKS_FAULT. */
size_t clave__http_chunks_read(struct http_chunks *t, const char *p, size_t n, size_t *len);

#endif
