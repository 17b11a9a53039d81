/* ensemble.h - a simple model of an Apache ensemble: members, and one leader whose tree is
 * the server's engine. Sessions are not expired by the engine but here, as a leader does it:
 * by what the members report every half tick, and by the handshakes that pass it. */
#ifndef CLAVE_SIM_ENSEMBLE_H
#define CLAVE_SIM_ENSEMBLE_H

#include "member.h"

enum { MEMBERS = 3, TRACKED_SESSIONS = 256 };

/* What the engine is asked for in place of the client's own timeout. */
enum { ENGINE_TIMEOUT_MS = 3600 * 1000 };

struct tracked_session {
    int64_t id; /* 0: free */
    int32_t timeout_ms;
    int64_t expires; /* by the leader's clock */
};

struct ensemble {
    struct world *w;
    struct net *net;
    struct server_host *leader;
    int32_t tick_ms;
    struct member members[MEMBERS];
    struct tracked_session sessions[TRACKED_SESSIONS];
    struct alarm expiry;
    struct alarm survey; /* every tick */
    int32_t timeout_ms;  /* of sessions whose client never heard of them */
};

/* `leader` was initialised with ensemble_options. */
void ensemble_init(struct ensemble *e, struct server_host *leader);
void ensemble_fini(struct ensemble *e);
struct server_options ensemble_options(struct server_options o);
/* Behind the leader's start. */
void ensemble_start(struct ensemble *e);
/* All members have the leader again. */
void ensemble_heal(struct ensemble *e);

/* What the leader makes of a timeout asked for. */
int32_t ensemble_negotiate(const struct ensemble *e, int32_t asked_ms);
/* The leader hears of a session at this true time. `timeout_ms` 0: what it was. */
void ensemble_touch(struct ensemble *e, int64_t session, int32_t timeout_ms, int64_t at);

#endif
