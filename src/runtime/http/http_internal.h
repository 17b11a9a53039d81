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

/* ---- which connection goes (http_evict.c) ---------------------------------------------------- */

/* Which connection goes when there is no room for another.
 *
 * A sender is known once a request of the connection was admitted with an identity (a token, a
 * session's secret, a user, a certificate), while it has no more than four fifths of all places by
 * that. A connection of a known sender never has to go. When
 * all places are taken, a new connection takes the place of one of the address (IPv4 address, or
 * IPv6 network of 64 bits; all users of a Unix socket are one each) with the most connections of
 * unknown senders, to within a factor of two: one that was answered 401 if there is one, else the
 * one that has been without a request for the longest, else the one whose request is the oldest.
 * Exempt addresses (proxies, which speak for many) have no share: their connections stay, but when
 * there is no other to go, the one of them that was answered and has been idle for the longest
 * goes. A proxy opens another one when it needs it.
 *
 * So with N places a holder's new connection stays while its address has fewer than half of the
 * unknown connections of another one; among addresses that have as many each (a flood from
 * many), until R new ones a second have gone through all N: it has N/R seconds for its handshake
 * and the head of its request, whatever the number of addresses. 20000 places and a flood of 5000 a
 * second leave 4 s. */

enum { HTTP_SHARE_BUCKETS = 32 };

/* The first ones go first. */
enum http_standing { HTTP_TURNED_AWAY, HTTP_UNASKED, HTTP_ASKING, HTTP_KNOWN, HTTP_STANDINGS };

struct http_shares {
    const struct clave_mem *mem;
    struct map by_address;
    struct list with[HTTP_SHARE_BUCKETS]; /* addresses, by the logarithm of their unknown ones */
    struct list idle; /* connections of exempt addresses that were answered, the oldest first */
};

struct http_address; /* opaque */

/* Part of a connection. */
struct http_evict {
    struct list link;
    struct http_address *of; /* NULL: in none */
    enum http_standing standing;
};

clave_err clave__http_shares_init(struct http_shares *all, const struct clave_mem *mem,
                                  uint64_t seed);
/* Every share has been left. */
void clave__http_shares_fini(struct http_shares *all);
/* A connection of this peer has come. ENOMEM. */
clave_err clave__http_evict_join(struct http_shares *all, struct http_evict *s,
                                 const struct peer_addr *peer, bool is_exempt);
/* Its sender is that of each request: a connection of an exempt address is never HTTP_KNOWN. */
bool clave__http_evict_is_exempt(const struct http_evict *s);
/* HTTP_KNOWN stays so. HTTP_UNASKED: it was answered, and is idle. */
void clave__http_evict_set(struct http_shares *all, struct http_evict *s, enum http_standing to);
void clave__http_evict_leave(struct http_shares *all, struct http_evict *s);
/* The one that is to go; NULL: none. */
struct http_evict *clave__http_shares_victim(struct http_shares *all);

/* ---- a server, a connection, an exchange ------------------------------------------------------
 */

/* One read of a client. */
enum { HTTP_READ_SIZE = 32 * 1024 };

struct http_connection;

struct http {
    struct http_options o;
    const struct http_library *library;
    uv_timer_t timer;
    uv_idle_t turn;      /* runs while there is something to do */
    uv_check_t new_turn; /* of the loop, after its input */
    int handles;         /* open ones, and connections: the last one frees it */
    bool is_stopped;
    void (*go_on)(struct http_connection *c); /* when it is ready */
    uint64_t (*expire)(struct http *h);       /* says when it is to be called again */
    struct list listeners;
    struct list in_state[HTTP_STATES]; /* connections, by when they are disconnected */
    struct list all;                   /* connections, by age */
    struct list ready;                 /* connections that go on in the next turn */
    size_t nconnections, nshaking;
    struct http_shares shares;
    uint64_t armed;       /* when the timer runs; UINT64_MAX: it does not */
    bool accept_pending;  /* a connection may be waiting to be accepted */
    bool is_quiet;        /* none is accepted any more */
    uint64_t may_tell_at; /* that accepting fails, by the loop's clock */
    uint64_t turned_at;   /* likewise, that a client is turned away */
    uint64_t second;      /* of the loop's clock: in it so much of refused bodies was read */
    size_t thrown_away;
    bool has_made_piece; /* in this turn of the loop */
    uint64_t turn_ends;  /* by uv_hrtime: then the rest is for the next one; 0: none was begun */
    time_t date_at;
    char date[32]; /* of answers */
    char read[HTTP_READ_SIZE];
};

struct http_connection {
    struct channel channel;
    struct list link, by_age, in_ready;
    struct http *http;
    struct http_evict share;
    void *kept; /* the owner's, of a sender who is known */
    enum http_state state;
    bool is_tls;
    bool is_passed_on;              /* by a proxy, whose header has come */
    bool hung_up;                   /* the client sends no more */
    bool in_call;                   /* of the owner: it goes on after that */
    uint64_t born, until;           /* by the loop's clock; UINT64_MAX: no limit */
    size_t thrown_away;             /* of its channel, that have been counted */
    struct http_exchange *exchange; /* NULL: between two */
    struct buf left;                /* what came and waits for the present answer */
    char *tls_subject;              /* NULL: none was proved */
    struct peer_addr peer;
};

struct http_exchange {
    struct http_connection *of;
    struct http_head head;
    struct http_parse parse;
    struct web_request q;
    struct web_answer *answer; /* NULL: there is none yet */
    struct web_answer *own;    /* NULL: the answer, if any, is the owner's */
    void *user;
    uint64_t taken_at;        /* by the loop's clock: all that was sent before */
    struct buf out;           /* what is to be sent next */
    bool is_due;              /* to begin, in a turn that has time for it */
    bool is_begun, is_over;   /* as the owner knows it */
    bool is_whole;            /* all of the request has come */
    bool is_faulty;           /* what follows it cannot be read */
    bool has_head;            /* of the answer: it was made */
    bool is_chunked, is_done; /* the answer; its last piece was made */
    bool has_made_piece;      /* and is to let others have their turn */
    bool is_put_off;          /* it has more to send, in another turn */
    bool is_broken;           /* its answer ends where it is */
    bool closes;              /* the connection, with the answer */
};

/* ---- turns and times (http_schedule.c) ------------------------------------------------------- */

void clave__http_turns_begin(struct http *h);
void clave__http_turns_end(struct http *h);
/* It goes on in the next turn. */
void clave__http_ready(struct http_connection *c);
/* Other connections, and the loop's other work, come first. */
bool clave__http_turn_is_over(struct http *h);
/* A connection is gone, or may go: another one may be accepted. */
void clave__http_gone(struct http *h);
/* A handle or a connection is closed; the last one frees the server. */
void clave__http_release(struct http *h);
/* The one function that changes the state. */
void clave__http_connection_enter(struct http_connection *c, enum http_state to);
/* Disconnects those that have taken too long, and says when the next one will have. */
uint64_t clave__http_connections_expire(struct http *h);
/* A line for the log, once a second at most. */
void clave__http_connection_warn(struct http_connection *c, const char *what, const char *why);

/* ---- connections (http_connection.c) --------------------------------------------------------- */

/* Takes the socket, in any case. */
void clave__http_connection_take(struct http *h, int fd, const struct peer_addr *peer, bool is_tls,
                                 bool is_proxied);
void clave__http_connection_close(struct http_connection *c);
/* Reads and sends what there is. */
void clave__http_connection_go_on(struct http_connection *c);
/* The last bytes, as far as that goes at once. */
void clave__http_connection_flush(struct http_connection *c);

/* ---- exchanges (http_exchange.c) ------------------------------------------------------------- */

/* NULL: out of memory. */
struct http_exchange *clave__http_exchange_new(struct http_connection *c);
/* The owner is told that it is over, if it was told that it began. */
void clave__http_exchange_free(struct http_exchange *x);
/* Reads bytes of the request; how many it has used up. */
size_t clave__http_exchange_read(struct http_exchange *x, const void *p, size_t n);
/* More of the request is read. */
bool clave__http_exchange_reads(const struct http_exchange *x);
/* Tells the owner of the request, of which the head is complete. */
void clave__http_exchange_begin(struct http_exchange *x);
/* Nothing more is to be sent, or made. */
bool clave__http_exchange_is_sent(const struct http_exchange *x);

/* The next bytes of the answer. 0: none for now, or it is_broken. */
size_t clave__http_output(struct http_exchange *x, const void **p);
void clave__http_output_sent(struct http_exchange *x, size_t n);

#endif
