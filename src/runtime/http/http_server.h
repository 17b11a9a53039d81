/* http_server.h - HTTP/1.1 on a loop: libmicrohttpd without a thread of its own, for the server's
 * own pages (admin.c) and for `clave gate`.
 *
 * Map of src/runtime/http:
 *   http_server      life, the loop, accepting; resumes and drops in batches
 *   http_connection  one connection: its peer, its state and how long that may last
 *   http_exchange    one request and its answer, in pieces or at once
 *   http_tls         TLS between a client and its connection
 *   microhttpd       the library, loaded when it is needed
 *
 *                 head            all of it         _answer
 *   HTTP_IDLE ──────────▶ HTTP_BODY ──▶ HTTP_WAITING ──▶ HTTP_SENDING ──▶ HTTP_IDLE (keep-alive)
 *                                                         ▲       │ nothing to send for now
 *                                                         └ _wake ┘ (HTTP_WAITING)
 *
 * Each state but HTTP_WAITING has a time that it may last. The library does not see a client hang
 * up while its request waits, and misses it when the end comes together with bytes: its socket is
 * watched here. Everything belongs to the loop's thread. */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_SERVER_H
#define CLAVE_RUNTIME_HTTP_HTTP_SERVER_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/log.h"
#include "runtime/start_error.h"
#include "web/web.h"

struct http;          /* opaque: one server */
struct http_exchange; /* opaque: one request and its answer */

enum http_state { HTTP_IDLE, HTTP_BODY, HTTP_WAITING, HTTP_SENDING, HTTP_STATES };

/* What makes TLS that of HTTP, in tls_server_options. */
extern const char clave__http_alpn[], clave__http_to_foreign[];

struct http_options {
    uv_loop_t *loop;
    const struct clave_mem *mem; /* outlives it */
    struct log log;
    /* A request has come: _answer follows, inside or later. All of the request stays valid until
     * the exchange has ended. A body of more than max_body bytes is cut after one more, or was not
     * read and is NULL. *user is the owner's, NULL before. */
    void (*begin)(void *arg, const struct web_request *q, struct http_exchange *x, void **user);
    /* Once for each _begin: the answer was sent or is given up, or the client has hung up before
     * it. The exchange must not be used any more. */
    void (*ended)(void *arg, void *user);
    void *arg;
    /* For addresses with "tls:"; with clave__http_alpn. NULL: there are none. Its files may be read
     * again meanwhile. */
    struct clave_tls *tls;
    /* Further ones wait in the kernel's queue. An open file each, with TLS three. */
    unsigned max_connections;
    unsigned ever_connections; /* what _set_max_connections may raise it to; 0: no more than that */
    size_t connection_memory;  /* for the head of a request, and its answer's; 0: 32 KiB */
    size_t max_body;           /* 0: bodies are not read at all */
    size_t max_held;           /* bytes of all bodies and answers together; beyond: 503 */
    unsigned silent_s;         /* seconds without a byte, but for a waiting answer; 0: no limit */
    uint64_t total_ms;         /* of a connection, in place of `ms`; 0: no limit */
    uint64_t handshake_ms;     /* of TLS; 0: no limit */
    uint64_t ms[HTTP_STATES];  /* how long a state may last; HTTP_SENDING: without progress */
    bool one_request;          /* then the connection is closed */
    /* For a loop that has other work: at most one piece of all answers is made in a turn. One that
     * is empty is asked for again in the next turn, without _wake. */
    bool piece_a_turn;
};

/* Whether _start could be called with this address, without binding it. The faults of _start. */
clave_err clave__http_server_check(const char *address, const struct fault *f);
/* Serves on the address `spec`, as clave__listen takes it; `tls` is needed for one of TLS. EINUSE,
 * EINVAL, ENOMEM, EIO: also without libmicrohttpd on the machine. */
clave_err clave__http_server_start(struct http **out, const char *spec,
                                   const struct http_options *o, const struct fault *f);
/* Another address, with the same options. The errors of _start; what was served before still is. */
clave_err clave__http_server_listen(struct http *h, const char *spec, const struct fault *f);
/* Accepts no more. */
void clave__http_server_quiet(struct http *h);
/* Those that there are go on. */
void clave__http_server_set_max_connections(struct http *h, unsigned most);
/* Closes everything at once, whatever is being answered; freed when the loop has turned. NULL is
 * ignored. */
void clave__http_server_stop(struct http *h);
/* Address number i, as bound; NULL after the last. */
const char *clave__http_server_address(const struct http *h, size_t i);
/* No request has come that is not answered, all of it. */
bool clave__http_server_is_answered(const struct http *h);
/* Connections at present. */
size_t clave__http_server_connections(const struct http *h);

/* The path of the request, decoded, without its query. */
const char *clave__http_path(const struct http_exchange *x);
/* The value of one of its headers; NULL: there is none of this name. */
const char *clave__http_header(const struct http_exchange *x, const char *name);
/* The answer must stay as it is until the exchange has ended, but for `body`, which is consumed,
 * not freed; `end` is the owner's to call. When `more` has nothing for now, _wake follows, but see
 * piece_a_turn. NULL: there is no memory for one; 503. */
void clave__http_answer(struct http_exchange *x, struct web_answer *a);
/* There may be more of the answer. Inside `more`: it is asked for more in the next turn. */
void clave__http_wake(struct http_exchange *x);

#endif
