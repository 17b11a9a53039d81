/* waiting.h - how many requests wait: long polls, and streams until they end. Each has a connection
 * as long as it waits, and those that hold a lock need connections too: for renewals and releases.
 * So all that wait together, and those of one sender, have a limit. */
#ifndef CLAVE_WEB_HTTP_WAITING_H
#define CLAVE_WEB_HTTP_WAITING_H

#include "web/http/exchange.h"

struct waiting;

/* Makes w->waiting. ENOMEM. */
clave_err clave__waiting_new(struct web *w);
void clave__waiting_free(struct web *w);

enum waiting_found {
    WAITING_COUNTS,
    WAITING_ALL_TAKEN,
    WAITING_SENDER_HAS_MOST,
    WAITING_NO_MEMORY
};
/* The request is about to wait, or to be answered by a stream; it COUNTS until it is over, or there
 * are *most already. Called by clave__web_may_wait. */
enum waiting_found clave__waiting_enter(struct web_exchange *x, size_t *most);
/* It is over. Harmless when it does not count. */
void clave__waiting_leave(struct web_exchange *x);
/* How many there are. */
size_t clave__waiting_count(const struct web *w);

#endif
