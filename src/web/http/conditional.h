/* conditional.h - If-Match and If-None-Match of a request on a node, whose entity tag begins with
 * its version: "3-4294967301", with its czxid. */
#ifndef CLAVE_WEB_HTTP_CONDITIONAL_H
#define CLAVE_WEB_HTTP_CONDITIONAL_H

#include "web/http/exchange.h"

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
