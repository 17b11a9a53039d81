/* http_fleet.h - machines that may reboot a few at a time: each has a slot of its own, which it
 * takes and gives back by FleetLock or by claims of kind "slot", each request at any gate. What has
 * no answer is asked for once more, given up, or undone at another gate; a request may wait for its
 * gate, which stands still, and be begun long after its machine has given it up.
 *
 * What must hold, on true time. An answer is certain when no older request of its machine was left
 * at any gate when it was asked for.
 *   - What is said to be owned was owned at a moment since it was asked, and what is said to be
 *     given back, or not owned, was not.
 *   - From a certain answer on nothing that was asked for before takes effect: the machine owns
 * that slot, or none, until it asks for something else.
 *   - A slot is taken while fewer are owned than the limit says; tokens grow.
 *   - Once the faults are over every machine gets a slot, and in the end nothing is left. */
#ifndef CLAVE_SIM_HTTP_FLEET_H
#define CLAVE_SIM_HTTP_FLEET_H

#include "http/gate_host.h"

#define FLEET_PATH "/fleet"
#define FLEET_GROUP "g"

enum { FLEET_MACHINES = 4, MACHINE_PAST = 32 };

struct http_fleet;

/* A slot that the machine owned, by the servers' tree. */
struct machine_slot {
    int64_t token;   /* 0: none yet */
    int64_t gone;    /* true time; HTTP_NEVER: it stands */
    int64_t told_at; /* that it is owned, for the first time; 0: never */
};

enum machine_task { MACHINE_TAKES, MACHINE_GIVES, MACHINE_LOOKS };

struct machine {
    struct http_fleet *fleet;
    struct http_sender sender;
    char id[16], claim[96];
    struct rand_state rng;
    struct alarm alarm;
    struct http_call *call; /* that it waits for; NULL: none */
    bool has_answer;
    bool claims, fleetlock;             /* the doors that it uses, one at least */
    enum machine_task task;             /* the last one */
    bool by_claim, by_token, of_before; /* a give: of a token, of an older one */
    bool alone;       /* nothing older of it was left at a gate when that was asked for */
    int64_t limit_us; /* true time: no longer than that it waits for the answer */

    bool certain;  /* of what it owns: `token` */
    int64_t token; /* 0: nothing */
    bool took;     /* it has asked for a slot since it was certain of this one */
    bool served;   /* it has had a slot since its day was over */
    bool gone;
    struct machine_slot past[MACHINE_PAST]; /* the newest */
    size_t npast;                           /* ever */
    uint64_t owned;
};

struct http_fleet {
    struct world *w;
    struct http_world *of;
    struct clock clock; /* for what only needs one */
    struct machine machines[FLEET_MACHINES];
    size_t n;
    int64_t hold_us, rest_us, patience_us;
    int64_t loyal;      /* percent: what it owns it keeps, and asks for once more */
    unsigned half_open; /* permille of the requests whose connection is */
    bool leaves;
    struct http_sender operator; /* sets the limit */
    struct alarm rules;
    struct http_call *setting;
    bool set; /* it is answered */
    int64_t seen_zxid;
    uint64_t seen_start;
};

void http_fleet_init(struct http_fleet *f, struct http_world *of);
void http_fleet_start(struct http_fleet *f);
/* After every step in which the server runs. */
void http_fleet_look(struct http_fleet *f);
/* Its day is over: each machine has a slot once more, and gives it back. */
void http_fleet_finish(struct http_fleet *f);
/* All have gone, and nothing of theirs is left in the tree. */
bool http_fleet_is_quiet(const struct http_fleet *f);
void http_fleet_fini(struct http_fleet *f);

#endif
