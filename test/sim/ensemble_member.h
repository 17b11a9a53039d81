/* ensemble_member.h - one server of an ensemble, as its clients see it. It follows the leader's log
 * at its own pace, answers reads and pings from what it knows, and passes the rest on. What it
 * hears of its leader, and whether it knows that it hears nothing, is its mode. */
#ifndef CLAVE_SIM_ENSEMBLE_MEMBER_H
#define CLAVE_SIM_ENSEMBLE_MEMBER_H

#include "member_conn.h"
#include "replica.h"

enum { MEMBER_TOUCHED = 64 };

enum member_mode {
    MEMBER_DOWN,    /* it has no leader, or does not run: no clients */
    MEMBER_FOLLOWS, /* or leads */
    MEMBER_CUT,     /* hears nothing of its leader, and has not noticed */
    MEMBER_DEPOSED, /* led, or follows a leader that did, and has not noticed that there is another
                     */
};

/* News of what was committed, on its way. */
struct arrival {
    int64_t at;
    size_t entries; /* of the ensemble's log */
};

struct active_list {
    int64_t sessions[MEMBER_TOUCHED];
    size_t n;
};

struct ensemble;

struct ensemble_member {
    struct ensemble *of;
    struct world *w;
    unsigned index;
    char name[LOG_WHO];
    struct net_listener listener;
    struct net_route route; /* to the leader */
    int64_t route_us;       /* its delay while another one leads */
    struct clock clock;
    enum member_mode mode;
    bool heals;        /* of MEMBER_CUT: in time, and nobody will have noticed */
    int64_t frozen_to; /* its process is stopped until then */
    int64_t lag_to;    /* nothing that was committed reaches its tree before then */
    struct replica replica;
    size_t applied; /* entries of the ensemble's log */
    struct arrival *arrivals;
    size_t narrivals, arrivals_cap;
    struct list conns; /* its clients' connections */
    struct alarm run;
    struct alarm commit; /* the first arrival */
    struct alarm ping;   /* the leader's comes */
    struct alarm answer; /* to it, at the leader */
    struct alarm next;   /* it notices; or finds the leader again */
    struct active_list touched, told;
};

void member_init(struct ensemble_member *m, struct ensemble *e, unsigned index);
void member_fini(struct ensemble_member *m);

/* It has found the leader, and what it had missed: clients may come. */
void member_join(struct ensemble_member *m);
/* It hears of its leader no more, and notices after `us`; or hears of it again then. */
void member_cut(struct ensemble_member *m, int64_t us, bool heals);
/* It leads no more, or its leader does not, and notices after `us`. */
void member_depose(struct ensemble_member *m, int64_t us);
/* Killed, and started again after `us` with nothing: its log is its leader's. */
void member_kill(struct ensemble_member *m, int64_t us);
void member_freeze(struct ensemble_member *m, int64_t us);
void member_lag(struct ensemble_member *m, int64_t us);
/* Faults are over. */
void member_heal(struct ensemble_member *m);
/* So many entries of the log are committed. */
void member_commit(struct ensemble_member *m, size_t entries);

/* ---- for member_conn ---------------------------------------------------------------------- */

struct net_socket *member_dial_leader(struct ensemble_member *m);
/* A client of it has said something. */
void member_note_active(struct ensemble_member *m, int64_t session);

#endif
