/* exchange.h - one request on its way to its answer, as the handler of its endpoint sees it, with
 * the memory that lasts as long as the request, and struct route, a line of the table of endpoints.
 *
 * A handler reads `params`, _query, _header and _body, and ends by one call of answer.h, at once or
 * later. A handler that waits does one of two things:
 * - It makes a request of a client with the exchange as the callback's argument: _expect before,
 *   and in the callback first `if (!clave__web_expected(x)) return;`.
 * - It hands the exchange to an owner (clave__web_own), which keeps a pointer to it: a request of a
 *   session, a long poll, a take that waits. The owner goes on with the request until it lets go
 *   of it, which it is told to do exactly once: by the answer, whoever makes it, or when nobody
 *   waits for the answer any more.
 *
 *     received ──> owned, or expected by callbacks ──> answered ──> ended
 *         └──────────────────────────────────────────────┴────────────^
 *
 * Invariants: a request has one owner at a time; after the answer only the driver and `more` touch
 * the exchange. */
#ifndef CLAVE_WEB_HTTP_EXCHANGE_H
#define CLAVE_WEB_HTTP_EXCHANGE_H

#include <stddef.h>

#include "base/json_writer.h"
#include "web/http/authorization.h"
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
    struct json json;                   /* writes answer.body */
    const struct exchange_owner *owner; /* NULL: nobody but its handler, and callbacks */
    void *owned;                        /* the owner's own */
    void *state;                        /* the handler's own */
    struct timer timer;                 /* gives up what waits for callbacks */
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
    struct exchange_chunk *chunks; /* its memory */
};

/* Who goes on with a request that waits. */
struct exchange_owner {
    /* Lets go of the exchange: it is being answered, or nobody waits for it any more. NULL: there
     * is nothing to let go of. */
    void (*leave)(struct web_exchange *x);
    /* Before `leave`, when nobody waits any more. NULL: nothing more to do. */
    void (*hung_up)(struct web_exchange *x);
    /* The gate stops: answers what was begun; it need not. NULL: the engine does, see `begun`. */
    void (*stop)(struct web_exchange *x);
    /* The servers have not answered in time: likewise. NULL: 503, or 504 for a change. */
    void (*late)(struct web_exchange *x);
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

/* The exchange has this owner from now on, and had none; `owned` is x->owned. */
void clave__web_own(struct web_exchange *x, const struct exchange_owner *o, void *owned);
/* The same owner goes on as this one, in another way. */
void clave__web_own_as(struct web_exchange *x, const struct exchange_owner *o);
/* The owner is done with it by itself: it is not told to leave. */
void clave__web_disown(struct web_exchange *x);
/* The owner leaves, if there is one. */
void clave__web_leave(struct web_exchange *x);

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
/* True if the header has this value, in whatever case. */
bool clave__web_header_is(const struct web_exchange *x, const char *name, const char *value);
bool clave__web_is_method(const struct web_exchange *x, const char *method);

/* A callback will come that has this exchange as its argument. What has no answer WEB_PATIENCE_MS
 * after its first one is answered 503, or 504 when it changes something. */
void clave__web_expect(struct web_exchange *x);
/* The callback came. False if nobody waits for the answer any more; the exchange may be gone. */
bool clave__web_expected(struct web_exchange *x);

/* ==== memory ================================================================================== */

/* Memory that lasts as long as an exchange; NULL: out of memory. */

struct web_exchange;

void *clave__web_alloc(struct web_exchange *x, size_t n);
char *clave__web_strndup(struct web_exchange *x, const char *s, size_t n);
__attribute__((format(printf, 2, 3))) char *clave__web_sprintf(struct web_exchange *x,
                                                               const char *fmt, ...);

/* The path of a znode's child. */
char *clave__web_child(struct web_exchange *x, const char *dir, const char *name);

/* Of exchange.c: all of it. */
void clave__exchange_memory_free(struct web_exchange *x);

/* ==== endpoints =============================================================================== */

/* An endpoint: method, pattern, role, arguments, handler. The table of all is routes.c;
 * admission.c finds the one that a request is for: the first whose pattern and method match. */

struct route {
    const char *method; /* a route of GET answers HEAD too */
    /* Literal text, {id} for one segment, {path} for all segments up to the end or to the
     * literal text after it: a znode's path, which begins with '/' as a parameter. */
    const char *pattern;
    /* What is needed, on {path} when the pattern has one; when it has none, anywhere: the handler
     * asks clave__web_may about the paths of the body then. */
    enum web_role role;
    web_handler *handle;
    const char *query; /* the arguments it knows: "limit after"; NULL: none; "*": any */
    enum {
        ROUTE_QUIET = 1,   /* no line in the audit: it changes nothing that lasts */
        ROUTE_GUARDED = 2, /* it takes Clave-Guard, which others refuse */
        ROUTE_OWN = 4, /* a renewal, a release, a look at one's own session or claim: needs nothing
                          of what all senders share (sender.h), and its body is small */
        ROUTE_FLEETLOCK = 8,    /* it is there with web_access.fleetlock only, and may be open to
                                    some addresses (web_access.fleets) */
        ROUTE_CONDITIONAL = 16, /* it judges If-Match and If-None-Match, which others refuse */
        ROUTE_KEYED = 32,       /* it judges Idempotency-Key, which other POSTs refuse */
    } flags;
};

struct route_table {
    const struct route *at;
    size_t n;
};

/* The one table of all endpoints, routes.c. Each is in openapi.json. */
extern const struct route_table clave__routes;

#endif
