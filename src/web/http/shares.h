/* shares.h - what a request has of what all senders share (sender.h): counted here, refused by
 * limits.c before it begins. Invariant: what may have been done is answered, whatever there is. */
#ifndef CLAVE_WEB_HTTP_SHARES_H
#define CLAVE_WEB_HTTP_SHARES_H

#include "web/http/exchange.h"
#include "web/http/sender.h"

/* Bodies and answers up to this do not count: a connection costs as much. So a claim, a small
 * write, and every refusal have room in any case. */
enum { SHARES_SMALL = 4096 };

/* Whose share the request counts to. NULL: out of memory. */
struct sender *clave__web_sender(struct web_exchange *x);
/* A renewal, a release, a look at one's own: it needs nothing of what all share. */
bool clave__shares_is_own(const struct web_exchange *x);
/* It changes nothing: GET or HEAD. */
bool clave__shares_reads(const struct web_exchange *x);

/* There are n more for its sender. Otherwise *most is the limit that is reached. */
enum sender_found clave__shares_may(struct web_exchange *x, enum sender_share share, size_t n,
                                    size_t *most);

/* It waits from now on, as SENDER_WAITS or SENDER_CALLS, unless it may not. */
enum sender_found clave__shares_enter(struct web_exchange *x, enum sender_share share,
                                      size_t *most);
/* It is not answered, and may not be for long: it counts as a call. */
void clave__shares_count_waiting(struct web_exchange *x);
/* It is answered: it waits no more. */
void clave__shares_leave(struct web_exchange *x);

/* Its body has n bytes, as far as it is announced or has come, unless it may not. */
enum sender_found clave__shares_take_body(struct web_exchange *x, size_t n, size_t *most);
/* Its body is parsed, which takes so many bytes beside it, unless it may not. */
enum sender_found clave__shares_take_tree(struct web_exchange *x, size_t n, size_t *most);
/* x->answer.body is complete, or the first piece of it. Otherwise than SENDER_MAY: there is no
 * room, and the request has changed nothing. */
enum sender_found clave__shares_count_answer(struct web_exchange *x);
/* A piece of a stream takes the place of the one before. false: there is no room for it. */
bool clave__shares_count_piece(struct web_exchange *x, size_t n);

/* It is over: it has nothing any more. */
void clave__shares_end(struct web_exchange *x);

#endif
