/* fair_reading.h - bounds how much a turn of the loop reads in total (about two milliseconds'
 * work), and shares it between connections. A connection for which nothing is left is declined, and
 * is read first in a later turn. */
#ifndef CLAVE_RUNTIME_SERVER_FAIR_READING_H
#define CLAVE_RUNTIME_SERVER_FAIR_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct fair_reading {
    struct list declined;  /* readers with input that have to wait, oldest first */
    struct list had_some;  /* the same, but for readers that were read in the turn that declined
                              them; they come after the others */
    uint64_t turn;         /* number of the turn, from 1 */
    size_t overdue;        /* how many declined readers this turn has to read first */
    size_t read;           /* read in this turn so far: bytes, plus a fixed cost for each read */
    uint64_t taken_before; /* requests that the engine had taken before this turn */
};

/* A connection's part. */
struct fair_reader {
    struct list in_declined;
    uint64_t read_in; /* the last turn in which it was read */
    bool had_some;    /* it was read in the turn that declined it, so it may have no more to read */
    bool is_overdue;  /* it was declined, and this turn has not read it yet */
};

void clave__fair_reading_init(struct fair_reading *f);
void clave__fair_reader_init(struct fair_reader *c);

/* How many bytes the connection may read now; 0: it is declined. `taken` is the number of requests
 * that the engine has taken since the start. */
size_t clave__fair_reading_share(struct fair_reading *f, struct fair_reader *c, uint64_t taken);
/* Counts n bytes that were read. */
void clave__fair_reading_count(struct fair_reading *f, size_t n);
/* True if the connection is not read until a later turn calls `resume` for it. */
bool clave__fair_reader_is_declined(const struct fair_reader *c);
/* The connection does not want to read now, so others need not wait for it. */
void clave__fair_reading_pass(struct fair_reading *f, struct fair_reader *c);
/* The connection closes. */
void clave__fair_reading_leave(struct fair_reading *f, struct fair_reader *c);

/* Begins a turn: calls `resume` for some of the connections that were declined, which may be read
 * again. */
void clave__fair_reading_begin_turn(struct fair_reading *f, uint64_t taken,
                                    void (*resume)(struct fair_reader *c));
/* True if declined connections are still waiting. */
bool clave__fair_reading_has_more(const struct fair_reading *f);

#endif
