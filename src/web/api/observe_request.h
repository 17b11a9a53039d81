/* observe_request.h - what requests about locks, elections, history and events have in common: they
 * wait until the tree is loaded, and have the arguments prefix, limit and after. */
#ifndef CLAVE_WEB_API_OBSERVE_REQUEST_H
#define CLAVE_WEB_API_OBSERVE_REQUEST_H

#include "web/http/exchange.h"
#include "web/observe/observe.h"

/* What the tree shows; NULL: not yet. Then the handler returns: it is called again when the first
 * load is over, or the request has been answered with why it cannot be. */
struct observe *clave__observe_for(struct web_exchange *x);
/* The same for what was before, too. */
struct observe *clave__observe_with_past(struct web_exchange *x);

enum { LIST_LIMIT = 100, LIST_LIMIT_MAX = 1000 };

struct list_request {
    const char *prefix; /* "/" when there is none */
    const char *after;  /* NULL */
    size_t limit;
};
/* false: it has answered 400. */
bool clave__list_request_read(struct web_exchange *x, struct list_request *out);
/* The end of a list of locks or elections: its array and its object. `next` NULL: that was all. */
void clave__list_request_close(const struct observe *o, struct json *j, const char *next);

/* Nothing is seen at this path: is there nothing? What is below a node that the gate may not read
 * may be held by anybody. false: it has answered that this is not known, or with ENOMEM. */
bool clave__observe_knows(struct web_exchange *x, const char *path);

/* The sender may read what is about this path; NULL: what is about no path. */
bool clave__observe_may_see(const struct web_exchange *x, const char *path);

#endif
