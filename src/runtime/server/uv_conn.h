/* uv_conn.h - a connection of a server: a channel (channel.h) with the engine above it. accept.c
 * takes it in, tls_handshakes.c lets it shake hands, fair_reading.c says how much of it is read. */
#ifndef CLAVE_RUNTIME_SERVER_UV_CONN_H
#define CLAVE_RUNTIME_SERVER_UV_CONN_H

#include "runtime/server/uv_server_internal.h"

struct conn {
    struct list link;
    struct list in_handshakes; /* it is not read before its turn to shake hands */
    struct list in_hung_up;
    int why; /* its client hung up */
    struct fair_reader reader;
    struct server_conn *engine; /* NULL: not accepted yet, or closing */
    struct address *address;    /* NULL: not counted */
    bool has_session;           /* or had */
    struct channel channel;
};

static inline struct conn *clave__conn_of(struct channel *ch)
{
    return LIST_ENTRY(ch, struct conn, channel);
}

/* The server on whose loop it is. */
static inline struct server_run *clave__conn_run(struct channel *ch)
{
    return LIST_ENTRY(ch->socket.handle.loop, struct server_run, loop);
}

/* Takes the socket, and the place that `a` has counted for it. NULL: out of memory. It may be
 * closing already. */
struct conn *clave__conn_new(struct server_run *r, int fd, bool is_unix, struct address *a);
/* Reads it if the engine wants to and its turn has come. */
void clave__conn_set_reading(struct conn *c);
/* It is secured, and waits for its turn to shake hands. */
void clave__conn_await_handshake(struct conn *c);

#endif
