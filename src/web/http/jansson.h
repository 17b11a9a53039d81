/* jansson.h - the functions of jansson that parse bodies, as a table: the program loads the library
 * when it serves HTTP (src/runtime), tests and the simulated world link it. This layer uses the
 * library's types, and of its functions only those of the table. */
#ifndef CLAVE_WEB_HTTP_JANSSON_H
#define CLAVE_WEB_HTTP_JANSSON_H

#include <jansson.h>

#define JANSSON_FUNCTIONS(X)                                                                       \
    X(json_loadb)                                                                                  \
    X(json_delete)                                                                                 \
    X(json_object_get)                                                                             \
    X(json_object_iter)                                                                            \
    X(json_object_iter_next)                                                                       \
    X(json_object_iter_key)                                                                        \
    X(json_object_iter_value)                                                                      \
    X(json_array_size)                                                                             \
    X(json_array_get)                                                                              \
    X(json_string_value)                                                                           \
    X(json_string_length)                                                                          \
    X(json_integer_value)

struct jansson {
#define JANSSON_MEMBER(name) __typeof__(name) *name;
    JANSSON_FUNCTIONS(JANSSON_MEMBER)
#undef JANSSON_MEMBER
};

/* The table of a program that links the library: struct jansson x = {JANSSON_LINKED}. */
#define JANSSON_LINKED_MEMBER(name) .name = name,
#define JANSSON_LINKED JANSSON_FUNCTIONS(JANSSON_LINKED_MEMBER)

#endif
