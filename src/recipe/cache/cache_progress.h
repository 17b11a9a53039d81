/* cache_progress.h - what code that keeps a model beside a clave_async_cache needs beyond the
 * public calls: how far the cache has come, and the beginning of data that is too long to keep. */
#ifndef CLAVE_RECIPE_CACHE_CACHE_PROGRESS_H
#define CLAVE_RECIPE_CACHE_CACHE_PROGRESS_H

#include "clave/async/cache.h"

/* The zxid of the newest answer: everything deleted up to it has been reported; nodes created up to
 * it may still have to be read. */
int64_t clave__cache_answered_zxid(const clave_async_cache *cache);
/* A time, by the client's clock. Every change that the server of this connection had announced
 * before then is in the cache. It advances with every answer that the client gets, whoever asked. A
 * member of an ensemble may additionally lag behind its leader. INT64_MIN: unknown. */
int64_t clave__cache_as_of(const clave_async_cache *cache);

/* True if the node at this path may be another one than the cache has: it, or a node above it, is
 * about to be read. What the server has announced is in the cache otherwise. */
bool clave__cache_awaits(const clave_async_cache *cache, const char *path);

/* True if, for the node at this path, the beginning of data longer than max_data should be kept. */
typedef bool clave_cache_cuts_cb(const char *path);
/* Call it right after _new: for these nodes, data that is too long is cut instead of left out. Its
 * full length is in the Stat. */
void clave__cache_cut(clave_async_cache *cache, clave_cache_cuts_cb *cuts);

#endif
