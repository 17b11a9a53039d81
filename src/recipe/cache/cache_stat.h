/* cache_stat.h - a Stat in as few bytes as it needs: about 25 for a node that was never written
 * again, instead of 80. */
#ifndef CLAVE_RECIPE_CACHE_CACHE_STAT_H
#define CLAVE_RECIPE_CACHE_CACHE_STAT_H

#include <stddef.h>
#include <stdint.h>

#include "clave/async/client.h"

enum { CACHE_STAT_MAX = 96 };

/* Returns how many bytes it is. */
size_t clave__cache_stat_put(uint8_t out[CACHE_STAT_MAX], const clave_stat *s);
clave_stat clave__cache_stat_get(const uint8_t *p);

#endif
