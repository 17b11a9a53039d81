/* cache_progress.h - how far a clave_async_cache has come, for those that keep a model beside it:
 * what they need beyond the public calls. */
#ifndef CLAVE_RECIPE_CACHE_CACHE_PROGRESS_H
#define CLAVE_RECIPE_CACHE_CACHE_PROGRESS_H

#include "clave/async/cache.h"

/* The zxid of the newest answer: what was deleted up to it has been told; nodes that were made may
 * still be read. */
int64_t clave__cache_answered_zxid(const clave_async_cache *cache);

#endif
