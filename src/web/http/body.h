/* body.h - the body of a request: taken as it arrives, and the JSON object in it with its members,
 * checked as they are read. Each function that finds a fault answers with what is wrong. */
#ifndef CLAVE_WEB_HTTP_BODY_H
#define CLAVE_WEB_HTTP_BODY_H

#include "web/http/exchange.h"

/* Keeps a piece of it. false: it has answered 413, 429 or 503. */
bool clave__web_receive(struct web_exchange *x, const void *p, size_t n);

/* The Content-Type is this one, whatever its parameters. */
bool clave__web_has_type(const struct web_exchange *x, const char *type);

/* The object, owned by the exchange; an empty body is an empty object. NULL: it has answered 400,
 * 415 or 503. */
json_t *clave__web_body(struct web_exchange *x);
/* The same, whatever the Content-Type. */
json_t *clave__web_body_of_any_type(struct web_exchange *x);

/* Members of an object that may be missing: *out stays as it was then. null is as missing. false:
 * it has answered 400. Texts are valid as long as the exchange, and without NUL. */
bool clave__body_text(struct web_exchange *x, const json_t *o, const char *key, const char **out);
bool clave__body_flag(struct web_exchange *x, const json_t *o, const char *key, bool *out);
/* From least to most. A decimal string is a number too: 64-bit numbers are written so. */
bool clave__body_int(struct web_exchange *x, const json_t *o, const char *key,
                     const int64_t bounds[2], int64_t *out);
/* NULL, too, when it is missing. */
bool clave__body_array(struct web_exchange *x, const json_t *o, const char *key,
                       const json_t **out);
/* Refuses any member that is not named; `keys` ends with NULL. */
bool clave__body_only(struct web_exchange *x, json_t *o, const char *const *keys);

#endif
