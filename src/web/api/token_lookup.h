/* token_lookup.h - finds the place at a lock's path whose fencing token is given, and whether it
 * holds, by a listing of the servers and not by the gate's copy.
 *
 * What holds by any listing held once, and holds until its node is gone: so a first listing may be
 * an old one, and the answer is proved by a check of the node in a transaction, which is the
 * caller's. That it does not hold is said only after a listing that follows a commit: neither a
 * member that lags nor a leader that was deposed can hide a grant then. */
#ifndef CLAVE_WEB_API_TOKEN_LOOKUP_H
#define CLAVE_WEB_API_TOKEN_LOOKUP_H

#include "web/http/exchange.h"

enum place_found {
    PLACE_HOLDS, /* or, asked for any: it is there */
    PLACE_WAITS, /* it is there, and does not hold */
    PLACE_GONE,
};
/* `node` is its path, valid as long as the exchange; NULL when it is gone. */
typedef void place_found_cb(struct web_exchange *x, clave_async_client *c, void *arg,
                            enum place_found found, const char *node);

struct place_question {
    const char *path; /* valid as long as the exchange */
    int64_t token;
    bool any; /* whether it holds does not matter */
    place_found_cb *done;
    void *arg;
};

/* Calls `done` later; or answers, now or later: then nothing was done. */
void clave__place_search(struct web_exchange *x, clave_async_client *c,
                         const struct place_question *q);

#endif
