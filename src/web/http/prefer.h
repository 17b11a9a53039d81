/* prefer.h - the header Prefer of a request (RFC 7240). */
#ifndef CLAVE_WEB_HTTP_PREFER_H
#define CLAVE_WEB_HTTP_PREFER_H

#include "web/http/exchange.h"

/* "Prefer: wait=30", in ms; -1: there is none. */
int64_t clave__web_prefer_wait(const struct web_exchange *x);

#endif
