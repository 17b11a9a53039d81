/* lock_long_poll.h - requests that wait until what is at a path changes: long polls for a lock or
 * an election. A request that is woken is handled again, and may wait again. */
#ifndef CLAVE_WEB_OBSERVE_LOCK_LONG_POLL_H
#define CLAVE_WEB_OBSERVE_LOCK_LONG_POLL_H

#include "web/observe/observe.h"

struct lock_long_poll {
    struct list link; /* of those at its path, or of those that are woken */
    struct lock_long_poll_path *at;
    struct web_exchange *x;
    struct timer timer;
};

/* Handles the exchange again when the path has changed, or at `until`; its `cancel` and `pending`
 * are the poll's meanwhile. Of memory that lasts as long as the exchange. false: no memory. */
bool clave__lock_long_poll_enter(struct lock_long_poll *p, struct web_exchange *x, const char *path,
                                 int64_t until);

/* What is at this path, or at any, may have changed: in the next turns those that wait for it are
 * handled again. */
void clave__lock_long_poll_changed(struct observe *o, const char *path);
void clave__lock_long_poll_all_changed(struct observe *o);
/* What observe.poll_turn fires. */
void clave__lock_long_poll_turn(struct timer *t, int64_t now);

#endif
