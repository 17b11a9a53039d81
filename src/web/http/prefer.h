/* prefer.h - the header Prefer of a request (RFC 7240): preferences with commas between them, in
 * any number of headers; of several with one name the first one counts, and a value that is not
 * understood is as none. */
#ifndef CLAVE_WEB_HTTP_PREFER_H
#define CLAVE_WEB_HTTP_PREFER_H

#include "web/http/exchange.h"

/* "Prefer: wait=30", in ms; -1: there is none. */
int64_t clave__web_prefer_wait(const struct web_exchange *x);
/* The same of one header's value. false: it has no such preference. */
bool clave__prefer_find_wait(const char *prefer, int64_t *ms);

#endif
