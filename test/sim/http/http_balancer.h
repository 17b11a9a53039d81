/* http_balancer.h - a balancer that asks the gates whether candidates lead, with a min_term: of the
 * answers of one gate no leader gets 200 sooner than min_term after the last 200 of another one, on
 * true time; and who gets it did lead within the age of the answer. */
#ifndef CLAVE_SIM_HTTP_BALANCER_H
#define CLAVE_SIM_HTTP_BALANCER_H

#include "http/gate_host.h"

struct http_balancer {
    struct http_world *of; /* NULL: there is none, since there is no election */
    struct http_sender sender;
    struct rand_state rng;
    struct clock clock;
    struct http_call *call; /* that it waits for; NULL: none */
    bool has_answer;        /* it came, and is not read yet */
    struct alarm alarm;
    unsigned site;
    int64_t min_term_ms, rest_us;
    /* Of each gate: whose term got 200, and when the newest request that did was sent. */
    struct {
        int64_t term, at;
    } last[2];
    bool leaves;
};

/* After the sites are drawn. */
void http_balancer_init(struct http_balancer *b, struct http_world *of);
void http_balancer_start(struct http_balancer *b);
void http_balancer_finish(struct http_balancer *b);
void http_balancer_fini(struct http_balancer *b);

#endif
