/* witness.h - a client that speaks the protocol by itself, with many requests of all kinds under
 * way, to a server that stands alone; and holds every answer and event against the past of the
 * znodes (tree_past.h): it is what was so as of the transaction in its header, which is on the disk
 * and no older than what the witness saw before, on this connection or another. Its own writes it
 * finds done; answers come in the order of the requests, events before what they announce. */
#ifndef CLAVE_SIM_WITNESS_H
#define CLAVE_SIM_WITNESS_H

#include "tree_past.h"
#include "wire/record.h"

enum { WITNESS_ASKED = 32 };

struct witness_request {
    int32_t xid;
    int32_t op;
    unsigned node;
    unsigned other; /* of a multiRead */
};

struct witness {
    char name[16];
    struct world *w;
    struct net *net;
    struct tree_past *past;
    struct net_listener *server;
    struct net_route route;
    struct rand_state rng;
    int32_t timeout_ms;
    int64_t pace_us; /* mean, between two bursts of requests */

    struct alarm alarm;
    struct net_socket *socket; /* NULL: none */
    struct buf in;
    bool greeted; /* the handshake was sent, answered */
    bool serving;
    int64_t session; /* 0: the next one is new */
    int64_t heard_at;
    int64_t burst_at;
    int32_t xid;
    int64_t zxid;                                /* the newest of all answers */
    int64_t event;                               /* and of all events */
    int64_t missing;                             /* it has asked what it missed since this zxid */
    struct witness_request asked[WITNESS_ASKED]; /* a ring: what has no answer yet */
    size_t asked_head, nasked;
    bool leaving; /* it closes its session, or has */
    bool gone;
    uint64_t answers;
    uint64_t events;
};

void witness_init(struct witness *v, struct server_host *h, struct tree_past *past, unsigned number,
                  int32_t timeout_ms);
void witness_start(struct witness *v);
/* It asks nothing more, and closes its session if it can. */
void witness_leave(struct witness *v);
void witness_fini(struct witness *v);

#endif
