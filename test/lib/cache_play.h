/* cache_play.h - a cache of one client, changes by another, and what is told; on memnet.h. Each
 * timeline is played twice: on a persistent watch, and on a watch for each node as with a server
 * before 3.6. */
#ifndef CLAVE_TEST_CACHE_PLAY_H
#define CLAVE_TEST_CACHE_PLAY_H

#include "clave/async/cache.h"
#include "lib/cache_mirror.h"
#include "lib/memnet.h"
#include "lib/unit.h"

enum { PLAY_TIMEOUT = 6000, ACTOR = 0, USER = 1 };

struct play {
    struct memnet *p;
    clave_async_cache *cache;
    struct cache_mirror m;
    bool each; /* a watch for each node */
};

/* TEST_BOTH(name) { ... } is a test that is played both ways: `each` says which. */
#define TEST_BOTH(name)                                                                            \
    static void name(bool each);                                                                   \
    TEST(name##_both)                                                                              \
    {                                                                                              \
        name(false);                                                                               \
        name(true);                                                                                \
    }                                                                                              \
    static void name(bool each)

/* The same, with `y` set up that way. */
#define TEST_PLAYED(name)                                                                          \
    static void name##_in(struct play *y);                                                         \
    TEST_BOTH(name)                                                                                \
    {                                                                                              \
        CLOSED_BY(play_end) struct play y;                                                         \
        play_init(&y, each);                                                                       \
        name##_in(&y);                                                                             \
    }                                                                                              \
    static void name##_in(struct play *y)

clave_cache_options play_options(void);
void play_init(struct play *y, bool each);
/* Makes the cache, which begins to load. `o` may be NULL. */
void play_begin(struct play *y, const char *path, const clave_cache_options *o);
/* And it has loaded. */
void play_open(struct play *y, const char *path, const clave_cache_options *o);
/* No event was wrong, and the cache answers as they said. */
void play_check(struct play *y);
/* Frees the cache; no watch is left. */
void play_end(struct play *y);
/* The other client's. Each settles. */
void play_create(struct play *y, const char *path);
void play_set(struct play *y, const char *path, const char *text);
void play_delete(struct play *y, const char *path);
void play_create_many(struct play *y, const char *dir, unsigned n);
/* What was told since the last time. */
void play_told(struct play *y, const char *story);
/* Of the tree at /t. */
void play_assert_equals_the_tree(struct play *y);

#endif
