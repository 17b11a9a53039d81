/* candidate.h - one candidate of an election in a memnet, and all that its callbacks reported. */
#ifndef CLAVE_TEST_CANDIDATE_H
#define CLAVE_TEST_CANDIDATE_H

#include "clave/async/latch.h"
#include "lib/async_grants.h"
#include "lib/memnet.h"

enum { CANDIDATE_NEWS = 64 };

struct candidate {
    struct memnet *p;
    size_t client;
    clave_async_latch *l;
    /* Events, by kind, and in order: "L" leader, "n" not, "q" queued, "x" next, "a" asked, "f"
     * failed. */
    unsigned queued, next, leader, not_leader, asked, failed;
    clave_err why;
    size_t ahead;
    char news[CANDIDATE_NEWS];
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

/* A latch; options may be NULL; the event callback is set here. */
clave_err candidate_open(struct candidate *s, struct memnet *p, size_t client, const char *path,
                         const clave_latch_options *o);
/* The same, started and settled. */
void candidate_enter(struct candidate *s, struct memnet *p, size_t client, const char *path,
                     const clave_latch_options *o);
/* With the layout of a program written by hand: a fair one; with no prefix an unfair one, of the
 * node `path`. */
clave_err candidate_open_plain(struct candidate *s, struct memnet *p, size_t client,
                               const char *path, const char *prefix, const clave_latch_options *o);
/* Frees it, and settles. */
void candidate_close(struct candidate *s);
void candidate_start(struct candidate *s);
void candidate_resign(struct candidate *s);
/* Settles; `within_ms` negative: for ever. */
void candidate_await(struct candidate *s, int64_t within_ms);
/* Closes with the callback; settles. */
void candidate_leave(struct candidate *s, clave_latch_close_mode mode);
clave_err candidate_write(struct candidate *s, const char *path, const char *text);

/* Now. */
bool candidate_leads(const struct candidate *s);
struct grant_facts candidate_grant(const struct candidate *s);
/* What was reported since the last call: "q", "qxL", ... */
bool candidate_was_told(struct candidate *s, const char *news);
/* How many of them believe that they lead. */
size_t candidate_count_leaders(const struct candidate *s, size_t n);

#endif
