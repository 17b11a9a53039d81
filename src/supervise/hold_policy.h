/* hold_policy.h - the holder's side of a command under a hold: until when the guardian may let it
 * run, and when the guardian is overdue, so that the holder ends the command itself. Pure, as
 * kill_policy.h; src/cmd/run/child.c is the process.
 *
 *               the guardian is dead, or overdue
 *   WATCHING ──────────────────────────────────────▶ SWEEPING                                */
#ifndef CLAVE_SUPERVISE_HOLD_POLICY_H
#define CLAVE_SUPERVISE_HOLD_POLICY_H

#include "supervise/kill_policy.h"

struct hold_policy {
    enum { HOLD_POLICY_WATCHING, HOLD_POLICY_SWEEPING } phase;
    struct kill_policy_terms terms;
    int64_t deadline; /* the newest that the guardian was told */
    int64_t gone_by;  /* when the command of a lost lock must have ended; CLAVE_NEVER */
    bool lost;        /* the hold is; at the end of a maximum it is not */
    bool overdue;     /* the guardian was */
    bool excused;     /* the guardian has said that it cannot end the command */
};

void clave__hold_policy_begin(struct hold_policy *p, const struct kill_policy_terms *terms);
/* The hold has this deadline now, and the guardian is to go by it. Until when the command may
 * count on the hold: no longer than the maximum. */
int64_t clave__hold_policy_extend(struct hold_policy *p, int64_t deadline);
/* The hold is lost: the guardian is to be told to stop, and that there is no deadline. */
void clave__hold_policy_lose(struct hold_policy *p, int64_t now);
/* When the guardian must have ended the command, and a moment more: then it is time to look. */
int64_t clave__hold_policy_limit(const struct hold_policy *p);
/* The command has not ended by now, as far as the guardian has said. True: what is left of it is
 * to be killed from here, the guardian first. */
bool clave__hold_policy_is_overdue(struct hold_policy *p, int64_t now);
/* The same, because the guardian is dead. */
void clave__hold_policy_bereave(struct hold_policy *p);
/* The guardian has tried to kill the command and says that it cannot, nor could we: from now on it
 * is never overdue. */
void clave__hold_policy_excuse(struct hold_policy *p);
/* Nothing is left of the command: was it ended because the hold was? */
bool clave__hold_policy_was_cut_short(const struct hold_policy *p, enum kill_policy_cause cause);

#endif
