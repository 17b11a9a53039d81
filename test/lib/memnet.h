/* memnet.h - clients and one server in this process: their bytes carried by hand, frame by
 * frame, under a clock of our own. A test may hold, lose or cut at any chosen message, so
 * every timeline can be played, and the same one every time. */
#ifndef CLAVE_TEST_MEMNET_H
#define CLAVE_TEST_MEMNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clave/async/client.h"
#include "server/server.h"
#include "wire/proto.h"

enum {
    PAIR_CLIENTS = 32,
    PAIR_RULES = 8,
    PAIR_OPS = 128,
    PAIR_STATES = 64,
    PAIR_UNANSWERED = 4096
};

/* Which message. */
enum pair_way { PAIR_REQUEST, PAIR_REPLY };
/* What a message may be beside a request's opcode or the reply to it. An event is
 * OP_NOTIFICATION. */
enum { PAIR_HANDSHAKE = -100, PAIR_ANY = -101 };

enum pair_fate {
    PAIR_HOLD,     /* it and all behind it wait until pair_clear */
    PAIR_LOSE,     /* the connection is cut in its place; once */
    PAIR_PASS_CUT, /* the connection is cut right behind it; once */
};

struct pair_rule {
    size_t client;
    enum pair_way way;
    int op;
    enum pair_fate fate;
    unsigned skip; /* so many such messages pass before */
};

struct pair_options {
    size_t clients;
    int32_t timeout_ms;   /* of the sessions; 0: 10000 */
    const clave_mem *mem; /* of the clients */
    const char *chroot;   /* "" or "/x" */
    int32_t container_check_ms;
    int32_t margin_ms;
    clave_log_cb *client_log; /* of all clients; NULL: none */
    void *client_log_arg;
    bool ensemble; /* the server poses as a member of one: pings prove nothing */
    uint64_t seed; /* of all clients alike; 0: each has its own */
};

struct pair_end {
    clave_async_client *c;
    struct server_conn *conn; /* NULL: not connected */
    bool closing;             /* the server hung up; what it sent is still to come */
    bool refused;             /* dialling fails */
    bool frozen;              /* the process is stopped */
    bool severed; /* the client's side of the connection is gone, the server's not yet */
    struct buf up, down;
    bool up_shaken, down_shaken;
    int32_t ops[PAIR_UNANSWERED]; /* of the requests not yet replied to, in order */
    size_t ops_head, ops_tail;
    uint64_t requests[PAIR_OPS]; /* that reached the server, by opcode */
    uint64_t events;             /* that reached the client */
    clave_state states[PAIR_STATES];
    size_t nstates;
};

struct pair {
    struct pair_options o;
    struct clave_mem mem;
    struct server *server; /* NULL: stopped */
    struct buf log;        /* all it ever wrote */
    int64_t now;
    int64_t wall_shift; /* of the server's wall clock, from its next tick on */
    struct pair_end end[PAIR_CLIENTS];
    struct pair_rule rules[PAIR_RULES];
    size_t nrules;
};

/* All clients are started, and connected after pair_settle. Never NULL. */
struct pair *pair_new(const struct pair_options *o);
/* Frees clients, then the server. */
void pair_free(struct pair *p);

/* Carries bytes until nobody has any; the clock stands. */
void pair_settle(struct pair *p);
/* Lets `ms` pass, with every timer that falls due. */
void pair_advance(struct pair *p, int64_t ms);

void pair_rule(struct pair *p, struct pair_rule rule);
void pair_clear(struct pair *p); /* no rules; what was held goes on at the next settle */
void pair_cut(struct pair *p, size_t client);
/* No connection succeeds any more; the present one is cut. */
void pair_refuse(struct pair *p, size_t client, bool refuse);
/* The process does not run: neither its clock nor its socket. */
void pair_freeze(struct pair *p, size_t client, bool freeze);
/* The client gets all that its socket has in one piece, and its clock does not move. */
void pair_feed_at_once(struct pair *p, size_t client);

/* Curator's KillSession: another connection closes the client's session. */
void pair_kill_session(struct pair *p, size_t client);
void pair_stop_server(struct pair *p);
void pair_start_server(struct pair *p); /* from its log */

/* ---- message by message: nothing else moves ---------------------------------------------------
 */

/* The client's own look at the servers' configuration; nothing. */
enum { PAIR_CONFIG = -102, PAIR_NONE = -103 };
/* What the message that is next on this way is; PAIR_NONE: there is none. */
int pair_next(struct pair *p, size_t client, enum pair_way way);
/* It arrives. */
void pair_pass(struct pair *p, size_t client, enum pair_way way);
/* How many requests are under way to the server, of these operations. */
size_t pair_under_way(struct pair *p, size_t client, const int *ops, size_t n);
/* The connection is lost: what was said by the client may still arrive, until it comes back; what
 * was and is said to it does not. */
void pair_sever(struct pair *p, size_t client);
/* The client comes back, with its session or a new one; for it time passes. */
void pair_connect(struct pair *p, size_t client);
/* The client's next timer is due; nobody else's goes off. */
void pair_tick(struct pair *p, size_t client);
/* The session's time is up; its connection goes, when all that was said on it has arrived. */
void pair_expire(struct pair *p, size_t client);

/* Requests but pings that have reached the server from this client. */
uint64_t pair_requests(const struct pair *p, size_t client);
void pair_reset_counts(struct pair *p);
bool pair_saw(const struct pair *p, size_t client, clave_state state);
struct server_stats pair_stats(const struct pair *p);

#endif
