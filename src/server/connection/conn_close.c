/* conn_close.c - the end of a connection, what the driver has to know of it, and the lines about it
 * in the log; see conn.h. Everything that refuses a client calls it. Invariant: a connection that
 * is closed has no session and takes no input. */
#include <assert.h>
#include <stdarg.h>

#include "server/connection/fair_schedule.h"

void clave__conn_mark_ready(struct server_conn *c)
{
    if (list_empty(&c->in_ready))
        list_push_back(&c->s->conns.ready[clave__fair_schedule_class_of(c)], &c->in_ready);
}

void clave__conn_log(const struct server_conn *c, int level, const char *fmt, ...)
{
    const struct log_about about = {.connection = c->peer.text,
                                    .session = c->session ? c->session->id : c->told_id};
    va_list ap;
    va_start(ap, fmt);
    clave__log_list(&c->s->log, level, &about, fmt, ap);
    va_end(ap);
}

/* ---- closing --------------------------------------------------------------------------------- */

void clave__conn_end_list(struct server_conn *c)
{
    c->list_goes_on = false;
    clave__conn_mark_ready(c);
}

static void conn_close_drop_output(struct server_conn *c)
{
    assert(c->s->counts.outstanding >= c->undurable);
    c->s->counts.outstanding -= c->undurable;
    c->undurable = 0;
    c->mark_count = 0;
    c->releasable = c->written;
    list_remove(&c->in_waiting);
    clave__buf_fini(&c->out);
    clave__conn_count_output(c, true);
}

void clave__conn_close(struct server_conn *c)
{
    if (!clave__conn_is_open(c))
        return;
    c->state = CONN_CLOSING;
    if (c->session)
        clave__session_detach(&c->s->sessions, c->session, &c->peer);
    c->session = NULL;
    list_remove(&c->in_sessionless);
    list_remove(&c->in_paused);
    list_remove(&c->in_left);
    clave__conn_mark_ready(c);
}

void clave__conn_cut(struct server_conn *c)
{
    clave__conn_close(c);
    clave__conn_end_list(c);
    conn_close_drop_output(c);
}

bool clave__server_conn_wants_close(const struct server_conn *c)
{
    return !clave__conn_is_open(c) && c->mark_count == 0 && !c->list_goes_on;
}
