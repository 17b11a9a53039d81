/* request_args.h - the arguments of a request's query, and the paths of znodes in a request,
 * checked as they are read. Each function that finds a fault answers with 400 and what is wrong. */
#ifndef CLAVE_WEB_HTTP_REQUEST_ARGS_H
#define CLAVE_WEB_HTTP_REQUEST_ARGS_H

#include "web/http/exchange.h"

/* The whole text is a decimal number of 64 bits. */
bool clave__web_parse_int(const char *text, int64_t *out);
/* An argument that may be missing: *out stays as it was then. From least to most. false: it has
 * answered 400. */
bool clave__query_int(struct web_exchange *x, const char *name, const int64_t bounds[2],
                      int64_t *out);
/* The argument, if it is there, is the path of a znode. */
bool clave__query_path(struct web_exchange *x, const char *name);
/* The request's own path, params[0], is one. */
bool clave__param_path(struct web_exchange *x);

#endif
