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

/* The body as an object, owned by the exchange; an empty body is an empty object. NULL: it has
 * answered 400, 415 or 503. */
json_t *clave__web_body(struct web_exchange *x);
/* The same, whatever the Content-Type. */
json_t *clave__web_body_of_any_type(struct web_exchange *x);

/* A member that an object may have, of the type whose pointer is set. When it is missing or null,
 * what the pointer points to is left as it is. Texts and arrays are valid as long as the exchange,
 * and texts have no NUL. A decimal string is a number too: 64-bit numbers are written so. */
struct body_member {
    const char *name;
    const char **text;
    int64_t *number, least, most;
    bool *flag;
    const json_t **array;
};
#define BODY_MEMBERS(members) (members), sizeof(members) / sizeof *(members)
/* Reads the members of the body, or of an object in it. false: it has answered 400, as there is a
 * member that the object cannot have, or one of another type; or, for the body, 415 or 503. */
bool clave__web_read_body(struct web_exchange *x, const struct body_member *members, size_t n);
bool clave__web_read_object(struct web_exchange *x, json_t *o, const struct body_member *members,
                            size_t n);

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
