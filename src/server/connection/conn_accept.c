/* conn_accept.c - a new connection, if there is room for one more; see conn.h. The driver calls it.
 * Invariant: at most max_connections are open. */
#include "base/memory.h"
#include "server/connection/conn.h"

/* The longest frame of a client without a session: a ConnectRequest has 49 bytes. */
enum { MAX_FIRST_FRAME = 1024 };
/* The longest chunk of input from the driver, in addition to a frame. */
enum { MAX_CHUNK = 1024 * 1024 };

bool clave__server_is_full(const struct server *s)
{
    return s->conns.n >= s->limits.max_connections;
}

void clave__server_note_rejected(struct server *s)
{
    s->counts.connections_rejected++;
}

struct server_conn *clave__server_accept(struct server *s, const struct peer_addr *peer, void *user)
{
    bool room = s->serving && !clave__server_is_full(s);
    struct server_conn *c = room ? clave__mem_zalloc(&s->mem, sizeof *c) : NULL;
    if (!c)
        return NULL;
    c->s = s;
    c->user = user;
    c->peer = *peer;
    c->wanted_read = true;
    c->accepted_at = c->last_reply_at = s->now;
    c->start_by = s->now + s->limits.sessionless_ms;
    c->unread_since = INT64_MAX;
    clave__frame_reader_init(&c->frames, &s->mem, s->limits.max_frame);
    if (c->frames.max_frame > MAX_FIRST_FRAME)
        c->frames.max_frame = MAX_FIRST_FRAME;
    clave__buf_init(&c->backlog, &s->mem, s->limits.max_frame + MAX_CHUNK);
    clave__buf_init(&c->out, &s->mem, clave__conns_most_unread(s));
    clave__identities_init(&c->who, &s->mem, peer);
    c->who.knows_x509 = s->x509;
    clave__identities_note_super_uid(&c->who, clave__jbytes(s->access.super_uid));
    clave__watcher_init(&c->watcher);
    list_push_back(&s->conns.all, &c->in_conns);
    list_push_back(&s->conns.sessionless, &c->in_sessionless);
    list_init(&c->in_ready);
    list_init(&c->in_waiting);
    list_init(&c->in_with_output);
    list_init(&c->in_paused);
    list_init(&c->in_left);
    list_init(&c->slow);
    s->conns.n++;
    return c;
}
