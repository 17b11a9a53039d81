/* cache_mirror.h - a listener of a cache that rebuilds the cache's content from the events alone,
 * and finds fault with an event that cannot follow those before: a node told twice, or before its
 * parent, or after its end. For unit tests and for the simulated world. */
#ifndef CLAVE_TEST_CACHE_MIRROR_H
#define CLAVE_TEST_CACHE_MIRROR_H

#include "clave/async/cache.h"

struct mirror_node {
    char *path;
    clave_stat stat;
    char *data;
    size_t len;
    bool has_data;
};

struct cache_mirror {
    struct mirror_node *nodes;
    size_t count, cap;
    unsigned created, changed, deleted, initialized, stale, resynced, full, ended;
    clave_err why;    /* ended */
    bool partial;     /* CHANGED may only bring data that did not fit before */
    bool goes_back;   /* the server's tree may: its backup is restored */
    char fault[256];  /* the first; "" */
    char story[4096]; /* "+/a=x ~/a=y -/a initialized stale resynced full ended " */
    size_t nstory;
};

void cache_mirror_init(struct cache_mirror *m);
void cache_mirror_fini(struct cache_mirror *m);
/* A clave_async_cache_cb; `arg` is the mirror. */
void cache_mirror_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg);
/* NULL: there is none. */
const struct mirror_node *cache_mirror_find(const struct cache_mirror *m, const char *path);
/* What the cache answers differs from what its events said; the fault says how. */
bool cache_mirror_differs(struct cache_mirror *m, const clave_async_cache *cache);

#endif
