/* options.h - how options structs are passed, which is the same for every call that takes one.
 *
 * Each begins with its own size, so that a program and a libclave of different ages understand each
 * other. Begin with the macro of the struct, which sets the size and leaves every other field at
 * its default, or name the size yourself:
 *
 *     clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
 *     o.mode = CLAVE_EPHEMERAL;
 *
 *     clave_create_options o = {.size = sizeof o, .mode = CLAVE_EPHEMERAL};
 *
 * What a call does with them:
 *
 *     NULL                the defaults: every field 0. EINVAL where a field has no default.
 *     size 0              EINVAL, since the options were not meant to be ignored
 *     a smaller size      the program was built with an older clave: the fields it does not have
 *                         get their defaults. EINVAL: less than a size_t
 *     a larger size       the program was built with a newer clave: accepted while all that this
 *                         one does not know is 0. Else EINVAL, since what was asked for cannot be
 *                         done; and EINVAL for more than 4096
 *
 * Where the object has an error text (clave_async_client_errmsg, clave_client_errmsg, the `fault`
 * of clave_tls_new) it says which of these it was. A call copies what it needs of the struct and
 * does not keep it. */
#ifndef CLAVE_OPTIONS_H
#define CLAVE_OPTIONS_H

#include <stddef.h>

/* What the _INIT macros expand to. In C an initializer; in C++17 an expression, so that no field is
 * reported as missing. */
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
