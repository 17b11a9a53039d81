/* http_server.h - an HTTP/1.1 server on a loop, for the server's own pages (admin.c) and for the
 * gate.
 *
 * Map of src/runtime/http:
 *   http_server      addresses, accepting, limits
 *   http_connection  one connection: its bytes, its peer, TLS; its requests, and their answers as
 *                    bytes; when it goes on, how long its state may last, and which one makes room
 *   http_parse       a request of bytes, by a library that is loaded when it is needed; chunks
 *   proxy_protocol   the PROXY header, which a proxy sends before the first request
 *
 *   HTTP_SHAKING        head          all of it          _answer, the client does not take it
 *       └──▶ HTTP_IDLE ──────▶ HTTP_BODY ──▶ HTTP_WAITING ──▶ HTTP_SENDING ──▶ HTTP_WAITING
 *                 ▲                                │ answered, keep-alive │
 *                 └────────────────────────────────┴──────────────────────┘ or HTTP_LINGERING
 *
 * Each state except HTTP_WAITING may last only for a limited time. A connection is one open file.
 * An idle connection costs 0.6 KiB of private memory, or 14.6 KiB with TLS, of which all but 1 KiB
 * is OpenSSL's. llhttp or http_parser does the part of HTTP that is easy to get wrong, and nothing
 * else: no sockets, no memory. It is loaded at run time, like OpenSSL, because most programs never
 * serve HTTP. Everything belongs to the loop's thread. */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_SERVER_H
#define CLAVE_RUNTIME_HTTP_HTTP_SERVER_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/log_line.h"
#include "runtime/start_error.h"
#include "web/web.h"

struct http;          /* opaque: one server */
struct http_exchange; /* opaque: one request and its answer */
struct peer_addr;

enum http_state {
    HTTP_IDLE,      /* no request, or an incomplete head */
    HTTP_BODY,      /* the body is arriving */
    HTTP_WAITING,   /* waiting for the owner */
    HTTP_SENDING,   /* the client takes no output */
    HTTP_SHAKING,   /* in the TLS handshake */
    HTTP_LINGERING, /* waiting until the client has read the answer */
    HTTP_STATES
};

/* What tls_server_options need for HTTP. */
extern const char clave__http_alpn[], clave__http_to_foreign[];

struct http_options {
    uv_loop_t *loop;
    const struct clave_mem *mem; /* must outlive the server */
    struct log log;
    /* The head of a request has arrived; call _answer, inside or later. All that q points to stays
     * valid until the exchange has ended. *user is the owner's, NULL at first. Answering before all
     * of a body has arrived closes the connection, unless the rest arrives by then. */
    void (*begin)(void *arg, const struct web_request *q, struct http_exchange *x, void **user);
    /* A piece of the body. Return false if the request was answered and no more is wanted. NULL:
     * bodies are not read, and _begin answers. */
    bool (*take_body)(void *arg, void *user, const void *p, size_t n);
    /* The request is complete but not answered yet. NULL: _begin answers. */
    void (*body_done)(void *arg, void *user);
    /* Called once for each _begin: the answer was sent or given up, or the client hung up before
     * that. The exchange must not be used any more. */
    void (*ended)(void *arg, void *user);
    /* Called after _begin. Return true if the sender has an identity, and few enough connections
     * that this one may stay; see http_internal.h. *kept is the owner's until the connection
     * closes. NULL: no sender is known and no connection has to make room; further connections wait
     * in the kernel's queue. */
    bool (*is_known)(void *arg, void *user, void **kept);
    /* The connection with this `kept` is closed. May be NULL. */
    void (*kept_gone)(void *arg, void *kept);
    /* True for a proxy, which speaks for many senders: its connections have to make room only while
     * they are idle. NULL: there are no proxies. */
    bool (*is_exempt)(void *arg, const struct peer_addr *peer);
    void *arg;
    /* For addresses with "tls:"; made with clave__http_alpn. NULL: there are none. Its files may be
     * read again in the meantime. */
    struct clave_tls *tls;
    unsigned max_connections;  /* beyond this, connections have to make room (http_internal.h); each
                                  is an open file */
    unsigned ever_connections; /* the most that _set_max_connections may raise it to; 0:
                                  max_connections */
    size_t max_head;           /* longest request line with its fields; 0: 32 KiB */
    unsigned silent_s; /* without a byte, except while waiting for an answer; 0: only `ms` counts */
    uint64_t total_ms; /* lifetime of a connection, whatever it does; 0: no limit */
    uint64_t ms[HTTP_STATES]; /* how long a state may last; 0: no limit; HTTP_LINGERING has a fixed
                                 limit */
    bool one_request;         /* then close the connection */
    /* For a loop that has other work: makes at most one piece of an answer per turn, over all
     * connections. If it is empty, it is asked for again in the next turn, without _wake. */
    bool piece_a_turn;
};

/* Checks whether _start could be called with this address, without binding it. Faults as _start. */
clave_err clave__http_server_check(const char *address, const struct fault *f);
/* True if connections to this address use TLS. */
bool clave__http_is_tls(const char *spec);
/* Serves on the address `spec`, as clave__listen expects it; with "proxy:" in front, each
 * connection begins with a header of the PROXY protocol. `tls` is needed if the address is for TLS.
 * EINUSE, EINVAL, ENOMEM, EIO; EIO also if the parser's library is not installed. */
clave_err clave__http_server_start(struct http **out, const char *spec,
                                   const struct http_options *o, const struct fault *f);
/* Adds another address, with the same options. Errors as _start; the other addresses continue to be
 * served. */
clave_err clave__http_server_listen(struct http *h, const char *spec, const struct fault *f);
/* Stops accepting. */
void clave__http_server_quiet(struct http *h);
/* Sets the limit; existing connections continue. */
void clave__http_server_set_max_connections(struct http *h, unsigned most);
/* Closes everything at once, even what is being answered; freed when the loop has turned. NULL is
 * ignored. */
void clave__http_server_stop(struct http *h);
/* The i-th address as it was bound; NULL after the last. */
const char *clave__http_server_address(const struct http *h, size_t i);
/* True if every request that has arrived was answered completely. */
bool clave__http_server_is_answered(const struct http *h);
/* The present number of connections. */
size_t clave__http_server_connections(const struct http *h);

/* The decoded path of the request, without its query. */
const char *clave__http_path(const struct http_exchange *x);
/* The value of one of the request's headers; NULL: there is none of this name. */
const char *clave__http_header(const struct http_exchange *x, const char *name);
/* Answers the request. The answer must not change until the exchange has ended, except that `body`
 * is consumed (but not freed); `end` is for the owner to call. If `more` has nothing at the moment,
 * call _wake later; but see piece_a_turn. NULL: there is no memory for an answer, so send 503. */
void clave__http_answer(struct http_exchange *x, struct web_answer *a);
/* There may be more of the answer. If this is called inside `more`, `more` is called again in the
 * next turn. */
void clave__http_wake(struct http_exchange *x);

#endif
