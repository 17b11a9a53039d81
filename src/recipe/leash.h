/* leash.h - how long a command may run that runs under a hold: its guardian warns it (SIGTERM) in
 * time and ends it (SIGKILL) before the hold may be somebody else's, whatever has become of the
 * holder. What the guardian sees goes in, what it has to do comes out; src/cmd/guardian.c is the
 * process.
 *
 *          run          TERM            KILL
 *   IDLE ──────▶ RUNNING ────▶ ENDING ────────▶ KILLING
 *    │              │ by itself   │ nothing left   │ (again and again)
 *    │              └─────────────┴────────────────┴──▶ ENDED
 *    └─ the holder is dead ─────────────────────────────▲
 *
 * RUNNING becomes ENDING when the deadline less the grace has come, at the end of the maximum hold,
 * at the holder's word (lost), at the second SIGTERM, when the holder has died, or when the command
 * has ended and left others behind; ENDING becomes KILLING after the grace, and a moment before the
 * deadline at the latest. */
#ifndef CLAVE_RECIPE_LEASH_H
#define CLAVE_RECIPE_LEASH_H

#include <stdbool.h>
#include <stdint.h>

/* What becomes of the command when its lock is lost or about to be. */
enum on_lost {
    ON_LOST_TERM,   /* SIGTERM in time, then SIGKILL */
    ON_LOST_KILL,   /* SIGKILL */
    ON_LOST_IGNORE, /* nothing: it looks after itself, by tokens or guarded writes */
};

enum leash_cause {
    CAUSE_NONE,     /* it ended by itself */
    CAUSE_DEADLINE, /* the servers had not confirmed the session for too long */
    CAUSE_LOST,     /* the holder said so */
    CAUSE_MAX_HOLD,
    CAUSE_WRAPPER, /* the holder has died */
    CAUSE_SIGNAL,  /* somebody has sent SIGTERM a second time */
};

struct leash_terms {
    enum on_lost on_lost;
    int64_t grace_ms; /* from SIGTERM to SIGKILL */
    int64_t lead_ms;  /* SIGKILL so long before the end of the hold */
    int64_t until;    /* end of the maximum hold: then SIGTERM; CLAVE_NEVER */
};

/* By the session timeout as the server granted it. A quarter of it at most: with heartbeats on
 * time the deadline comes no nearer than that, so the command is never warned for nothing.
 * `wish` negative: none. */
int64_t clave__leash_grace(int64_t timeout_ms, int64_t wish);
int64_t clave__leash_lead(int64_t timeout_ms);

enum leash_phase { LEASH_IDLE, LEASH_RUNNING, LEASH_ENDING, LEASH_KILLING, LEASH_ENDED };
enum { LEASH_NO_DEADLINE = 0 }; /* not held, or not any more */

struct leash {
    enum leash_phase phase;
    enum leash_cause cause;
    struct leash_terms terms;
    int64_t deadline; /* the newest that was one */
    int64_t kill_at;  /* ENDING */
    bool asked;       /* somebody has sent the holder SIGTERM, */
    int64_t asked_at; /* first then, */
    bool insisted;    /* and again */
};

/* As it is now. */
struct leash_sight {
    int64_t deadline;  /* as the holder says; LEASH_NO_DEADLINE */
    bool told_to_stop; /* by the holder */
    bool alone;        /* the holder is dead */
    bool reaped;       /* the command itself has ended */
    bool nothing_left; /* nor has anything that it started been left */
};

/* What there is to do, in this order. */
enum {
    LEASH_TELL = 1, /* the holder, that it is being ended */
    LEASH_TERM = 2,
    LEASH_KILL = 4,
    LEASH_TELL_END = 8, /* nothing of it is alive */
};

/* The command is to be started. False: it is too late for that, and it has ENDED. */
bool clave__leash_run(struct leash *l, const struct leash_terms *terms, int64_t deadline,
                      int64_t now);
/* Somebody has sent SIGTERM, which is passed on to the command. The first time that is all: how
 * long it takes is the command's own affair. True: this is the second time, and the command is
 * being ended; the grace counts from the first. */
bool clave__leash_ask(struct leash *l, int64_t now);
/* It could not be started. */
void clave__leash_refused(struct leash *l);
/* Something has happened, or it is time to look. */
unsigned clave__leash_step(struct leash *l, const struct leash_sight *s, int64_t now);
/* When it is time; CLAVE_NEVER. The deadline moves: whoever sleeps until then asks again. */
int64_t clave__leash_wake_at(struct leash *l, int64_t deadline, int64_t now);

#endif
