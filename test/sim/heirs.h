/* heirs.h - processes that want one lock, a side of one read-write lock, or one leadership, and
 * hand it over: the holder's session passes as a text to its next life, to two processes at a time,
 * to one that comes when the session has expired, or to nobody. They have random numbers and faults
 * of their own, so that the other clients of a seed do what they would do without them. */
#ifndef CLAVE_SIM_HEIRS_H
#define CLAVE_SIM_HEIRS_H

#include "checker.h"

enum { HEIRS = 4, HEIR_TEXTS = 96 };

enum heirs_kind { HEIRS_MUTEX, HEIRS_RWLOCK, HEIRS_ELECTION };

enum heir_state {
    HEIR_DONE, /* the process does not run, or the day is over */
    HEIR_RESTING,
    HEIR_WAITING,
    HEIR_HOLDING,
    HEIR_LEAVING, /* a confirmed release */
    HEIR_HANDING,
    HEIR_HANDED, /* the text is given out; the process is about to end */
};

/* A session that was handed over. */
struct heir_text {
    char *text;
    int64_t token;     /* of what was held */
    bool reads;        /* it was the read side */
    const char *taken; /* the process that holds by it, or did */
    unsigned life;
};

/* A session that a process has given up. */
struct heir_left {
    int64_t session;
    int64_t until; /* until when it is looked at */
    char name[24]; /* what a node of this process would say there */
};

struct heir {
    struct heirs *all;
    struct host host;
    enum heir_state state;
    struct alarm alarm; /* what next? */
    bool due;
    struct alarm restart;     /* ends the process, and then begins it anew */
    int64_t after_us;         /* between the two */
    struct heir_text *from;   /* what it was started with; NULL: nothing */
    struct heir_text *next;   /* what it is to be started with */
    clave_async_mutex *mutex; /* by the kind, one of these three */
    clave_async_rwlock *rw;
    clave_async_latch *latch;
    bool reads;               /* the side of `rw` that it asked for last */
    clave_async_mutex *side;  /* another lock */
    bool at_side;             /* it waits for that */
    char name[24];            /* what its node there says; "": it has asked for nothing yet */
    clave_async_grant *grant; /* of what it holds, or has handed over */
    bool believed;            /* from the grant to the release, the loss, or the text */
    unsigned calls_out;
};

struct heirs {
    struct world *w;
    struct checker *checker;
    size_t n; /* 0: there are none */
    struct heir of[HEIRS];
    struct rand_state rng;
    struct heir_text texts[HEIR_TEXTS];
    size_t ntexts;
    struct heir_left left; /* the newest */
    int64_t timeout_us;
    int64_t pace_us;
    int64_t fault_us; /* mean between two */
    int64_t max_hold_ms;
    enum heirs_kind kind;
    bool form;        /* their nodes say so in clave's form */
    bool plain;       /* or in words of their own */
    unsigned handing; /* permille of the ends of a hold */
    struct alarm fault;
    bool day_is_over;
    int64_t last_token, last_written; /* the newest, and the newest that is not a reader's */
    char last_node[PATH_SIZE];
};

/* Draws whether there are any; `options` of their hosts and their routes are those of `like`. */
void heirs_draw(struct heirs *s, struct checker *c, const struct host *like, int64_t timeout_us);
void heirs_start(struct heirs *s);
/* After every step. */
void heirs_look(struct heirs *s);
/* No more faults, and nothing new. */
void heirs_evening(struct heirs *s);
bool heirs_are_done(const struct heirs *s);
void heirs_put_away(struct heirs *s);
void heirs_close(struct heirs *s);
bool heirs_are_closed(const struct heirs *s);
void heirs_fini(struct heirs *s);

#endif
