/* net.h - connections as byte pipes with delay. A process sees sockets as a kernel shows
 * them: it may leave bytes in them, and learns of an end when it looks.
 *
 * What may go wrong: a connection is cut after any byte of either direction; both ends or
 * neither learn of it (half-open); bytes are late by any time; a dial is refused or never
 * answered; the reply to a request that has arrived is lost. */
#ifndef CLAVE_SIM_NET_H
#define CLAVE_SIM_NET_H

#include "base/buf.h"
#include "base/list.h"
#include "world.h"

enum net_way { NET_UP, NET_DOWN }; /* from the one that dialled; to it */

/* The route between one machine and the servers. */
struct net_route {
    int64_t delay_us;      /* one way, the shortest */
    int64_t jitter_us;     /* on top, at most */
    int64_t refuse_to;     /* dials are refused until then */
    int64_t unanswered_to; /* dials are not answered that begin before then */
    int64_t stall_to[2];   /* by way: nothing arrives before then */
    bool pieces;           /* bytes arrive in pieces */
    uint64_t *lost;        /* counts the bytes that never arrive; NULL: nobody does */
};

struct net_callback {
    void (*fn)(void *owner); /* something is to be seen at the socket */
    void *owner;
};

enum net_state { NET_DIALLING, NET_OPEN, NET_ENDED };

struct net_socket {
    struct net_link *link;
    struct net_callback callback;
    enum net_state state;
    bool closed; /* by its owner */
    struct buf inbox;
};

struct net_listener {
    struct net_callback callback;
    bool open;
    struct list backlog; /* of net_link */
};

struct net_stats {
    uint64_t dials;
    uint64_t bytes;
    uint64_t lost_bytes;
    uint64_t resets;
};

struct net {
    struct world *w;
    clave_mem mem; /* of the sockets' buffers */
    struct list links;
    struct net_stats stats;
    uint64_t numbers;
};

void net_init(struct net *n, struct world *w);
void net_fini(struct net *n);

void net_listener_init(struct net_listener *l, struct net_callback callback);
/* Closes it: what waits in the backlog is reset. */
void net_stop_listening(struct net *n, struct net_listener *l);

/* Never NULL. It is DIALLING until the callback. */
struct net_socket *net_dial(struct net *n, struct net_listener *l, const struct net_route *route,
                            struct net_callback callback);
/* The next connection that waits; NULL: none. The route is the dialler's. */
struct net_socket *net_accept(struct net *n, struct net_listener *l, struct net_callback callback);
void net_write(struct net_socket *s, const void *p, size_t n);
/* What has come; net_read takes n of it. */
size_t net_peek(struct net_socket *s, const void **p);
void net_read(struct net_socket *s, size_t n);
/* Ended, and all that came has been read. */
bool net_is_over(const struct net_socket *s);
/* Its owner is done with it; the peer is told, unless the connection is half-open. */
void net_close(struct net_socket *s);

/* ---- faults -------------------------------------------------------------------------- */

/* Cut after so many more bytes written at this end (and arrived at the other). */
void net_cut_after(struct net_socket *s, size_t bytes);
/* When all that was written here so far has arrived, the answer is cut after so many bytes. */
void net_lose_answer(struct net_socket *s, size_t bytes);
/* Half-open: nothing arrives any more, and nobody is told. */
void net_forget(struct net_socket *s);
/* What is under way is lost, and then as net_reset. */
void net_break(struct net_socket *s);
/* Both ends are told as soon as the delay allows. */
void net_reset(struct net_socket *s);
/* Ends half-open connections: faults are over. */
void net_heal(struct net *n);

#endif
