/* session_request.h - a request that names its session: what the endpoints of sessions and claims
 * have in common. The session's client is present from the request's arrival until its answer, or
 * until it hangs up. Invariant: after _done nothing of the session is touched for this request. */
#ifndef CLAVE_WEB_API_SESSION_REQUEST_H
#define CLAVE_WEB_API_SESSION_REQUEST_H

#include "web/http/exchange.h"
#include "web/session/claim.h"

struct session_request {
    struct web_exchange *x;
    struct http_session *s; /* NULL: done */
    struct session_wait wait;
    struct claim *claim; /* valid while `poll` waits; NULL: none */
    struct claim_poll poll;
    bool waits, polls; /* `wait`, `poll` is in use */
    bool told;         /* it has waited for news of the session's claims, and is answered now */
    bool closes;       /* the session is this request's alone, and is closed with it */
    void *arg;         /* the handler's */
    void (*settled)(struct session_request *k); /* all claims are known as they are now */
    int settle_part;
    const char *path, *tried; /* of a claim that was not granted, and its id, while its holder is
                               * asked for */
    /* The session is LIVE. */
    void (*live)(struct session_request *k);
    void (*informed)(struct session_request *k); /* and its claims are known; NULL: not asked */
    void (*hung_up)(struct session_request *k);  /* before the answer; NULL: nothing to do */
};

/* Finds the session by Clave-Session, attaches to it, and calls `live`, now or later. Otherwise it
 * has answered: 401 without the header, 403 for one that proves nothing or another session than
 * `id` (NULL: any), 410 when it has ended, 503. */
void clave__session_request(struct web_exchange *x, const char *id,
                            void (*live)(struct session_request *k));
/* The same, and `live` comes when all claims of the session are known here: those too that another
 * gate has made or given back (session/claim_elsewhere.c). */
void clave__session_request_informed(struct web_exchange *x, const char *id,
                                     void (*live)(struct session_request *k));
/* `settled` when it is known of every claim what it is now, or when a part of the ttl, 1 in so
 * many, has passed since the request arrived. What another gate was granted is held here when its
 * deadline is confirmed, which takes a relay interval. */
void clave__session_request_settle(struct session_request *k, int part,
                                   void (*settled)(struct session_request *k));
/* For a session that is being made: `s` was entered. */
struct session_request *clave__session_request_new(struct web_exchange *x, struct http_session *s);
/* Before the answer: the client is not present any more. */
void clave__session_request_done(struct session_request *k);
/* The session has ended, or was never there: answers. */
void clave__session_request_gone(struct session_request *k, clave_err why);
/* What calls off a wait when its client hangs up. */
void clave__session_request_await(struct session_request *k,
                                  void (*done)(struct session_wait *w, clave_err err));
static inline struct session_request *clave__session_request_of(struct session_wait *w)
{
    return LIST_ENTRY(w, struct session_request, wait);
}

#endif
