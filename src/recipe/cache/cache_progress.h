/* cache_progress.h - what keepers of a model beside a clave_async_cache need beyond the public
 * calls: how far it has come, and the beginnings of long data. */
#ifndef CLAVE_RECIPE_CACHE_CACHE_PROGRESS_H
#define CLAVE_RECIPE_CACHE_CACHE_PROGRESS_H

#include "clave/async/cache.h"

/* The zxid of the newest answer: what was deleted up to it has been told; nodes that were made may
 * still be read. */
int64_t clave__cache_answered_zxid(const clave_async_cache *cache);
/* Every change that the server of this connection had made known before this time, by the client's
 * clock, is in the cache; it moves on with each answer the client gets, to whomever. A member of an
 * ensemble may lag behind its leader by more. INT64_MIN: not known. */
int64_t clave__cache_as_of(const clave_async_cache *cache);

/* Of a node whose data is longer than max_data the beginning is kept. */
typedef bool clave_cache_cuts_cb(const char *path);
/* To be called at once after _new: data of these nodes that is too long is cut, not left out. Its
 * length is in the Stat. */
void clave__cache_cut(clave_async_cache *cache, clave_cache_cuts_cb *cuts);

#endif
