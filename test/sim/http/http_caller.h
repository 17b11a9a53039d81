/* http_caller.h - a program that asks for one thing after the other, each at either gate, over
 * connections that may be half-open: a request arrives late or never, or its answer is lost, and
 * the gate is not told that it was given up. What it asks for, and what it makes of the answers, is
 * its kind's. */
#ifndef CLAVE_SIM_HTTP_CALLER_H
#define CLAVE_SIM_HTTP_CALLER_H

#include "http/gate_host.h"

struct http_caller;

struct http_caller_kind {
    /* The next request, not sent yet; NULL: not now. */
    struct http_call *(*asks)(struct http_caller *c);
    /* An answer, or status 0: the connection has ended. */
    void (*hears)(struct http_caller *c, const struct http_call *call);
    /* A gate has answered, whether that arrives or not. */
    void (*told)(struct http_caller *c, struct http_call *call);
};

struct http_caller {
    struct http_world *of;
    const struct http_caller_kind *kind;
    struct http_sender sender;
    char name[LOG_WHO];
    struct rand_state rng;
    struct clock clock;
    struct alarm alarm;
    struct http_call *call; /* that it waits for; NULL: none */
    bool has_answer;        /* it came, and is not read yet */
    bool alone;             /* nothing older was left at any gate when that was asked for */
    int64_t limit_us;       /* true time: no longer than that it waits */
    int64_t rest_us, patience_us;
    unsigned half_open; /* permille of its requests */
    bool gone;          /* it asks for nothing any more */
};

/* With its own random numbers, from `salt` and the seed, so that others draw as without it. The
 * times and `half_open` are set by the caller. */
void http_caller_init(struct http_caller *c, struct http_world *of, uint64_t salt);
void http_caller_wake_in(struct http_caller *c, int64_t us);
/* It hangs up, and says nothing any more. */
void http_caller_vanish(struct http_caller *c);
void http_caller_fini(struct http_caller *c);
struct gate *http_caller_gate(struct http_caller *c);

#endif
