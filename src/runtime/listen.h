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
/* A connection is probably waiting. If it is not accepted, this is called again in the next
 * turn. */
typedef void listener_cb(struct listener *l);

/* A listening socket. It is not one of libuv's streams, because those call accept() endlessly when
 * it fails for want of memory. */
struct listener {
    struct list link;
    uv_poll_t poll;
    uv_timer_t rest; /* runs after an accept or a poll has failed */
    int handles;     /* open handles; the last one to close frees the listener */
    int fd;
    listener_cb *ready;
    void *data;
    bool is_unix;
    bool tls;
    bool is_proxied;                                      /* its owner reads PROXY headers */
    bool is_gate;                                         /* it is for the gate in this process */
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of a Unix socket; removed at the end */
    char text[160];                                       /* the address as it was bound */
};

/* Binds and listens on every address that `spec` stands for, and appends a listener for each to
 * `out`. With "tls:" in front of a TCP address the listeners are for TLS. A Unix socket is for this
 * user only, unless "?mode=0660&group=NAME" follows its path. After an error, `out` has the
 * listeners bound before it. EINUSE: the fault names the address. */
clave_err clave__listen(uv_loop_t *loop, const char *spec, listener_cb *ready, void *data,
                        struct list *out, const struct fault *f);
/* Checks whether `spec` stands for an address, without binding it: EINVAL, with the fault that
 * clave__listen would give. */
clave_err clave__listen_check(const char *spec, const struct fault *f);
/* Accepts a connection. Returns a non-blocking descriptor or a negated errno, -EAGAIN if none is
 * waiting. After any other error the listener rests for a tenth of a second, because the next call
 * would fail as well; meanwhile connections wait in the kernel's queue. */
int clave__listener_accept(struct listener *l);
/* Identifies the peer of an accepted socket; leaves `secure` false. */
void clave__listen_name_peer(int fd, bool is_unix, struct peer_addr *out);
/* Sets whether the owner is told of connections at all. */
void clave__listener_watch(struct listener *l, bool wanted);
/* Stops accepting, removes the socket's file, and frees the listener later. */
void clave__listener_close(struct listener *l);

#endif
