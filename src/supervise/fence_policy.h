/* fence_policy.h - what becomes of a new holder whose predecessor's end is not known to have been
 * in order: before its command starts, a fence has to make sure that nothing of the predecessor can
 * act any more. Like kill_policy.h it does nothing by itself; src/cmd/run carries it out.
 *
 *   CLEAR ── owed ──▶ RUNNING ── succeeded ───────────────▶ CLEAR
 *                      ▲   │ ├── failed, FENCE_FAILS_PASS ──▶ │
 *                  due │   │ └── failed, FENCE_FAILS_EXIT ──▶ REFUSED
 *                    PAUSING ◀─ failed, FENCE_FAILS_WAIT
 *
 * While RUNNING or PAUSING the hold is kept, so that nobody else starts either. A hold that is lost
 * meanwhile ends all this: the mark of the predecessor stands, and the next holder fences it. */
#ifndef CLAVE_SUPERVISE_FENCE_POLICY_H
#define CLAVE_SUPERVISE_FENCE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* What to do when the fence fails. */
enum fence_fails {
    FENCE_FAILS_WAIT, /* keep the hold, and try again */
    FENCE_FAILS_PASS, /* start all the same */
    FENCE_FAILS_EXIT, /* give up the hold without starting */
};

enum fence_phase { FENCE_CLEAR, FENCE_RUNNING, FENCE_PAUSING, FENCE_REFUSED, FENCE_PHASES };

enum fence_event {
    FENCE_OWED,      /* a mark was found */
    FENCE_SUCCEEDED, /* the fence exited with 0 */
    FENCE_FAILED,    /* it exited with something else, was killed after its time, or could not be
                        started */
    FENCE_DUE,       /* the pause is over */
    FENCE_EVENTS
};

/* What to do next. */
enum fence_act {
    FENCE_RUN,
    FENCE_PAUSE, /* for pause_ms */
    FENCE_GO_ON, /* nothing is owed any more: write the mark, then start */
    FENCE_LEAVE, /* release the hold; the predecessor's mark stands */
};

enum { FENCE_PAUSE_FIRST_MS = 1000, FENCE_PAUSE_LAST_MS = 30000 };

struct fence_policy {
    enum fence_phase phase;
    enum fence_fails fails;
    int64_t pause_ms; /* before the next attempt; doubles with each */
};

void clave__fence_policy_init(struct fence_policy *p, enum fence_fails fails);
/* The only function that changes the phase. */
enum fence_act clave__fence_policy_step(struct fence_policy *p, enum fence_event event);
/* True if the command may start, as far as fences are concerned. */
bool clave__fence_policy_is_clear(const struct fence_policy *p);

#endif
