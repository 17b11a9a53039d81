/* mutex_owner.h - one owner at a mutex in a paired world, and all it was told. */
#ifndef CLAVE_TEST_MUTEX_OWNER_H
#define CLAVE_TEST_MUTEX_OWNER_H

#include "clave/async/mutex.h"
#include "clave/async/plain_layouts.h"
#include "clave/async/rwlock.h"
#include "lib/memnet.h"

struct seat {
    struct pair *p;
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
    char predecessor[128];
    /* A guarded write's result. */
    unsigned writes;
    clave_err written;
};

/* A mutex of its own. Options may be NULL; the event callback is the seat's. */
clave_err seat_open(struct seat *s, struct pair *p, size_t client, const char *path,
                    const clave_mutex_options *o);
/* The same of clave/async/plain_layouts.h. */
clave_err seat_open_simple(struct seat *s, struct pair *p, size_t client, const char *path,
                           const char *prefix, const clave_mutex_options *o);
/* Another owner of the same mutex. No events. */
void seat_share(struct seat *s, struct seat *with, uint64_t owner);
void seat_close(struct seat *s);

/* One owner at both sides of a read-write lock of its own. */
struct seats {
    clave_async_rwlock *rw;
    struct seat read, write;
};
clave_err seats_open(struct seats *s, struct pair *p, size_t client, const char *path,
                     const clave_mutex_options *o);
/* Another owner at the same lock. No events. */
void seats_share(struct seats *s, struct seats *with, uint64_t owner);
void seats_close(struct seats *s);

/* Each settles. A relative deadline; SEAT_TRY; SEAT_EVER. */
enum { SEAT_TRY = -1, SEAT_EVER = -2 };
clave_err seat_acquire(struct seat *s, int64_t within_ms);
/* The same without letting anything happen. */
clave_err seat_ask(struct seat *s, int64_t within_ms);
clave_err seat_release(struct seat *s);
/* With a callback: this one, of a seat. */
clave_err seat_release_sure(struct seat *s);
void seat_departed(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg);
clave_err seat_write(struct seat *s, const char *path, const char *text);

bool seat_holds(const struct seat *s);
clave_grant seat_grant(const struct seat *s);

/* Children of `path` as this client sees them, at most `cap` names (may be NULL). */
size_t seat_list(struct pair *p, size_t client, const char *path, char names[][96], size_t cap);
/* Makes or removes a node, or writes to one, as a stranger to the recipe. */
clave_err seat_make(struct pair *p, size_t client, const char *path);
clave_err seat_remove(struct pair *p, size_t client, const char *path);
clave_err seat_scribble(struct pair *p, size_t client, const char *path, const char *text);

#endif
