/* member_conn.h - one client's connection to a member: reads and pings are answered from what the
 * member knows, in the client's order; what needs the leader is passed on to it, and its answer
 * held back until the member has followed so far. */
#ifndef CLAVE_SIM_MEMBER_CONN_H
#define CLAVE_SIM_MEMBER_CONN_H

#include "net.h"

struct ensemble_member;
struct server_conn;

enum member_conn_stage {
    MEMBER_CONN_NEW,   /* its handshake has not come */
    MEMBER_CONN_ASKED, /* it was passed on */
    MEMBER_CONN_SERVING,
};

struct member_conn {
    struct list link;
    struct ensemble_member *m;
    struct net_socket *down;   /* to the client */
    struct net_socket *up;     /* to the leader; NULL: none (any more) */
    struct server_conn *local; /* to the member's copy; NULL: not attached */
    enum member_conn_stage stage;
    struct buf asked;    /* by the client, not taken yet */
    struct buf answered; /* by the leader, not passed down yet */
    bool moved;          /* the session is another connection's */
    int32_t timeout_ms;
    int64_t session;
    size_t unanswered; /* requests that are with the leader */
    int64_t heard;     /* when the client's newest bytes came, us */
};

struct member_conn *member_conn_new(struct ensemble_member *m, struct net_socket *down);
void member_conn_free(struct member_conn *r);
/* All that can be done now; false: it is over, and to be freed. */
bool member_conn_serve(struct member_conn *r);
/* The client has been silent for so long that the member closes the connection. */
bool member_conn_is_silent(const struct member_conn *r);

#endif
