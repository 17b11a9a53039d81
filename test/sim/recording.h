/* recording.h - what one run leaves for its timeline: every line of the log,
 * what each client, lock and server was at which time, what was lost, and the plan of faults. */
#ifndef CLAVE_SIM_RECORDING_H
#define CLAVE_SIM_RECORDING_H

#include "world.h"

enum { RECORDING_LANES = 64, RECORDING_LABEL = 40, RECORDING_TITLE = 200 };

struct recording_line {
    int64_t at;
    char who[LOG_WHO];
    char text[LOG_TEXT];
};

enum recording_kind {
    RECORDING_NOTHING,
    RECORDING_CONNECTED,
    RECORDING_SUSPENDED,
    RECORDING_NO_SESSION,
    RECORDING_PAUSED,
    RECORDING_DOWN,
    RECORDING_VALID,    /* a hold */
    RECORDING_BELIEVED, /* one that its holder would be told is over */
    RECORDING_SERVES,
    RECORDING_LEADS,
    RECORDING_CUT,
    RECORDING_DEPOSED,
};

struct recording_span {
    unsigned lane;
    enum recording_kind kind;
    int64_t from, to;
    char label[RECORDING_LABEL];
};

/* Bytes of a lane's client that never arrived. */
struct recording_loss {
    unsigned lane;
    int64_t at;
};

struct recording_lane {
    char name[LOG_WHO];
    struct recording_span now; /* open; of kind NOTHING it is not drawn */
    uint64_t lost;             /* bytes so far */
};

/* A fault of the plan. */
struct recording_fault {
    int64_t at;
    unsigned number;
    const char *name;
    bool happened;
};

struct recording {
    uint64_t seed;
    char settings[RECORDING_TITLE];
    int64_t timeout_us;
    const char *broken; /* NULL: nothing */
    char why[256];
    int64_t end;
    struct recording_line *lines;
    size_t nlines, lines_cap;
    struct recording_lane lanes[RECORDING_LANES];
    unsigned nlanes;
    struct recording_span *spans;
    size_t nspans, spans_cap;
    struct recording_loss *losses;
    size_t nlosses, losses_cap;
    struct recording_fault *planned;
    size_t nplanned;
};

void recording_init(struct recording *r, uint64_t seed);
void recording_fini(struct recording *r);
/* Becomes the world's listener. */
void recording_listen(struct recording *r, struct world *w);

unsigned recording_add_lane(struct recording *r, const char *name);
/* What the lane is from `at` on. */
void recording_is(struct recording *r, unsigned lane, int64_t at, enum recording_kind kind,
                  const char *label);
/* So many bytes of it are lost so far. */
void recording_lost(struct recording *r, unsigned lane, int64_t at, uint64_t bytes);
void recording_end(struct recording *r, const struct world *w);

/* From when on it is worth looking: a while before the first fault that struck, or before the
 * end when there was none. */
int64_t recording_begin(const struct recording *r);

#endif
