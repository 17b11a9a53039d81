/* holder_policy.h - the holder's side of a command under a hold: how long the guardian may let it
 * run, and when the guardian is overdue, so that the holder has to end the command itself. Like
 * kill_policy.h it does nothing by itself; the process is src/cmd/run/child.c.
 *
 *               the guardian is dead, or overdue
 *   WATCHING ──────────────────────────────────────▶ SWEEPING */
#ifndef CLAVE_SUPERVISE_HOLDER_POLICY_H
#define CLAVE_SUPERVISE_HOLDER_POLICY_H

#include "supervise/kill_policy.h"

struct holder_policy {
    enum { HOLD_POLICY_WATCHING, HOLD_POLICY_SWEEPING } phase;
    struct kill_policy_terms terms;
    int64_t deadline; /* the newest one that the guardian was told */
    int64_t gone_by;  /* when the command of a lost hold must have ended; CLAVE_NEVER */
    int64_t ended_by; /* likewise of one that is held, but that the guardian was told to stop */
    bool lost;        /* the hold is lost; not set by the end of a maximum hold */
    bool overdue;     /* the guardian did not end the command in time */
    bool excused;     /* the guardian has said that it cannot end the command */
    bool watched;     /* a watchdog resets the machine if the guardian does not run */
};

void clave__holder_policy_begin(struct holder_policy *p, const struct kill_policy_terms *terms);
/* The hold has a new deadline, which the guardian will be told. Returns until when the command may
 * rely on the hold, which is no later than the end of its maximum. */
int64_t clave__holder_policy_extend(struct holder_policy *p, int64_t deadline);
/* The hold is lost: the guardian must be told to stop, and that there is no deadline. */
void clave__holder_policy_lose(struct holder_policy *p, int64_t now);
/* The command has to end although the hold is not lost: the guardian must be told to stop. */
void clave__holder_policy_end(struct holder_policy *p, int64_t now);
/* When to check on the guardian: a moment after it must have ended the command. */
int64_t clave__holder_policy_limit(const struct holder_policy *p);
/* Call it if the guardian has not reported the command's end. Returns true if it is overdue: then
 * kill the guardian first, and then whatever is left of the command. */
bool clave__holder_policy_is_overdue(struct holder_policy *p, int64_t now);
/* The same if the guardian is dead. */
void clave__holder_policy_bereave(struct holder_policy *p);
/* The guardian has tried to kill the command and says that it cannot, and neither could we. From
 * now on it is never overdue. */
void clave__holder_policy_excuse(struct holder_policy *p);
/* A watchdog is fed by the guardian. From now on the guardian is overdue only by the deadline, and
 * when the hold is lost, as killing one that merely takes its time would reset the machine. */
void clave__holder_policy_watch(struct holder_policy *p);
/* Nothing is left of the command. Returns true if it was ended because of its hold. */
bool clave__holder_policy_was_cut_short(const struct holder_policy *p,
                                        enum kill_policy_cause cause);

#endif
