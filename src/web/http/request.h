/* request.h - what a request says: its body, a JSON object whose members are checked as they are
 * read; the arguments of its query; paths of znodes; the headers Prefer, If-Match and
 * If-None-Match. A function that finds a fault answers the request with what is wrong, and returns
 * false or NULL. */
#ifndef CLAVE_WEB_HTTP_REQUEST_H
#define CLAVE_WEB_HTTP_REQUEST_H

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

/* ==== the query, and paths of znodes ========================================================== */

/* The arguments of a request's query, and the paths of znodes in a request,
 * checked as they are read. Each function that finds a fault answers with 400 and what is wrong. */

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

/* ==== Prefer ================================================================================== */

/* The header Prefer (RFC 7240): preferences with commas between them, in any number of headers. Of
 * several with one name the first one counts, and a value that is not understood is as none. */

/* "Prefer: wait=30", in ms; -1: there is none. */
int64_t clave__web_prefer_wait(const struct web_exchange *x);
/* The same of one header's value. false: it has no such preference. */
bool clave__prefer_find_wait(const char *prefer, int64_t *ms);

/* ==== If-Match, If-None-Match ================================================================= */

/* If-Match and If-None-Match of a request on a node, whose entity tag begins with
 * its version: "3-4294967301", with its czxid. */

struct condition {
    bool must_exist;     /* If-Match; with any version when `version` is -1 */
    bool must_not_exist; /* If-None-Match: * */
    int32_t version;
};

/* false: it has answered 400. */
bool clave__condition_read(struct web_exchange *x, struct condition *out);
/* Is this error the condition's, which was not met? Its status is 412. */
bool clave__condition_failed(const struct condition *k, clave_err err);

/* The request's If-None-Match names this entity tag, which has its quotes: its sender knows it. "*"
 * names any but `none`. */
bool clave__condition_knows(const struct web_exchange *x, const char *etag, const char *none);

#endif
