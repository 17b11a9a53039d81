/* kill_policy.h - how long a command may run under a hold. Its guardian warns it (SIGTERM) in good
 * time and ends it (SIGKILL) before the hold can become another process's, whatever has happened to
 * the holder. What the guardian sees goes in, and what it should do comes out; the process itself
 * is src/cmd/run/guardian/guardian.c.
 *
 *          run          TERM            KILL
 *   IDLE ──────▶ RUNNING ────▶ ENDING ────────▶ KILLING
 *    │              │ by itself   │ nothing left   │ (again and again)
 *    │              └─────────────┴────────────────┴──▶ ENDED
 *    └─ the holder is dead ─────────────────────────────▲
 *
 * RUNNING becomes ENDING one grace before the deadline, at the end of the maximum hold, when the
 * holder says that the hold is lost or the work unhealthy, at the second SIGTERM, when the holder
 * has died, when the process that the holder was told to end with has ended, or when the command
 * has ended but left other processes behind. ENDING becomes KILLING after the grace, or a moment
 * before the deadline if that is earlier. If a watchdog would reset the machine soon after the loss
 * of the hold (watchdog_policy.h), the grace after a loss is shorter. */
#ifndef CLAVE_SUPERVISE_KILL_POLICY_H
#define CLAVE_SUPERVISE_KILL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* What happens to the command when its lock is lost or about to be lost. */
enum on_lost {
    ON_LOST_TERM,   /* SIGTERM in time, then SIGKILL */
    ON_LOST_KILL,   /* SIGKILL */
    ON_LOST_IGNORE, /* nothing: it protects itself, by tokens or guarded writes */
};

enum kill_policy_cause {
    CAUSE_NONE,     /* it ended by itself */
    CAUSE_DEADLINE, /* the servers had not confirmed the session for too long */
    CAUSE_LOST,     /* the holder said that the hold is lost */
    CAUSE_MAX_HOLD,
    CAUSE_KILLED,    /* the holder has died */
    CAUSE_SIGNAL,    /* somebody sent SIGTERM a second time */
    CAUSE_PARENT,    /* the process that the holder was told to end with has ended */
    CAUSE_UNHEALTHY, /* the holder said that the work is (health_policy.h) */
};

struct kill_policy_terms {
    enum on_lost on_lost;
    int64_t grace_ms; /* from SIGTERM to SIGKILL */
    int64_t lead_ms;  /* SIGKILL is due this long before the end of the hold */
    int64_t until;    /* end of the maximum hold, at which SIGTERM is due; CLAVE_NEVER */
    /* SIGKILL is due so long after the hold was lost before its deadline; 0: no such limit */
    int64_t grace_lost_ms;
};

/* Grace and lead for a session timeout granted by the server. The grace is at most a quarter of the
 * timeout: as long as heartbeats are on time the deadline is always further away than that, so the
 * command is never warned needlessly. A negative `wish` means the default. */
int64_t clave__kill_policy_grace(int64_t timeout_ms, int64_t wish);
int64_t clave__kill_policy_lead(int64_t timeout_ms);

enum kill_policy_phase {
    KILL_POLICY_IDLE,
    KILL_POLICY_RUNNING,
    KILL_POLICY_ENDING,
    KILL_POLICY_KILLING,
    KILL_POLICY_ENDED
};
/* The longest time between two attempts to kill processes that cannot be killed. */
enum { KILL_POLICY_SLOWEST_MS = 1000 };
enum { KILL_POLICY_NO_DEADLINE = 0 }; /* not held, or no longer held */

struct kill_policy {
    enum kill_policy_phase phase;
    enum kill_policy_cause cause;
    struct kill_policy_terms terms;
    int64_t deadline; /* the newest one that was given */
    int64_t kill_at;  /* for ENDING */
    int64_t lost_by;  /* likewise, because the hold is lost; 0: it is not */
    int64_t again_ms; /* for KILLING: time until the next attempt */
    bool asked;       /* somebody has sent the holder SIGTERM: */
    int64_t asked_at; /* when that first happened */
    bool insisted;    /* it has happened again since */
};

/* What the guardian sees at the moment. */
struct kill_policy_sight {
    int64_t deadline;  /* according to the holder; KILL_POLICY_NO_DEADLINE */
    bool told_to_stop; /* by the holder */
    bool unhealthy;    /* and that is why; otherwise the hold is lost, or was asked for */
    bool alone;        /* the holder is dead */
    bool parent_ended; /* the process that the holder was told to end with has ended */
    bool reaped;       /* the command itself has ended */
    bool nothing_left; /* and nothing that it started is left either */
};

/* What the guardian should do, in this order. */
enum {
    KILL_POLICY_TELL = 1, /* tell the holder that the command is being ended */
    KILL_POLICY_TERM = 2,
    KILL_POLICY_KILL = 4,
    KILL_POLICY_TELL_END = 8, /* tell it that nothing of the command is alive */
};

/* The command is about to be started. Returns false if it is too late for that; the phase is then
 * ENDED. */
bool clave__kill_policy_run(struct kill_policy *p, const struct kill_policy_terms *terms,
                            int64_t deadline, int64_t now);
/* Somebody has sent SIGTERM, which is passed on to the command. The first time, that is all: how
 * long the command takes to react is its own affair. Returns true the second time: now the command
 * is being ended, and its grace counts from the first. */
bool clave__kill_policy_ask(struct kill_policy *p, int64_t now);
/* KILL was carried out. `stuck`: whatever is left of the command cannot be killed. */
void clave__kill_policy_killed(struct kill_policy *p, bool stuck);
/* How long to wait before the next attempt if the last one was made after `last_ms` (0: there was
 * none). Grows while nothing can be killed. */
int64_t clave__kill_policy_pace(int64_t last_ms, bool stuck);
/* The command could not be started. */
void clave__kill_policy_refused(struct kill_policy *p);
/* Call it when something has happened or is due. Returns what to do. */
unsigned clave__kill_policy_step(struct kill_policy *p, const struct kill_policy_sight *s,
                                 int64_t now);
/* When to call _step next; CLAVE_NEVER: not known yet. The deadline moves, so ask again after every
 * sleep. */
int64_t clave__kill_policy_wake_at(struct kill_policy *p, int64_t deadline, int64_t now);

#endif
