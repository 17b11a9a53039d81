/* listen.h - the addresses a server listens on. */
#ifndef CLAVE_RUNTIME_LISTEN_H
#define CLAVE_RUNTIME_LISTEN_H

#include <stdbool.h>
#include <sys/un.h>
#include <uv.h>

#include "base/ip_range.h"
#include "base/list.h"
#include "runtime/start_error.h"

struct listener;
/* A connection waits, probably. If it is not accepted, this is called again in the next turn. */
typedef void listener_cb(struct listener *l);

/* Its socket is not one of libuv's streams: those call accept() without end when it fails for want
 * of memory. */
struct listener {
    struct list link;
    uv_poll_t poll;
    uv_timer_t rest; /* runs after an accept or a poll that failed */
    int handles;     /* open ones: the last one frees it */
    int fd;
    listener_cb *ready;
    void *data;
    bool is_unix;
    bool tls;
    bool is_proxied;                                      /* its owner reads PROXY headers */
    bool is_gate;                                         /* for the gate of this process */
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* Unix: removed at the end */
    char text[160];                                       /* as bound */
};

/* Binds and listens on every address that `spec` stands for, and appends a listener for each to
 * `out`; "tls:" before a TCP address makes listeners for TLS. A Unix socket is for this user only
 * unless "?mode=0660&group=NAME" follows its path. After an error those bound before it
 * are in `out` too. EINUSE: the fault names the address. */
clave_err clave__listen(uv_loop_t *loop, const char *spec, listener_cb *ready, void *data,
                        struct list *out, const struct fault *f);
/* Whether `spec` stands for an address, without binding it: EINVAL, with the fault of
 * clave__listen.
 */
clave_err clave__listen_check(const char *spec, const struct fault *f);
/* A descriptor, not blocking; or a negated errno, -EAGAIN when none waits. After any other the
 * listener rests for a tenth of a second, since the next call would fail likewise; the connections
 * wait in the kernel's queue. */
int clave__listener_accept(struct listener *l);
/* Who is at the other end of an accepted socket; `secure` is left false. */
void clave__listen_name_peer(int fd, bool is_unix, struct peer_addr *out);
/* Whether its owner is told of connections at all. */
void clave__listener_watch(struct listener *l, bool wanted);
/* Stops accepting, removes the socket's file, and frees the listener later. */
void clave__listener_close(struct listener *l);

#endif
