/* memnet.h - clients and one server in this process, on a network in memory with a clock of its
 * own. A test may hold back or lose any chosen message, or cut the connection there, so that it can
 * play every timeline, and the same one every time. */
#ifndef CLAVE_TEST_MEMNET_H
#define CLAVE_TEST_MEMNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clave/async/client.h"
#include "server/server.h"
#include "wire/proto.h"

enum {
    MEMNET_CLIENTS = 32,
    MEMNET_RULES = 8,
    MEMNET_OPS = 128,
    MEMNET_STATES = 64,
    MEMNET_UNANSWERED = 4096
};

/* Which message. */
enum memnet_direction { MEMNET_REQUEST, MEMNET_REPLY };
/* What a message may be beside a request's opcode or the reply to it. An event is
 * OP_NOTIFICATION. */
enum { MEMNET_HANDSHAKE = -100, MEMNET_ANY = -101 };

enum memnet_action {
    MEMNET_HOLD,     /* it and all after it wait until memnet_clear */
    MEMNET_LOSE,     /* the connection is cut in its place; once */
    MEMNET_PASS_CUT, /* the connection is cut right after it; once */
};

struct memnet_rule {
    size_t client;
    enum memnet_direction way;
    int op;
    enum memnet_action fate;
    unsigned skip; /* so many such messages pass before */
};

struct memnet_options {
    size_t clients;
    int32_t timeout_ms;   /* of the sessions; 0: 10000 */
    const clave_mem *mem; /* of the clients */
    const char *chroot;   /* "" or "/x" */
    int32_t container_check_ms;
    bool extended_types;    /* of the server: nodes with a TTL */
    int32_t max_session_ms; /* of the server; 0: 20 s */
    int32_t margin_ms;
    clave_log_cb *client_log; /* of all clients; NULL: none */
    void *client_log_arg;
    bool ensemble;            /* the server poses as a member of one: pings prove nothing */
    uint64_t seed;            /* of all clients alike; 0: each has its own */
    const clave_auth *auth;   /* an identity of each client; NULL: none */
    const char *require_auth; /* of the server, as --require-auth; NULL: none */
};

struct memnet_client {
    clave_async_client *c;    /* NULL: a place that is free */
    struct server_conn *conn; /* NULL: not connected */
    bool closing;             /* the server hung up; what it sent is still to come */
    bool refused;             /* dialling fails */
    bool frozen;              /* the process is stopped */
    bool severed; /* the client's side of the connection is gone, the server's not yet */
    struct buf up, down;
    bool up_shaken, down_shaken;
    int32_t ops[MEMNET_UNANSWERED]; /* of the requests not yet replied to, in order */
    size_t ops_head, ops_tail;
    uint64_t requests[MEMNET_OPS]; /* that reached the server, by opcode */
    uint64_t events;               /* that reached the client */
    uint64_t dials;                /* connections that the server accepted */
    clave_state states[MEMNET_STATES];
    size_t nstates;
};

struct memnet {
    struct memnet_options o;
    struct clave_mem mem;
    struct server *server; /* NULL: stopped */
    struct buf log;        /* all it ever wrote */
    int64_t now;
    int64_t wall_shift; /* of the server's wall clock, from its next tick on */
    struct memnet_client clients[MEMNET_CLIENTS];
    struct memnet_rule rules[MEMNET_RULES];
    size_t nrules;
};

/* All clients are started, and connected after memnet_settle. Never NULL. */
struct memnet *memnet_new(const struct memnet_options *o);
struct memnet *memnet_of(size_t clients, int32_t timeout_ms);
/* A test (unit.h) with `p`, of so many clients. */
#define TEST_NET(name, clients, timeout_ms) MEMNET_TEST(name, clients, timeout_ms, memnet_freed)
#define MEMNET_TEST(name, clients, timeout_ms, close)                                              \
    static void name##_in(struct memnet *p);                                                       \
    TEST(name)                                                                                     \
    {                                                                                              \
        CLOSED_BY(close) struct memnet *p = memnet_of(clients, timeout_ms);                        \
        name##_in(p);                                                                              \
    }                                                                                              \
    static void name##_in(struct memnet *p)
/* Frees clients, then the server. */
void memnet_free(struct memnet *p);
void memnet_freed(struct memnet **p); /* for CLOSED_BY of unit.h */

/* One client more, with options of the caller's; returns its number. Not while memnet_kill_session
 * is used: that needs a place too. */
size_t memnet_open(struct memnet *p, const clave_client_options *o);
/* Frees the client; its number may be another's later. */
void memnet_close(struct memnet *p, size_t client);

/* Carries bytes until nobody has any; the clock stands. */
void memnet_settle(struct memnet *p);
/* Lets `ms` pass, with every timer that falls due. */
void memnet_advance(struct memnet *p, int64_t ms);

void memnet_rule(struct memnet *p, struct memnet_rule rule);
void memnet_clear(struct memnet *p); /* no rules; what was held goes on at the next settle */
void memnet_cut(struct memnet *p, size_t client);
/* No connection succeeds any more; the present one is cut. */
void memnet_refuse(struct memnet *p, size_t client, bool refuse);
/* The process does not run: neither its clock nor its socket. */
void memnet_freeze(struct memnet *p, size_t client, bool freeze);
/* The client gets all that its socket has in one piece, and its clock does not move. */
void memnet_feed_at_once(struct memnet *p, size_t client);

/* Curator's KillSession: another connection closes the client's session. */
void memnet_kill_session(struct memnet *p, size_t client);
void memnet_stop_server(struct memnet *p);
void memnet_start_server(struct memnet *p); /* from its log */

/* ---- message by message: nothing else moves ---------------------------------------------------
 */

/* The client's own look at the servers' configuration; nothing. */
enum { MEMNET_CONFIG = -102, MEMNET_NONE = -103 };
/* What the message that is next on this way is; MEMNET_NONE: there is none. */
int memnet_next(struct memnet *p, size_t client, enum memnet_direction way);
/* It arrives. */
void memnet_pass(struct memnet *p, size_t client, enum memnet_direction way);
/* How many requests are under way to the server, of these operations. */
size_t memnet_under_way(struct memnet *p, size_t client, const int *ops, size_t n);
/* The connection is lost: what was said by the client may still arrive, until it comes back; what
 * was and is said to it does not. */
void memnet_sever(struct memnet *p, size_t client);
/* The client comes back, with its session or a new one; for it time passes. */
void memnet_connect(struct memnet *p, size_t client);
/* The client's next timer is due; nobody else's goes off. */
void memnet_tick(struct memnet *p, size_t client);
/* The session's time is up; its connection goes, when all that was said on it has arrived. */
void memnet_expire(struct memnet *p, size_t client);

/* Requests but pings that have reached the server from this client. */
uint64_t memnet_requests(const struct memnet *p, size_t client);
void memnet_reset_counts(struct memnet *p);
bool memnet_saw(const struct memnet *p, size_t client, clave_state state);
struct server_stats memnet_stats(const struct memnet *p);

#endif
