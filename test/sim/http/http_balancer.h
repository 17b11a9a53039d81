/* http_balancer.h - a balancer that sends everything to the leader of an election: it checks each
 * of a few candidates at the gates, /v1/leader with a min_term, takes a candidate in after `rise`
 * answers 200 in a row and out after `fall` that are not, or that come too late. Its candidates are
 * checked at one gate, each at one of its own, or each time at any; min_term is what
 * docs/guide/elections.md has it count, without the second for machines that are late, which it
 * never is.
 *
 * What must hold, on true time: no two candidates are in at once; of the answers of one gate no
 * leader gets 200 sooner than min_term after the last 200 of another one; who gets it did lead
 * within the age of the answer; and nothing is answered from a copy that is not current. */
#ifndef CLAVE_SIM_HTTP_BALANCER_H
#define CLAVE_SIM_HTTP_BALANCER_H

#include "base/rand.h"
#include "http/gate_host.h"

enum { BALANCER_SERVERS = 4 };

struct http_balancer;

struct balancer_server {
    struct http_balancer *of;
    char id[CLAVE_UUID_TEXT + 1]; /* of a candidate's claim; "": there is none */
    struct http_call *call;       /* the check that it waits for; NULL: none */
    bool has_answer;              /* it came, and is not read yet */
    struct alarm alarm;
    int64_t checked_at;      /* true time: the last check was begun */
    unsigned passed, failed; /* in a row */
    bool in;
};

enum balancer_way { BALANCER_ONE_GATE, BALANCER_OWN_GATES, BALANCER_ANY_GATE, BALANCER_WAYS };

struct http_balancer {
    struct http_world *of; /* NULL: there is none, since there is no election */
    struct http_sender sender;
    struct rand_state rng;
    struct clock clock;
    struct balancer_server servers[BALANCER_SERVERS];
    enum balancer_way way;
    unsigned site;
    int64_t inter_us, check_us, min_term_ms;
    unsigned rise, fall;
    /* Of each gate: whose term got 200, and when the newest request that did was sent. */
    struct {
        int64_t term, at;
    } last[2];
    bool leaves;
    uint64_t ins;
};

/* After the sites are drawn. */
void http_balancer_init(struct http_balancer *b, struct http_world *of);
void http_balancer_start(struct http_balancer *b);
void http_balancer_finish(struct http_balancer *b);
void http_balancer_fini(struct http_balancer *b);

#endif
