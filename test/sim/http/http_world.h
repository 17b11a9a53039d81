/* http_world.h - one or two gates of one service, programs that hold locks over HTTP, and what goes
 * wrong with them; in some of the seeds, with random numbers of their own. Their locks are other
 * ones than those of the native clients, on the same servers.
 *
 * What must hold, on true time: nobody believes, by its own clock, to hold what is not its own by
 * the servers' tree; no two do at once; tokens grow; a claim has one place in its queue, whichever
 * gate it was asked of; a session is never silently another; and what a silent client held is
 * given back in time, while its gate lives on. */
#ifndef CLAVE_SIM_HTTP_WORLD_H
#define CLAVE_SIM_HTTP_WORLD_H

#include "checker.h"
#include "ensemble.h"
#include "http/http_balancer.h"
#include "http/http_fleet.h"
#include "http/http_group.h"
#include "http/http_rules.h"
#include "http/http_signs.h"
#include "http/http_team.h"
#include "http/http_told.h"
#include "http/http_user.h"

enum { HTTP_USERS = 4 };

/* Clocks of gates and users differ by less than what the gates allow for ("validity" in
 * http_session.h); from the servers' by as much as those of native clients do. */
enum { HTTP_PPM = 7000 };

struct http_site {
    struct lock_layout layout;
    char body[192];      /* of POST /v1/claims */
    int64_t max_hold_ms; /* 0: none */
    int64_t depend_ms;   /* likewise */
    int64_t last_token;
    bool grows; /* its tokens are granted in their order */
};

struct http_world {
    struct world *w;
    struct server_host *server;
    struct checker *checker;
    int64_t timeout_us;
    struct rand_state rng;
    struct gate gates[HTTP_GATES];
    struct http_user users[HTTP_USERS];
    struct http_team team;
    bool has_team;
    struct http_balancer balancer;
    struct http_fleet fleet; /* of no machine: there is none */
    struct http_group group; /* of no program: there is none */
    bool may[HTTP_SITES];    /* what it may lock */
    struct http_roles roles[HTTP_GATES];
    struct alarm role; /* changes */
    struct http_places places;
    struct http_told told;
    struct http_signs signs;
    struct list calls;     /* that are under way */
    size_t ngates, nusers; /* 0: this seed has none */
    struct http_site sites[HTTP_SITES];
    int64_t fault_us; /* mean time between two faults */
    bool faults;      /* it is day */
    struct alarm fault;
    uint64_t count;
};

/* Draws whether there are any. `ensemble` NULL: the server stands alone. */
void http_world_draw(struct http_world *h, struct checker *c, struct net *n,
                     struct ensemble *ensemble, int64_t timeout_us);
void http_world_start(struct http_world *h);
/* After every step. */
void http_world_look(struct http_world *h);
/* Faults are over, users finish or vanish. */
void http_world_evening(struct http_world *h);
/* Everybody has gone, and nothing of theirs is left in the tree. */
bool http_world_is_quiet(const struct http_world *h);
void http_world_close(struct http_world *h);
bool http_world_is_closed(const struct http_world *h);
void http_world_fini(struct http_world *h);

const struct http_site *http_site(const struct http_world *h, unsigned site);
/* So long a team goes on in the evening. */
int64_t http_team_stay_us(const struct http_world *h);
void http_tell(const struct world *w, const char *name, const struct http_call *c, const char *what,
               const char *more);
/* A user has a new hold. */
void http_world_granted(struct http_world *h, struct http_user *u);

#endif
