/* http_parse.h - parses the bytes of a connection into a request's head, pieces of its body, and
 * its end. The head is collected as text in a bounded amount of memory.
 *
 * A library parses the head. It is loaded when HTTP is requested, so a program that does not serve
 * HTTP needs neither the library nor its memory: llhttp if cmake finds it, otherwise http_parser,
 * its predecessor. It can be replaced here without touching anything else. A chunked body is not
 * left to the library, because in Debian's build (not strict) it takes any two bytes between chunks
 * for the end of a line, so a proxy could disagree with it about where the next request begins.
 *
 * Whatever could be read in two ways is refused: a length that is given twice or together with
 * chunks, a line that is continued on the next one, characters that no name or value may contain, a
 * space before a colon, an invalid end of line. */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_PARSE_H
#define CLAVE_RUNTIME_HTTP_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "web/web.h"

/* ---- the library ----------------------------------------------------------------------------- */

#ifdef CLAVE_LLHTTP
#include <llhttp.h>

typedef llhttp_t http_library_parser;
typedef llhttp_settings_t http_library_settings;
#define HTTP_LIBRARY_FUNCTIONS(X)                                                                  \
    X(llhttp_init)                                                                                 \
    X(llhttp_execute)                                                                              \
    X(llhttp_get_error_pos)                                                                        \
    X(llhttp_should_keep_alive)
#else
#include <http_parser.h>

typedef http_parser http_library_parser;
typedef http_parser_settings http_library_settings;
#define HTTP_LIBRARY_FUNCTIONS(X)                                                                  \
    X(http_parser_init)                                                                            \
    X(http_parser_execute)                                                                         \
    X(http_parser_pause)                                                                           \
    X(http_should_keep_alive)
#endif

struct http_library {
#define HTTP_LIBRARY_MEMBER(name) __typeof__(name) *name;
    HTTP_LIBRARY_FUNCTIONS(HTTP_LIBRARY_MEMBER)
#undef HTTP_LIBRARY_MEMBER
};

/* Any thread. NULL: it is not installed; *why says what is missing. */
const struct http_library *clave__http_library(const char **why);

/* ---- chunked bodies -------------------------------------------------------------------------- */

enum http_chunks_state {
    HTTP_CHUNKS_SIZE,
    HTTP_CHUNKS_EXTENSION,
    HTTP_CHUNKS_SIZE_LF,
    HTTP_CHUNKS_DATA,
    HTTP_CHUNKS_DATA_CR,
    HTTP_CHUNKS_DATA_LF,
    HTTP_CHUNKS_TRAILER, /* a line of the trailer begins */
    HTTP_CHUNKS_TRAILER_LINE,
    HTTP_CHUNKS_TRAILER_LF,
    HTTP_CHUNKS_LAST_LF,
    HTTP_CHUNKS_END,
    HTTP_CHUNKS_FAULT
};

struct http_chunks {
    enum http_chunks_state state;
    int64_t left;    /* left of the chunk */
    unsigned digits; /* of the present size */
    size_t ignored;  /* bytes of extensions and trailers so far, which are bounded */
};

/* ---- a request ------------------------------------------------------------------------------- */

enum { HTTP_MAX_FIELDS = 100 };

enum http_head_part { HTTP_HEAD_TARGET, HTTP_HEAD_NAME, HTTP_HEAD_VALUE };

/* The target, the names and the values, each NUL-terminated. */
struct http_head {
    struct buf text;
    enum http_head_part part; /* which part is being received */
    size_t nfields;
    /* Valid from HTTP_PARSED_HEAD on, as long as the head exists: */
    const char *target, *path; /* the path is decoded and without the query */
    struct web_header *fields;
};

void clave__http_head_init(struct http_head *head, const struct clave_mem *mem, size_t most);
void clave__http_head_fini(struct http_head *head);
/* NULL: there is no field of this name. */
const char *clave__http_head_find(const struct http_head *head, const char *name);

enum http_parsed {
    HTTP_PARSED_ALL,   /* all bytes were used up; more of the request is to come */
    HTTP_PARSED_HEAD,  /* the head is complete and, if body_length is 0, so is the request */
    HTTP_PARSED_END,   /* the body is complete */
    HTTP_PARSED_FAULT, /* whatever follows cannot be understood */
};

struct http_parse {
    const struct http_library *library;
    http_library_parser parser;
    struct http_head *head; /* of this request */
    /* Receives a piece of the body. */
    void (*take)(void *arg, const void *p, size_t n);
    void *arg;
    struct http_chunks chunks;
    int64_t left; /* left of a body that is not chunked */
    bool has_head;
    char last; /* the last byte of the head */
    /* Known from HTTP_PARSED_HEAD on. */
    int64_t body_length; /* -1: it is chunked */
    bool keeps_alive, is_1_1;
    bool expects_continue; /* the client waits for permission to send the body */
    /* After HTTP_PARSED_FAULT: the status to refuse the request with, and why. */
    unsigned refused;
    const char *why;
};

/* Prepares for the next request. */
void clave__http_parse_begin(struct http_parse *t, const struct http_library *library,
                             struct http_head *head,
                             void (*take)(void *arg, const void *p, size_t n), void *arg);
/* Parses bytes; returns how many were used up, and sets *what to what stopped it. */
size_t clave__http_parse(struct http_parse *t, const void *p, size_t n, enum http_parsed *what);
/* The name of the method; from HTTP_PARSED_HEAD on. */
const char *clave__http_parse_method(const struct http_parse *t);

#endif
