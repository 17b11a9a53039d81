/* admission.h - whether a request may begin. Its head is checked before any of its body is read:
 * sizes, framing, target, host, route, origin, sender and role, arguments, room for its body; in
 * this order. Further on, whatever takes some of what all senders share (waiting, a session,
 * memory) is asked for here. Invariant: a request that is refused here has changed nothing. */
#ifndef CLAVE_WEB_HTTP_ADMISSION_H
#define CLAVE_WEB_HTTP_ADMISSION_H

#include "web/http/exchange.h"
#include "web/http/sender.h"

/* Sets target, route, params and who. false: it has answered with what is wrong. */
bool clave__web_admit(struct web_exchange *x);

/* The access has changed. false: who sent it may not do so any more. */
bool clave__web_admit_again(struct web_exchange *x);
/* As of the last of these. What acts in several steps asks before each: what is under way was not
 * called off. */
bool clave__web_may_still(const struct web_exchange *x);
/* Answers 401 or 403, after that. */
void clave__web_refuse_now(struct web_exchange *x);

/* ==== limits ================================================================================== */

/* A request is refused before it begins, when its sender or all together
 * have enough of what all share. Invariant: a request that is refused here has changed nothing. */

/* The longest that a request waits for news, whatever its `Prefer: wait` says, in milliseconds. */
enum { LONGEST_POLL_MS = 300000 };

/* The request is about to wait, or to be answered by a stream. false: too many do, and it has
 * answered 429 or 503. */
bool clave__web_may_wait(struct web_exchange *x);
/* The request is about to leave behind something that waits after its answer. false: as _may_wait.
 */
bool clave__web_may_keep_waiting(struct web_exchange *x);
/* The request is about to ask a server, which may be slow. false: as _may_wait. Always true of a
 * route that needs nothing of what all share. */
bool clave__web_may_call(struct web_exchange *x);
/* The request is about to make a session for its sender. false: it has answered 429 or 503. */
bool clave__web_may_make_session(struct web_exchange *x);
/* The request is about to take up a session that another gate has made: likewise, but only
 * the sender's own part counts. */
bool clave__web_may_take_up(struct web_exchange *x);
/* The body will have n bytes in all. false: it has answered 413, 429 or 503. */
bool clave__web_may_receive(struct web_exchange *x, int64_t n);
/* Whether its body may be parsed, which takes at most n bytes. */
bool clave__web_may_parse(struct web_exchange *x, size_t n);

#endif
