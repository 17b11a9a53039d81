/* mutex_owner.h - one owner of a mutex in a memnet, and all that its callbacks reported. */
#ifndef CLAVE_TEST_MUTEX_OWNER_H
#define CLAVE_TEST_MUTEX_OWNER_H

#include "clave/async/mutex.h"
#include "clave/async/rwlock.h"
#include "lib/async_grants.h"
#include "lib/memnet.h"

struct mutex_owner {
    struct memnet *p;
    size_t client;
    uint64_t owner;
    clave_async_mutex *m;
    /* The acquire's callback: how often, and the last. */
    unsigned answers;
    clave_err err;
    /* The release's. */
    unsigned departures;
    clave_err left;
    /* Events. */
    unsigned queued, next, held, lost, asked;
    clave_err why;
    size_t ahead;
    char predecessor[128], left_over[128]; /* as told; "": NULL */
    /* A guarded write's result. */
    unsigned writes;
    clave_err written;
};

/* A mutex of its own. Options may be NULL; the event callback is set here. */
clave_err owner_open(struct mutex_owner *s, struct memnet *p, size_t client, const char *path,
                     const clave_mutex_options *o);
/* The same with simple_prefix. */
clave_err owner_open_simple(struct mutex_owner *s, struct memnet *p, size_t client,
                            const char *path, const char *prefix, const clave_mutex_options *o);
/* Another owner of the same mutex. No events. */
void owner_share(struct mutex_owner *s, struct mutex_owner *with, uint64_t owner);
void owner_close(struct mutex_owner *s);

/* One owner at both sides of a read-write lock of its own. */
struct rwlock_owner {
    clave_async_rwlock *rw;
    struct mutex_owner read, write;
};
clave_err rwlock_owner_open(struct rwlock_owner *s, struct memnet *p, size_t client,
                            const char *path, const clave_mutex_options *o);
/* Another owner at the same lock. No events. */
void rwlock_owner_share(struct rwlock_owner *s, struct rwlock_owner *with, uint64_t owner);
void rwlock_owner_close(struct rwlock_owner *s);

/* Each settles. A relative deadline; OWNER_TRY; OWNER_FOREVER. */
enum { OWNER_TRY = -1, OWNER_FOREVER = -2 };
clave_err owner_acquire(struct mutex_owner *s, int64_t within_ms);
/* The same, without settling. */
clave_err owner_begin_acquire(struct mutex_owner *s, int64_t within_ms);
clave_err owner_release(struct mutex_owner *s);
/* With a callback, which is owner_on_released. */
clave_err owner_release_confirmed(struct mutex_owner *s);
void owner_on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg);
clave_err owner_write(struct mutex_owner *s, const char *path, const char *text);

bool owner_holds(const struct mutex_owner *s);
struct grant_facts owner_grant(const struct mutex_owner *s);

/* No ephemeral node is left, and no watch. */
void memnet_assert_no_leftovers(struct memnet *p);
/* The same, then frees it: for CLOSED_BY of unit.h. */
void memnet_left_clean(struct memnet **p);
/* As TEST_NET, and nothing may be left at the end. */
#define TEST_CLEAN_NET(name, clients, timeout_ms)                                                  \
    MEMNET_TEST(name, clients, timeout_ms, memnet_left_clean)

/* Children of `path` as this client sees them, at most `cap` names (may be NULL). */
size_t memnet_list(struct memnet *p, size_t client, const char *path, char names[][96], size_t cap);
/* Creates, deletes or writes to a node, from outside the recipe. */
clave_err memnet_create(struct memnet *p, size_t client, const char *path);
clave_err memnet_delete(struct memnet *p, size_t client, const char *path);
clave_err memnet_set(struct memnet *p, size_t client, const char *path, const char *text);

#endif
