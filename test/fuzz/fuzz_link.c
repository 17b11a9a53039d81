#include "fuzz/fuzz_link.h"

#include <string.h>

void link_hang_up(struct fuzz_link *l)
{
    if (!l->linked)
        return;
    l->linked = false;
    memserver_hang_up(&l->conn);
    clave_async_client_disconnected(l->c, l->d->now);
}

void link_follow(struct fuzz_link *l)
{
    for (unsigned turn = 0; turn < 10; turn++) {
        unsigned wants = clave_async_client_wants(l->c);
        if (wants & CLAVE_WANT_HANGUP) {
            must(l->linked);
            link_hang_up(l);
        } else if (wants & CLAVE_WANT_DIAL) {
            must(!l->linked && clave_async_client_target(l->c).host != NULL);
            memserver_dial(&l->conn, l->d);
            l->linked = true;
            clave_async_client_connected(l->c, l->d->now);
        } else {
            return;
        }
    }
}

void link_send(struct fuzz_link *l, const uint8_t *bytes, size_t n)
{
    if (l->linked && clave_async_client_wants(l->c) & CLAVE_WANT_READ)
        clave_async_client_input(l->c, l->d->now, bytes, n);
    link_follow(l);
}

void link_send_frame(struct fuzz_link *l, struct input part)
{
    uint8_t frame[4 + 255] = {0, 0, 0, (uint8_t)part.n};
    if (part.n > 0)
        memcpy(frame + 4, part.p, part.n);
    link_send(l, frame, 4 + part.n);
}

void link_carry(struct fuzz_link *l, size_t at, uint8_t flip)
{
    const void *out;
    size_t n;
    while (l->linked && (n = clave_async_client_output(l->c, &out)) > 0) {
        memserver_send(&l->conn, out, n);
        clave_async_client_sent(l->c, l->d->now, n);
    }
    n = l->linked ? clave__buf_len(&l->conn.in) : 0;
    if (n > 0) {
        uint8_t *copy = malloc(n); /* of its own size: what lies after it may not be read */
        must(copy != NULL);
        memcpy(copy, clave__buf_bytes(&l->conn.in), n);
        clave__buf_clear(&l->conn.in);
        copy[at % n] ^= flip;
        link_send(l, copy, n);
        free(copy);
    }
    if (l->linked && !l->conn.c)
        link_hang_up(l);
    link_follow(l);
}

void link_advance(struct fuzz_link *l, int64_t ms)
{
    int64_t until = l->d->now + ms;
    for (unsigned turn = 0; clave_async_client_deadline(l->c) <= until; turn++) {
        int64_t at = clave_async_client_deadline(l->c);
        must(turn < 10000);
        if (at > l->d->now)
            memserver_advance(l->d, at - l->d->now);
        clave_async_client_tick(l->c, l->d->now);
        link_follow(l);
        if (l->linked && clave_async_client_wants(l->c) & CLAVE_WANT_WRITE)
            break; /* what it says has to be relayed, or it would say it for ever */
    }
    if (until > l->d->now)
        memserver_advance(l->d, until - l->d->now);
    clave_async_client_tick(l->c, l->d->now);
    link_follow(l);
}
