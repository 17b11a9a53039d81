/* supervisor.h - the holder's side of a command on a leash: until when the guardian may let it
 * run, and when the guardian is overdue and the holder ends the command itself. Pure, as leash.h;
 * src/cmd/holder.c is the process.
 *
 *               the guardian is dead, or overdue
 *   WATCHING ──────────────────────────────────────▶ SWEEPING                                */
#ifndef CLAVE_RECIPE_SUPERVISOR_H
#define CLAVE_RECIPE_SUPERVISOR_H

#include "recipe/leash.h"

struct supervisor {
    enum { SUPERVISOR_WATCHING, SUPERVISOR_SWEEPING } phase;
    struct leash_terms terms;
    int64_t deadline; /* the newest that the guardian was told */
    int64_t gone_by;  /* when the command of a lost lock must have ended; CLAVE_NEVER */
    bool lost;        /* the hold is; at the end of a maximum it is not */
    bool overdue;     /* the guardian was */
};

void clave__supervisor_begin(struct supervisor *s, const struct leash_terms *terms);
/* The hold has this deadline now, and the guardian is to go by it. Until when the command may
 * count on the hold: no longer than the maximum. */
int64_t clave__supervisor_extend(struct supervisor *s, int64_t deadline);
/* The hold is lost: the guardian is to be told to stop, and that there is no deadline. */
void clave__supervisor_lose(struct supervisor *s, int64_t now);
/* When the guardian must have ended the command, and a moment more: then it is time to look. */
int64_t clave__supervisor_limit(const struct supervisor *s);
/* The command has not ended by now, as far as the guardian has said. True: what is left of it is
 * to be killed from here, the guardian first. */
bool clave__supervisor_is_overdue(struct supervisor *s, int64_t now);
/* The same, because the guardian is dead. */
void clave__supervisor_bereave(struct supervisor *s);
/* Nothing is left of the command: was it ended because the hold was? */
bool clave__supervisor_was_cut_short(const struct supervisor *s, enum leash_cause cause);

#endif
