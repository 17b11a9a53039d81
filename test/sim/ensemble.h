/* ensemble.h - a model of an Apache ensemble. The leader is the server's engine with its disk,
 * where "durable" means acknowledged by a quorum; its members follow it (ensemble_member.h).
 * Sessions are expired here, as a leader's tracker does it: by what members report with the answer
 * to its ping every half tick, and by the handshakes that pass it.
 *
 * A leader that is cut off from the quorum, paused or killed is followed by another one in a new
 * epoch, which has all that was committed, any part of what was not, a clock of its own, and
 * gives every session its full time anew. The one before may go on believing that it leads. */
#ifndef CLAVE_SIM_ENSEMBLE_H
#define CLAVE_SIM_ENSEMBLE_H

#include "ensemble_member.h"
#include "server_host.h"

enum { MEMBERS = 5, TRACKED_SESSIONS = 256 };

/* What /zookeeper/config says: a standalone server's is empty, and clients go by that. */
#define ENSEMBLE_CONFIG "server.1=m0:2888:3888:participant\nversion=0"

struct tracked_session {
    int64_t id; /* 0: free */
    int32_t timeout_ms;
    int64_t expires; /* by the leader's clock */
};

struct ensemble {
    struct world *w;
    struct net *net;
    struct server_host *leader; /* whoever leads; between two, its process is down */
    int32_t tick_ms;
    bool rounds; /* expiry to the end of a tick, as Apache; else stricter than any leader */
    unsigned n;
    struct ensemble_member members[MEMBERS];
    unsigned leading; /* who does, or did last */
    int64_t epoch;
    struct buf log; /* all that was ever proposed and is not known to be dropped */
    struct log_entry *entries;
    size_t nentries, entries_cap;
    size_t committed; /* entries */
    struct tracked_session sessions[TRACKED_SESSIONS];
    struct alarm expiry;
    struct alarm survey;   /* every tick */
    struct alarm election; /* has a result */
    int32_t timeout_ms;    /* of sessions whose client never heard of them */
};

/* `leader` was initialised with ensemble_options; it is started here. */
void ensemble_init(struct ensemble *e, struct server_host *leader);
void ensemble_fini(struct ensemble *e);
struct server_options ensemble_options(struct server_options o);
void ensemble_start(struct ensemble *e);
/* There is a leader, and all members follow it. */
void ensemble_heal(struct ensemble *e);

/* A quorum is left without so many members that follow now. */
bool ensemble_can_spare(const struct ensemble *e, unsigned members);

enum leader_fault {
    LEADER_CUT,    /* from the quorum: it goes on for `us` */
    LEADER_PAUSED, /* for `us`, and goes on for a moment after it */
    LEADER_KILLED, /* and is back as a member after `us` */
};
/* `with`: another member is on its side, or NULL. The others notice within `notice_us`. */
void ensemble_depose(struct ensemble *e, enum leader_fault how, int64_t us,
                     struct ensemble_member *with, int64_t notice_us);

size_t ensemble_watches(const struct ensemble *e);

/* ---- for members --------------------------------------------------------------------- */

/* What the leader makes of a timeout asked for. */
int32_t ensemble_negotiate(const struct ensemble *e, int32_t asked_ms);
/* The leader hears of a session at this true time. `timeout_ms` 0: what it was. */
void ensemble_touch(struct ensemble *e, int64_t session, int32_t timeout_ms, int64_t at);
/* From one ping of the leader to the next, in true time: half a tick by its clock. */
int64_t ensemble_ping_interval(struct ensemble *e);

#endif
