/* recording.h - what one run leaves for those who look at it afterwards: every line that was told,
 * what each client, lock and server was at which time, what was lost, and the plan of faults. */
#ifndef CLAVE_SIM_RECORDING_H
#define CLAVE_SIM_RECORDING_H

#include "world.h"

enum { RECORD_LANES = 64, RECORD_LABEL = 40, RECORD_TITLE = 200 };

struct record_line {
    int64_t at;
    char who[STORY_WHO];
    char text[STORY_TEXT];
};

enum record_kind {
    RECORD_NOTHING,
    RECORD_CONNECTED,
    RECORD_SUSPENDED,
    RECORD_NO_SESSION,
    RECORD_PAUSED,
    RECORD_DOWN,
    RECORD_VALID,    /* a hold */
    RECORD_BELIEVED, /* one that its holder would be told is over */
    RECORD_SERVES,
    RECORD_LEADS,
    RECORD_CUT,
    RECORD_DEPOSED,
};

struct record_span {
    unsigned lane;
    enum record_kind kind;
    int64_t from, to;
    char label[RECORD_LABEL];
};

/* Bytes of a lane's client that never arrived. */
struct record_loss {
    unsigned lane;
    int64_t at;
};

struct record_lane {
    char name[STORY_WHO];
    struct record_span now; /* open; of kind NOTHING it is not drawn */
    uint64_t lost;          /* bytes so far */
};

/* A fault of the plan. */
struct record_strike {
    int64_t at;
    unsigned number;
    const char *name;
    bool struck;
};

struct record {
    uint64_t seed;
    char weather[RECORD_TITLE];
    int64_t timeout_us;
    const char *broken; /* NULL: nothing */
    char why[256];
    int64_t end;
    struct record_line *lines;
    size_t nlines, lines_cap;
    struct record_lane lanes[RECORD_LANES];
    unsigned nlanes;
    struct record_span *spans;
    size_t nspans, spans_cap;
    struct record_loss *losses;
    size_t nlosses, losses_cap;
    struct record_strike *strikes;
    size_t nstrikes;
};

void record_init(struct record *r, uint64_t seed);
void record_fini(struct record *r);
/* Becomes the world's listener. */
void record_listen(struct record *r, struct world *w);

unsigned record_add_lane(struct record *r, const char *name);
/* What the lane is from `at` on. */
void record_is(struct record *r, unsigned lane, int64_t at, enum record_kind kind,
               const char *label);
/* So many bytes of it are lost so far. */
void record_lost(struct record *r, unsigned lane, int64_t at, uint64_t bytes);
void record_end(struct record *r, const struct world *w);

/* From when on it is worth looking: a while before the first fault that struck, or before the
 * end when there was none. */
int64_t record_begin(const struct record *r);

#endif
