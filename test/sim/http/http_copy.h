/* http_copy.h - what gates say of locks and elections from their copies of the tree, held against
 * what stood at the servers: it was so at a moment since the request was sent, less the age that
 * the answer gives. */
#ifndef CLAVE_SIM_HTTP_COPY_H
#define CLAVE_SIM_HTTP_COPY_H

#include "http/http_call.h"

bool http_copy_is_asked(const struct http_call *c);
/* Its answer is on its way. */
void http_copy_told(struct http_call *c);

#endif
