/* head_checks.h - what is checked of the head of every request before anything of its body is read:
 * sizes, framing, target, host, route, origin, sender and role, arguments, room for its body; in
 * this order. */
#ifndef CLAVE_WEB_HTTP_HEAD_CHECKS_H
#define CLAVE_WEB_HTTP_HEAD_CHECKS_H

#include "web/http/exchange.h"

/* Sets target, route, params and who. false: it has answered with what is wrong. */
bool clave__web_admit(struct web_exchange *x);

/* The access has changed. false: who sent it may not do so any more. */
bool clave__web_admit_again(struct web_exchange *x);
/* As of the last of these. What acts in several steps asks before each: what is under way was not
 * called off. */
bool clave__web_may_still(const struct web_exchange *x);
/* Answers 401 or 403, after that. */
void clave__web_refuse_now(struct web_exchange *x);

#endif
