/* observe_request.h - what requests about locks, elections, history and events have in common: they
 * wait until the tree is loaded, ask the servers first (?fresh), wait for a change, say how old the
 * copy may be that they are answered from, and have the arguments prefix, limit and after. */
#ifndef CLAVE_WEB_API_OBSERVE_REQUEST_H
#define CLAVE_WEB_API_OBSERVE_REQUEST_H

#include "web/http/exchange.h"
#include "web/observe/observe.h"

/* What the tree shows; NULL: not yet. Then the handler returns: it is called again when the first
 * load is over, with ?fresh when the copy has caught up with the servers, or the request has been
 * answered with why it cannot be. Uses x->state. */
struct observe *clave__observe_for(struct web_exchange *x);
/* The same for what was before, too. */
struct observe *clave__observe_with_past(struct web_exchange *x);

enum { LIST_LIMIT = 100, LIST_LIMIT_MAX = 1000 };

struct list_request {
    const char *prefix; /* "/" when there is none */
    const char *after;  /* NULL */
    size_t limit;
    int64_t as_of; /* by the engine's clock; -1: not known */
};
/* false: it has answered 400. */
bool clave__list_request_read(struct web_exchange *x, struct list_request *out);
/* The end of a list of locks or elections: its array and its object. `next` NULL: that was all. */
void clave__list_request_close(struct web_exchange *x, const struct list_request *l, struct json *j,
                               const char *next);

/* The members source, current and age_ms: `arg` is the exchange. */
void clave__copy_json(struct json *j, const void *arg);
/* The same of a list that began before. */
void clave__copy_json_since(const struct web_exchange *x, struct json *j, int64_t as_of);

/* The answer about what is at `path` has this entity tag, "\"...\"". false: the request's
 * If-None-Match knows it. Then it waits, as long as its Prefer says, and is handled again; or it
 * has been answered with 304. */
bool clave__copy_is_news(struct web_exchange *x, const char *path, const char *etag);
#define COPY_ETAG_NONE "\"none\"" /* of what is not there */
enum { COPY_ETAG_CAP = 24 };
void clave__copy_etag(char out[COPY_ETAG_CAP], uint64_t digest);

/* Nothing is seen at this path: answers 404, with `text`; 503 when the copy is not current; 403
 * when something there may be hidden from the gate. */
void clave__copy_answer_none(struct web_exchange *x, const char *path, const char *text);

/* The sender may read what is about this path; NULL: what is about no path. */
bool clave__observe_may_see(const struct web_exchange *x, const char *path);

#endif
