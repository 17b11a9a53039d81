/* http_server.h - HTTP/1.1 on a loop, for the server's own pages (admin.c) and for the gate.
 *
 * Map of src/runtime/http:
 *   http_server      addresses, accepting, limits, the loop's turns
 *   http_connection  one connection: its bytes, its peer, TLS
 *   http_schedule    when it goes on; its state, and how long that may last
 *   http_proxy       what a proxy says of a client before, by proxy_protocol
 *   http_share       which connection goes when there is no room for another
 *   http_exchange    one request and its answer
 *   http_output      an answer as bytes: its head, its length or its chunks
 *   http_parse       a request of bytes: http_head, by a library, and http_chunks
 *   http_library     that library, loaded when it is needed
 *
 *   HTTP_SHAKING        head          all of it          _answer, the client does not take it
 *       └──▶ HTTP_IDLE ──────▶ HTTP_BODY ──▶ HTTP_WAITING ──▶ HTTP_SENDING ──▶ HTTP_WAITING
 *                 ▲                                │ answered, keep-alive │
 *                 └────────────────────────────────┴──────────────────────┘ or HTTP_LINGERING
 *
 * Each state but HTTP_WAITING has a time that it may last. A connection is one file. Measured at an
 * idle connection, private memory: 0.6 KiB, with TLS 14.6 KiB (OpenSSL's, but for 1); libmicrohttpd
 * with its own TLS, which is GnuTLS and has neither our settings nor names of x509, 17.9 KiB, and
 * with OpenSSL in front of it 15.6 KiB, the kernel's for two more sockets, and three files. llhttp
 * or http_parser does the part of HTTP that is easily done wrong, and nothing else: no socket, no
 * memory. It is loaded at run time, like OpenSSL: most programs never serve HTTP. Everything
 * belongs to the loop's thread. */
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
    HTTP_IDLE,      /* without a request, or with half a head */
    HTTP_BODY,      /* on its way */
    HTTP_WAITING,   /* for the owner */
    HTTP_SENDING,   /* without progress */
    HTTP_SHAKING,   /* hands, of TLS */
    HTTP_LINGERING, /* what it was told is to be read */
    HTTP_STATES
};

/* What makes TLS that of HTTP, in tls_server_options. */
extern const char clave__http_alpn[], clave__http_to_foreign[];

struct http_options {
    uv_loop_t *loop;
    const struct clave_mem *mem; /* outlives it */
    struct log log;
    /* The head of a request has come: _answer follows, inside or later. All of it stays valid
     * until the exchange has ended. *user is the owner's, NULL before. An answer before all of a
     * body has come closes the connection, unless the rest has come by then. */
    void (*begin)(void *arg, const struct web_request *q, struct http_exchange *x, void **user);
    /* A piece of its body. false: it was answered, no more is wanted. NULL: bodies are not read,
     * and _begin answers. */
    bool (*take_body)(void *arg, void *user, const void *p, size_t n);
    /* The request is complete and not answered yet. NULL: _begin answers. */
    void (*body_done)(void *arg, void *user);
    /* Once for each _begin: the answer was sent or is given up, or the client has hung up before
     * it. The exchange must not be used any more. */
    void (*ended)(void *arg, void *user);
    /* After _begin: the sender has an identity, and so few connections that this one may stay, see
     * http_internal.h. *kept is the owner's, until the connection is closed. NULL: nobody has, and
     * nobody has to go: further connections wait in the kernel's queue. */
    bool (*is_known)(void *arg, void *user, void **kept);
    /* The connection of this one is closed. NULL: that is not told. */
    void (*kept_gone)(void *arg, void *kept);
    /* A proxy, which speaks for many: its connections only go while they are idle. NULL: there is
     * none. */
    bool (*is_exempt)(void *arg, const struct peer_addr *peer);
    void *arg;
    /* For addresses with "tls:"; with clave__http_alpn. NULL: there are none. Its files may be read
     * again meanwhile. */
    struct clave_tls *tls;
    unsigned max_connections;  /* who has to go beyond: http_internal.h; a file each */
    unsigned ever_connections; /* what _set_max_connections may raise it to; 0: no more than that */
    size_t max_head;           /* bytes of a request's line and fields; 0: 32 KiB */
    unsigned silent_s;         /* without a byte, but for a waiting answer; 0: `ms` counts */
    uint64_t total_ms;         /* of a connection, whatever it does; 0: no limit */
    uint64_t ms[HTTP_STATES];  /* how long a state may last; 0: no limit; HTTP_LINGERING: fixed */
    bool one_request;          /* then the connection is closed */
    /* For a loop that has other work: at most one piece of all answers is made in a turn. One that
     * is empty is asked for again in the next turn, without _wake. */
    bool piece_a_turn;
};

/* Whether _start could be called with this address, without binding it. The faults of _start. */
clave_err clave__http_server_check(const char *address, const struct fault *f);
/* Whether connections to this address are TLS. */
bool clave__http_is_tls(const char *spec);
/* Serves on the address `spec`, as clave__listen takes it; with "proxy:" before it each connection
 * begins with a header of the PROXY protocol. `tls` is needed for one of TLS. EINUSE,
 * EINVAL, ENOMEM, EIO: also without the parser's library on the machine. */
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
