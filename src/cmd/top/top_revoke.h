/* top_revoke.h - a place of a queue is to be revoked or broken, from the screen of `clave top`:
 * asks whether it is meant, does what `clave locks revoke` and `clave locks break` do, and keeps
 * what they say. */
#ifndef CLAVE_CMD_TOP_TOP_REVOKE_H
#define CLAVE_CMD_TOP_TOP_REVOKE_H

#include "cmd/cli/cmd_options.h"
#include "cmd/top/top_feed.h"

struct top_revoke {
    bool open;   /* the question is, and waits for a key */
    bool breaks; /* delete the node; otherwise its owner is asked to release it */
    char *path, *node;
    char *said; /* the question, or what came of it; NULL: nothing. As others wrote it. */
};

/* Of a place in the queue of this lock, as of this view. */
void top_revoke_begin(struct top_revoke *a, const struct top_view *v, const struct top_lock *l,
                      const struct top_place *p, bool breaks);
/* 'y': it is done now, which takes up to the time limits of `o`. Any other key: it is not. */
void top_revoke_answer(struct top_revoke *a, struct options *o, int key);
/* Nothing is asked or said. */
void top_revoke_clear(struct top_revoke *a);

#endif
