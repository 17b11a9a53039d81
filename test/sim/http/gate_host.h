/* gate_host.h - the process of a gate: the engine of HTTP with all its clients, driven as a loop on
 * sockets drives them, with a clock that is a little off. It can be stopped between any two steps
 * of its loop, also between reading the clock and using it; killed, and started again with the same
 * key. */
#ifndef CLAVE_SIM_GATE_HOST_H
#define CLAVE_SIM_GATE_HOST_H

#include "allocator.h"
#include "clave/async/client.h"
#include "http/http_call.h"
#include "http/http_roles.h"
#include "net.h"
#include "web/web.h"

enum { GATE_CLIENTS = 24, GATE_SERVERS = 5 };

struct gate_client {
    struct gate *gate;
    clave_async_client *c; /* NULL: a free place */
    struct net_socket *socket;
    bool told_open, doomed;
    size_t wrote;
};

enum gate_step {
    GATE_CLOCK, /* woken: what time is it */
    GATE_TICK,
    GATE_CLIENT_LOOK, /* the time again; then of each client: time, bytes, dials, writes */
    GATE_CLIENT_FEED,
    GATE_CLIENT_OBEY,
    GATE_CLIENT_WRITE,
    GATE_CLIENT_SENT,
    GATE_TAKE,  /* a request is read from its connection */
    GATE_STAMP, /* and then the clock */
    GATE_BEGIN,
    GATE_ANSWER,
};

struct gate {
    struct world *w;
    struct net *net;
    struct net_listener *servers[GATE_SERVERS];
    unsigned nservers;
    char name[LOG_WHO];
    char hosts[64];
    uint8_t key[32];
    bool draws_key; /* another one in each life: nobody else knows it */
    unsigned number;
    size_t most_waiting;      /* 0: as many as like */
    const bool *may;          /* what the team may lock, as a file says; NULL: there is no file */
    struct http_roles *roles; /* as it has read that */
    bool rereads;             /* it is told to read it again */
    struct allocator allocator;
    struct rand_state rng;
    struct clock clock;
    struct net_route route;
    int64_t delay_us; /* to its users, at most; more while `late_to` */
    int64_t late_to, late_us;

    struct web *web; /* NULL: it does not run */
    struct web_env env;
    unsigned life;
    bool closing;
    struct gate_client clients[GATE_CLIENTS];
    bool reaps;        /* one of them is doomed */
    struct list calls; /* that have arrived */
    struct http_call *taken;

    enum gate_step step;
    size_t at; /* which client */
    int64_t now;
    bool restless;
    bool paused;
    unsigned stop_in;
    int64_t stop_us;
    int64_t back_us; /* closing: it is started again so long after its end; 0: it is not */
    struct alarm run, timer, resume, back;
};

void gate_init(struct gate *g, struct world *w, struct net *n, unsigned number);
void gate_fini(struct gate *g);
void gate_start(struct gate *g);
/* Stops: answers what waits, leaves sessions to the others, ends; it is started again so long after
 * that. 0: it is not. */
void gate_close(struct gate *g, int64_t back_us);
/* kill -9; it is started again after so long. 0: it is not. */
void gate_kill(struct gate *g, int64_t back_us);
/* Stopped for so long, before the step-th step from now on. */
void gate_pause_at(struct gate *g, unsigned step, int64_t us);
void gate_wake(struct gate *g);
/* A request has arrived. */
void gate_take(struct gate *g, struct http_call *c);
/* One of its connections to the servers is cut; `silently`: nobody is told. */
void gate_cut(struct gate *g, bool silently);
/* Half-open for so long: what is sent to the servers, or what they answer, or both, arrives later.
 */
void gate_stall(struct gate *g, int64_t us);
/* It reaches no server for so long. */
void gate_cut_off(struct gate *g, int64_t us);
/* Faults of its connections are over. */
void gate_heal(struct gate *g);
int64_t gate_delay(struct gate *g);

#endif
