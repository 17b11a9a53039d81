/* notify_policy.h - judges a command by its messages of sd_notify(3): it has to be ready in time,
 * and from then on must not be silent for longer than its watchdog allows. Like kill_policy.h it
 * does nothing by itself: messages go in, and a verdict comes out. The messages are received by
 * src/cmd/run/command_notify.c.
 *
 *              READY (or, unless it has to say so, ALIVE)     STOPPING
 *   STARTING ─────────────────────────────────────▶ RUNNING ──────────▶ STOPPING
 *      │ not ready in time                             │ silent            │ silent
 *      └───────────────────────────────────────────────┴───────────────────┴──▶ OVER
 *
 * FAILED, with which a command gives itself up, leads to OVER from every phase. OVER is final: the
 * hold has to end, and a later message proves nothing about work that is being ended.
 *
 * Invariants: work that falls silent is OVER after one watchdog period or, if it never was ready,
 * when its time to become ready is up. Only signs of life, EXTEND_TIMEOUT_USEC and STOPPING move
 * that time; a status never does. */
#ifndef CLAVE_SUPERVISE_NOTIFY_POLICY_H
#define CLAVE_SUPERVISE_NOTIFY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum notify_phase { NOTIFY_STARTING, NOTIFY_RUNNING, NOTIFY_STOPPING, NOTIFY_OVER, NOTIFY_PHASES };

struct notify_terms {
    bool ready;          /* it is ready only when it says so */
    int64_t ready_ms;    /* how long the start may take, if `ready` or with a watchdog */
    int64_t watchdog_ms; /* the longest silence; 0: any */
};

/* The contents of one message. */
struct notify_said {
    bool ready, alive, stopping, failed;
    int64_t extend_ms; /* it needs this long from now on to start, or to stop; 0: it does not say */
};

struct notify_policy {
    enum notify_phase phase;
    struct notify_terms terms;
    bool ready;     /* it has said so */
    int64_t due_at; /* when to give it up; CLAVE_NEVER */
    /* Why it is OVER. */
    enum { NOTIFY_NOT_OVER, NOTIFY_NOT_READY, NOTIFY_SILENT, NOTIFY_FAILED } why;
};

/* The command is being started. */
void clave__notify_policy_begin(struct notify_policy *p, const struct notify_terms *terms,
                                int64_t now);
/* Call it before _step if both are due, so that a message that came in time is not missed because
 * this process was late. */
void clave__notify_policy_hear(struct notify_policy *p, const struct notify_said *said,
                               int64_t now);
/* Call it when something has happened or is due. */
void clave__notify_policy_step(struct notify_policy *p, int64_t now);
/* When to call _step next; CLAVE_NEVER. */
int64_t clave__notify_policy_wake_at(const struct notify_policy *p);

#endif
