/* plural.h - the end of a noun after a number, in messages: "%zu session%s". */
#ifndef CLAVE_BASE_PLURAL_H
#define CLAVE_BASE_PLURAL_H

#include <stdint.h>

static inline const char *clave__plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
