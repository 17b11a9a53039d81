/* webrig.h - HTTP's engine on a server and clients of memnet, in one process with one clock: each
 * request is made and answered by calls. What it opens it also closes, and it aborts when the
 * engine breaks a rule of web.h. With WEBRIG_RECORD=FILE in the environment it writes down each
 * answer, for tools/check-openapi. */
#ifndef CLAVE_TEST_WEBRIG_H
#define CLAVE_TEST_WEBRIG_H

#include "lib/memnet.h"
#include "web/http/admission.h"
#include "web/web.h"

enum { WEBRIG_CALLS = 64, WEBRIG_AUDITS = 64 };

/* A request and what came of it. */
struct webrig_call {
    struct webrig *rig;
    struct web_request q;
    struct web_header headers[16];
    char *text;       /* the copies of what q points at */
    const char *sent; /* the body */
    size_t nsent;
    struct web_exchange *x;
    bool answered, done; /* done: the whole body is there */
    unsigned status;
    struct buf body;   /* always with a NUL after it */
    bool stop_reading; /* does not ask for more of a stream */
    unsigned wakes;
};

struct webrig {
    struct memnet *net;
    struct web *web;
    struct web *first; /* the engine before webrig_second; NULL: there was none */
    struct web_options options;
    struct web_env env;
    struct clave_mem mem;
    size_t nclients;
    clave_async_client *doomed[MEMNET_CLIENTS]; /* freed inside a callback */
    size_t ndoomed;
    struct webrig_call *calls[WEBRIG_CALLS];
    char audits[WEBRIG_AUDITS][160]; /* "USER METHOD TARGET STATUS session PATH (WHAT)"; the
                                        last three if there are any */
    size_t naudits;
    int64_t announced;    /* of the body that webrig_head has not sent; 0: none */
    struct web_peer peer; /* of the requests to come; at first a loopback address */
    void *of_test;        /* for callbacks that the test puts into env */
};

struct webrig_options {
    struct memnet_options net;
    const struct web_access *access;
    const uint8_t *session_key;
    const clave_mem *mem; /* of the engine and its clients; NULL: libc */
    const struct web_asset *assets;
    size_t nassets;
    size_t max_sessions, max_body, max_waiting, max_held;
    struct log log;
    const char *hosts;       /* names of the one server; NULL: "pair:1" */
    const clave_auth *auths; /* of the engine's own session */
    size_t nauths;
    const char *const *metric_paths;
    size_t nmetric_paths;
};

/* The engine's own session is connected when it returns. NULL options: all zero. */
struct webrig *webrig_new(const struct webrig_options *o);
void webrig_free(struct webrig *r);
void webrig_freed(struct webrig **r); /* for CLOSED_BY of unit.h */
/* Another engine of the same service: requests go to it from now on. */
void webrig_second(struct webrig *r);

/* Requests go to the other one of the two again. */
void webrig_other(struct webrig *r);

/* Carries everything until nobody has anything to do; the clock stands. */
void webrig_settle(struct webrig *r);
void webrig_advance(struct webrig *r, int64_t ms);

/* Sends a request and settles. `headers` is "Name: value\nName: value", or NULL: with a body and
 * no Content-Type it is application/json. `Host` is added. The call belongs to the caller until
 * webrig_end. */
struct webrig_call *webrig_request(struct webrig *r, const char *method, const char *target,
                                   const char *headers, const char *body);
struct webrig_call *webrig_request_bytes(struct webrig *r, const char *method, const char *target,
                                         const char *headers, const void *body, size_t n);
/* Only the head, which announces a body of so many bytes, or one in chunks (-1); then pieces of it
 * (false: no more is wanted), and its end. */
struct webrig_call *webrig_head(struct webrig *r, const char *method, const char *target,
                                const char *headers, int64_t body_length);
bool webrig_piece(struct webrig_call *c, const void *p, size_t n);
void webrig_last_piece(struct webrig_call *c);
/* The client hangs up, or has read its answer. NULL is ignored. */
void webrig_end(struct webrig_call *c);
void webrig_ended(struct webrig_call **c); /* for CLOSED_BY of unit.h */

/* A header of the answer; NULL: there is none. */
const char *webrig_header(const struct webrig_call *c, const char *name);
/* The body as text. */
const char *webrig_body(const struct webrig_call *c);
/* The text of a member of the body anywhere in it, a number as its digits; valid until the next
 * call. NULL: there is none. */
const char *webrig_member(const struct webrig_call *c, const char *key);

#endif
