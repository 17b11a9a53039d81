/* http_copy.h - what gates say of locks and elections from their copies of the tree, held against
 * what stood at the servers: it was so at a moment since the request was sent, less the age that
 * the answer gives. */
#ifndef CLAVE_SIM_HTTP_COPY_H
#define CLAVE_SIM_HTTP_COPY_H

#include "http/http_call.h"

bool http_copy_is_asked(const struct http_call *c);
/* What the answer says of the copy was so at a moment since then, in true time; -1: it does not say
 * that it is current. `untold`: it is, and how old it may be is not in the body. */
int64_t http_copy_from(const struct http_call *c, bool untold);
/* Its answer is on its way. */
void http_copy_told(struct http_call *c);

#endif
