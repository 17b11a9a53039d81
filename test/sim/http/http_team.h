/* http_team.h - a program of several workers that share one session, behind a balancer: each of its
 * requests goes to either gate, may be sent there twice or late, and its answer may be lost. Then
 * the worker asks again, with the same Idempotency-Key or without one. The workers agree on
 * nothing: one gives back what another waits for. What they are told is judged by http_told. */
#ifndef CLAVE_SIM_HTTP_TEAM_H
#define CLAVE_SIM_HTTP_TEAM_H

#include "http/gate_host.h"
#include "http/http_places.h"

enum { TEAM_WORKERS = 3 };

struct http_team;

struct team_worker {
    struct http_team *team;
    struct http_call *call; /* that it waits for; NULL: none */
    bool has_answer;
    bool again; /* the last one had no answer, and is asked for once more */
    const char *method;
    char target[160], key[48], prefer[16], guard[64]; /* of the last one */
    unsigned site;
    int64_t limit_ms; /* by the team's clock: no longer than that it waits */
    struct alarm alarm;
};

struct http_team {
    struct world *w;
    struct http_world *of;
    struct http_sender sender;
    char name[LOG_WHO];
    struct rand_state rng;
    struct clock clock;
    struct team_worker workers[TEAM_WORKERS];
    size_t gate;                        /* of a balancer that sticks to one */
    unsigned sticky, loss, twice, late; /* permille of its requests */
    int64_t ttl_ms, rest_us;
    char session[32], secret[160]; /* "": none */
    int64_t renew_at;              /* by its clock */
    char keys[HTTP_SITES][48];     /* of its newest claims; "": none */
    bool leaves, gone;
    int64_t stays_to; /* true time: so long it renews in the evening */
    uint64_t asked, held;
};

void http_team_init(struct http_team *t, struct http_world *of);
void http_team_start(struct http_team *t);
/* Its day is over: it ends its session, or vanishes. */
void http_team_finish(struct http_team *t, bool vanish);
void http_team_fini(struct http_team *t);

#endif
