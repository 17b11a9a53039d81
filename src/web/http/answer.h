/* answer.h - how a handler ends: with JSON, bytes, nothing, a stream, a list that is made while it
 * is read, or a problem. */
#ifndef CLAVE_WEB_HTTP_ANSWER_H
#define CLAVE_WEB_HTTP_ANSWER_H

#include "web/http/exchange.h"

/* Adds a header of the answer; `name` is static, the value is copied. Nothing happens when there is
 * no memory: an answer whose headers matter asks _alloc itself before. */
__attribute__((format(printf, 3, 4))) void
clave__web_set_header(struct web_exchange *x, const char *name, const char *fmt, ...);

/* What x->json wrote, which is to be a whole value; 503 when it could not be written. */
void clave__web_answer_json(struct web_exchange *x, unsigned status);
/* What was written to x->answer.body by other means; x->json.err counts. `type` is static. */
void clave__web_answer_text(struct web_exchange *x, unsigned status, const char *type);
void clave__web_answer_empty(struct web_exchange *x, unsigned status);
/* Bytes of this type; `type` is static. */
void clave__web_answer_bytes(struct web_exchange *x, unsigned status, const char *type,
                             const void *p, size_t n);
/* x->answer.more, end and arg are set, the body's beginning may be written. */
void clave__web_answer_stream(struct web_exchange *x, unsigned status, const char *type);
/* There may be more of a stream. A `more` that wrote nothing, but goes on, calls it too: it is
 * called again in another turn. */
void clave__web_wake(struct web_exchange *x);

/* ==== problems ================================================================================ */

/* Answers that say what went wrong: application/problem+json of RFC 9457, with title,
 * status, detail, and of clave's own code and class (clave/err.h), and path. */

struct problem {
    unsigned status;
    clave_err err;          /* gives code and class */
    const char *path;       /* NULL: it is about no node */
    unsigned retry_after_s; /* 0: no such header */
    /* Writes further members; NULL: none. */
    void (*members)(struct json *j, const void *arg);
    const void *arg;
    const char *code; /* in place of that of `err`; NULL: that one */
};

/* Drops what was written of another answer, and answers with the problem. */
__attribute__((format(printf, 3, 4))) void
clave__web_problem(struct web_exchange *x, const struct problem *p, const char *fmt, ...);

/* The same for a problem without further members; `path` may be NULL. With 503 and 429 it says when
 * to try again. Returns false, as do functions that have answered. */
__attribute__((format(printf, 5, 6))) bool clave__web_refuse(struct web_exchange *x,
                                                             unsigned status, clave_err err,
                                                             const char *path, const char *fmt,
                                                             ...);
/* The same with 400 and EINVAL, about no path. */
__attribute__((format(printf, 2, 3))) bool clave__web_bad_request(struct web_exchange *x,
                                                                  const char *fmt, ...);

/* The sender lacks the role on the path (NULL: on any): answers 401 or 403. */
void clave__web_refuse_role(struct web_exchange *x, enum web_role role, const char *path);
/* The sender has the role on the path, which is valid as long as the exchange. It is asked for
 * again when the access has changed while the request waits. false: it has answered 401, 403 or
 * 503. */
bool clave__web_must(struct web_exchange *x, enum web_role role, const char *path);

/* Zeroed memory that lasts as long as the exchange. NULL: it has answered 503. */
void *clave__web_must_alloc(struct web_exchange *x, size_t n);

/* The answer to a request of a client on `path` that failed with `err`: the one table from errors
 * to statuses. Of a request that changes nothing an unknown outcome is 503, of others 504. `what`
 * is a verb: "cannot create /a: no such node"; `path` may be NULL. */
void clave__web_problem_err(struct web_exchange *x, clave_err err, const char *what,
                            const char *path);
/* The status of that answer. */
unsigned clave__web_status(const struct web_exchange *x, clave_err err);
/* The same with another status. */
void clave__web_problem_as(struct web_exchange *x, unsigned status, clave_err err, const char *what,
                           const char *path);
/* Why a hold or a session has ended, as programs read it: "expired", "closed", "deleted", ... */
const char *clave__web_cause(clave_err why);
/* As the member "cause". */
void clave__web_put_cause(struct json *j, clave_err why);
/* True if the error has such a word, that is, if it ends a hold or a wait. */
bool clave__web_is_cause(clave_err why);

/* ==== long lists ============================================================================== */

/* An answer of JSON that is made piece by piece while it is read, so that a long
 * one neither takes long in one turn nor is all in memory. One that fits into its first piece is an
 * answer like any other. */

/* Writes some more; *done: that was all. An error ends the answer where it is; of the first piece
 * it is answered with 503. */
typedef clave_err pieces_next(void *arg, struct json *j, bool *done);

/* `end` is called once, when nothing more is asked of `next`; it may be NULL. */
void clave__web_answer_pieces(struct web_exchange *x, pieces_next *next, void (*end)(void *arg),
                              void *arg);

#endif
