/* options.h - how options structs are passed: one rule for every call that takes one.
 *
 * Each struct begins with its own size, so that a program and a libclave of different versions
 * understand each other. Start from the struct's macro, which sets the size and leaves every other
 * field at its default, or set the size yourself:
 *
 *     clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
 *     o.mode = CLAVE_EPHEMERAL;
 *
 *     clave_create_options o = {.size = sizeof o, .mode = CLAVE_EPHEMERAL};
 *
 * What a call does with it:
 *
 *     NULL                the defaults: every field 0. EINVAL where a field has no default.
 *     size 0              EINVAL: somebody meant to set options and forgot the size
 *     a smaller size      the program was built with an older clave: the fields it does not have
 *                         get their defaults. EINVAL when it is less than a size_t
 *     a larger size       the program was built with a newer clave: accepted when all bytes that
 *                         this clave does not know are 0; otherwise EINVAL, since it cannot do what
 *                         was asked for. EINVAL also for more than 4096 bytes
 *
 * The error text, where the object has one (clave_async_client_errmsg, clave_client_errmsg, the
 * `fault` of clave_tls_new), says which of these it was. A call copies what it needs from the
 * struct and does not keep a pointer to it. */
#ifndef CLAVE_OPTIONS_H
#define CLAVE_OPTIONS_H

#include <stddef.h>

/* What the _INIT macros expand to: in C an initializer, in C++17 an expression, so that the
 * compiler does not warn about missing fields. */
#ifdef __cplusplus
#define CLAVE_OPTIONS_INIT(type)                                                                   \
    ([] {                                                                                          \
        type clave_options_{};                                                                     \
        clave_options_.size = sizeof(type);                                                        \
        return clave_options_;                                                                     \
    }())
#else
#define CLAVE_OPTIONS_INIT(type)                                                                   \
    {                                                                                              \
        .size = sizeof(type)                                                                       \
    }
#endif

#endif
