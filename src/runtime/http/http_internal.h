/* http_internal.h - one HTTP server, shared by http_server.c, http_connection.c and
 * http_exchange.c. */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_INTERNAL_H
#define CLAVE_RUNTIME_HTTP_HTTP_INTERNAL_H

#include "base/list.h"
#include "runtime/http/http_server.h"
#include "runtime/http/http_tls.h"
#include "runtime/http/microhttpd.h"
#include "server/server.h"

struct http {
    const struct microhttpd *lib;
    struct http_options o;
    struct MHD_Daemon *daemon; /* NULL: none (any more) */
    uv_poll_t poll;            /* the library's epoll descriptor */
    uv_poll_t hangups;         /* ours: connections whose clients have hung up */
    int hangup_fd;
    uv_timer_t timer;
    uv_idle_t turn; /* runs when there is something to do */
    int handles;    /* open ones: the last one frees it */
    struct list listeners;
    struct http_tls *tls;                  /* NULL: no address is for TLS */
    struct list in_state[HTTP_STATES + 1]; /* connections, ordered by when they are disconnected */
    size_t nconnections;
    struct http_connection *starting; /* given to the library, which has not reported it */
    bool accept_pending;              /* a connection may be waiting to be accepted */
    bool is_quiet;                    /* none is accepted any more */
    uint64_t may_tell_at;             /* that accepting fails, by the loop's clock */
    struct list ready;                /* suspended exchanges that go on */
    uv_idle_cb on_turn;
    size_t held;         /* bytes of bodies and answers */
    bool has_made_piece; /* in this turn */
    uint64_t turn_ends;  /* by uv_hrtime: then the rest is for the next one; 0: none was begun */
};

struct http_connection {
    struct list link; /* in_state */
    struct http *http;
    int fd; /* owned by the library */
    enum http_state state;
    bool hung_up;
    uint64_t until;                 /* by the loop's clock; UINT64_MAX: no limit, or disconnected */
    struct http_exchange *exchange; /* NULL: between two */
    struct peer_addr peer;
    char tls_subject[]; /* "": none was proved */
};

struct http_exchange {
    struct http *http;
    struct MHD_Connection *connection;
    struct http_connection *of;
    struct list in_ready;
    unsigned refs;     /* the library's: the request, and its response */
    bool is_suspended; /* in the library, until it is resumed */
    bool is_woken;     /* since its last piece was asked for */
    bool is_over;      /* the owner is done with it */
    bool is_done;      /* there are no more pieces */
    bool is_refused;   /* bodies and answers take too much memory */
    void *user;
    struct web_request q;
    const char *path;
    struct buf body;
    struct web_header *headers;
    struct web_answer *answer; /* NULL: there is none yet */
    struct buf out;            /* pieces that were made, and not sent yet */
    char target[];
};

/* ---- connections (http_connection.c) ------------------------------------------------------- */

/* Takes the socket. `subject` as http_tls.h has it. NULL: closed, for lack of memory. */
struct http_connection *clave__http_connection_new(struct http *h, int fd,
                                                   const struct peer_addr *peer,
                                                   const char *subject);
void clave__http_connection_free(struct http_connection *g);
/* The one function that changes the state. */
void clave__http_connection_enter(struct http_connection *g, enum http_state to);
/* Disconnects those that have taken too long. */
void clave__http_connections_expire(struct http *h);
/* When the next one will have; UINT64_MAX: none. */
uint64_t clave__http_connections_deadline(const struct http *h);

/* ---- exchanges (http_exchange.c) ------------------------------------------------------------ */

/* The library's callbacks: a request line has come; pieces of a body, and the end of it; it is done
 * with a request. */
void *clave__http_exchange_on_uri(void *http, const char *uri, struct MHD_Connection *c);
MHD_AccessHandlerCallback clave__http_exchange_handler(void);
void clave__http_exchange_on_completed(void *http, struct MHD_Connection *c, void **exchange,
                                       enum MHD_RequestTerminationCode why);
/* The client has hung up, or the server ends: a waiting exchange is given up. */
void clave__http_exchange_give_up(struct http_exchange *x);
/* Goes on with what is in `ready`. */
void clave__http_exchanges_resume(struct http *h, size_t most);

#endif
