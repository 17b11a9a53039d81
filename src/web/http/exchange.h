/* exchange.h - one request on its way to its answer, as the handler of its endpoint sees it: what
 * the request says, the memory that lasts as long as the exchange, and how the request is answered;
 * with struct route, a line of the table of endpoints. The folder:
 *
 *   exchange      the life of an exchange, its memory, the target and headers of its request
 *   admission     whom a request is from, what that sender may do, and whether the request may
 *                 begin, and take some of what all senders share
 *   sender        how much each sender has of what all of them share
 *   request       what a request says: body, query, conditions
 *   answer        how a handler ends
 *   http_metrics  how requests went
 *
 * A handler reads `params`, _query, _header and _body, and ends by one call of answer.c, at once or
 * later. A handler that waits does one of two things:
 * - It makes a request of a client with the exchange as the callback's argument: _expect before,
 *   and in the callback first `if (!clave__web_expected(x)) return;`.
 * - It hands the exchange to an owner (clave__web_own), which keeps a pointer to it: a request of a
 *   session, a long poll, a take that waits. The owner goes on with the request until its `leave`
 *   is called, exactly once: when the request is answered, by whomever, or when nobody waits for
 *   the answer any more.
 *
 *     received ──> owned, or expected by callbacks ──> answered ──> ended
 *         └──────────────────────────────────────────────┴────────────^
 *
 * Invariants: a request has one owner at a time; after the answer only the driver and `more` touch
 * the exchange. */
#ifndef CLAVE_WEB_HTTP_EXCHANGE_H
#define CLAVE_WEB_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/prometheus.h"
#include "web/http/admission.h"
#include "web/http/jansson.h"
#include "web/web_internal.h"

/* ==== the target ============================================================================== */

/* The path of a target, whether it matches a pattern, and the arguments of the query. Pure text. */

enum { TARGET_MAX_ARGS = 16, TARGET_MAX = 8192 };

struct target_arg {
    const char *name, *value; /* decoded; "" when there is no '=' */
};

struct target {
    const char *host; /* of a target in absolute form, "http://HOST/PATH"; otherwise NULL */
    char *path;       /* still percent-encoded: an encoded slash is not one that separates */
    struct target_arg args[TARGET_MAX_ARGS];
    size_t nargs;
};

/* Splits `text` into its parts, which changes it; it must live as long as the target. Returns NULL,
 * or what is wrong with it, a static string. */
const char *clave__target_parse(struct target *t, char *text);

/* The value of the first argument of this name; NULL: there is none. */
const char *clave__target_arg(const struct target *t, const char *name);

struct target_part {
    const char *at; /* within the path, still encoded */
    size_t n;
};

/* True if the path matches the pattern (struct route); parts[i] is then what the pattern's i-th {}
 * stands for. */
bool clave__target_matches(const struct target *t, const char *pattern, struct target_part *parts);

/* Decodes n bytes of `from` to `to`, which has room for n + 1, and adds a NUL. `plus`: '+' is a
 * blank. Returns false if there is a malformed escape, or a NUL. */
bool clave__percent_decode(char *to, const char *from, size_t n, bool plus);

/* Writes `path` to `to`, which has room for 3 times its length and a NUL; a slash stays as it is.
 */
void clave__percent_encode(char *to, const char *path);

/* ==== the exchange ============================================================================ */

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
    bool has_prefix;           /* the target had the prefix of web_access */
    const struct route *route; /* NULL: none was found */
    bool is_fleetlock;         /* the path is one of FleetLock's, whatever the method */
    struct target target;
    const char *params[WEB_MAX_PARAMS]; /* what the pattern's {} stand for, decoded */
    struct {
        const char *name; /* "" when nobody is known */
        struct web_grant *grants;
        size_t ngrants;
        enum access_found found;
        bool is_known;   /* the sender is known by a proof of its own, not by its address alone */
    } who;               /* copied: the configuration may change while the exchange waits */
    const char *acts_on; /* the path on which the route's role is needed, if the pattern does not
                          * have it but the body or a claim does; NULL: none. Valid until the
                          * request is answered, or its stream has ended */
    const struct web_need *needs; /* further roles that the sender was found to have; NULL: none */
    struct {
        int64_t session;
        const char *path, *what; /* valid as long as the exchange */
        const char *reason;
    } deed; /* for the audit, as of struct web_audit */
    int64_t arrived;
    struct buf received; /* of the body */
    json_t *body;        /* the body as JSON; NULL: it has not been parsed */
    struct web_answer answer;
    struct json json;                   /* writes answer.body */
    const struct exchange_owner *owner; /* NULL: only its handler and callbacks go on with it */
    void *owned;                        /* belongs to the owner */
    void *state;                        /* belongs to the handler */
    struct timer timer;                 /* gives up an exchange that waits for callbacks */
    /* Of session_request.c: makes the requests of the client that serves this exchange. */
    void (*go)(struct web_exchange *x, clave_async_client *c);
    struct {
        const char *path; /* what `go` creates; NULL: nothing */
        char *above;      /* the nearest node above it that the sender may not create */
    } creates;
    /* Of sender.h. */
    struct sender *sender; /* NULL: not needed so far */
    size_t bytes;          /* bytes that count towards the sender's share */
    size_t tree;           /* bytes that the body has as JSON, at most; 0: it was not parsed */
    bool waits;            /* it counts as waiting */
    /* Of answer.c: `more` and `arg` of a stream; those in `answer` then count its pieces. */
    clave_err (*more)(void *arg, struct buf *out, bool *done);
    void *more_arg;
    unsigned refused;  /* why it was refused (HTTP_REFUSED_WAITING ...); 0: as its status says */
    unsigned expected; /* callbacks that have this exchange as their argument */
    bool answered, ended;
    bool only_reads; /* the request asks for a change, but so far the servers have only been asked
                      * to read */
    bool begun;      /* what it has asked for is done, or is being done, whatever the answer */
    bool asked;      /* this request itself has asked the servers for a change */
    struct exchange_chunk *chunks; /* its memory */
};

/* The owner of a request that waits, which goes on with it. */
struct exchange_owner {
    /* Lets go of the exchange, which is being answered, or for which nobody waits any more. NULL:
     * there is nothing to do. */
    void (*leave)(struct web_exchange *x);
    /* Before `leave`, when nobody waits any more. NULL: nothing more to do. */
    void (*hung_up)(struct web_exchange *x);
    /* The gate stops. May answer the request, if that was begun; otherwise, and if this is NULL,
     * the engine does (see `begun`). */
    void (*stop)(struct web_exchange *x);
    /* The servers have not answered in time. May answer; if this is NULL, the engine answers 503,
     * or 504 for a change. */
    void (*late)(struct web_exchange *x);
};

/* A role that the handler has asked for, besides that of the route. */
struct web_need {
    const struct web_need *next;
    enum web_role role;
    const char *path; /* valid as long as the exchange; NULL: on any path */
};

typedef void web_handler(struct web_exchange *x);

/* `late` answers an exchange that has waited too long for callbacks. Returns NULL if there is no
 * memory. */
struct web_exchange *clave__exchange_new(struct web *w, const struct web_request *q,
                                         void *transport,
                                         void (*late)(struct timer *t, int64_t now));
/* Frees the exchange, at once or when the last callback that it expects has come. */
void clave__exchange_drop(struct web_exchange *x);

/* Gives an owner to an exchange that had none; x->owned becomes `owned`. */
void clave__web_own(struct web_exchange *x, const struct exchange_owner *o, void *owned);
/* Replaces the functions of the owner; x->owned stays. */
void clave__web_own_as(struct web_exchange *x, const struct exchange_owner *o);
/* The owner has let go of the exchange by itself: its `leave` is not called. */
void clave__web_disown(struct web_exchange *x);
/* Calls `leave` of the owner, if there is one. */
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

/* The value of a header of the request, or of an argument of its query; NULL: there is none. */
const char *clave__web_header(const struct web_exchange *x, const char *name);
const char *clave__web_query(const struct web_exchange *x, const char *name);
/* The value of the next header of that name after the first `skip` of them. */
const char *clave__web_header_at(const struct web_exchange *x, const char *name, size_t skip);
/* The first of n names of which the request has more than `most` headers; NULL: there is none. */
const char *clave__web_header_beyond(const struct web_exchange *x, const char *const *names,
                                     size_t n, size_t most);
/* True if the header has this value, in whatever case. */
bool clave__web_header_is(const struct web_exchange *x, const char *name, const char *value);
bool clave__web_is_method(const struct web_exchange *x, const char *method);
/* True for GET and HEAD, which change nothing. */
static inline bool clave__web_reads(const struct web_exchange *x)
{
    return strcmp(x->q->method, "GET") == 0 || strcmp(x->q->method, "HEAD") == 0;
}

/* A callback will come that has this exchange as its argument. A request that is not answered
 * within WEB_PATIENCE_MS after the first such call is answered 503, or 504 if it changes
 * something. */
void clave__web_expect(struct web_exchange *x);
/* The callback has come. Returns false if nobody waits for the answer any more; the exchange may be
 * gone then. */
bool clave__web_expected(struct web_exchange *x);

/* ==== memory ================================================================================== */

/* Memory that lasts as long as an exchange; NULL: out of memory. */

void *clave__web_alloc(struct web_exchange *x, size_t n);
char *clave__web_strndup(struct web_exchange *x, const char *s, size_t n);
__attribute__((format(printf, 2, 3))) char *clave__web_sprintf(struct web_exchange *x,
                                                               const char *fmt, ...);

/* The path of a znode's child. */
char *clave__web_child(struct web_exchange *x, const char *dir, const char *name);

/* ==== endpoints =============================================================================== */

/* An endpoint: method, pattern, role, arguments, handler. The table of all is routes.c;
 * admission.c finds the one that a request is for: the first whose pattern and method match. */

struct route {
    const char *method; /* a route of GET answers HEAD too */
    /* Literal text, {id} for one segment, {path} for all segments up to the end or to the
     * literal text after it: a znode's path, which begins with '/' as a parameter. */
    const char *pattern;
    /* The role that is needed: on {path} if the pattern has one, otherwise on any path, and then
     * the handler asks clave__web_may about the paths in the body. */
    enum web_role role;
    web_handler *handle;
    const char *query; /* the arguments that it knows: "limit after"; NULL: none; "*": any */
    enum {
        ROUTE_QUIET = 1,   /* it is not in the audit log: it changes nothing that lasts */
        ROUTE_GUARDED = 2, /* it honours Clave-Guard, which others refuse */
        ROUTE_OWN = 4, /* a renewal, a release, a look at one's own session or claim: needs nothing
                          of what all senders share (sender.h), and its body is small */
        ROUTE_FLEETLOCK = 8,    /* it exists only if web_access.fleetlock is set, and may be open to
                                 * some addresses (web_access.fleets) */
        ROUTE_CONDITIONAL = 16, /* it honours If-Match and If-None-Match, which others refuse */
        ROUTE_KEYED = 32,       /* it honours Idempotency-Key, which other POSTs refuse */
    } flags;
};

struct route_table {
    const struct route *at;
    size_t n;
};

/* The one table of all endpoints, routes.c. Each is in openapi.json. */
extern const struct route_table clave__routes;

/* ==== answer.c: how a handler ends ============================================================ */

/* A handler answers with JSON, bytes, nothing, a stream, a list that is made while it is read, or a
 * problem. */

/* Adds a header of the answer; `name` is static, the value is copied. If there is no memory, the
 * header is left out: a handler whose answer needs the header calls clave__web_alloc before. */
__attribute__((format(printf, 3, 4))) void
clave__web_set_header(struct web_exchange *x, const char *name, const char *fmt, ...);

/* Answers with what x->json wrote, which must be a whole value, or with 503 if it could not be
 * written. */
void clave__web_answer_json(struct web_exchange *x, unsigned status);
/* The same, but closes the object that x->json wrote. */
void clave__web_answer_object(struct web_exchange *x, unsigned status);
/* Answers with what was written to x->answer.body by other means, unless x->json.err is set. `type`
 * is static. */
void clave__web_answer_text(struct web_exchange *x, unsigned status, const char *type);
void clave__web_answer_empty(struct web_exchange *x, unsigned status);
/* Answers with bytes of this type; `type` is static. */
void clave__web_answer_bytes(struct web_exchange *x, unsigned status, const char *type,
                             const void *p, size_t n);
/* Answers with a stream: x->answer.more, end and arg are set, and the beginning of the body may be
 * written. */
void clave__web_answer_stream(struct web_exchange *x, unsigned status, const char *type);
/* There may be more of a stream to send. A `more` that has written nothing but wants to be called
 * again, in another turn, calls this too. */
void clave__web_wake(struct web_exchange *x);

/* ==== problems ================================================================================ */

/* Answers that say what went wrong: application/problem+json of RFC 9457, with title, status,
 * detail, and clave's own members code and class (clave/err.h) and path. */

struct problem {
    unsigned status;
    clave_err err;          /* gives code and class */
    const char *path;       /* NULL: the problem concerns no node */
    unsigned retry_after_s; /* 0: no such header */
    /* Writes further members; NULL: none. */
    void (*members)(struct json *j, const void *arg);
    const void *arg;
    const char *code; /* in place of the code of `err`; NULL: the code of `err` */
};

/* Drops what was written of another answer, and answers with the problem. */
__attribute__((format(printf, 3, 4))) void
clave__web_problem(struct web_exchange *x, const struct problem *p, const char *fmt, ...);

/* The same for a problem without further members; `path` may be NULL. With 503 and 429 the answer
 * says when to try again. Returns false, so that a function that has answered can return this. */
__attribute__((format(printf, 5, 6))) bool clave__web_refuse(struct web_exchange *x,
                                                             unsigned status, clave_err err,
                                                             const char *path, const char *fmt,
                                                             ...);
/* The same with status 400, EINVAL and no path. */
__attribute__((format(printf, 2, 3))) bool clave__web_bad_request(struct web_exchange *x,
                                                                  const char *fmt, ...);

/* Answers that a client's request on `path` failed with `err`, by the one table from errors to
 * statuses. An unknown outcome is 503 for a request that changes nothing, otherwise 504. `what` is
 * a verb: "cannot create /a: no such node"; `path` may be NULL. */
void clave__web_problem_err(struct web_exchange *x, clave_err err, const char *what,
                            const char *path);
/* The status of that answer. */
unsigned clave__web_status(const struct web_exchange *x, clave_err err);
/* The same with another status. */
void clave__web_problem_as(struct web_exchange *x, unsigned status, clave_err err, const char *what,
                           const char *path);
/* Why a hold or a session has ended, as programs read it: "expired", "closed", "deleted", ... */
const char *clave__web_cause(clave_err why);
/* Writes that word as the member "cause"; `why` is a pointer to the error, so that this can be the
 * `members` of a problem. */
void clave__web_put_cause(struct json *j, const void *why);
/* True if the error has such a word, that is, if it ends a hold or a wait. */
bool clave__web_is_cause(clave_err why);

/* ==== long lists ============================================================================== */

/* An answer of JSON that is made piece by piece while the client reads it, so that a long answer
 * neither takes long in one turn nor is in memory as a whole. An answer that fits into its first
 * piece is sent like any other. */

/* Writes some more, and sets *done after the last piece. An error ends the answer where it is; an
 * error in the first piece is answered with 503. */
typedef clave_err pieces_next(void *arg, struct json *j, bool *done);

/* `end` is called once, when nothing more is asked of `next`; it may be NULL. */
void clave__web_answer_pieces(struct web_exchange *x, pieces_next *next, void (*end)(void *arg),
                              void *arg);

/* ==== request.c: what a request says ========================================================== */

/* The body of a request, a JSON object whose members are checked as they are read; the arguments of
 * the query; paths of znodes; the headers Prefer, If-Match and If-None-Match. A function that finds
 * a fault answers the request with what is wrong, and returns false or NULL. */

/* Zeroed memory that lasts as long as the exchange, for what is read. NULL: it has answered 503. */
void *clave__web_must_alloc(struct web_exchange *x, size_t n);

/* Keeps a piece of the body. Returns false if it has answered 413, 429 or 503. */
bool clave__web_receive(struct web_exchange *x, const void *p, size_t n);

/* True if the Content-Type is this one, whatever its parameters. */
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
/* Reads the members of the body, or of an object in it. false: it has answered 400, because there
 * is a member that the object cannot have, or one of another type; or, for the body, 415 or 503. */
bool clave__web_read_body(struct web_exchange *x, const struct body_member *members, size_t n);
bool clave__web_read_object(struct web_exchange *x, json_t *o, const struct body_member *members,
                            size_t n);

/* ==== the query, and paths of znodes ========================================================== */

/* True if the whole text is a decimal number of 64 bits. */
bool clave__web_parse_int(const char *text, int64_t *out);
/* Reads a number from least to most from an argument. If there is no such argument, *out stays as
 * it was. Returns false if it has answered 400. */
bool clave__query_int(struct web_exchange *x, const char *name, int64_t least, int64_t most,
                      int64_t *out);
/* Checks that the argument, if there is one, is the path of a znode. */
bool clave__query_path(struct web_exchange *x, const char *name);
/* Checks the request's own path, params[0]. */
bool clave__param_path(struct web_exchange *x);

/* ==== Prefer ================================================================================== */

/* The header Prefer (RFC 7240): preferences with commas between them, in any number of headers. Of
 * several with one name the first one counts, and a value that is not understood is ignored. */

/* "Prefer: wait=30", in ms; -1: there is none. */
int64_t clave__web_prefer_wait(const struct web_exchange *x);
/* The same in the value of one header. Returns false if there is no such preference. */
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
/* True if the error means that the condition was not met, which is 412. */
bool clave__condition_failed(const struct condition *k, clave_err err);

/* True if the request's If-None-Match names this entity tag (with its quotes), so that the sender
 * knows it. "*" names any tag but `none`. */
bool clave__condition_knows(const struct web_exchange *x, const char *etag, const char *none);

/* ==== http_metrics.c: how requests went ======================================================= */

/* Reasons of refusals that share their status with others: numbers that are no status. */
enum { HTTP_REFUSED_WAITING = 1, HTTP_REFUSED_MEMORY, HTTP_REFUSED_SESSIONS };

/* Makes w->http_metrics. ENOMEM. */
clave_err clave__http_metrics_new(struct web *w);
void clave__http_metrics_free(struct web *w);

/* Counts the exchange, which is answered with this status. */
void clave__http_metrics_note(const struct web_exchange *x, unsigned status);
/* clave_http_requests_total{route,code}, _request_seconds, _waiting{how}, _refused_total{reason}.
 */
void clave__http_metrics_put(const struct web *w, struct prometheus *p);
/* Requests that were answered, of all routes. */
uint64_t clave__http_metrics_answered(const struct web *w);

#endif
