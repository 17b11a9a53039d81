/* crowd.h - clave_crowd: very many clients of one ensemble, in simulated time
 * (docs/evidence/scale.md).
 *
 *   main.c         the course of a run, the report
 *   options        the command line, and the scenarios of docs/evidence/scale.md
 *   event_queue    what is to happen, by time
 *   cluster        the members and observers, each a CPU that takes so many microseconds a request;
 *                  the leader; the disks. One engine of the server, as shipped, is the state of all
 *   connection     a client's messages through member and leader, and the answers back
 *   participant    a client as shipped, with a lock and perhaps a place in an election
 *
 * It differs from clave_sim: nothing is lost between two messages, no clock drifts, and members do
 * not lag. What is counted here is load: requests, queues, and the time until all is well. */
#ifndef CLAVE_CROWD_CROWD_H
#define CLAVE_CROWD_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/rand.h"
#include "clave/async/client.h"
#include "clave/async/latch.h"
#include "clave/async/mutex.h"
#include "event_queue.h"
#include "server/server.h"

enum { CROWD_MEMBERS = 16, BIN_US = 100000, CROWD_BINS = 60 * 60 * 10 };

/* Microseconds of a member's or an observer's CPU, unless it says otherwise. */
struct costs {
    int64_t read;     /* a read or a ping */
    int64_t write;    /* at the leader; the member that forwards it pays `read` */
    int64_t send;     /* a write, at the leader, for each other member */
    int64_t apply;    /* a committed write, at every member */
    int64_t attach;   /* a handshake of a session that exists, at the leader */
    int64_t accept;   /* a connection, at the member; with TLS its handshake */
    int64_t refuse;   /* a connection, at a member that has no leader */
    int64_t kib;      /* 1024 bytes of answers */
    int64_t commit;   /* time: until a batch is on the disks of a quorum */
    int64_t net;      /* time: one way */
    int64_t election; /* time: from a leader's death until the next one serves */
};

struct crowd_options {
    size_t clients;
    size_t locks;
    size_t candidates; /* the first so many clients are in one election as well */
    size_t members;    /* with a vote; the first of them leads */
    size_t observers;
    int64_t hold_ms; /* a lock is released after it, and acquired again; 0: never */
    int64_t timeout_ms;
    int64_t start_ms; /* the clients start within this time */
    int64_t outage_ms;
    int64_t after_ms; /* how long to look after the fault */
    const char *fault;
    /* The clients' back-off: exponential, from the first pause to the longest, with jitter; or
     * always the same pause. Zeros: their default. */
    int64_t backoff_ms, backoff_max_ms, pause_ms;
    int64_t seed;
    struct costs costs;
};

struct member {
    bool dead;
    int64_t busy_until;
    uint64_t requests;
};

struct cluster {
    struct server *engine;
    struct member members[CROWD_MEMBERS]; /* the observers are the last of them */
    size_t size;
    size_t leader;
    bool serving;         /* there is a leader */
    int64_t silent_until; /* until then the network carries nothing */
    bool committing;
    int64_t committing_zxid;
    uint32_t term; /* an event of an older one is void */
    int64_t tick_at;
    uint32_t at_leader[CROWD_BINS]; /* requests, in tenths of a second */
    int64_t longest_wait;           /* of a request for the leader's CPU */
};

struct connection {
    struct server_conn *conn; /* NULL: none at the server */
    uint32_t generation;
    uint32_t member;
    bool dialling;
    bool queued; /* at a member that has no leader */
    bool open;   /* as the client sees it */
    bool shaken; /* the handshake was sent */
    struct buf up, down;
    uint32_t passed, led;   /* messages at the head of `up` that member and leader are done with */
    int64_t up_at, down_at; /* when the newest bytes arrive on each side */
};

struct participant {
    clave_async_client *client;
    clave_async_mutex *mutex;
    clave_async_latch *latch; /* NULL: no candidate */
    struct crowd *crowd;
    struct connection conn;
    int64_t armed; /* the time of its next EVENT_TIMER */
    bool dead;
    bool connected;
    bool holds;
    bool leads;
};

struct crowd {
    struct crowd_options o;
    struct event_queue queue;
    struct rand_state rand;
    struct clave_mem mem;
    int64_t now; /* us */
    struct cluster cluster;
    struct participant *participants;

    size_t alive, connected, leaders;
    size_t locks_held, locks_wanted;
    uint32_t *lock_users; /* living contenders, by lock */
    bool well;            /* all are connected, each lock is held, somebody leads */
    int64_t well_since;
    uint64_t lost; /* sessions that living clients have lost */
};

/* Ends the program when `ok` is false: a mistake of its own, or no memory. */
#define crowd_require(ok) ((ok) ? (void)0 : crowd_fail(#ok, __FILE__, __LINE__))
_Noreturn void crowd_fail(const char *what, const char *file, int line);
int64_t crowd_ms(const struct crowd *w); /* the time as the engines see it */
void crowd_put(struct crowd *w, int64_t at, enum event_kind kind, struct participant *p,
               uint32_t detail);
/* A count that `well` depends on has changed. */
void crowd_look(struct crowd *w);

/* ---- options ----------------------------------------------------------------------------------
 */

/* Ends the program, with its usage, when it cannot understand them. */
void crowd_options_read(struct crowd_options *o, int argc, char **argv);

/* ---- cluster ----------------------------------------------------------------------------------
 */

void cluster_begin(struct crowd *w);
void cluster_free(struct crowd *w);
/* The time at which the member's CPU is done with this much more work, which arrives at `at`. */
int64_t member_work(struct member *m, int64_t at, int64_t us);
/* The leader gets a write, or a session that comes back; returns when its CPU is done with it. */
int64_t cluster_lead(struct crowd *w, bool write);
/* When what is sent now arrives. What the network does not carry TCP sends again, after `again` us,
 * and after twice as long each time. */
int64_t cluster_reached_at(const struct crowd *w, int64_t again);
/* Every member applies a committed write. */
void cluster_apply(struct crowd *w);
/* The engine has been called: the log, the answers, its deadline. */
void cluster_settle(struct crowd *w);
/* `detail`: the leader's term. */
void cluster_committed(struct crowd *w, struct participant *p, uint32_t detail);
void cluster_tick(struct crowd *w, struct participant *p, uint32_t detail);
void cluster_fault(struct crowd *w, struct participant *p, uint32_t detail);
void cluster_fault_over(struct crowd *w, struct participant *p, uint32_t detail);

/* ---- connection -------------------------------------------------------------------------------
 */

void connection_init(struct connection *c, const struct clave_mem *mem);
void connection_fini(struct connection *c);
void connection_dial(struct crowd *w, struct participant *p);
void connection_asked(struct crowd *w, struct participant *p, uint32_t detail);
void connection_turned_away(struct crowd *w, struct participant *p, uint32_t detail);
void connection_dialled(struct crowd *w, struct participant *p, uint32_t detail);
/* Takes what the client wants to send. false: nothing. */
bool connection_send(struct crowd *w, struct participant *p);
void connection_arrived(struct crowd *w, struct participant *p, uint32_t detail);
void connection_passed(struct crowd *w, struct participant *p, uint32_t detail);
/* `detail`: 1 for a write. */
void connection_at_leader(struct crowd *w, struct participant *p, uint32_t detail);
void connection_led(struct crowd *w, struct participant *p, uint32_t detail);
/* The engine has output for it, or closes it. */
void connection_collect(struct crowd *w, struct server_conn *conn);
/* It is over at the server; the client learns it. */
void connection_cut(struct crowd *w, struct participant *p);
/* It is over on both sides. */
void connection_reset(struct participant *p);

/* ---- participant ------------------------------------------------------------------------------
 */

void participant_begin(struct crowd *w, struct participant *p, uint32_t detail);
void participant_free(struct participant *p);
/* Does what the client wants of its transport, and arms its timer. */
void participant_pump(struct participant *p);
void participant_timer(struct crowd *w, struct participant *p, uint32_t detail);
void participant_release(struct crowd *w, struct participant *p, uint32_t detail);
/* The process ends, and says nothing. */
void participant_kill(struct participant *p);

#endif
