/* http_internal.h - one HTTP server, shared by the files of this folder. */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_INTERNAL_H
#define CLAVE_RUNTIME_HTTP_HTTP_INTERNAL_H

#include <stdbool.h>
#include <time.h>

#include "base/ip_range.h"
#include "base/list.h"
#include "base/map.h"
#include "clave/mem.h"
#include "runtime/channel.h"
#include "runtime/http/http_parse.h"
#include "runtime/http/http_server.h"

/* ---- which connection makes room ------------------------------------------------------------- */

/* Decides which connection is closed when there is no room for another one.
 *
 * A sender is known once a request on the connection was accepted with an identity (a token, a
 * session's secret, a user, a certificate), as long as it does not occupy more than four fifths of
 * all places in this way. A connection of a known sender never has to make room. When all places
 * are taken, a new connection takes the place of a connection of an unknown sender, from the
 * address that has the most unknown connections, to within a factor of two (an address is an IPv4
 * address or an IPv6 network of 64 bits; each user of a Unix socket counts as one). Among the
 * connections of that address, one that was answered 401 goes first, then the one that has been
 * without a request for longest, then the one with the oldest request. Exempt addresses (proxies,
 * which speak for many senders) take no part in this: their connections stay. Only if there is no
 * other candidate, the exempt connection that was answered and has been idle for longest goes; a
 * proxy opens another one when it needs it.
 *
 * So with N places, a lock holder's new connection survives as long as its address has fewer than
 * half of the unknown connections of some other address. Among addresses that have equally many (a
 * flood from many addresses), it survives until the R new connections per second have gone through
 * all N places: it has N/R seconds for its handshake and the head of its request, whatever the
 * number of addresses. With 20000 places and a flood of 5000 per second, that is 4 s. */

enum { HTTP_SHARE_BUCKETS = 32 };

/* In the order in which they have to make room. */
enum http_standing { HTTP_TURNED_AWAY, HTTP_UNASKED, HTTP_ASKING, HTTP_KNOWN, HTTP_STANDINGS };

struct http_shares {
    struct map by_address;
    struct list with[HTTP_SHARE_BUCKETS]; /* addresses, by the logarithm of the number of their
                                             unknown connections */
    struct list idle; /* connections of exempt addresses that were answered, oldest first */
};

/* ---- a server, a connection, an exchange ----------------------------------------------------- */

/* The size of one read from a client. */
enum { HTTP_READ_SIZE = 32 * 1024 };

struct http_address; /* opaque: an address whose connections are counted together */

struct http {
    struct http_options o;
    const struct http_library *library;
    uv_timer_t timer;
    uv_idle_t turn;      /* runs while there is something to do */
    uv_check_t new_turn; /* begins a turn, after the loop's input */
    int handles;         /* open handles and connections; the last one to close frees the server */
    bool is_stopped;
    struct list listeners;
    struct list in_state[HTTP_STATES]; /* connections, ordered by when they will be disconnected */
    struct list all;                   /* connections, ordered by age */
    struct list ready;                 /* connections that continue in the next turn */
    size_t nconnections, nshaking;
    struct http_shares shares;
    uint64_t armed;      /* when the timer is due; UINT64_MAX: it is not running */
    bool accept_pending; /* a connection may be waiting to be accepted */
    bool is_quiet;       /* no more connections are accepted */
    /* When the log may mention again that accepting fails, by the loop's clock. */
    uint64_t may_tell_at;
    uint64_t turned_at; /* when the log may mention again that a client was turned away */
    uint64_t second;    /* the second of the loop's clock in which this many bytes of refused bodies
                           were read */
    size_t thrown_away;
    bool has_made_piece; /* a piece was made in this turn of the loop */
    uint64_t turn_ends;  /* by uv_hrtime; after that the rest is left for the next turn; 0: nothing
                            was begun yet */
    time_t date_at;
    char date[32]; /* for answers */
    char read[HTTP_READ_SIZE];
};

struct http_connection {
    struct channel channel;
    struct list link, by_age, in_ready, in_standing;
    struct http *http;
    struct http_address *from; /* NULL: it is not counted */
    enum http_standing standing;
    void *kept; /* the owner's, if the sender is known */
    enum http_state state;
    bool is_tls;
    bool is_passed_on;    /* it comes from a proxy, whose header has arrived */
    bool hung_up;         /* the client will not send any more */
    bool in_call;         /* the owner is being called; the connection continues after that */
    uint64_t born, until; /* by the loop's clock; UINT64_MAX: no limit */
    size_t thrown_away;   /* bytes thrown away by its channel that were counted */
    struct http_exchange *exchange; /* NULL: between two requests */
    struct buf left;                /* input that waits until the present request is answered */
    char *tls_subject;              /* NULL: no certificate was verified */
    struct peer_addr peer;
};

/* ---- connections (http_connection.c) --------------------------------------------------------- */

clave_err clave__http_shares_init(struct http *h, uint64_t seed);
void clave__http_turns_begin(struct http *h);
void clave__http_turns_end(struct http *h);
/* Takes over the socket, even if it fails. */
void clave__http_connection_take(struct http *h, int fd, const struct peer_addr *peer, bool is_tls,
                                 bool is_proxied);
void clave__http_connection_close(struct http_connection *c);
/* Sends the last bytes, as far as that is possible at once. */
void clave__http_connection_flush(struct http_connection *c);
/* The connection that has to make room; NULL: none. */
struct http_connection *clave__http_victim(struct http *h);
/* Another connection may be accepted, as one is gone or may be closed. */
void clave__http_gone(struct http *h);

#endif
