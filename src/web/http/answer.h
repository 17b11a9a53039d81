/* answer.h - how a handler ends: with JSON, bytes, nothing, or a stream. Problems are in problem.h.
 */
#ifndef CLAVE_WEB_HTTP_ANSWER_H
#define CLAVE_WEB_HTTP_ANSWER_H

#include "web/http/exchange.h"

/* Adds a header of the answer; `name` is static, the value is copied. Nothing happens when there is
 * no memory: an answer whose headers matter asks _alloc itself before. */
__attribute__((format(printf, 3, 4))) void
clave__web_set_header(struct web_exchange *x, const char *name, const char *fmt, ...);

/* What x->json wrote, which is to be a whole value; 503 when it could not be written. */
void clave__web_answer_json(struct web_exchange *x, unsigned status);
/* What was written to x->answer.body by other means; x->json.err counts. `type` is static. */
void clave__web_answer_text(struct web_exchange *x, unsigned status, const char *type);
void clave__web_answer_empty(struct web_exchange *x, unsigned status);
/* Bytes of this type; `type` is static. */
void clave__web_answer_bytes(struct web_exchange *x, unsigned status, const char *type,
                             const void *p, size_t n);
/* x->answer.more, end and arg are set, the body's beginning may be written. */
void clave__web_answer_stream(struct web_exchange *x, unsigned status, const char *type);
/* There may be more of a stream. A `more` that wrote nothing, but goes on, calls it too: it is
 * called again in another turn. */
void clave__web_wake(struct web_exchange *x);

#endif
