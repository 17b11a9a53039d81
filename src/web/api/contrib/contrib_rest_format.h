/* contrib_rest_format.h - answers in the formats of Apache's contrib REST gateway: JSON, JSON in a
 * call, XML, bytes; as the Accept header has it. */
#ifndef CLAVE_WEB_API_CONTRIB_CONTRIB_REST_FORMAT_H
#define CLAVE_WEB_API_CONTRIB_CONTRIB_REST_FORMAT_H

#include "web/http/exchange.h"

enum rest_format { REST_JSON, REST_JAVASCRIPT, REST_XML, REST_OCTETS };

/* The first of the Accept header that there is; JSON without one. false: it has answered 406, or
 * 400 for a callback that is no name. */
bool clave__rest_format(struct web_exchange *x, enum rest_format *out);

struct rest_field {
    const char *name;
    const char *text; /* NULL: the number */
    int64_t number;
};
struct rest_document {
    const char *root; /* of XML */
    struct rest_field fields[16];
    size_t nfields;
    const char *const *children; /* "children"; NULL: it has none */
    size_t nchildren;
};
void clave__rest_add_text(struct rest_document *d, const char *name, const char *text);
void clave__rest_add_number(struct rest_document *d, const char *name, int64_t number);

/* Not for OCTETS. */
void clave__rest_answer(struct web_exchange *x, enum rest_format f, unsigned status,
                        const struct rest_document *d);
/* What went wrong, in the format that was asked for. */
__attribute__((format(printf, 3, 4))) void clave__rest_fault(struct web_exchange *x,
                                                             unsigned status, const char *fmt, ...);
/* Of a request to the servers on the path; `creates`: a missing parent is a conflict. */
void clave__rest_fault_err(struct web_exchange *x, clave_err err, const char *path, bool creates);

/* The URI of this resource as its client sees it, without the query. NULL: no memory. */
const char *clave__rest_uri(struct web_exchange *x);

#endif
