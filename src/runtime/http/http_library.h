/* http_library.h - the parser library, loaded when HTTP is asked for, so that a program that does
 * not serve HTTP needs neither it nor its memory: llhttp where cmake finds it, else http_parser,
 * from which llhttp comes. Of the library only http_parse.c uses more than the maps of its header.
 */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_LIBRARY_H
#define CLAVE_RUNTIME_HTTP_HTTP_LIBRARY_H

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

#endif
