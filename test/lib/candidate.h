/* candidate.h - one candidate in a paired world, and all it was told. */
#ifndef CLAVE_TEST_CANDIDATE_H
#define CLAVE_TEST_CANDIDATE_H

#include "clave/async/plain_layouts.h"
#include "lib/memnet.h"

enum { STAND_NEWS = 64 };

struct stand {
    struct pair *p;
    size_t client;
    clave_async_latch *l;
    /* Events, by kind, and in order: "L" leader, "n" not, "q" queued, "x" next, "a" asked, "f"
     * failed. */
    unsigned queued, next, leader, not_leader, asked, failed;
    clave_err why;
    size_t ahead;
    char news[STAND_NEWS];
    /* Awaits. */
    unsigned answers;
    clave_err err;
    /* The close's callback. */
    unsigned departures;
    clave_err left;
    /* A guarded write's result. */
    unsigned writes;
    clave_err written;
};

/* A latch; options may be NULL; the event callback is the stand's. */
clave_err stand_open(struct stand *s, struct pair *p, size_t client, const char *path,
                     const clave_latch_options *o);
/* The same, started and settled. */
void stand_up(struct stand *s, struct pair *p, size_t client, const char *path,
              const clave_latch_options *o);
/* Of clave/async/plain_layouts.h: a fair one; with no prefix an unfair one, of the node `path`. */
clave_err stand_open_elementary(struct stand *s, struct pair *p, size_t client, const char *path,
                                const char *prefix, const clave_latch_options *o);
/* Frees it, and settles. */
void stand_close(struct stand *s);
void stand_start(struct stand *s);
void stand_resign(struct stand *s);
/* Settles; `within_ms` negative: for ever. */
void stand_await(struct stand *s, int64_t within_ms);
/* Closes with the callback; settles. */
void stand_quit(struct stand *s, clave_latch_close_mode mode);
clave_err stand_write(struct stand *s, const char *path, const char *text);

/* Now. */
bool stand_leads(const struct stand *s);
clave_grant stand_grant(const struct stand *s);
/* What was told since the last call: "q", "qxL", ... */
bool stand_heard(struct stand *s, const char *news);
/* How many of them lead, by their own account. */
size_t stand_leaders(const struct stand *s, size_t n);

#endif
