/* fair_reading.h - how much one turn of the loop reads, and of whom: some two milliseconds' work.
 * A connection that finds nothing left is declined, and is read first in a later turn. */
#ifndef CLAVE_RUNTIME_SERVER_FAIR_READING_H
#define CLAVE_RUNTIME_SERVER_FAIR_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct fair_reading {
    struct list declined;  /* readers with input that have to wait, the oldest first */
    struct list had_some;  /* likewise, but they have been read in their turn: they come after */
    uint64_t turn;         /* its number, from 1 */
    size_t overdue;        /* readers that were declined, which this turn reads first */
    size_t read;           /* in this turn: bytes, and something for each read */
    uint64_t taken_before; /* requests that the engine had taken before this turn */
};

/* A connection. */
struct fair_reader {
    struct list in_declined;
    uint64_t read_in; /* that turn, the last time */
    bool had_some;    /* of the turn that declined it: it may have no more to read */
    bool is_overdue;  /* it was declined, and this turn has not read it yet */
};

void clave__fair_reading_init(struct fair_reading *f);
void clave__fair_reader_init(struct fair_reader *c);

/* The bytes that it may read now; 0: it is declined. `taken` counts the requests that the engine
 * has taken, since the start. */
size_t clave__fair_reading_share(struct fair_reading *f, struct fair_reader *c, uint64_t taken);
/* So many bytes were read. */
void clave__fair_reading_count(struct fair_reading *f, size_t n);
/* It is not read before a later turn: `resume` says when. */
bool clave__fair_reader_is_declined(const struct fair_reader *c);
/* It does not want to read now: nobody waits for it. */
void clave__fair_reading_pass(struct fair_reading *f, struct fair_reader *c);
/* It closes. */
void clave__fair_reading_leave(struct fair_reading *f, struct fair_reader *c);

/* A turn begins: `resume` is called for some of those that were declined, and they are read
 * again. */
void clave__fair_reading_begin_turn(struct fair_reading *f, uint64_t taken,
                                    void (*resume)(struct fair_reader *c));
/* Some are still waiting. */
bool clave__fair_reading_has_more(const struct fair_reading *f);

#endif
