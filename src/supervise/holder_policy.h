/* holder_policy.h - the holder's side of a command under a hold: until when the guardian may let it
 * run, and when the guardian is overdue, so that the holder ends the command itself. Pure, as
 * kill_policy.h; src/cmd/run/child.c is the process.
 *
 *               the guardian is dead, or overdue
 *   WATCHING ──────────────────────────────────────▶ SWEEPING                                */
#ifndef CLAVE_SUPERVISE_HOLDER_POLICY_H
#define CLAVE_SUPERVISE_HOLDER_POLICY_H

#include "supervise/kill_policy.h"

struct holder_policy {
    enum { HOLD_POLICY_WATCHING, HOLD_POLICY_SWEEPING } phase;
    struct kill_policy_terms terms;
    int64_t deadline; /* the newest that the guardian was told */
    int64_t gone_by;  /* when the command of a lost lock must have ended; CLAVE_NEVER */
    bool lost;        /* the hold is; at the end of a maximum it is not */
    bool overdue;     /* the guardian was */
    bool excused;     /* the guardian has said that it cannot end the command */
};

void clave__holder_policy_begin(struct holder_policy *p, const struct kill_policy_terms *terms);
/* The hold has this deadline now, and the guardian is to go by it. Until when the command may
 * count on the hold: no longer than the maximum. */
int64_t clave__holder_policy_extend(struct holder_policy *p, int64_t deadline);
/* The hold is lost: the guardian is to be told to stop, and that there is no deadline. */
void clave__holder_policy_lose(struct holder_policy *p, int64_t now);
/* When the guardian must have ended the command, and a moment more: then it is time to look. */
int64_t clave__holder_policy_limit(const struct holder_policy *p);
/* The command has not ended by now, as far as the guardian has said. True: what is left of it is
 * to be killed from here, the guardian first. */
bool clave__holder_policy_is_overdue(struct holder_policy *p, int64_t now);
/* The same, because the guardian is dead. */
void clave__holder_policy_bereave(struct holder_policy *p);
/* The guardian has tried to kill the command and says that it cannot, nor could we: from now on it
 * is never overdue. */
void clave__holder_policy_excuse(struct holder_policy *p);
/* Nothing is left of the command: was it ended because the hold was? */
bool clave__holder_policy_was_cut_short(const struct holder_policy *p,
                                        enum kill_policy_cause cause);

#endif
