/* memnet_step.c - message by message: nothing moves but what the test names. */
#include "lib/memnet_internal.h"
#include "server/request/request.h"

int memnet_next(struct memnet *p, size_t client, enum memnet_direction way)
{
    struct memnet_client *e = &p->clients[client];
    struct buf *b = way == MEMNET_REQUEST ? &e->up : &e->down;
    if (way == MEMNET_REQUEST && !e->severed && clave_async_client_wants(e->c) & CLAVE_WANT_WRITE)
        memnet__send_up(p, e);
    size_t n = memnet__whole_frame(b);
    if (n == 0 || (way == MEMNET_REQUEST && !e->conn))
        return MEMNET_NONE;
    const uint8_t *frame = clave__buf_bytes(b);
    if (way == MEMNET_REQUEST)
        return memnet__op_of_request(e, frame, n);
    return memnet__op_of_reply(e, frame);
}

void memnet_pass(struct memnet *p, size_t client, enum memnet_direction way)
{
    must(memnet__carry(p, &p->clients[client], way));
}

size_t memnet_under_way(struct memnet *p, size_t client, const int *ops, size_t n)
{
    const struct memnet_client *e = &p->clients[client];
    size_t count = 0;
    if (memnet_next(p, client, MEMNET_REQUEST) == MEMNET_NONE)
        return 0;
    const uint8_t *at = clave__buf_bytes(&e->up), *end = at + clave__buf_len(&e->up);
    for (size_t len; at < end; at += len) {
        len = 4 + (size_t)memnet__frame_int(at);
        for (size_t i = 0; i < n; i++)
            count += memnet__op_of_request(e, at, len) == ops[i];
    }
    return count;
}

void memnet_sever(struct memnet *p, size_t client)
{
    struct memnet_client *e = &p->clients[client];
    memnet_next(p, client, MEMNET_REQUEST); /* all that it has said is on its way */
    e->severed = true;
    e->closing = false;
    clave__buf_clear(&e->down);
    clave_async_client_disconnected(e->c, p->now);
}

void memnet_connect(struct memnet *p, size_t client)
{
    struct memnet_client *e = &p->clients[client];
    if (e->closing)
        clave_async_client_disconnected(e->c, p->now);
    if (e->conn)
        clave__server_conn_closed(e->conn);
    memnet__forget_connection(e);
    for (unsigned spin = 0; !clave_async_client_is_connected(e->c); spin++) {
        bool any = clave_async_client_wants(e->c) & (CLAVE_WANT_DIAL | CLAVE_WANT_HANGUP);
        must(spin < MEMNET_SPINS);
        if (any)
            memnet__step(p, e);
        for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++)
            if (memnet_next(p, client, way) == MEMNET_HANDSHAKE)
                any = memnet__carry(p, e, way);
        memnet__collect(p);
        if (e->closing && clave__buf_len(&e->down) == 0)
            memnet__cut(p, e);
        else if (!any) {
            memnet_tick(p, client);
        }
    }
}

void memnet_tick(struct memnet *p, size_t client)
{
    int64_t at = clave_async_client_deadline(p->clients[client].c);
    p->now = at > p->now ? at : p->now;
    clave_async_client_tick(p->clients[client].c, p->now);
}

void memnet_expire(struct memnet *p, size_t client)
{
    must(clave__session_expire(p->server, clave_async_client_session_id(p->clients[client].c)) ==
         CLAVE_OK);
    memnet__collect(p);
}
