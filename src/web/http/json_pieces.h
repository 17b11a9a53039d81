/* json_pieces.h - an answer of JSON that is made piece by piece while it is read, so that a long
 * one neither takes long in one turn nor is all in memory. One that fits into its first piece is an
 * answer like any other. */
#ifndef CLAVE_WEB_HTTP_JSON_PIECES_H
#define CLAVE_WEB_HTTP_JSON_PIECES_H

#include "web/http/exchange.h"

/* Writes some more; *done: that was all. An error ends the answer where it is; of the first piece
 * it is answered with 503. */
typedef clave_err pieces_next(void *arg, struct json *j, bool *done);

/* `end` is called once, when nothing more is asked of `next`; it may be NULL. */
void clave__web_answer_pieces(struct web_exchange *x, pieces_next *next, void (*end)(void *arg),
                              void *arg);

#endif
