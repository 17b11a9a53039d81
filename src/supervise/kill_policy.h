/* kill_policy.h - how long a command under a hold may run: its guardian warns it (SIGTERM) in time
 * and ends it (SIGKILL) before the hold may be another process's, whatever has happened to the
 * holder. What the guardian sees goes in, what it is to do comes out;
 * src/cmd/run/guardian/guardian.c is the process.
 *
 *          run          TERM            KILL
 *   IDLE ──────▶ RUNNING ────▶ ENDING ────────▶ KILLING
 *    │              │ by itself   │ nothing left   │ (again and again)
 *    │              └─────────────┴────────────────┴──▶ ENDED
 *    └─ the holder is dead ─────────────────────────────▲
 *
 * RUNNING becomes ENDING when the deadline less the grace has come, at the end of the maximum hold,
 * at the holder's word (lost), at the second SIGTERM, when the holder has died or the process that
 * it is to end with, or when the command has ended and left others behind; ENDING becomes KILLING
 * after the grace, and a moment before the deadline at the latest. */
#ifndef CLAVE_SUPERVISE_KILL_POLICY_H
#define CLAVE_SUPERVISE_KILL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* What becomes of the command when its lock is lost or about to be. */
enum on_lost {
    ON_LOST_TERM,   /* SIGTERM in time, then SIGKILL */
    ON_LOST_KILL,   /* SIGKILL */
    ON_LOST_IGNORE, /* nothing: it looks after itself, by tokens or guarded writes */
};

enum kill_policy_cause {
    CAUSE_NONE,     /* it ended by itself */
    CAUSE_DEADLINE, /* the servers had not confirmed the session for too long */
    CAUSE_LOST,     /* the holder said so */
    CAUSE_MAX_HOLD,
    CAUSE_KILLED, /* the runner has died */
    CAUSE_SIGNAL, /* somebody has sent SIGTERM a second time */
    CAUSE_PARENT, /* the process that the holder is to end with has ended */
};

struct kill_policy_terms {
    enum on_lost on_lost;
    int64_t grace_ms; /* from SIGTERM to SIGKILL */
    int64_t lead_ms;  /* SIGKILL so long before the end of the hold */
    int64_t until;    /* end of the maximum hold: then SIGTERM; CLAVE_NEVER */
};

/* By the session timeout as the server granted it. A quarter of it at most: with heartbeats on
 * time the deadline comes no nearer than that, so the command is never warned for nothing.
 * `wish` negative: none. */
int64_t clave__kill_policy_grace(int64_t timeout_ms, int64_t wish);
int64_t clave__kill_policy_lead(int64_t timeout_ms);

enum kill_policy_phase {
    KILL_POLICY_IDLE,
    KILL_POLICY_RUNNING,
    KILL_POLICY_ENDING,
    KILL_POLICY_KILLING,
    KILL_POLICY_ENDED
};
/* The longest time between two attempts to kill what cannot be killed. */
enum { KILL_POLICY_SLOWEST_MS = 1000 };
enum { KILL_POLICY_NO_DEADLINE = 0 }; /* not held, or not any more */

struct kill_policy {
    enum kill_policy_phase phase;
    enum kill_policy_cause cause;
    struct kill_policy_terms terms;
    int64_t deadline; /* the newest that was one */
    int64_t kill_at;  /* ENDING */
    int64_t again_ms; /* KILLING: until the next attempt */
    bool asked;       /* somebody has sent the holder SIGTERM, */
    int64_t asked_at; /* first then, */
    bool insisted;    /* and again */
};

/* As it is now. */
struct kill_policy_sight {
    int64_t deadline;  /* as the holder says; KILL_POLICY_NO_DEADLINE */
    bool told_to_stop; /* by the holder */
    bool alone;        /* the holder is dead */
    bool parent_ended; /* the process that it is to end with has ended */
    bool reaped;       /* the command itself has ended */
    bool nothing_left; /* nor has anything that it started been left */
};

/* What there is to do, in this order. */
enum {
    KILL_POLICY_TELL = 1, /* the holder, that it is being ended */
    KILL_POLICY_TERM = 2,
    KILL_POLICY_KILL = 4,
    KILL_POLICY_TELL_END = 8, /* nothing of it is alive */
};

/* The command is to be started. False: it is too late for that, and it has ENDED. */
bool clave__kill_policy_run(struct kill_policy *p, const struct kill_policy_terms *terms,
                            int64_t deadline, int64_t now);
/* Somebody has sent SIGTERM, which is passed on to the command. The first time that is all: how
 * long it takes is the command's own affair. True: this is the second time, and the command is
 * being ended; the grace counts from the first. */
bool clave__kill_policy_ask(struct kill_policy *p, int64_t now);
/* KILL has been carried out. `stuck`: all that is left of the command is beyond it. */
void clave__kill_policy_killed(struct kill_policy *p, bool stuck);
/* How long to wait before the next attempt, when the last one came after `last_ms` (0: the first):
 * ever longer while nothing can be ended. */
int64_t clave__kill_policy_pace(int64_t last_ms, bool stuck);
/* It could not be started. */
void clave__kill_policy_refused(struct kill_policy *p);
/* Something has happened, or it is time to look. */
unsigned clave__kill_policy_step(struct kill_policy *p, const struct kill_policy_sight *s,
                                 int64_t now);
/* When to act next; CLAVE_NEVER: not yet known. The deadline moves: ask again after every sleep. */
int64_t clave__kill_policy_wake_at(struct kill_policy *p, int64_t deadline, int64_t now);

#endif
