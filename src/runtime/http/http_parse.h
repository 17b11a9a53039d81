/* http_parse.h - bytes of a connection to a request's head, pieces of its body and its end. The
 * head is collected as text, in memory of a bounded size.
 *
 * A library reads the head. It is loaded when HTTP is asked for, so that a program that does not
 * serve HTTP needs neither it nor its memory: llhttp where cmake finds it, else http_parser, from
 * which llhttp comes. It is replaceable here and nowhere else. A body in chunks is not left to it:
 * as Debian builds it (not strict), it takes any two bytes between chunks for the end of a line, so
 * a proxy could see the next request elsewhere.
 *
 * What could be read in two ways is refused: a length given twice or beside chunks, a line that
 * goes on in the next one, characters that no name or value may have, a blank before a colon, an
 * invalid end of line. */
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

/* Any thread. NULL: it is not on this machine; *why says what is missing. */
const struct http_library *clave__http_library(const char **why);

/* ---- a body in chunks ------------------------------------------------------------------------ */

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

/* ---- a request ------------------------------------------------------------------------------- */

enum { HTTP_MAX_FIELDS = 100 };

enum http_head_part { HTTP_HEAD_TARGET, HTTP_HEAD_NAME, HTTP_HEAD_VALUE };

/* Target, names and values, each with a NUL behind it. */
struct http_head {
    struct buf text;
    enum http_head_part part; /* that grows */
    size_t nfields;
    /* With HTTP_PARSED_HEAD, and as long as the head: */
    const char *target, *path; /* the path is decoded, without the query */
    struct web_header *fields;
};

void clave__http_head_init(struct http_head *head, const struct clave_mem *mem, size_t most);
void clave__http_head_fini(struct http_head *head);
/* NULL: there is no field of this name. */
const char *clave__http_head_find(const struct http_head *head, const char *name);

enum http_parsed {
    HTTP_PARSED_ALL,   /* of the bytes; more of the request follows */
    HTTP_PARSED_HEAD,  /* it is complete; the request, too, if body_length is 0 */
    HTTP_PARSED_END,   /* the body is complete */
    HTTP_PARSED_FAULT, /* what follows has no meaning */
};

struct http_parse {
    const struct http_library *library;
    http_library_parser parser;
    struct http_head *head; /* of this request */
    /* A piece of the body. */
    void (*take)(void *arg, const void *p, size_t n);
    void *arg;
    struct http_chunks chunks;
    int64_t left; /* of a body that is not in chunks */
    bool has_head;
    char last; /* byte of the head */
    /* What is known with HTTP_PARSED_HEAD. */
    int64_t body_length; /* -1: in chunks */
    bool keeps_alive, is_1_1;
    bool expects_continue; /* before it sends the body */
    /* With HTTP_PARSED_FAULT: its status, and why. */
    unsigned refused;
    const char *why;
};

/* For the next request. */
void clave__http_parse_begin(struct http_parse *t, const struct http_library *library,
                             struct http_head *head,
                             void (*take)(void *arg, const void *p, size_t n), void *arg);
/* How many bytes it has used up; *what: what stopped it. */
size_t clave__http_parse(struct http_parse *t, const void *p, size_t n, enum http_parsed *what);
/* The method's name, with HTTP_PARSED_HEAD. */
const char *clave__http_parse_method(const struct http_parse *t);

#endif
