/* claim_rights.h - whom a claim was admitted for, and until when its client was told that it holds.
 * When roles change, each claim is judged again: one that waits ends; a hold is extended no more,
 * and its node goes when the last valid_ms that was told is over, not before. */
#ifndef CLAVE_WEB_SESSION_CLAIM_RIGHTS_H
#define CLAVE_WEB_SESSION_CLAIM_RIGHTS_H

#include "web/web.h"

struct claim;
struct http_sessions;

/* A request was about the claim, from a sender who may lock there, as its transport and its header
 * Authorization (or NULL) tell: the claim is judged by that from now on. ENOMEM: as before. */
clave_err clave__claim_admit(struct claim *c, const struct web_peer *peer,
                             const char *authorization);
/* clave__claim_valid_ms for an answer: the claim's node stays for so long. */
int64_t clave__claim_tell_valid(struct claim *c, int64_t arrived);
/* Another access holds from now on. */
void clave__claims_judge(struct http_sessions *ss);

#endif
