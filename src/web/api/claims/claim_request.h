/* claim_request.h - what a request asks to claim: read from its body, and looked at before a claim
 * is made of it. A session has one place a path and owner; a semaphore has one limit; and no node
 * is made where the sender may not lock. */
#ifndef CLAVE_WEB_API_CLAIMS_CLAIM_REQUEST_H
#define CLAVE_WEB_API_CLAIMS_CLAIM_REQUEST_H

#include "web/api/session_request.h"

struct claim_request {
    struct claim_terms terms; /* `id` is `own` when there is one */
    int64_t ttl_ms;           /* of /v1/hold; 0: not given */
    bool keyed;               /* by an Idempotency-Key, whose claim's id is `own` */
    char own[CLAVE_UUID_TEXT + 1];
    bool proved;    /* what the session has here was proved */
    bool again;     /* it was begun a second time: see _begin_again */
    const char *at; /* what is looked at */
    void (*begin)(struct session_request *k);
    void *arg; /* the handler's */
};

/* From the body; the sender may lock there. NULL: it has answered. */
struct claim_request *clave__claim_request_read(struct web_exchange *x);
/* k->arg is the order. `begin` with k->claim the session's own claim that the order is for, or NULL
 * when there is none and nothing is in the way of one; at once or later. Otherwise it has answered.
 */
void clave__claim_request_look(struct session_request *k, void (*begin)(struct session_request *k));
/* It was tried, and the session itself holds it, by another gate: that claim is found. false: it
 * was begun again before. */
bool clave__claim_request_begin_again(struct session_request *k);
/* k->claim has news. true: the session has another place there; it has answered, or `begin` goes on
 * with that. */
bool clave__claim_request_is_excluded(struct session_request *k);

#endif
