/* memnet_step.c - message by message: nothing moves but what the test names. */
#include "lib/memnet_internal.h"
#include "server/request/write.h"

int pair_next(struct pair *p, size_t client, enum pair_way way)
{
    struct pair_end *e = &p->end[client];
    struct buf *b = way == PAIR_REQUEST ? &e->up : &e->down;
    if (way == PAIR_REQUEST && !e->severed && clave_async_client_wants(e->c) & CLAVE_WANT_WRITE)
        pair__send_up(p, e);
    size_t n = pair__whole_frame(b);
    if (n == 0 || (way == PAIR_REQUEST && !e->conn))
        return PAIR_NONE;
    const uint8_t *frame = clave__buf_bytes(b);
    if (way == PAIR_REQUEST)
        return pair__op_of_request(e, frame, n);
    return pair__op_of_reply(e, frame);
}

void pair_pass(struct pair *p, size_t client, enum pair_way way)
{
    must(pair__carry(p, &p->end[client], way));
}

size_t pair_under_way(struct pair *p, size_t client, const int *ops, size_t n)
{
    const struct pair_end *e = &p->end[client];
    size_t count = 0;
    if (pair_next(p, client, PAIR_REQUEST) == PAIR_NONE)
        return 0;
    const uint8_t *at = clave__buf_bytes(&e->up), *end = at + clave__buf_len(&e->up);
    for (size_t len; at < end; at += len) {
        len = 4 + (size_t)pair__frame_int(at);
        for (size_t i = 0; i < n; i++)
            count += pair__op_of_request(e, at, len) == ops[i];
    }
    return count;
}

void pair_sever(struct pair *p, size_t client)
{
    struct pair_end *e = &p->end[client];
    pair_next(p, client, PAIR_REQUEST); /* all that it has said is on its way */
    e->severed = true;
    e->closing = false;
    clave__buf_clear(&e->down);
    clave_async_client_disconnected(e->c, p->now);
}

void pair_connect(struct pair *p, size_t client)
{
    struct pair_end *e = &p->end[client];
    if (e->closing)
        clave_async_client_disconnected(e->c, p->now);
    if (e->conn)
        clave__server_conn_closed(e->conn);
    pair__forget_connection(e);
    for (unsigned spin = 0; !clave_async_client_is_connected(e->c); spin++) {
        bool any = clave_async_client_wants(e->c) & (CLAVE_WANT_DIAL | CLAVE_WANT_HANGUP);
        must(spin < PAIR_SPINS);
        if (any)
            pair__step(p, e);
        for (int way = PAIR_REQUEST; way <= PAIR_REPLY; way++)
            if (pair_next(p, client, way) == PAIR_HANDSHAKE)
                any = pair__carry(p, e, way);
        pair__collect(p);
        if (e->closing && clave__buf_len(&e->down) == 0)
            pair__cut(p, e);
        else if (!any) {
            pair_tick(p, client);
        }
    }
}

void pair_tick(struct pair *p, size_t client)
{
    int64_t at = clave_async_client_deadline(p->end[client].c);
    p->now = at > p->now ? at : p->now;
    clave_async_client_tick(p->end[client].c, p->now);
}

void pair_expire(struct pair *p, size_t client)
{
    must(clave__session_expire(p->server, clave_async_client_session_id(p->end[client].c)) ==
         CLAVE_OK);
    pair__collect(p);
}
