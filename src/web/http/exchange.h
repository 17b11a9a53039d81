/* exchange.h - one request on its way to its answer, as handlers see it.
 *
 * A handler reads `params`, _query, _header and _body, and ends by one call of answer.h or
 * problem.h, then or later. One that waits does either of two things:
 * - It makes a request of a client with the exchange as the callback's argument: _expect before,
 *   and in the callback first `if (!clave__web_expected(x)) return;`.
 * - It sets `cancel` and keeps a pointer to the exchange; `cancel` is called at most once, when
 *   nobody waits any more, and then that pointer is dropped.
 * Invariant: after the answer the exchange is touched by its driver only, and by `more`. */
#ifndef CLAVE_WEB_HTTP_EXCHANGE_H
#define CLAVE_WEB_HTTP_EXCHANGE_H

#include "base/json_writer.h"
#include "web/http/authorization.h"
#include "web/http/exchange_memory.h"
#include "web/http/jansson.h"
#include "web/http/target.h"
#include "web/web_internal.h"

struct route;
struct sender;

enum { WEB_MAX_PARAMS = 2, WEB_PATIENCE_MS = 15000 };

struct web_exchange {
    struct list link; /* of struct web.exchanges */
    struct web *web;
    void *transport;
    const struct web_request *q;
    struct web_peer peer;      /* the client, who need not be at the other end of the connection */
    bool is_passed_on;         /* by a proxy */
    bool has_prefix;           /* the target had it */
    const struct route *route; /* NULL: none was found */
    bool is_fleetlock;         /* the path is one of FleetLock's, whatever the method */
    struct target target;
    const char *params[WEB_MAX_PARAMS]; /* what the pattern's {} stand for, decoded */
    struct {
        const char *name; /* "" when nobody is known */
        struct web_grant *grants;
        size_t ngrants;
        enum access_found found;
        bool is_known;   /* by a proof of its own, not by its address alone */
    } who;               /* copied: the configuration may change while the exchange waits */
    const char *acts_on; /* not in the pattern, but in the body, or a claim's: the path that the
                          * route's role is needed on; NULL: none. Valid until it is answered, or
                          * until a stream has ended */
    const struct web_need *needs; /* further roles that it was admitted for; NULL: none */
    struct {
        int64_t session;
        const char *path, *what; /* valid as long as the exchange */
        const char *reason;
    } deed; /* for the audit, as of struct web_audit */
    int64_t arrived;
    struct buf received; /* of the body */
    json_t *body;        /* parsed; NULL: it is not */
    struct web_answer answer;
    struct json json; /* writes answer.body */
    void (*cancel)(struct web_exchange *x);
    void *pending;                             /* whoever set `cancel` */
    void (*answering)(struct web_exchange *x); /* before the answer, whoever makes it */
    /* Answers, before `cancel`, when the gate stops while it waits; NULL: see `begun`. */
    void (*stop)(struct web_exchange *x);
    /* Answers, before `cancel`, when the servers have not answered in time; it need not. NULL: 503
     * or 504. */
    void (*late)(struct web_exchange *x);
    void *state; /* the handler's own */
    /* Of request_client.c: what is done with the client once there is one. */
    void (*go)(struct web_exchange *x, clave_async_client *c);
    struct timer timer; /* gives up what waits for callbacks */
    /* Of sender.h. */
    struct sender *sender; /* NULL: it has not been needed */
    size_t bytes;          /* that count as the sender's */
    size_t tree;           /* bytes that the body has as JSON, at most; 0: it was not parsed */
    bool waits;            /* it counts as waiting */
    /* Of answer.c: those of a stream, while those of `answer` count its pieces. */
    clave_err (*more)(void *arg, struct buf *out, bool *done);
    void *more_arg;
    unsigned refused;  /* why, of http_metrics.h; 0: as its status says */
    unsigned expected; /* callbacks that have this exchange as their argument */
    bool answered, ended;
    bool looking; /* a change was asked for, and the servers have only been asked to tell so far */
    bool begun;   /* what it has asked for is done, or goes on, whatever is answered */
    bool asked;   /* the servers for a change, by this request itself */
    struct exchange_chunk *chunks; /* of exchange_memory.c */
};

/* A role that the handler has asked for, beside that of the route. */
struct web_need {
    const struct web_need *next;
    enum web_role role;
    const char *path; /* valid as long as the exchange; NULL: on any */
};

typedef void web_handler(struct web_exchange *x);

/* `late` answers what has waited too long. NULL: out of memory. */
struct web_exchange *clave__exchange_new(struct web *w, const struct web_request *q,
                                         void *transport,
                                         void (*late)(struct timer *t, int64_t now));
/* Frees it, at once or when the last callback that it expects has come. */
void clave__exchange_drop(struct web_exchange *x);

/* The body, all of it; never NULL. */
static inline const void *clave__web_body_bytes(const struct web_exchange *x)
{
    return clave__buf_len(&x->received) > 0 ? (const void *)clave__buf_bytes(&x->received) : "";
}

static inline size_t clave__web_body_len(const struct web_exchange *x)
{
    return clave__buf_len(&x->received);
}

/* The value of a header of the request, of an argument of its query; NULL: there is none. */
const char *clave__web_header(const struct web_exchange *x, const char *name);
const char *clave__web_query(const struct web_exchange *x, const char *name);
/* The value of the one after the first `skip` of that name. */
const char *clave__web_header_at(const struct web_exchange *x, const char *name, size_t skip);
/* The first of n names that the request has more than `most` headers of; NULL: it has none. */
const char *clave__web_header_beyond(const struct web_exchange *x, const char *const *names,
                                     size_t n, size_t most);
/* It has this value, in whatever case. */
bool clave__web_header_is(const struct web_exchange *x, const char *name, const char *value);
bool clave__web_is_method(const struct web_exchange *x, const char *method);

/* A callback will come that has this exchange as its argument. What has no answer WEB_PATIENCE_MS
 * after its first one is answered 503, or 504 when it changes something. */
void clave__web_expect(struct web_exchange *x);
/* It came. false: nobody waits for the answer any more, and the exchange may be gone. */
bool clave__web_expected(struct web_exchange *x);

#endif
