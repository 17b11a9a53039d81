#include "fuzz/line.h"

#include <string.h>

void line_hang_up(struct line *l)
{
    if (!l->linked)
        return;
    l->linked = false;
    desk_hang_up(&l->conn);
    clave_async_client_disconnected(l->c, l->d->now);
}

void line_obey(struct line *l)
{
    for (unsigned turn = 0; turn < 10; turn++) {
        unsigned wants = clave_async_client_wants(l->c);
        if (wants & CLAVE_WANT_HANGUP) {
            must(l->linked);
            line_hang_up(l);
        } else if (wants & CLAVE_WANT_DIAL) {
            must(!l->linked && clave_async_client_target(l->c).host != NULL);
            desk_dial(&l->conn, l->d);
            l->linked = true;
            clave_async_client_connected(l->c, l->d->now);
        } else {
            return;
        }
    }
}

void line_say(struct line *l, const uint8_t *bytes, size_t n)
{
    if (l->linked && clave_async_client_wants(l->c) & CLAVE_WANT_READ)
        clave_async_client_input(l->c, l->d->now, bytes, n);
    line_obey(l);
}

void line_say_frame(struct line *l, struct input part)
{
    uint8_t frame[4 + 255] = {0, 0, 0, (uint8_t)part.n};
    if (part.n > 0)
        memcpy(frame + 4, part.p, part.n);
    line_say(l, frame, 4 + part.n);
}

void line_relay(struct line *l, size_t at, uint8_t flip)
{
    const void *out;
    size_t n;
    while (l->linked && (n = clave_async_client_output(l->c, &out)) > 0) {
        desk_send(&l->conn, out, n);
        clave_async_client_sent(l->c, l->d->now, n);
    }
    n = l->linked ? clave__buf_len(&l->conn.in) : 0;
    if (n > 0) {
        uint8_t *copy = malloc(n); /* of its own size: what lies behind it may not be read */
        must(copy != NULL);
        memcpy(copy, clave__buf_bytes(&l->conn.in), n);
        clave__buf_clear(&l->conn.in);
        copy[at % n] ^= flip;
        line_say(l, copy, n);
        free(copy);
    }
    if (l->linked && !l->conn.c)
        line_hang_up(l);
    line_obey(l);
}

void line_wait(struct line *l, int64_t ms)
{
    int64_t until = l->d->now + ms;
    for (unsigned turn = 0; clave_async_client_deadline(l->c) <= until; turn++) {
        int64_t at = clave_async_client_deadline(l->c);
        must(turn < 10000);
        if (at > l->d->now)
            desk_advance(l->d, at - l->d->now);
        clave_async_client_tick(l->c, l->d->now);
        line_obey(l);
        if (l->linked && clave_async_client_wants(l->c) & CLAVE_WANT_WRITE)
            break; /* what it says has to be relayed, or it would say it for ever */
    }
    if (until > l->d->now)
        desk_advance(l->d, until - l->d->now);
    clave_async_client_tick(l->c, l->d->now);
    line_obey(l);
}
