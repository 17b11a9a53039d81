/* world.h - one seed's world: true time in microseconds, what is due, random numbers, the log of
 * what happened, and the verdict. Everything else in test/sim is built on it, and nothing
 * here knows what a lock is. */
#ifndef CLAVE_SIM_WORLD_H
#define CLAVE_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rand.h"

#define MS ((int64_t)1000)
#define SECOND (1000 * MS)

/* Something that is due once. Alarms of one moment fire in the order they were set. */
struct alarm {
    int64_t at;
    uint64_t seq;
    size_t slot; /* in the heap, from 1; 0: idle */
    void (*fire)(struct alarm *a);
};

enum { LOG_LINES = 160, LOG_TEXT = 112, LOG_WHO = 32 };

struct log_line {
    int64_t at;
    char who[LOG_WHO];
    char text[LOG_TEXT];
};

struct world {
    uint64_t seed;
    int64_t now;
    struct rand_state rand;
    int64_t drift_ppm;      /* clocks are off by up to so much */
    struct rand_state *rng; /* whose turn it is; of the world itself unless somebody has his own */
    struct alarm **heap;    /* from 1 */
    size_t nheap;
    size_t heap_cap;
    uint64_t seq;
    uint64_t steps;
    uint64_t steps_at_now; /* alarms that rang without time passing */

    uint64_t trace; /* hash over every line of the log and every byte carried */
    struct log_line log[LOG_LINES];
    size_t nlog; /* ever written */
    bool aloud;  /* each line goes to stdout */
    void (*listener)(void *arg, const struct log_line *l);
    void *listener_arg;

    const char *broken; /* the invariant; NULL: none */
    char why[256];
};

void world_init(struct world *w, uint64_t seed);
void world_fini(struct world *w);

/* ---- time ---------------------------------------------------------------------------- */

/* Re-arms when it is set already. A time that has passed is now. */
void world_set(struct world *w, struct alarm *a, int64_t at);
void world_set_earlier(struct world *w, struct alarm *a, int64_t at);
void world_clear(struct world *w, struct alarm *a);
static inline bool alarm_is_set(const struct alarm *a)
{
    return a->slot != 0;
}
/* Fires the next alarm that is due before `end`; false: there is none, and it is `end`
 * now. An invariant of its own: time must go on. */
bool world_step(struct world *w, int64_t end);

/* A machine's clock: true time, off by a little for ever, from somewhere else. */
struct clock {
    int64_t offset_us;
    int64_t ppm;
};
struct clock world_clock(struct world *w);
int64_t clock_ms(const struct clock *c, int64_t now);
/* The first true moment at which the clock shows `ms`; INT64_MAX stays. */
int64_t clock_when(const struct clock *c, int64_t ms);

/* ---- random numbers ------------------------------------------------------------------ */

/* A part of the world with a generator of its own draws the same, whatever happens to the others.
 * Returns the generator used before, to be restored. */
struct rand_state *world_use_rng(struct world *w, struct rand_state *rng);
/* In [lo, hi]. */
int64_t world_between(struct world *w, int64_t lo, int64_t hi);
bool world_chance(struct world *w, unsigned permille);
/* Mostly short, now and then several times the mean. */
int64_t world_wait(struct world *w, int64_t mean);
uint64_t world_u64(struct world *w);

/* ---- the log ------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) void world_log(struct world *w, const char *who,
                                                     const char *fmt, ...);
/* Only for the listener: neither kept nor hashed. */
void world_log_unhashed(const struct world *w, const char *who, const char *text);
void world_hash(struct world *w, const void *p, size_t n);
void world_hash_u64(struct world *w, uint64_t v);
/* The last `n` lines, into stdout. */
void world_print_log(const struct world *w, size_t n);
/* The first one is kept. */
__attribute__((format(printf, 3, 4))) void world_break(struct world *w, const char *invariant,
                                                       const char *fmt, ...);

/* As assert, but also in a build without asserts: a fault of the world itself. */
void world_must(bool fine);
/* malloc and realloc that cannot fail. */
void *world_alloc(size_t size);
void *world_grow(void *p, size_t size);

#endif
