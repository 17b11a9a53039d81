/* unread_output.c - a client that does not read its answers: how much output may wait for it, and
 * for all; when a connection is not read any more, and when one is disconnected; see conn.h. */
#include <assert.h>

#include "server/connection/conn.h"

/* A client that does not read is disconnected at this many times max_output. */
enum { DISCONNECT_FACTOR = 512 };
/* How long all clients wait for one that takes no output. */
enum { NO_PROGRESS_MS = 1000 };
/* Replies of one connection that wait for the disk, and bytes of records not yet given to the disk.
 */
enum { MAX_UNDURABLE = 4096, MAX_PENDING = 64 * 1024 * 1024 };
/* Whether the bound on the output of all connections holds this one up. Up to twice the bound, a
 * connection without output may still get a little, so that clients that read do not wait for the
 * others. */
static bool unread_output_is_throttled(const struct server_conn *c)
{
    const struct server *s = c->s;
    return clave__conns_are_full(s) ||
           (c->undurable > 0 && s->counts.outstanding >= s->limits.max_outstanding) ||
           (c->undelivered > 0 && s->conns.undelivered >= s->limits.max_undelivered);
}

bool clave__conn_is_full(const struct server_conn *c)
{
    return unread_output_is_throttled(c) || clave__buf_len(&c->out) >= c->s->limits.max_output ||
           c->undurable >= MAX_UNDURABLE ||
           (c->undurable > 0 && (clave__buf_len(&c->s->txn_log.pending) >= MAX_PENDING ||
                                 clave__server_log_waits(c->s)));
}

bool clave__conns_are_full(const struct server *s)
{
    return s->conns.undelivered / 2 >= s->limits.max_undelivered;
}

bool clave__server_conn_wants_read(const struct server_conn *c)
{
    return clave__conn_is_open(c) && !clave__conn_is_full(c) && list_empty(&c->in_left);
}

size_t clave__conns_most_unread(const struct server *s)
{
    return s->limits.max_output * DISCONNECT_FACTOR;
}

void clave__conn_count_output(struct server_conn *c, bool some_taken)
{
    struct server *s = c->s;
    size_t now = clave__buf_len(&c->out) > 0 ? c->out.cap : 0;
    if (c->undelivered == 0 || now == 0 || some_taken) {
        list_remove(&c->in_with_output);
        c->undelivered_since = s->now;
        if (now > 0)
            list_push_back(&s->conns.with_output, &c->in_with_output);
    }
    assert(s->conns.undelivered >= c->undelivered);
    s->conns.undelivered = s->conns.undelivered - c->undelivered + now;
    c->undelivered = now;
}

int64_t clave__conns_deadline(const struct server *s)
{
    if (list_empty(&s->conns.with_output) || !clave__conns_are_full(s))
        return INT64_MAX;
    return LIST_ENTRY(s->conns.with_output.next, struct server_conn, in_with_output)
               ->undelivered_since +
           NO_PROGRESS_MS;
}

struct server_conn *clave__conns_next_stalled(struct server *s)
{
    while (clave__conns_deadline(s) <= s->now) {
        struct server_conn *c =
            LIST_ENTRY(s->conns.with_output.next, struct server_conn, in_with_output);
        if (c->mark_count == 0)
            return c;
        clave__conn_count_output(c, true); /* its output waits for our disk */
    }
    return NULL;
}
