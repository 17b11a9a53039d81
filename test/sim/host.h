/* host.h - a client's process: one clave_async_client, driven as a loop on sockets drives it, with
 * a clock that is a little off. It can be stopped between any two steps of its loop (also
 * between reading the clock and using what it said), killed, and started again. */
#ifndef CLAVE_SIM_HOST_H
#define CLAVE_SIM_HOST_H

#include "allocator.h"
#include "clave/async/client.h"
#include "message_fault.h"
#include "net.h"

enum { HOST_SERVERS = 5 };

/* In the order of a pass; a stopped process stands before one of them. */
enum host_step {
    STEP_CLOCK, /* woken: what time is it */
    STEP_TICK,
    STEP_LOOK, /* bytes from the socket, and the time again */
    STEP_FEED,
    STEP_OBEY, /* dial, hang up */
    STEP_WRITE,
    STEP_SENT,
    STEP_ACT, /* the user's code */
};

struct host_options {
    int32_t session_timeout_ms;
    int32_t relay_interval_ms;
    unsigned servers;
    int64_t slice_us; /* a pass begins at most so late */
    int64_t look_us;  /* mean time between two reads of no consequence; 0: there are none */
    uint64_t seed;    /* of its client, in each life; 0: another one each time */
    bool identified;  /* it authenticates on each connection */
    /* The session that its next life begins with, as another process has handed it over; NULL: one
     * of its own. */
    const char *resume;
};

struct host {
    struct world *w;
    struct net *net;
    struct net_listener *servers[HOST_SERVERS];
    struct host_options options;
    unsigned index;
    char name[LOG_WHO];
    struct allocator allocator;
    struct rand_state rng; /* of its steps and its users */
    struct clock clock;
    struct net_route route;
    /* Until `reach_to` its dials to other servers than these (by bit) go nowhere. */
    unsigned reach;
    int64_t reach_to;
    struct net_route nowhere;

    clave_async_client *client; /* NULL: the process does not run */
    unsigned life;              /* counts the processes */
    bool closing;               /* it was asked to end its session, and then ends itself */
    clave_state state;          /* the last it was told */

    struct net_socket *socket;
    unsigned server; /* which it dialled */
    bool told_open;
    enum host_step step;
    int64_t now;   /* as the process last read its clock, ms */
    size_t wrote;  /* by STEP_WRITE, for STEP_SENT */
    bool restless; /* the pass has changed something: once more */

    bool paused;
    unsigned stop_in; /* steps; 0: not armed */
    int64_t stop_us;  /* for so long then; 0: for ever, it is killed */

    struct alarm run;
    struct alarm timer;
    struct alarm resume;
    struct alarm look;
    bool look_due;
    struct opcode_scanner scanner;
    struct message_fault message_fault;
    uint64_t triggered; /* message faults that were */
    uint64_t refused;   /* setWatches that were */

    /* The user's code. */
    void (*on_start)(struct host *h);
    void (*on_act)(struct host *h);
    void (*on_state)(struct host *h, clave_state state, clave_err why);
    void (*on_killed)(void *arg, struct host *h); /* of stop_us 0 */
    void *killed_arg;
    void (*on_end)(struct host *h);   /* the client is about to be freed */
    void (*on_ended)(struct host *h); /* it was */
    void *user;
};

void host_init(struct host *h, struct world *w, struct net *n, unsigned index);
void host_fini(struct host *h);

void host_start(struct host *h);
/* Ends the session first; the process ends when that is done. */
void host_close(struct host *h);
/* kill -9; with `machine` nobody is left to say goodbye to the peer either. */
void host_kill(struct host *h, bool machine);
/* SIGSTOP for so long: now, or before the step-th step from now on (then 0 is kill -9). */
void host_pause(struct host *h, int64_t us);
void host_pause_at(struct host *h, unsigned step, int64_t us);
void host_resume(struct host *h);
/* The user has something to do. */
void host_wake(struct host *h);

/* What the process's clock shows at this moment, whether it runs or not. */
int64_t host_clock(const struct host *h);
/* It runs, and has seen all that is due by its clock. */
bool host_is_awake(const struct host *h);

#endif
